"""What numbers of times mean: their units and calendar, which programs write in several ways."""

from __future__ import annotations

import re
from typing import NamedTuple

from tamis.meaning.variables import Attributes, text

TIME_ATTRIBUTES = ("units", "calendar")
"""Attributes that together say which times numbers are."""

_SPELLINGS = {
    "microsecond": ("microseconds", "microsec", "microsecs"),
    "millisecond": ("milliseconds", "millisec", "millisecs", "msec", "msecs", "ms"),
    "second": ("seconds", "sec", "secs", "s"),
    "minute": ("minutes", "min", "mins"),
    "hour": ("hours", "hr", "hrs", "h"),
    "day": ("days", "d"),
}
"""Units of time, as cftime and UDUNITS know them, which xarray and others read by these."""

_UNITS = {name: unit for unit, names in _SPELLINGS.items() for name in (unit, *names)}

_CALENDARS = {"": "standard", "gregorian": "standard", "365_day": "noleap", "366_day": "all_leap"}
"""Second names of calendars in the CF conventions, which have a usual one where none is named."""

_REFORM = (1582, 10, 15)
"""First day of the Gregorian calendar: the standard one has Julian days before."""

_REFERENCE = re.compile(
    r"(?P<year>[+-]?\d{1,6})-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?"
    r"(?:(?:\s+|T)(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}(?:\.\d*)?))?)?"
    r"\s*(?P<zone>Z|UTC|GMT|[+-]\d{1,2}:?\d{2})?",
    re.IGNORECASE,
)
"""A reference time such as 1920-01-01, 1920-1-1 0:0:0.0 or 1920-01-01T00:00:00Z.

Hours without minutes are left out: cftime ignores them, and UDUNITS does not.
"""


class _Meaning(NamedTuple):
    unit: str
    date: tuple[int, int, int]
    time: tuple[int, int, float]
    minutes_east: int
    calendar: str


def same_times(first: Attributes, second: Attributes, *, are_late: bool = False) -> bool:
    """Return whether the attributes of two variables make the same times of the same numbers.

    The unit, each part of the reference time, which is 0 where it is left out, its time zone and the calendar must be
    equal, however they are written. If the attributes are not those of times, the result is False.

    If no number is negative, `are_late`, the calendars standard and proleptic_gregorian are the same where the
    reference time is.
    """
    one, other = _meaning(first), _meaning(second)
    if one is None or other is None:
        return False
    if are_late and one.date >= _REFORM and {one.calendar, other.calendar} == {"standard", "proleptic_gregorian"}:
        other = other._replace(calendar=one.calendar)
    return one == other


def usual_calendar(name: str) -> str:
    """Return the usual name of a calendar that the CF conventions give several names."""
    name = name.strip().lower()
    return _CALENDARS.get(name, name)


def _meaning(attributes: Attributes) -> _Meaning | None:
    """Return what the attributes of a variable say about times; None if they say nothing that is understood."""
    word, *rest = text(attributes, "units").split(None, 2)[:3] or [""]
    unit = _UNITS.get(word.lower())
    if unit is None or len(rest) < 2 or rest[0].lower() != "since":
        return None
    found = _REFERENCE.fullmatch(rest[1].strip())
    if found is None:
        return None
    calendar = text(attributes, "calendar").strip()
    if not calendar and "calendar" in attributes:
        return None  # it is no text
    date = int(found["year"]), int(found["month"]), int(found["day"] or 1)
    time = int(found["hour"] or 0), int(found["minute"] or 0), float(found["second"] or 0)
    return _Meaning(unit, date, time, _minutes_east(found["zone"] or "Z"), usual_calendar(calendar))


def _minutes_east(zone: str) -> int:
    """Return how far a time zone such as +05:30 is ahead of UTC."""
    if zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "")
    return (60 * int(digits[:-2]) + int(digits[-2:])) * (-1 if zone[0] == "-" else 1)
