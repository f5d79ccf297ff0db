"""Warnings that name the line of a program that led to them, however deep in tamis and xarray the reason is found."""

from __future__ import annotations

import sys
import warnings

from tamis.formatting import with_keywords

_SKIPPED = ("tamis", "tamis_xarray", "xarray")


def warn_caller(text: str) -> None:
    """Warn about the innermost line that is neither in tamis nor in xarray."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _SKIPPED:
        frame, level = frame.f_back, level + 1
    warnings.warn(with_keywords(text), UserWarning, stacklevel=level)
