"""Codecs of Zarr that HDF5 has no filters for, as they are listed among filters."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from tamis.errors import MissingFilterError, ParameterError
from tamis.filters import ChunkType, Data, Filter


@dataclass(frozen=True, slots=True)
class ZarrCodec(Filter):
    """A codec by its name; zarr-python decodes it, and nothing encodes it in HDF5.

    Parameters
    ----------
    name
        Name of the codec.
    config
        Its parameters, as JSON.
    """

    name: str = "codec"  # type: ignore[misc]  # a name for each instance, not for the class
    config: str = field(default="")
    id: ClassVar[int] = 0
    registered_name: ClassVar[str] = ""

    @classmethod
    def of(cls, metadata: dict[str, Any]) -> Self:
        """Return the codec of metadata of version 2 or 3."""
        known = {key: value for key, value in metadata.items() if key not in ("id", "name", "configuration")}
        config = metadata.get("configuration") or known
        text = ",".join(
            f"{key}={json.dumps(value)}" for key, value in config.items() if not isinstance(value, (list, dict))
        )
        return cls(str(metadata.get("id", metadata.get("name"))), text)

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Refuse: HDF5 has no such filter."""
        raise ParameterError("expected the metadata of a codec of Zarr, got parameters of an HDF5 filter")

    @property
    def requested(self) -> tuple[int, ...]:
        """Nothing: HDF5 has no such filter."""
        return ()

    def unencodable(self) -> str:
        """Return why tamis cannot encode it."""
        return f"HDF5 has no filter for the Zarr codec {self}: choose filters with -f"

    def undecodable(self) -> str:
        """Return why tamis cannot decode it by itself."""
        return self.unencodable()

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Refuse."""
        raise MissingFilterError(self.unencodable())

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Refuse."""
        raise MissingFilterError(self.undecodable())

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return the codec and its parameters."""
        return f"Zarr codec {self}"

    def __str__(self) -> str:
        return f"{self.name}({self.config})" if self.config else self.name
