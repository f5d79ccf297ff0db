"""What the values of a dataset must keep, however they are stored: ``abs=0.1,limits``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from tamis.accuracy.vocabulary import EACH_VALUE, FLAGS, WHOLE, Limits, Vocabulary, relative_of, text_of
from tamis.errors import ParameterError, located

VOCABULARY = Vocabulary("a requirement", {**EACH_VALUE, **WHOLE}, FLAGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What must hold together after lossy compression. Missing values are no part of it: they never change.

    Parameters
    ----------
    abs, rel
        Largest absolute error, in units of the variable, and largest error relative to a value.
    range, std
        Largest absolute error relative to the range, and to the standard deviation, of all valid values.
    digits, bits
        A relative error as significant decimal digits, or bits of the significand after the implicit first one.
    limits
        Whether valid values stay on their side of ``valid_min``, ``valid_max``, ``valid_range``.
    sign
        Whether no value changes its sign. None that is not negative becomes negative; any may become zero.
    zeros
        Whether zeros stay zeros, and no other value becomes zero.
    rmse, psnr, corr, dssim, ks, spectrum
        Of the whole dataset: largest root mean square error in units of the variable; least peak signal-to-noise
        ratio in dB, Pearson correlation with the source, data structural similarity of each field, and probability of
        the test of Kolmogorov and Smirnov; largest relative difference of mean power along the last axis.

    Raises
    ------
    ParameterError
        If nothing is required, or a value is not allowed.

    Examples
    --------
    >>> Requirement.parse("abs=0.1, limits")
    Requirement.parse('abs=0.1,limits')
    """

    abs: float | None = None
    rel: float | None = None
    range: float | None = None
    std: float | None = None
    digits: int | None = None
    bits: int | None = None
    limits: bool = False
    sign: bool = False
    zeros: bool = False
    rmse: float | None = None
    psnr: float | None = None
    corr: float | None = None
    dssim: float | None = None
    ks: float | None = None
    spectrum: float | None = None

    def __post_init__(self) -> None:
        """Check all values."""
        checked = VOCABULARY.checked(self.given)
        if not checked:
            raise ParameterError("expected a requirement such as 'abs=0.1', got none")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Read a text such as ``abs=0.1,limits``.

        Raises
        ------
        ParameterError
            If a word is unknown or given twice, or its number is missing or not allowed.
        """
        return cls(**VOCABULARY.parsed(text))  # type: ignore[arg-type]

    @property
    def given(self) -> Limits:
        """What is required, by word."""
        values = ((entry.name, getattr(self, entry.name)) for entry in fields(self))
        return {name: value for name, value in values if value is not None and value is not False}

    def joined(self, other: Requirement) -> Requirement:
        """Return what both require together; of a word that both have, the number of this one counts."""
        return Requirement(**{**other.given, **self.given})  # type: ignore[arg-type]

    @property
    def relative(self) -> float | None:
        """The largest error relative to a value, by ``rel``, ``digits`` and ``bits``; None if none is given."""
        return relative_of(self.given)

    @property
    def measures(self) -> Mapping[str, float]:
        """What is required of the whole dataset, by word."""
        return {name: value for name, value in self.given.items() if name in WHOLE}

    def __str__(self) -> str:
        return text_of(self.given)

    def __repr__(self) -> str:
        return f"Requirement.parse({str(self)!r})"


def as_requirement(value: object) -> Requirement:
    """Return a requirement as it is, from its text, or from values by word.

    Raises
    ------
    ParameterError
        If it is anything else, or says something that cannot be required.
    """
    if isinstance(value, Requirement):
        return value
    if isinstance(value, str):
        return Requirement.parse(value)
    if isinstance(value, Mapping):
        return Requirement(**VOCABULARY.checked(value))  # type: ignore[arg-type]
    raise ParameterError(f"expected a requirement such as 'abs=0.1' or {{'abs': 0.1}}, got {value!r}")


Requirements = Mapping[str, Requirement | Mapping[str, object] | str]
"""Requirements by name or pattern of datasets, as objects, by word, or as text."""


def as_requirements(values: object) -> dict[str, Requirement]:
    """Return requirements by name.

    Raises
    ------
    ParameterError
        If it is no such mapping; names the dataset.
    """
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise ParameterError(f"expected requirements by name such as {{'TS': 'abs=0.1'}}, got {values!r}")
    result = {}
    for name, value in values.items():
        with located(f"{name}: require", dataset=name):
            result[name] = as_requirement(value)
    return result
