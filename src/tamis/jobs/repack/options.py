"""The options of a repack, made once at the start of a call."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import index
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, TypeVar, Unpack

from tamis.accuracy.requirement import Requirements
from tamis.arguments import FLAG, NAMES, Kind, whole_within
from tamis.arrays.threads import checked_threads
from tamis.errors import ParameterError
from tamis.formats.registry import open_packed
from tamis.formatting import did_you_mean
from tamis.jobs.recipes.policies import MissingPolicy
from tamis.jobs.recipes.saved_recipe import CHUNKS, Recipe, asked_recipe
from tamis.jobs.repack.option_table import DEFAULTS, TABLE, Option
from tamis.old_names import recorded_text

if TYPE_CHECKING:
    from tamis.jobs.recipes.names import Chunks, Recipes
    from tamis.pipeline import Pipeline
    from tamis.rounding import PackingRange
    from tamis.stores.protocols import Store


class RepackKeywords(TypedDict, total=False):
    """The keywords of `tamis.repack` that `preview_repack`, `repack_many` and `combine` take, too; see there."""

    chunks: Mapping[str, tuple[int, ...] | Mapping[str, int]] | None
    require: Requirements | None
    checksum: bool
    missing: MissingPolicy | None
    threads: int | None
    resume: bool
    follow: bool
    self_contained: bool
    min_size: int | None
    larger: bool
    keep_classic: bool
    zarr_format: int | None
    shards: int | None
    packed_as: PackedAs | None
    consolidated: bool | None
    cloud: bool
    storage: StorageName
    history: bool
    drop: Iterable[str]
    witness: WitnessName | None


StorageName = Literal["disk", "s3"]
WitnessName = Literal["xarray"]
PackedAs = Literal["codecs", "attributes"]

_RECIPES = Kind("{'TS': 'zfp(accuracy=0.1)'}, a tamis.Recipe, or {} for a copy", lambda value: value is not None)
F = TypeVar("F", bound=Callable[..., Any])


def takes_options(table: Iterable[Option], keywords: type) -> Callable[[F], F]:
    """Return a decorator that lets the signature of a function with ``**options`` name each of them, for ``help``.

    Parameters
    ----------
    table
        The options.
    keywords
        The TypedDict of their types.
    """
    annotations = {name: getattr(hint, "__forward_arg__", hint) for name, hint in keywords.__annotations__.items()}
    options = [
        inspect.Parameter(
            option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=annotations[option.name]
        )
        for option in table
    ]

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        named = [item for item in signature.parameters.values() if item.kind is not inspect.Parameter.VAR_KEYWORD]
        function.__signature__ = signature.replace(parameters=[*named, *options])  # type: ignore[attr-defined]
        return function

    return decorate


def takes_repack_options(function: F) -> F:
    """Let the signature of a function name each option of repack."""
    return takes_options(TABLE, RepackKeywords)(function)


def refuse_unknown(function: str, options: Mapping[str, Any], known: Collection[str] = DEFAULTS) -> None:
    """Raise TypeError, as Python does, if a function that takes ``**options`` got one that does not exist."""
    for name in options:
        if name not in known:
            nearest, names = did_you_mean(name, known), ", ".join(known)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{nearest}: it takes {names}")


def kinds_of(table: Collection[Option]) -> dict[str, Kind]:
    """Return the kinds of the flags, the repeated names and the whole numbers among options."""
    flags = {option.name: FLAG for option in table if option.is_flag}
    names = {option.name: NAMES for option in table if option.is_repeated}
    numbers = {option.name: whole_within(option.least, option.most) for option in table if option.least is not None}
    return {**flags, **names, **numbers}


def check_kinds(options: Mapping[str, Any], kinds: Mapping[str, Kind], defaults: Mapping[str, Any]) -> None:
    """Raise ParameterError for an option of another kind; None is allowed where it is the default."""
    for name, kind in kinds.items():
        if not (options[name] is None and defaults[name] is None):
            kind.check(name, options[name])


_KINDS = {"chunks": CHUNKS, **kinds_of(TABLE)}


def _check_choices(options: Mapping[str, Any]) -> None:
    """Raise ParameterError for a value that is none of those that an option may have."""
    for option in TABLE:
        value = options[option.name]
        known = (*option.choices, None) if option.default is None else option.choices
        if option.choices and option.name != "missing" and value not in known:  # the recipe takes old names of policies
            words = " or ".join(str(item) for item in known)
            raise ParameterError(f"expected {option.name} to be {words}, got {value!r}")


@dataclass(frozen=True, slots=True)
class RepackOptions:
    """What repack does with a source, and how."""

    recipe: Recipe  # Filters, chunk shapes and requirements by name or pattern, missing values, and arrays to leave out
    checksum: bool = True  # Whether datasets encoded by zfp get a checksum
    follow: bool = False  # Whether patterns also match datasets whose values are in other files
    # Bytes of values below which patterns keep a dataset; None for `MIN_NBYTES` if it is not chunked
    min_size: int | None = None
    larger: bool = False  # Whether patterns may store datasets that become larger than in the source
    keep_classic: bool = False  # Whether a netCDF classic file that would grow is copied unchanged
    history: str = ""  # Command named in the line added to the target's history; empty for no line
    overwrite: bool = False  # Whether an existing target is replaced
    # Whether the target gets all that is in other files
    self_contained: bool = field(default=False, repr=False)
    resume: bool = False  # Whether interrupted runs are continued
    threads: int = 1
    optional_names: bool = False  # Whether an exact name may match no dataset: one recipe is for many files
    form: Mapping[str, Any] = field(default_factory=dict)  # Options of the target's format
    # Ranges for packed datasets by path; a dataset without one is packed for the range of its own values
    ranges: Mapping[str, PackingRange] = field(default_factory=dict, repr=False)
    # Whether the caller says that values will be appended, for which packing then leaves room; never for a file that
    # is copied, which seldom grows
    will_grow: bool = field(default=False, repr=False)
    storage: StorageName = "disk"  # Where the target is read from, which chunks without a shape suit
    # Another program that has to read the target as the source before it gets its name; None for no further one
    witness: WitnessName | None = field(default=None, repr=False)
    # Whether a dataset with chunks that cannot be decoded is copied as it is, also one that the recipe names
    keep_damaged: bool = field(default=False, repr=False)
    # Filters and chunk shapes by first path, which apply as if a pattern had matched. These chunk shapes are also for
    # datasets that get no filters.
    rule_pipelines: Mapping[str, Pipeline] = field(default_factory=dict)
    rule_chunks: Mapping[str, Chunks] = field(default_factory=dict)

    @classmethod
    def asked(
        cls,
        recipes: Recipes | Recipe,
        *,
        command: str = "repack",
        overwrite: bool = False,
        **options: Unpack[RepackKeywords],
    ) -> Self:
        """Return the checked options of a command's call."""
        given: dict[str, Any] = {**DEFAULTS, **options}
        _RECIPES.check("recipes", recipes)
        FLAG.check("overwrite", overwrite)
        check_kinds(given, _KINDS, DEFAULTS)
        _check_choices(given)
        numbers = [option.name for option in TABLE if option.least is not None and given[option.name] is not None]
        given |= {name: index(given[name]) for name in numbers}  # Python's own, whose texts are recorded
        named = {name: given[name] for name in ("chunks", "require", "missing", "drop")}
        fields_here = {entry.name for entry in fields(cls)}
        as_given = {name: value for name, value in given.items() if name in fields_here}
        form = {option.name: given[option.name] for option in TABLE if option.is_of_format}
        if form["packed_as"] is None:  # so that records of earlier runs, which lack it, stay valid
            del form["packed_as"]
        form["cloud"] = True if given["cloud"] else "if HDF5" if given["storage"] == "s3" else None
        changed = {
            "follow": given["follow"] or given["self_contained"],
            "history": command if given["history"] else "",
            "overwrite": overwrite,
            "threads": checked_threads(given["threads"]),
            "form": form,
        }
        return cls(asked_recipe(recipes, **named), **{**as_given, **changed})

    def open(self, source: str | os.PathLike[str]) -> Store:
        """Open a source, with what links into other files lead to if the target gets it."""
        store = open_packed(source)
        if self.self_contained:
            try:
                store.take_in()
            except BaseException:
                store.close()
                raise
        return store

    @property
    def missing(self) -> MissingPolicy:
        """How lossy filters treat missing values."""
        return self.recipe.missing or "exact"

    @property
    def packs_to_codecs(self) -> bool:
        """Whether packed values are for readers with Zarr's codecs, which divide by a scale."""
        return self.form.get("packed_as") == "codecs"

    @property
    def target_key(self) -> str:
        """All that determines the bytes of a target, as a text: a target with another one is made anew."""
        # Fields without a representation say nothing about a single target, or are in its record.
        others = replace(self, recipe=Recipe({}), overwrite=False, resume=False, threads=1, optional_names=False)
        text = recorded_text(f"{self.recipe} {others}")
        return text + (" self-contained" if self.self_contained else "")

    @property
    def is_empty(self) -> bool:
        """True if no filters or chunks are requested."""
        return not (self.recipe.filters or self.recipe.chunks or self.rule_pipelines or self.rule_chunks)
