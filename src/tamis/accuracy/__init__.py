"""How far values are from their source: errors, statistics, requirements, and what suits the values.

- `difference`, `statistics`: errors of values, added up part by part.
- `requirement`, `value_bounds`, `measured`: what is required of values, and whether they meet it.
- `bins`, `distribution`, `fields`: counts, the Kolmogorov-Smirnov test, similarity, spectra and information of bits.
- `error_profile`, `field_profile`: what a report shows of errors.
- `reasonable`: whether an error is small for the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.accuracy.distribution import ValueChanges, ks_probability
    from tamis.accuracy.error_profile import ErrorProfile
    from tamis.accuracy.field_profile import FieldProfile, period_of
    from tamis.accuracy.fields import FIELD_WORDS, SIGNIFICAND_BITS, BitPairs, Spectra, dssim, keepbits
    from tamis.accuracy.measured import AT_MOST, Measured, is_missed
    from tamis.accuracy.reasonable import ZEROED_SHARE, Effects
    from tamis.accuracy.requirement import (
        EACH_VALUE,
        FLAGS,
        RELATIVE_WORDS,
        WHOLE,
        Requirement,
        Vocabulary,
        relative_of,
        share,
        text_of,
    )
    from tamis.accuracy.statistics import Moments, Number, Observer, Place, Squares, Tally, compare, compared, unchanged

__all__ = [
    "AT_MOST",
    "EACH_VALUE",
    "FIELD_WORDS",
    "FLAGS",
    "RELATIVE_WORDS",
    "SIGNIFICAND_BITS",
    "WHOLE",
    "ZEROED_SHARE",
    "BitPairs",
    "Effects",
    "ErrorProfile",
    "FieldProfile",
    "Measured",
    "Moments",
    "Number",
    "Observer",
    "Place",
    "Requirement",
    "Spectra",
    "Squares",
    "Tally",
    "ValueChanges",
    "Vocabulary",
    "compare",
    "compared",
    "dssim",
    "is_missed",
    "keepbits",
    "ks_probability",
    "period_of",
    "relative_of",
    "share",
    "text_of",
    "unchanged",
]

__getattr__ = face_names(
    globals(),
    {
        "distribution": "ValueChanges ks_probability",
        "error_profile": "ErrorProfile",
        "field_profile": "FieldProfile period_of",
        "fields": "BitPairs FIELD_WORDS SIGNIFICAND_BITS Spectra dssim keepbits",
        "measured": "AT_MOST Measured is_missed",
        "reasonable": "Effects ZEROED_SHARE",
        "requirement": "EACH_VALUE FLAGS RELATIVE_WORDS Requirement Vocabulary WHOLE relative_of share text_of",
        "statistics": "Moments Number Observer Place Squares Tally compare compared unchanged",
    },
)
