"""Read a process's memory usage from the kernel. Linux only."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

__all__ = ["growth_mb", "start_mb"]


def start_mb() -> float:
    """Return the resident memory after freeing what is unused, and reset the kernel's peak."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl does not
    if trim is not None:
        trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _status_mb("VmRSS")


def growth_mb(since_mb: float) -> float:
    """Return by how much the peak since the call of `start_mb` exceeds the value that this call returned."""
    return _status_mb("VmHWM") - since_mb


def _status_mb(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise AssertionError(name)
