"""The functions ``ncaux_h5filterspec_…`` of netCDF-C, by the strict parsers of `tamis.notation.netcdf`.

netCDF-C itself is not called: it reads ``1.5`` as 1 without a word, and does not survive some texts. With
``compat="netcdf-c"`` the results are those of netCDF-C, word for word.
"""

from __future__ import annotations

import sys

from tamis.filters import Request
from tamis.kinds import BYTES, FLAG, TEXT, checked
from tamis.notation import fix8 as words
from tamis.notation.netcdf import Compat, parse_chain, parse_filterspec
from tamis.notation.netcdf import parse_parameter as parse_word

__all__ = ["filterspec_fix8", "filterspec_parse", "filterspec_parse_parameter", "filterspec_parselist"]


@checked(text=TEXT, compat=TEXT)
def filterspec_parse(text: str, *, compat: Compat | None = None) -> Request:
    """Return id and parameters of the text of one filter, such as ``32013,3,0,0.1d``.

    Parameters
    ----------
    text
        The filter.
    compat
        None for texts with one meaning; ``"netcdf-c"`` for what netCDF-C reads; ``"doc"`` for what its documentation
        says.

    Raises
    ------
    ParameterError
        If the text is malformed or ambiguous, with the position and what to write.
    """
    return parse_filterspec(text, compat=compat)


@checked(text=TEXT, compat=TEXT)
def filterspec_parselist(text: str, *, compat: Compat | None = None) -> list[Request]:
    """Return the filters of a text with ``|`` between them; see `filterspec_parse`."""
    return parse_chain(text, compat=compat)


@checked(text=TEXT, compat=TEXT)
def filterspec_parse_parameter(text: str, *, compat: Compat | None = None) -> tuple[int, ...]:
    """Return the words of one parameter, such as ``0.1d``; see `filterspec_parse`."""
    return parse_word(text, compat=compat)


@checked(data=BYTES, decode=FLAG)
def filterspec_fix8(data: bytes, decode: bool) -> bytes:
    """Return the 8 bytes of a value as a filter gets them, low word first; with `decode`, those in memory."""
    return words.fix8(data, decode=decode, byteorder=sys.byteorder)
