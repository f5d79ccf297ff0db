"""Labels of filters as a file has them; HDF5 itself returns those of the plugins that the process has loaded.

A list of filters has a label for each filter that its writer knew. Where a label is absent and the filter is registered
by now, H5Ocopy writes the label into a copy that has no room for it, and nobody can open the copy (HDF5 1.14 and 2.0).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress

import h5py
from h5py import h5p

from tamis.arrays.source import ByteSource
from tamis.formats.hdf5.lib.files import source_of
from tamis.formats.hdf5.lib.new_filters import is_registered
from tamis.formats.hdf5.lib.object_headers import SHARED, messages

_FILTERS, _FIRST_WITH_LABEL = 11, 256


class Labels:
    """The labels that files have, which stay open."""

    def __init__(self) -> None:
        self._files: dict[int, tuple[ByteSource, int]] = {}  # Bytes, and where addresses begin

    def are_lacking(self, file: h5py.File, address: int, plist: h5p.PropDCID) -> bool:
        """Return whether H5Ocopy would write labels of filters into a copy of a dataset that has no room for them.

        Parameters
        ----------
        file
            The file of the dataset.
        address
            Address of its header.
        plist
            Its creation properties.
        """
        codes = [plist.get_filter(index)[0] for index in range(plist.get_nfilters())]
        codes = [code for code in codes if code >= _FIRST_WITH_LABEL]
        if not codes:
            return False
        with suppress(IndexError, LookupError, struct.error):  # unreadable: they may have labels, or not
            source, base = self._bytes_of(file)
            labels = dict(_labels(_list_of_filters(source, base + address, base)))
            codes = [code for code in codes if not labels.get(code)]
        return any(map(is_registered, codes))

    def _bytes_of(self, file: h5py.File) -> tuple[ByteSource, int]:
        if id(file) not in self._files:
            self._files[id(file)] = source_of(file), file.userblock_size
        return self._files[id(file)]


def _list_of_filters(file: ByteSource, offset: int, base: int) -> bytes:
    """Return the content of the message that has the filters; raise LookupError if there is none in the file."""
    for message in messages(file, offset, base):
        if message.kind == _FILTERS and not message.flags & SHARED:
            return message.content
    raise LookupError("expected a list of filters")


def _labels(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the label of each filter of a list."""
    version, count = content[0], content[1]
    at = 8 if version == 1 else 2
    for _ in range(count):
        code = struct.unpack_from("<H", content, at)[0]
        at += 2
        nbytes = 0
        if version == 1 or code >= _FIRST_WITH_LABEL:
            nbytes = struct.unpack_from("<H", content, at)[0]
            at += 2
        count_of_values = struct.unpack_from("<HH", content, at)[1]
        at += 4
        yield code, content[at : at + nbytes].rstrip(b"\0")
        at += nbytes + 4 * count_of_values
        if version == 1 and count_of_values % 2:
            at += 4  # for whole words of 8 bytes
