"""The job doctor: what is installed and runs here, what is wrong, and what to do about it.

Each subject is examined by itself, so that one that fails leaves the others; what may end a process, such as a plugin
that is loaded, is tried in a process of its own.

- `job`: all subjects in a row.
- `result`: what was found, as text and JSON.
- `packages`, `machine`, `place`, `libraries`, `plugins`, `readers`: the subjects.
- `child`, `_probe`: the process that tries things, and what it runs.
"""
