"""The folders in which HDF5 searches plugins, and what is in them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from tamis.filters import plugin_path
from tamis.jobs.doctor.child import Tried, tried
from tamis.jobs.doctor.result import Finding, Library, Plugin, PluginFolder
from tamis.safety import disk_text
from tamis.system import folders_in, is_plugin

VARIABLE = "HDF5_PLUGIN_PATH"
WITH_OTHERS = f"export {VARIABLE}=$(tamis plugin-path --with-others)"
_ZFP = 32013


def find_plugins(libraries: Iterable[Library]) -> tuple[tuple[PluginFolder, ...], list[Finding]]:
    """Return the folders that HDF5 searches, in that order, then that of tamis; and what is wrong with them."""
    named = folders_in(VARIABLE)
    # Without the variable each library has a folder of its own.
    searched = named or [folder for library in libraries for folder in library.folders]
    places = list(dict.fromkeys(searched))
    own = str(plugin_path())
    is_searched = any(_is_same(folder, own) for folder in places)
    listed = {folder: _listed(folder) for folder in (places if is_searched else [*places, own])}
    paths = [path for files, _ in listed.values() for path in files]
    loaded = dict(zip(paths, tried("plugin", paths), strict=True))
    first: dict[int, str] = {}
    for path in paths:
        code = _id(loaded[path])
        if code is not None and (is_searched or not _is_same(os.path.dirname(path), own)):
            first.setdefault(code, path)
    folders = tuple(
        PluginFolder(
            folder,
            folder in named,
            folder in places,
            problem,
            tuple(_plugin(path, loaded[path], first) for path in files),
        )
        for folder, (files, problem) in listed.items()
        # A folder that HDF5 searches unless told otherwise need not exist.
        if not problem or folder in named
    )
    return folders, [*_findings(folders), *_zfp_findings(first, own, named)]


def _listed(folder: str) -> tuple[list[str], str]:
    """Return the paths of the plugins in a folder, and why it cannot be searched."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        return [], disk_text(error)
    return [os.path.join(folder, name) for name in names if is_plugin(name)], ""


def _id(one: Tried) -> int | None:
    return None if one.value is None else one.value["id"]


def _plugin(path: str, one: Tried, first: dict[int, str]) -> Plugin:
    code = _id(one)
    return Plugin(path, code, one.value["name"] if one.value else "", first.get(code or 0) == path, one.error)


def _is_same(folder: str, other: str) -> bool:
    return os.path.realpath(folder) == os.path.realpath(other)


def _findings(folders: Iterable[PluginFolder]) -> Iterator[Finding]:
    for folder in folders:
        if folder.problem:
            text = f"names {folder.path}, which HDF5 cannot search: {folder.problem}"
            yield Finding("problem", VARIABLE, text, f"leave the folder out of {VARIABLE}, or name the right one")
        for plugin in folder.plugins:
            if plugin.problem:
                cure = "remove the file, or install a build of it for this machine"
                yield Finding("problem", plugin.path, f"cannot be loaded: {plugin.problem}", cure)


def _zfp_findings(first: dict[int, str], own: str, named: list[str]) -> Iterator[Finding]:
    """Yield what programs without tamis make of zfp."""
    used = first.get(_ZFP)
    if used is not None and not _is_same(os.path.dirname(used), own):
        text = f"programs use {used}, and not tamis' plugin, which proves its bound and refuses NaN"
        is_behind = any(_is_same(folder, own) for folder in named)
        behind = f", because it comes first in {VARIABLE}" if is_behind else ""
        yield Finding("problem" if is_behind else "note", "zfp", text + behind, WITH_OTHERS)
    elif used is None:
        where = f"{VARIABLE} has no folder with a plugin for it" if named else f"{VARIABLE} is not set"
        yield Finding("note", "zfp", f"programs such as ncdump and h5dump cannot read it: {where}", WITH_OTHERS)
