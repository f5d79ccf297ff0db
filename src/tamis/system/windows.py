"""Calls of Windows that Python lacks, each under the name that Microsoft's documentation has for it.

Nothing here exists on another system. The modules beside this one say what the calls are for.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ctypes
    import msvcrt
    import os
    from ctypes import wintypes

    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)

    kernel32.CreateFileW.restype = kernel32.ReOpenFile.restype = wintypes.HANDLE
    kernel32.CreateFileW.argtypes = [
        wintypes.LPCWSTR,  # lpFileName
        wintypes.DWORD,  # dwDesiredAccess
        wintypes.DWORD,  # dwShareMode
        wintypes.LPVOID,  # lpSecurityAttributes
        wintypes.DWORD,  # dwCreationDisposition
        wintypes.DWORD,  # dwFlagsAndAttributes
        wintypes.HANDLE,  # hTemplateFile
    ]
    kernel32.ReOpenFile.argtypes = [wintypes.HANDLE, wintypes.DWORD, wintypes.DWORD, wintypes.DWORD]

    _INVALID = wintypes.HANDLE(-1).value
    GENERIC_READ, GENERIC_WRITE = 0x80000000, 0x40000000
    FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_SHARE_DELETE = 1, 2, 4
    SHARE_ALL = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE
    _CREATE_NEW, _CREATE_ALWAYS, _OPEN_EXISTING, _OPEN_ALWAYS, _TRUNCATE_EXISTING = 1, 2, 3, 4, 5
    _FILE_FLAG_BACKUP_SEMANTICS = 0x02000000  # without it, folders cannot be opened
    _FILE_FLAG_OPEN_REPARSE_POINT = 0x00200000  # opens a link itself

    def last_error(path: str = "") -> OSError:
        """Return the error of the last call, of the class that its errno has in Python."""
        code = ctypes.get_last_error()
        return OSError(None, ctypes.FormatError(code), path or None, code)

    def open_handle(path: str, flags: int, *, share: int = SHARE_ALL, follows: bool = True) -> int:
        """Open a file or folder as `os.open` does, so that others may rename and remove it meanwhile, as on POSIX.

        That is FILE_SHARE_DELETE, which `os.open` does not give.
        """
        access = GENERIC_WRITE if flags & os.O_WRONLY else GENERIC_READ
        if flags & os.O_RDWR:
            access = GENERIC_READ | GENERIC_WRITE
        attributes = _FILE_FLAG_BACKUP_SEMANTICS | (0 if follows else _FILE_FLAG_OPEN_REPARSE_POINT)
        handle = kernel32.CreateFileW(path, access, share, None, _disposition(flags), attributes, None)
        if handle == _INVALID:
            raise last_error(path)
        return _descriptor(handle, flags)

    def _disposition(flags: int) -> int:
        if flags & os.O_CREAT:
            if flags & os.O_EXCL:
                return _CREATE_NEW
            return _CREATE_ALWAYS if flags & os.O_TRUNC else _OPEN_ALWAYS
        return _TRUNCATE_EXISTING if flags & os.O_TRUNC else _OPEN_EXISTING

    def _descriptor(handle: int, flags: int) -> int:
        """Return a descriptor that owns a handle: of bytes, not of lines, and not for processes that are started."""
        kept = flags & (os.O_APPEND | os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
        return msvcrt.open_osfhandle(handle, kept | os.O_BINARY | os.O_NOINHERIT)

    def opened_again(descriptor: int) -> int:
        """Return another descriptor of an open file, for reading, with a position of its own."""
        handle = kernel32.ReOpenFile(msvcrt.get_osfhandle(descriptor), GENERIC_READ, SHARE_ALL, 0)
        if handle == _INVALID:
            raise last_error()
        return _descriptor(handle, os.O_RDONLY)

    def path_of(descriptor: int) -> str:
        """Return the path of an open file or folder, wherever it is by now."""
        handle = wintypes.HANDLE(msvcrt.get_osfhandle(descriptor))
        room = ctypes.create_unicode_buffer(1 << 15)
        count = kernel32.GetFinalPathNameByHandleW(handle, room, len(room), 0)
        if not 0 < count < len(room):
            raise last_error()
        return room.value
