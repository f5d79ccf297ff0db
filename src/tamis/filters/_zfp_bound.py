"""A bound that ZFP shall keep, before values are known from which its tolerance follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from tamis import zfp
from tamis.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest absolute error that values may have, however ZFP keeps it.

    Parameters
    ----------
    bound
        Above 0 and finite.
    """

    bound: float

    def __post_init__(self) -> None:
        try:
            bound = zfp.Accuracy(self.bound).tolerance
        except ParameterError as error:
            raise ParameterError(
                f"expected a finite bound above 0, got bound={self.bound!r}: use reversible=True to keep every bit"
            ) from error
        object.__setattr__(self, "bound", bound)

    def refuse(self) -> NoReturn:
        """Raise ParameterError: this is no mode of the codec, and nothing but a search on values makes it one."""
        raise ParameterError(
            f"expected a mode that a file can record, got zfp({self}), for which tamis.repack, to_netcdf of tamis and"
            " write and create_appender of tamis.hdf5 find the tolerance from the values: use one of these, or"
            f" zfp({zfp.Accuracy(self.bound)}), which is stricter"
        )

    def __str__(self) -> str:
        return str(zfp.Accuracy(self.bound)).replace("accuracy", "bound")


def mode_or_bound(bound: float | None, **modes: Any) -> zfp.Mode | Bound:
    """Return the mode that the arguments of `tamis.zfp.mode` name, or the bound, if it is given alone."""
    if bound is None:
        return zfp.mode(**modes)
    if others := [name for name, value in modes.items() if value is not None and value is not False]:
        raise ParameterError(f"expected bound alone, got {' and '.join(others)} beside it")
    return Bound(bound)
