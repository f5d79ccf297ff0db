"""The command line.

- `main`: the group of commands, which are imported when they are called.
- `output`, `ending`: what a command prints, and how it ends: exit codes, signals.
- `options`, `many`: options that several commands share, and those for many files.
"""

from tamis.cli.main import main, preload

__all__ = ["main", "preload"]
