"""Become a server that dies with its parent: ``launch.py PARENT UID GID COMMAND…``; UID and GID are empty to keep them.

A program of its own, run by `start_server`: what `subprocess` would call between fork and exec (``preexec_fn``) runs
after the hooks that libraries have for forks, with whatever locks other threads had just then, and may wait forever.
What belonged to the parent's other threads ends in the child: py4j then cuts their connections to Spark, in the parent
too, and the threads of Spark that replace the lost ones have no active session.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _launch(parent: str, uid: str, gid: str, *command: str) -> None:
    if uid:
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # after the change of user, which would undo it
    if os.getppid() != int(parent):
        os._exit(1)  # the parent died before
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by this interpreter; servers expect the default
        signal.signal(ignored, signal.SIG_DFL)
    os.execvp(command[0], command)


if __name__ == "__main__":
    _launch(*sys.argv[1:])
