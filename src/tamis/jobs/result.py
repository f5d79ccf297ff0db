"""Base classes of all results: text, JSON and HTML; and datasets by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tamis.jobs.json_rule import json_text
from tamis.kinds import TEXT, WHOLE, Kind, checked

if TYPE_CHECKING:
    from tamis.jobs.parts import Line, Part


class HasPath(Protocol):
    """The part of a result about one dataset."""

    @property
    def path(self) -> str:
        """Path of the dataset."""


_SPACES = Kind("a number of spaces up to 80", lambda value: WHOLE.fits(value) and value <= 80)
D_co = TypeVar("D_co", bound=HasPath, covariant=True)


class Result(ABC):
    """The result of a job, with forms for terminals, notebooks and JSON."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""

    @abstractmethod
    def _parts(self) -> Iterable[Part]:
        """Return the parts that people see."""

    @checked(indent=_SPACES)
    def to_json(self, *, indent: int | None = None) -> str:
        """Return JSON in ASCII; numbers that are not finite are the texts ``inf``, ``-inf`` and ``nan``."""
        return json_text(self.to_dict(), indent=indent)

    @checked(width=WHOLE)
    def lines(self, width: int | None = None) -> Iterator[Line]:
        """Yield kind and text of each line, folded to `width` characters; in full if None."""
        from tamis.jobs.parts import lines_of

        return lines_of(self._parts(), width)

    def __str__(self) -> str:
        return "\n".join(text for _, text in self.lines())

    def _repr_html_(self) -> str:
        from tamis.jobs.notebook import page

        return page(self._parts())


class DatasetsResult(Result, Generic[D_co]):
    """A result with an entry for each dataset: ``result["TS"]``."""

    __slots__ = ()

    if TYPE_CHECKING:  # at run time a dataclass would take it for the default of its field

        @property
        def datasets(self) -> tuple[D_co, ...]:
            """The datasets of the result."""

    @checked(path=TEXT)
    def __getitem__(self, path: str) -> D_co:
        """Return the entry of the dataset with this path; ``TS`` means ``/TS``."""
        whole_path = path if path.startswith("/") else f"/{path}"
        for dataset in self.datasets:
            if dataset.path == whole_path:
                return dataset
        raise KeyError(path)

    def __iter__(self) -> Iterator[str]:
        return (dataset.path for dataset in self.datasets)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and path in {known for own in self for known in (own, own.removeprefix("/"))}
