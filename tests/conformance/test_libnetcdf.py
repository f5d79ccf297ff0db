"""netCDF filter text word for word as the libnetcdf in netCDF4's wheel reads it."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tamis import ParameterError
from tamis.filters import Request
from tamis.notation import Compat, chain_text
from tamis.notation.netcdf import parse_chain, parse_filterspec, parse_parameter
from tamis.notation.netcdf_scanf import fix8

TAGS = ["", "", "", "b", "B", "ub", "UB", "s", "S", "us", "u", "U", "l", "L", "ul", "UL", "f", "F", "d", "D"]
WRONG_TAGS = [
    "bu", "LU", "LL", "ull", "uu", "ff", "x", "h", ".", "..", ";", "é", "e5", "p3f", " ", "\t", "\n", "\r", "\v",
]  # fmt: skip
NUMBERS = [
    "0", "00", "1", "7", "9", "127", "128", "255", "256", "300", "32767", "32768", "65535", "65536", "70000",
    "2147483647", "2147483648", "4294967295", "4294967296", "5000000000", "9223372036854775807",
    "9223372036854775808", "18446744073709551615", "18446744073709551616", "99999999999999999999", "9" * 40,
    "1" * 5000, "0" * 5000 + "7",
]  # fmt: skip
FLOATS = [
    "0.0", "1.5", ".5", "5.", "1e3", "1e+3", "1e-3", "1E5", "1e", "1e+", "1e5.5", "3.4028235677973366e38", "1e39",
    "1e-46", "7e-46", "1e308", "1.8e308", "1e-400", "5e-324", "2e-324", "1e99999999999999999999", "0e999999999",
    "123456789012345678901234567890", "0.1", "12345678.12345678", "1_0", "1,5", ".", "..", "1..2", "-.", "e5", ".e5",
]  # fmt: skip
SPECIALS = ["nan", "NaN", "nan(1)", "nan(", "inf", "INF", "infinity", "Infinity", "infi", "infinit", "infx", "na", "in"]
HEXADECIMALS = [
    "0x", "0X", "0x1", "0xff", "0x10", "0xd", "0x.d", "0x.", "0x.p1", "0xp1", "0x1p", "0x1p+", "0x1p3", "0x1.8p-3",
    "0X1.8P3", "0x1.00000000000008p0", "0x1.0000000000000800000001p0", "0x1p99999", "0x1p-99999", "0x0p99999",
    "0x1p-1074", "0x1p-1075", "0x1.8p-1075", "0x1p99999999999999999999", "0xg", "00x5", ".0x5",
]  # fmt: skip
SIGNS = ["", "", "", "", "-", "-", "+", "--", "+-", "- "]
BEFORE = ["", "", "", "", "", " ", "\t", "  ", "\n", "\v", "\r\f", "x"]
IDS = [
    "1", "2", "4", "307", "32013", "32768",
    "65535", "65536", "4294967296", "307abc", "-1", "+307", "x", "0", "", " 307",
]  # fmt: skip
HOSTILE = "0123456789-+.eExXpPbBsSuUlLfFdDnNaAiItTyY ,|[]()\t\n\v\\\"'é٣ſ%\x7f"


def number(choose: random.Random) -> str:
    """One number, most often with a tag that exists."""
    kind = choose.random()
    if kind < 0.2:
        digits = str(choose.getrandbits(choose.choice([3, 8, 16, 32, 33, 64, 70])))
    elif kind < 0.35:
        digits = repr(choose.choice([1, 1e-30, 1e30, 1e-310]) * choose.random())
    else:
        digits = choose.choice(choose.choice([NUMBERS, NUMBERS, FLOATS, FLOATS, SPECIALS, HEXADECIMALS]))
    tag = choose.choice(TAGS if choose.random() < 0.85 else WRONG_TAGS)
    return choose.choice(SIGNS) + digits + tag


def parameter(choose: random.Random) -> str:
    kind = choose.random()
    if kind < 0.06:
        return "".join(choose.choices(HOSTILE, k=choose.randint(1, 8)))
    text = choose.choice(BEFORE) + number(choose) if kind < 0.5 else number(choose)
    if kind < 0.12:  # one letter changed
        at = choose.randrange(len(text))
        text = text[:at] + choose.choice(HOSTILE) + text[at + 1 :]
    return text


def plain_parameter(choose: random.Random) -> str:
    """One that every reading but ours takes."""
    return choose.choice(["", "-", " "]) + str(choose.getrandbits(choose.choice([4, 20, 31]))) + choose.choice(TAGS)


def spec(choose: random.Random) -> str:
    make = parameter if choose.random() < 0.5 else plain_parameter
    name = choose.choice(IDS if choose.random() < 0.3 else IDS[:6])
    return ",".join([name, *(make(choose) for _ in range(choose.randint(0, 5)))])


def chain(choose: random.Random) -> str:
    text = "|".join(spec(choose) for _ in range(choose.randint(1, 4)))
    kind = choose.random()
    if kind < 0.05:
        text += "|"
    elif kind < 0.08:
        text = choose.choice(["|", "[", "[]", "[x]", "[ ", "]", "[-]"]) + text
    elif kind < 0.1:
        text = text.replace("|", "||", 1)
    return text


def dies(text: str) -> bool:
    """Whether netcdf-c aborts."""
    return re.match(r"\[[ \t\n\v\f\r]*[-+]?[0-9][^]]*\]", text) is not None


@cache  # a second of work, which most processes of a run do not need
def texts() -> dict[str, list[str]]:
    """Make different texts for each of the three parsers."""
    choose = random.Random(20261121)
    made = {}
    for name, make in (("parameter", parameter), ("spec", spec), ("chain", chain)):
        found: dict[str, None] = dict.fromkeys(["", " ", "[", "307,", "307,,9", "307,9 ", "307,9|", "|", "none"])
        while len(found) < COUNT:
            text = make(choose)
            if not dies(text):
                found[text] = None
        made[name] = list(found)
    return made


COUNT = 6000
EINVAL = -36
EIGHT = ["0001020304050607", "f9f8f7f6f5f4f3f2", "0000000000000000", "9a9999999999b93f"]


def ask(**texts: Any) -> dict[str, list[Any]]:
    program = Path(__file__).parent / "libnetcdf.py"
    done = subprocess.run(
        [sys.executable, program], input=json.dumps(texts), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers: dict[str, list[Any]] = json.loads(done.stdout)
    return answers


@pytest.fixture(scope="module")
def answers() -> dict[str, list[Any]]:
    return ask(**texts(), fix8=[(data, decode) for data in EIGHT for decode in (False, True)])


def ours(name: str, text: str, compat: Compat | None) -> Any:
    """Our answer in the library's form."""
    try:
        if name == "parameter":
            return [list(parse_parameter(text, compat=compat))]
        if name == "spec":
            number, values = parse_filterspec(text, compat=compat)
            return [number, list(values)]
        return [[number, list(values)] for number, values in parse_chain(text, compat=compat)]
    except ParameterError:
        return EINVAL


def by_chance(name: str, text: str) -> bool:
    """Whether netcdf-c meets an empty parameter and so reads on beyond its copy of the text.

    It refuses what it finds there, unless chance made a number of it.
    """
    if name == "parameter":
        return text != "" and not text.strip(" \t")
    filters = text.split("|") if name == "chain" else [text]
    return any(not each.strip(" \t") for text in filters for each in text.split(",")[1:])


def by_system(text: str) -> bool:
    """Whether the C library decides: glibc 2.41 keeps the number in ``nan(1)``, and takes none from ``nan(``."""
    return "nan(" in text.lower()


@pytest.mark.parametrize("name", ["parameter", "spec", "chain"])
def test_parse_netcdf_c_same_words_and_refusals_as_library(name: str, answers: dict[str, list[Any]]) -> None:
    seen: Counter[str] = Counter()
    for text, theirs in zip(texts()[name], answers[name], strict=True):
        mine = ours(name, text, "netcdf-c")
        if by_chance(name, text):
            assert mine == EINVAL, repr(text)
            seen["by chance"] += 1
        elif by_system(text):
            seen["by the system"] += 1
        else:
            assert mine == theirs, repr(text)
            seen["refused" if theirs == EINVAL else "accepted"] += 1
    assert min(seen["accepted"], seen["refused"]) >= COUNT // 5, seen
    assert seen["accepted"] + seen["refused"] >= 5000, seen


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["parameter", "spec", "chain"])
def test_parse_strict_nothing_taken_that_library_reads_otherwise(name: str, answers: dict[str, list[Any]]) -> None:
    taken = 0
    for text, theirs in zip(texts()[name], answers[name], strict=True):
        mine = ours(name, text, None)
        if mine == EINVAL:
            continue
        if theirs == EINVAL:
            # Blanks after a number are the one thing that only we take.
            assert re.search(r"[ \t\r\n]+([,|]|$)", text), repr(text)
        else:
            assert mine == theirs, repr(text)
            taken += 1
    assert taken >= COUNT // 20


def test_chain_text_doubles_and_words_read_back_by_library() -> None:
    choose = random.Random(11)
    chains = []
    for _ in range(500):
        words = tuple(choose.choice([choose.getrandbits(32), choose.getrandbits(8), 0]) for _ in range(6))
        chains.append([Request(choose.randint(1, 65535), words), Request(32013, (3, 0, *words[:2]))])
    written = [chain_text(each, doubles={0: {0, 4}, 1: {2}}) for each in chains]
    assert sum("d" in text for text in written) > 400
    theirs = ask(chain=written)["chain"]
    assert theirs == [[[number, list(values)] for number, values in each] for each in chains]


@pytest.mark.skipif(sys.byteorder == "big", reason="the library changes bytes there")
def test_fix8_little_endian_same_bytes_as_library(answers: dict[str, list[Any]]) -> None:
    mine = [fix8(bytes.fromhex(data), decode=decode).hex() for data in EIGHT for decode in (False, True)]
    assert mine == answers["fix8"]
