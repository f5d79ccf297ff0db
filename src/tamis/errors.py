"""The errors that tamis raises.

::

    TamisError
    ├── ParameterError     (ValueError)  an invalid mode, parameter, notation, type or chunk shape
    ├── DataError          (ValueError)  values that a filter cannot encode
    ├── StreamError        (ValueError)  encoded bytes or stored parameters that are damaged, truncated or unknown
    ├── FileError          (OSError)     a file or dataset that cannot be read, written or found
    ├── MissingFilterError (ImportError) a filter that is not installed here, or that tamis cannot encode
    └── BoundError         (ValueError)  stored values that differ from their source by more than the bound
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypedDict, Unpack

from tamis.formatting import printable_lines

_LONGEST = 4000
"""Letters of a message."""


class _Place(TypedDict, total=False):
    """The known place of an error; see the properties of `TamisError`."""

    path: str | os.PathLike[str] | None
    dataset: str | None
    chunk: tuple[int, ...] | None
    filter: object


class TamisError(Exception):
    """The base class of all errors of tamis; its text has no control characters.

    `path`, `dataset`, `chunk` and `filter` say where; each is None if it does not apply or is not known.
    """

    @property
    def path(self) -> str | None:
        """Path of the file."""
        path = self._known().get("path")
        return None if path is None else os.fsdecode(path)

    @property
    def dataset(self) -> str | None:
        """Path of the dataset; name of the variable if there is no file."""
        return self._known().get("dataset")

    @property
    def chunk(self) -> tuple[int, ...] | None:
        """Origin of the chunk: the index of its first value."""
        return self._known().get("chunk")

    @property
    def filter(self) -> str | None:
        """Text of the filter, such as ``zfp(rate=8)``; its name if its parameters are wrong."""
        subject = self._known().get("filter")
        return None if subject is None else str(subject)

    def at(self, label: str = "", /, **place: Unpack[_Place]) -> Self:
        """Add where the error happened, and return the error.

        Parameters
        ----------
        label
            Text to put before the message, with a colon, without parts that the message already begins with.
        path, dataset, chunk, filter
            Values of the properties. A property that has a value keeps it: the innermost place wins.
        """
        if label:
            self.args = (_labelled(label, Exception.__str__(self)),)
        self._place = _merged(self._known(), place)
        return self

    def renaming(self, old: str, new: str) -> Self:
        """Say a name instead of another one, such as a target's instead of its temporary one; return the error."""
        self.args = (Exception.__str__(self).replace(old, new),)
        known = self._known().get("path")
        if known is not None and os.fsdecode(known) == old:
            self._place = {**self._known(), "path": new}
        return self

    def _known(self) -> _Place:
        """Return the place added here, completed by that of the error from which this one was raised."""
        added: _Place = vars(self).get("_place", {})
        cause = self.__cause__
        return _merged(added, cause._known()) if isinstance(cause, TamisError) else added

    def __str__(self) -> str:
        text = Exception.__str__(self)  # ImportError and KeyError print other things
        if len(text) > _LONGEST:  # such as an argument of 100,000 letters
            text = f"{text[: _LONGEST // 2]}… ({len(text)} letters) …{text[-_LONGEST // 4 :]}"
        return printable_lines(text)

    def __reduce__(self) -> tuple[Any, ...]:
        place: dict[str, Any] = {"path": self.path, "dataset": self.dataset, "chunk": self.chunk, "filter": self.filter}
        return type(self), self.args, {**vars(self), "_place": place}


def _labelled(label: str, message: str) -> str:
    """Return a message after a label such as ``file: dataset``; the message may already begin with its last parts."""
    places = label.split(": ")
    said = (count for count in range(len(places)) if message.startswith(": ".join(places[count:]) + ": "))
    return ": ".join([*places[: next(said, len(places))], message])


def _merged(first: _Place, second: _Place) -> _Place:
    known: _Place = {**second}
    known.update({key: value for key, value in first.items() if value is not None})  # type: ignore[typeddict-item]
    return known


class ParameterError(TamisError, ValueError):
    """An invalid mode, parameter, notation, type or chunk shape."""


class DataError(TamisError, ValueError):
    """Values that a filter cannot encode."""


class StreamError(TamisError, ValueError):
    """Encoded bytes or stored parameters that are damaged, truncated or unknown."""


class FileError(TamisError, OSError):
    """A file or dataset that cannot be read, written or found."""


class MissingFilterError(TamisError, ImportError):  # type: ignore[override]  # its own path is of a module
    """A filter that is not installed here, or that tamis cannot encode."""


class BoundError(TamisError, ValueError):
    """Stored values that differ from their source by more than the bound."""


@contextmanager
def located(label: str = "", /, **place: Unpack[_Place]) -> Iterator[None]:
    """Add a place to errors that are raised inside; see `TamisError.at`."""
    try:
        yield
    except TamisError as error:
        raise error.at(label, **place)  # noqa: B904 - the same error


def hook_without(raised: list[BaseException]) -> Callable[[sys.UnraisableHookArgs], None]:
    """Return a hook for errors that Python drops, which does not print those that are raised again later."""

    def hook(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_value not in raised:
            sys.__unraisablehook__(dropped)

    return hook
