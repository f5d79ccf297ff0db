"""A file as a store, an array of it, and its writer have what the protocols ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from in_memory import MemorySource

import tamis
from tamis.arrays.source import ByteSource, FileSource
from tamis.formats import open_store
from tamis.formats.hdf5.store import Hdf5Store
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.formats.hdf5.writer import Hdf5Writer
from tamis.stores import Store, StoredArray
from tamis.stores.protocols import ArrayWriter

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "cam_ts.nc"


@pytest.mark.parametrize(
    ("protocol", "kind", "attributes"),
    [
        (Store, Hdf5Store, {"path"}),
        (StoredArray, Hdf5Array, {"path"}),
        (ArrayWriter, Hdf5Writer, {"grid", "recorded", "stored_nbytes"}),
        (ByteSource, FileSource, set()),
        (ByteSource, MemorySource, set()),
    ],
)
def test_class_has_all_members_of_its_protocol(protocol: type, kind: type, attributes: set[str]) -> None:
    members = {name for name in vars(protocol) if not name.startswith("_")}
    assert members
    assert members - attributes <= set(dir(kind))


def test_open_store_gives_arrays_by_any_path() -> None:
    with open_store(SAMPLE) as store:
        assert store.nbytes > 0
        assert store.first_path("/TS") == "/TS"
        assert store.first_path("/nowhere") == ""
        array = store.array("/TS")
        assert (array.shape, array.storage.chunk_shape) == ((30, 192, 288), (1, 192, 288))
        assert array.chunk_index().nbytes == array.stored_nbytes


def test_open_store_refuses_what_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(tamis.FileError, match="No such file"):
        open_store(tmp_path / "none.nc")


def test_memory_source_reads_as_a_file_does() -> None:
    source, room = MemorySource(b"0123456789"), bytearray(4)
    assert (source.nbytes, source.read(2, 3), source.read(8, 9)) == (10, b"234", b"89")
    assert (source.read_into(7, memoryview(room)), bytes(room[:3])) == (3, b"789")
    assert source.read_many([(0, 1), (4, 2)]) == [b"0", b"45"]
