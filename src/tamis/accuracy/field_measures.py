"""Measures of whole fields, the last two axes of an array, and of whole rows, added up part by part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.similarity import dssim
from tamis.accuracy.spectrum import Spectra
from tamis.cf import Packing
from tamis.missing.definition import Missing


class FieldMeasures(NamedTuple):
    """Measures of some fields.

    Parameters
    ----------
    similarity
        The smallest DSSIM, in units of the variable; None if no field has one, or it was not asked for.
    spectra
        Power spectra of the rows, if they were asked for.
    """

    similarity: float | None = None
    spectra: Spectra = Spectra()

    @classmethod
    def of(
        cls,
        before: NDArray[Any],
        after: NDArray[Any],
        missing: Missing,
        packing: Packing | None,
        words: Collection[str],
    ) -> FieldMeasures:
        """Return the measures with these words of a part with whole fields, or rows, whose missing values stayed."""
        absent = missing.find(before) if words else None
        similarity = _least_similarity(before, after, absent, packing) if "dssim" in words else None
        return cls(similarity, Spectra.of(before, after, absent) if "spectrum" in words else Spectra())

    def plus(self, other: FieldMeasures) -> FieldMeasures:
        """Return the measures of these fields and of others."""
        similarities = [each for each in (self.similarity, other.similarity) if each is not None]
        return FieldMeasures(min(similarities, default=None), self.spectra.plus(other.spectra))

    @property
    def by_word(self) -> dict[str, float | None]:
        """The measures by their words."""
        return {"dssim": self.similarity, "spectrum": self.spectra.difference}


FIELD_WORDS = ("dssim", "spectrum")
"""Words of the measures of whole fields or rows."""


def words_within(words: Collection[str], shape: Sequence[int], chunk_shape: Sequence[int]) -> tuple[str, ...]:
    """Return those of the words whose fields or rows no chunk of an array cuts."""
    whole = [step >= extent for extent, step in zip(shape, chunk_shape, strict=True)]
    axes = {"dssim": 2, "spectrum": 1}
    return tuple(word for word in words if word in axes and all(whole[-axes[word] :]))


def _least_similarity(
    before: NDArray[Any], after: NDArray[Any], absent: NDArray[np.bool_] | None, packing: Packing | None
) -> float | None:
    """Return the smallest DSSIM of the fields of a part."""
    found = []
    for index in np.ndindex(before.shape[:-2]):
        one, other = (_in_units(packing, values[index]) for values in (before, after))
        found.append(dssim(one, other, None if absent is None else ~absent[index]))
    return min((value for value in found if value is not None), default=None)


def _in_units(packing: Packing | None, values: NDArray[Any]) -> NDArray[Any]:
    return values if packing is None else np.asarray(values.astype(np.float64) * packing.scale + packing.offset)
