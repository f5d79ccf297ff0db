"""The options of a repack and of a copy are declared once, and everything that names them says the same."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inprocess import run_tamis

import tamis
from tamis.jobs import copy_table
from tamis.jobs.copy import CopyKeywords
from tamis.jobs.repack import Option, RepackKeywords, RepackOptions
from tamis.jobs.repack.option_table import DEFAULTS, TABLE

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(("keywords", "defaults"), [(RepackKeywords, DEFAULTS), (CopyKeywords, copy_table.DEFAULTS)])
def test_keywords_have_a_type_for_each_option(keywords: type, defaults: dict[str, Any]) -> None:
    assert keywords.__annotations__.keys() == defaults.keys()


@pytest.mark.parametrize(
    "function", [tamis.repack, tamis.preview_repack, tamis.repack_many, tamis.preview_repack_many, tamis.combine]
)
def test_signatures_name_each_option_with_its_default(function: Callable[..., Any]) -> None:
    check_signature(function, DEFAULTS)


def test_signature_of_copy_names_each_option_with_its_default() -> None:
    check_signature(tamis.copy, copy_table.DEFAULTS)


def check_signature(function: Callable[..., Any], defaults: dict[str, Any]) -> None:
    parameters = inspect.signature(function).parameters
    assert {name: parameters[name].default for name in defaults} == defaults
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in defaults)


def test_options_that_are_not_given_have_the_defaults_of_the_table() -> None:
    assert RepackOptions.asked({}) == RepackOptions.asked({}, **DEFAULTS)  # type: ignore[arg-type]


@pytest.mark.parametrize("function", [tamis.repack, tamis.preview_repack, tamis.repack_many, tamis.preview_repack_many])
def test_unknown_option_is_an_error_of_python(function: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) got an unexpected keyword argument 'min_sizes'"):
        function(tmp_path / "a.nc", tmp_path / "b.nc", {}, min_sizes=3)


@pytest.mark.parametrize("option", [item for item in TABLE if item.choices], ids=lambda item: item.name)
def test_other_choice_is_refused_in_words(option: Option, tmp_path: Path) -> None:
    with pytest.raises(tamis.ParameterError, match=f"expected {option.name} to be .*{option.choices[0]}.*, got 'x'"):
        tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {}, **{option.name: "x"})  # type: ignore[arg-type]


@pytest.mark.parametrize("option", [item for item in TABLE if item.least is not None], ids=lambda item: item.name)
def test_number_that_the_command_refuses_is_refused_by_python(option: Option, tmp_path: Path) -> None:
    assert option.least is not None
    beyond = [] if option.most is None else [option.most + 1]
    for wrong in (option.least - 1, *beyond, 2.5, "2", True):
        with pytest.raises(tamis.ParameterError, match=f"expected {option.name} to be a whole number"):
            tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {}, **{option.name: wrong})  # type: ignore[arg-type]
    asked = RepackOptions.asked({}, **{option.name: np.int64(option.least)})  # type: ignore[arg-type]
    assert asked == RepackOptions.asked({}, **{option.name: option.least})  # type: ignore[arg-type]
    assert "np.int64" not in asked.target_key


@pytest.mark.parametrize(("function", "defaults"), [(tamis.repack, DEFAULTS), (tamis.copy, copy_table.DEFAULTS)])
def test_docstring_explains_each_option(function: Callable[..., Any], defaults: dict[str, Any]) -> None:
    described = re.findall(r"^    (\w+(?:, \w+)*)$", inspect.getdoc(function) or "", flags=re.MULTILINE)
    described += re.findall(r"^(\w+(?:, \w+)*)$", inspect.getdoc(function) or "", flags=re.MULTILINE)
    assert {*defaults} <= {name for line in described for name in line.split(", ")}


def test_pages_have_each_option_of_the_command() -> None:
    pages = "".join(page.read_text() for page in DOCS.glob("*.md"))
    absent = [item.name for item in TABLE if item.help and f"-{item.name.replace('_', '-')}" not in pages]
    assert absent == []


def test_page_of_copy_has_each_option_of_the_command() -> None:
    page = (DOCS / "copy.md").read_text()
    flags = {flag for option in copy_table.TABLE if option.help for flag in option.flags or (f"--{option.name}",)}
    assert {flag for flag in flags if f"`{flag.replace('_', '-')}" not in page} == set()


@pytest.mark.parametrize(("command", "table"), [("repack", TABLE), ("copy", copy_table.TABLE)])
def test_help_has_each_option_of_the_table(command: str, table: tuple[Option, ...]) -> None:
    shown = " ".join(run_tamis(command, "--help").stdout.split())
    for option in table:
        assert " ".join(option.help.split()) in shown, option.name
