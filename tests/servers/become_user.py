"""Become a program of another user that dies with its parent: ``become_user.py UID GID COMMAND…``.

Continues the launcher of `holdfast.s3_server.start_server`: a change of user undoes the wish to die with the parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _become(uid: str, gid: str, *command: str) -> None:
    parent = os.getppid()
    os.setgroups([])
    os.setgid(int(gid))
    os.setuid(int(uid))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # the parent died before
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by this interpreter; servers expect the default
        signal.signal(ignored, signal.SIG_DFL)
    os.execvp(command[0], command)


if __name__ == "__main__":
    _become(*sys.argv[1:])
