"""The tree of errors, as it is drawn in the docstring of tamis.errors."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import tamis
from tamis import errors
from tamis.cli.ending import FAILED, USAGE, VIOLATED

TREE = re.compile(r"^\s+[├└]── (?P<name>\w+)\s*\((?P<builtin>\w+)\)\s*(?P<meaning>\S.*)$", re.MULTILINE)
DRAWN = {match["name"]: (match["builtin"], match["meaning"]) for match in TREE.finditer(errors.__doc__ or "")}
CLASSES = {
    name: item for name, item in vars(errors).items() if isinstance(item, type) and issubclass(item, errors.TamisError)
}


def test_errors_docstring_draws_every_class_and_no_other() -> None:
    assert set(DRAWN) | {"TamisError"} == set(CLASSES)


@pytest.mark.parametrize("name", DRAWN)
def test_error_class_as_drawn(name: str) -> None:
    builtin, meaning = DRAWN[name]
    assert [base.__name__ for base in CLASSES[name].__bases__] == ["TamisError", builtin]
    assert (CLASSES[name].__doc__ or "").strip().rstrip(".").lower() == meaning.lower()


@pytest.mark.parametrize("name", CLASSES)
def test_error_class_public_and_picklable(name: str) -> None:
    assert getattr(tamis, name) is CLASSES[name]
    assert name in tamis.__all__
    error = pickle.loads(pickle.dumps(CLASSES[name]("what was expected")))
    assert type(error) is CLASSES[name]
    assert str(error) == "what was expected"


def test_errors_page_has_the_classes_as_they_are() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "errors.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| ([^|]+) \| (\d) \|$", page, re.MULTILINE)
    codes = {"ParameterError": USAGE, "BoundError": VIOLATED}
    assert {(name, builtin, meaning.lower(), int(code)) for name, builtin, meaning, code in rows} == {
        (name, builtin, (CLASSES[name].__doc__ or "").strip(".").lower(), codes.get(name, FAILED))
        for name, (builtin, _) in DRAWN.items()
    }
