"""A recipe of repack: filters, chunks and requirements by name, which a TOML file can hold."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Self, TypeVar

from tamis.accuracy.requirement import Requirement, Requirements, as_requirements
from tamis.arguments import FLAG, MAPPING, NAMES, PATH, Kind, instance
from tamis.errors import FileError, ParameterError
from tamis.filters import Filter
from tamis.jobs.recipes.fields import fields_of
from tamis.jobs.recipes.names import (
    STANDARD_NAME,
    Chunks,
    DimensionChunks,
    Recipes,
    absolute,
    as_chunks,
    has_pattern_signs,
)
from tamis.jobs.recipes.policies import POLICIES, MissingPolicy
from tamis.old_names import current_value
from tamis.pipeline import Pipeline, as_pipeline, with_rounding
from tamis.rounding import Rounding
from tamis.safety.library_errors import disk_text
from tamis.safety.whole_file import check_name, write_whole

T = TypeVar("T")

CHUNKS = MAPPING.such_as("{'TS': (4, 96, 144)}")

Evidence = Mapping[str, str | float]
"""Facts that a recipe records about the choice for a dataset, such as its ratio."""


_EVIDENCE = Kind(
    "a mapping such as {'TS': {'ratio': 3.8}}",
    lambda value: isinstance(value, Mapping) and all(isinstance(item, Mapping) for item in value.values()),
)


@dataclass(frozen=True, slots=True, init=False)
class Recipe:
    """Instructions for `tamis.repack` for each dataset, as an object that can be saved.

    Parameters
    ----------
    filters
        Filters by dataset name or pattern: a `Pipeline`, a filter, or its text. The name ``standard_name=…`` means
        datasets with this attribute, and ``*``, if last, all others.
    round
        Rounding before these filters, by the same names: an object, or its text such as ``absolute(0.125)``.
    chunks
        Chunk shapes by name or pattern: extents, slowest axis first, or a mapping from names of dimensions to extents.
        Along other dimensions, chunks keep their length.
    require
        Requirements by name or pattern: a text such as ``abs=0.1,limits``, or values by word.
    missing
        How missing values are treated, see `tamis.repack`; None leaves this to the call.
    drop
        Names or patterns of datasets that are left out.

    Raises
    ------
    ParameterError
        If a value is none of these.

    Examples
    --------
    >>> print(Recipe({"TS": "zfp(bound=0.1)"}, chunks={"TS": {"time": 10}}))
    schema = 1
    <BLANKLINE>
    [[variable]]
    name = "TS"
    filters = "zfp(bound=0.1)"
    chunks = {time = 10}
    <BLANKLINE>
    """

    filters: Mapping[str, Pipeline] = field(hash=False)
    chunks: Mapping[str, Chunks] = field(hash=False)
    require: Mapping[str, Requirement] = field(hash=False)
    missing: MissingPolicy | None
    drop: tuple[str, ...]

    def __init__(
        self,
        filters: Recipes | None = None,
        *,
        round: Mapping[str, Rounding | str] | None = None,  # noqa: A002 - as the field of the file
        chunks: Mapping[str, object] | None = None,
        require: Requirements | None = None,
        missing: MissingPolicy | None = None,
        drop: Iterable[str] = (),
    ) -> None:
        NAMES.check("drop", drop)
        MAPPING.such_as("{'TS': 'bits(9)'}").check_optional("round", round)
        CHUNKS.check_optional("chunks", chunks)
        filters, chunks = {} if filters is None else filters, {} if chunks is None else chunks
        missing = current_value("missing", missing)
        if not isinstance(filters, Mapping) or isinstance(filters, Filter):
            raise ParameterError(f"expected recipes such as {{'TS': 'zfp(accuracy=0.1)'}}, got {_no_recipes(filters)}")
        if not all(isinstance(name, str) for name in (*filters, *chunks)):
            raise ParameterError(f"expected names as text, got {[*filters, *chunks]!r}")
        if missing is not None:
            check_policy(missing)
        pipelines = {name: as_pipeline(value) for name, value in filters.items()}
        for name, rounding in (round or {}).items():
            if name not in pipelines:
                raise ParameterError(f"expected filters for {name!r} after {rounding}, such as shuffle|deflate(4)")
            pipelines[name] = with_rounding(rounding, pipelines[name])
        object.__setattr__(self, "filters", pipelines)
        object.__setattr__(self, "chunks", {name: as_chunks(value) for name, value in chunks.items()})
        object.__setattr__(self, "require", as_requirements({} if require is None else require))
        object.__setattr__(self, "missing", missing)
        object.__setattr__(self, "drop", (drop,) if isinstance(drop, str) else tuple(drop))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a recipe file.

        Raises
        ------
        FileError
            If the file cannot be read.
        ParameterError
            If it is not a recipe; the error has line and column, and what is expected there.
        """
        PATH.check("path", path)
        try:
            text = Path(os.fsdecode(path)).read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = disk_text(error) if isinstance(error, OSError) else "expected text in UTF-8"
            raise FileError(f"{os.fspath(path)}: cannot be read: {reason}").at(path=path) from error
        fields = fields_of(text, os.fspath(path))
        return cls(
            fields.filters, chunks=fields.chunks, require=fields.require, missing=fields.missing, drop=fields.drop
        )

    def dump(
        self, path: str | os.PathLike[str], *, overwrite: bool = False, evidence: Mapping[str, Evidence] | None = None
    ) -> None:
        """Write the recipe to a file, which `load` reads.

        Parameters
        ----------
        path
            Path of the file.
        overwrite
            Whether an existing file is replaced.
        evidence
            Evidence for each choice, by name: texts and numbers by word. It has no effect.

        Raises
        ------
        FileError
            If the file exists and `overwrite` is False, or it cannot be written.
        """
        PATH.check("path", path)
        FLAG.check("overwrite", overwrite)
        _EVIDENCE.check_optional("evidence", evidence)
        write_whole(path, self._text(evidence or {}), overwrite=overwrite)

    def before(self, other: Recipe) -> Recipe:
        """Return both recipes as one; this one overrides the other, also for missing values.

        Requirements for the same name are combined: see `tamis.accuracy.requirement.Requirement.joined`.
        """
        instance("a tamis.Recipe", Recipe).check("other", other)
        return Recipe(
            _first(self.filters, other.filters),
            chunks=_first(self.chunks, other.chunks),
            require=joined_requirements([*self.require.items(), *other.require.items()]),
            missing=self.missing or other.missing,
            drop=tuple(dict.fromkeys((*self.drop, *other.drop))),
        )

    def __str__(self) -> str:
        return self._text({})

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _text(self, evidence: Mapping[str, Evidence]) -> str:
        lines = ["schema = 1", *([f'missing = "{self.missing}"'] if self.missing else [])]
        lines += [f"drop = [{', '.join(map(_quoted, self.drop))}]"] if self.drop else []
        for name in dict.fromkeys((*self.filters, *self.chunks, *self.require)):
            standard_name = name.removeprefix(STANDARD_NAME)
            chosen = f"name = {_quoted(name)}"
            if standard_name and standard_name != name:
                chosen = f"standard_name = {_quoted(standard_name)}"
            lines += ["", "[[variable]]", chosen]
            if name in self.filters:
                lines.append(f"filters = {_quoted(str(self.filters[name]))}")
            if name in self.chunks:
                lines.append(f"chunks = {_chunks_text(self.chunks[name])}")
            if name in self.require:
                lines.append(f"require = {_quoted(str(self.require[name]))}")
            if name in evidence:
                lines += ["", "[variable.evidence]"]
                lines += [f"{_key(word)} = {_value(value)}" for word, value in evidence[name].items()]
        return "\n".join((*lines, ""))


def check_new(
    path: str | os.PathLike[str],
    others: Iterable[str | os.PathLike[str]],
    *,
    overwrite: bool,
    what: str = "the recipe",
) -> None:
    """Raise an error if a file could not be written, or has the name of another file of the run."""
    for other in others:
        is_same_file = os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)
        if is_same_file or os.path.realpath(path) == os.path.realpath(other):
            raise ParameterError(f"{os.fspath(path)}: is an input or the target: choose another name for {what}")
    check_name(Path(os.fsdecode(path)), overwrite=overwrite)
    if not Path(path).parent.is_dir():
        raise FileError(f"{os.fspath(path)}: cannot be written: there is no folder {Path(path).parent}").at(path=path)
    if not (os.access(path, os.W_OK) or os.access(Path(path).parent, os.W_OK | os.X_OK)):  # before hours of work
        raise FileError(f"{os.fspath(path)}: cannot be written: {os.strerror(errno.EACCES)}").at(path=path)


def check_policy(missing: object) -> None:
    """Raise ParameterError if a value is not a policy for missing values."""
    if not (isinstance(missing, str) and missing in POLICIES):
        raise ParameterError(f"expected missing to be one of {', '.join(POLICIES)}, got {missing!r}")


def refuse_drop(recipe: Recipe) -> None:
    """Raise ParameterError if a recipe for datasets of xarray leaves variables out."""
    if recipe.drop:
        raise ParameterError(
            f"drop={[*recipe.drop]} does not apply to an xarray dataset: leave the variables out with ds.drop_vars"
        )


def _no_recipes(given: object) -> str:
    """Return what was given in place of recipes, with what to write instead, if that is clear."""
    if hasattr(given, "recipe"):
        return f"a {type(given).__name__}: give its recipe, plan.recipe"
    if isinstance(given, str | os.PathLike):
        return f"{os.fspath(given)!r}: a file is read by tamis.Recipe.load"
    return repr(given)


def asked_recipe(
    recipes: Recipes | Recipe,
    *,
    chunks: Mapping[str, object] | None,
    require: Requirements | None,
    missing: MissingPolicy | None,
    drop: Iterable[str] = (),
) -> Recipe:
    """Return the recipe of a call, whose other arguments override those of the recipe."""
    if isinstance(recipes, Recipe):
        return Recipe(chunks=chunks, require=require, missing=missing, drop=drop).before(recipes)
    return Recipe(recipes, chunks=chunks, require=require, missing=missing, drop=drop)


def _first(values: Mapping[str, T], others: Mapping[str, T]) -> dict[str, T]:
    """Return values by name; the first mapping overrides the second."""
    own = {_place(name) for name in values}
    return {**values, **{name: value for name, value in others.items() if _place(name) not in own}}


def joined_requirements(pairs: Iterable[tuple[str, Requirement]]) -> dict[str, Requirement]:
    """Return combined requirements by name; if a word is given twice, the first number is used."""
    names: dict[str, str] = {}
    joined: dict[str, Requirement] = {}
    for name, required in pairs:
        known = names.setdefault(_place(name), name)
        joined[known] = joined[known].joined(required) if known in joined else required
    return joined


def _place(name: str) -> str:
    """Return a name in a form that is equal for the same dataset: ``TS`` and ``/TS``."""
    return name if has_pattern_signs(name) or name.startswith(STANDARD_NAME) else absolute(name)


def _chunks_text(chunks: Any) -> str:
    if isinstance(chunks, DimensionChunks):
        return "{" + ", ".join(f"{_key(name)} = {extent}" for name, extent in chunks.extents) + "}"
    return f"[{', '.join(map(str, chunks))}]"


def _value(value: str | float) -> str:
    return _quoted(value) if isinstance(value, str) else repr(value)


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else _quoted(name)


def _quoted(text: str) -> str:
    """Return a basic string of TOML, with the escapes of JSON; DEL must also be escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
