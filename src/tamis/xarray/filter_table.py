"""The filters of a dataset's variables, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from xarray import Dataset

from tamis.formatting import printable, shape_text
from tamis.jobs.json_rule import SCHEMA
from tamis.jobs.result import Result
from tamis.pipeline import Pipeline
from tamis.xarray.encoding_filters import encoding_pipeline

if TYPE_CHECKING:
    from tamis.jobs.parts import Part


class Filters(Result, dict[str, Pipeline]):
    """Filters by variable, as its encoding has them; prints as a table."""

    def __init__(self, dataset: Dataset) -> None:
        variables = {str(name): variable for name, variable in dataset.variables.items()}
        super().__init__({name: encoding_pipeline(name, own.encoding) for name, own in variables.items()})
        self._encodings = {name: variable.encoding for name, variable in variables.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        return {
            "schema": SCHEMA,
            "variables": [
                {"name": name, "pipeline": str(pipeline), "chunks": self._encodings[name].get("chunksizes")}
                for name, pipeline in self.items()
            ],
        }

    def _parts(self) -> Iterator[Part]:
        from tamis.jobs.parts import Table

        rows = [("variable", "filters", "chunks", "type")]
        for name, pipeline in self.items():
            chunks, dtype = (self._encodings[name].get(key) for key in ("chunksizes", "dtype"))
            texts = "\n".join(map(str, pipeline.stages)), shape_text(chunks) if chunks else ""
            rows.append((printable(name), *texts, "" if dtype is None else str(dtype)))
        yield Table(rows, folded=[1], code=[1])
