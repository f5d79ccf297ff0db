"""A format of the tests alone, which shows what a format needs: a folder with JSON, and a ``.npy`` of each variable."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from tamis import FileError, Pipeline
from tamis.arrays import ArrayReader, Region
from tamis.arrays.reader import ValuesReader
from tamis.formats.registry import Format
from tamis.reading.listed import ListedReader
from tamis.rewrite.plain_target import PlainForm, PlainTarget
from tamis.safety.transaction import FolderTransaction
from tamis.stores import Dimension, StoredArray
from tamis.stores.data_model import NamedArray, NamedGroup
from tamis.stores.source import Source, SourceStore

ABOUT = "toy.json"


def is_toy(path: Any) -> bool:
    return Path(path, ABOUT).is_file()


def place_of(folder: Path, path: str) -> Path:
    return folder / f"{path.strip('/').replace('/', '+')}.npy"


def in_json(value: Any) -> dict[str, Any]:
    return {"type": str(value.dtype), "number": value.tolist()}


def number(item: dict[str, Any]) -> Any:
    return np.array(item["number"], item["type"])[()] if item.keys() == {"type", "number"} else item


class ToySource(Source):
    """A folder for reading."""

    kind, reader_words = "toy", "the tests of tamis"

    def __init__(self, path: str) -> None:
        self.path, self.nbytes = path, sum(item.stat().st_size for item in Path(path).iterdir())
        document = json.loads(Path(path, ABOUT).read_text(), object_hook=number)
        self.groups = [self._group(name, about) for name, about in document.items()]

    def _group(self, path: str, about: Any) -> NamedGroup:
        dimensions = {name: Dimension(*of) for name, of in about["dimensions"].items()}
        variables = {name: self._variable(path, name, **of) for name, of in about["variables"].items()}
        return NamedGroup(path, dimensions, variables, about["attributes"], {})

    def _variable(self, group: str, name: str, dimensions: Any, attributes: Any, fill: Any) -> NamedArray:
        path = f"{group.rstrip('/')}/{name}"
        values = np.load(place_of(Path(self.path), path), mmap_mode="r")
        shape, dtype = values.shape, values.dtype
        return NamedArray(path, tuple(dimensions), shape, shape, dtype, fill, attributes, None, Pipeline(()))

    def open_values(self, variable: NamedArray) -> ArrayReader:
        return ValuesReader(np.load(place_of(Path(self.path), variable.path), mmap_mode="r"), None)


class ToyTarget(PlainTarget):
    """A folder that is written."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._groups = folder, dict[str, Any]()
        folder.mkdir()

    def create_group(self, group: NamedGroup) -> None:
        dimensions = {name: [item.size, item.is_unlimited] for name, item in group.dimensions.items()}
        self._groups[group.path] = {"dimensions": dimensions, "attributes": dict(group.attributes), "variables": {}}

    def put_variable(self, variable: NamedArray, values: Iterable[tuple[Region, NDArray[Any]]]) -> None:
        group, _, name = variable.path.rpartition("/")
        fill = np.asarray(variable.fill_value, variable.dtype)
        own = {"dimensions": variable.dimensions, "attributes": dict(variable.attributes), "fill": fill}
        self._groups[group or "/"]["variables"][name] = own
        place = place_of(self._folder, variable.path)
        stored = open_memmap(place, "w+", variable.dtype, variable.shape)  # type: ignore[no-untyped-call]
        for region, part in values:
            stored[region] = part

    def set_history(self, text: str) -> None:
        self._groups["/"]["attributes"]["history"] = text

    def complete(self) -> None:
        (self._folder / ABOUT).write_text(json.dumps(self._groups, default=in_json))


class ToyForm(PlainForm):
    """The form of such a folder."""

    def begin(self, target: Path, *, overwrite: bool = True, private: bool = False) -> FolderTransaction:
        return FolderTransaction(target, self, overwrite=overwrite, private=private)

    def is_store(self, path: Path) -> bool:
        return is_toy(path)

    def target(self, path: Path) -> ToyTarget:
        return ToyTarget(path)

    def check(self, variable: NamedArray, array: StoredArray) -> None:
        if variable.dtype.kind not in "iuf":
            raise FileError(f"expected numbers, got {variable.dtype}")


def opened(path: str) -> SourceStore:
    return SourceStore(ToySource(path))


FORMAT = Format(is_toy, opened, lambda path: ListedReader(opened(path)), ".toy", lambda target, options: ToyForm())
