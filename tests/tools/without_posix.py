"""Python as it is on a system that has neither Linux's nor POSIX's own calls, for a process and those that it starts.

Put the folder of `environment` before all others on PYTHONPATH: Python imports `sitecustomize` there at its start.
"""

from __future__ import annotations

import os
from pathlib import Path

# Not set_blocking: Python itself asks for it where it takes a pipe for the numbers of signals.
MODULES = ("fcntl", "resource", "pwd", "grp", "termios")
OF_OS = (
    *("pread", "preadv", "pwrite", "pwritev", "sched_getaffinity", "sched_setaffinity"),
    *("getuid", "geteuid", "getgid", "getegid", "getgroups", "chown", "fchown", "lchown", "fork", "forkpty"),
    *("listxattr", "getxattr", "setxattr", "removexattr", "memfd_create", "posix_fallocate", "posix_fadvise"),
    *("register_at_fork", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "O_DIRECT"),
)
OF_SIGNAL = ("pthread_sigmask", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU")
OF_LIBC = ("renameat2", "syncfs", "mallopt")

SITECUSTOMIZE = f"""
import ctypes, os, select, signal, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in {MODULES!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

for name in {MODULES!r}:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Refuse())
for name in {OF_OS!r}:
    vars(os).pop(name, None)
if hasattr(os, "process_cpu_count"):  # from Python 3.13 on, which Python's own threads ask
    os.process_cpu_count = os.cpu_count
for name in {OF_SIGNAL!r}:
    vars(signal).pop(name, None)
for name in ("poll", "epoll"):
    vars(select).pop(name, None)
os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks = set(), set(), set()
found = ctypes.CDLL.__getattr__

def get(library, name):
    if name in {OF_LIBC!r}:
        raise AttributeError(name)
    return found(library, name)

ctypes.CDLL.__getattr__ = get
"""


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a process without these calls; a new file is written into a folder."""
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)
    return {**os.environ, "PYTHONPATH": str(folder)}
