"""Lines and columns of the keys in a TOML text, which the standard library's reader does not give."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

Key = tuple[str | int, ...]

_SKIP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_NAME = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.DOTALL)
_BARE = re.compile(r"[^,\]}#\r\n]+")


Place = tuple[int, int]
"""Line and column, from 1."""


class Places(NamedTuple):
    """Places in a TOML text, by key path, with numbers for elements: ``("variable", 0, "chunks", "time")``.

    Parameters
    ----------
    keys
        Of each key that has a value, where its line names it.
    values
        Of each value, and of the header of each table.
    """

    keys: dict[Key, Place]
    values: dict[Key, Place]


def places_of(text: str) -> Places:
    """Return the places of all keys and values.

    Parameters
    ----------
    text
        A text that `tomllib` reads.
    """
    scanner = _Scanner(text.replace("\r\n", "\n"))
    scanner.document()
    return Places(*({key: scanner.place(at) for key, at in found.items()} for found in (scanner.keys, scanner.found)))


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.keys, self.found = dict[Key, int](), dict[Key, int]()

    def place(self, at: int) -> Place:
        return self.text.count("\n", 0, at) + 1, at - (self.text.rfind("\n", 0, at) + 1) + 1

    def document(self) -> None:
        table: Key = ()
        counts: Counter[Key] = Counter()
        while self._skip() < len(self.text):
            if not self._take("["):
                self._assignment(table)
                continue
            begin, array = self.at - 1, self._take("[")
            table = self._inside(tuple(self._key()), counts, array=array)
            self.found[table] = begin
            self._skip()
            self.at += 2 if array else 1

    def _inside(self, names: Key, counts: Counter[Key], *, array: bool) -> Key:
        """Return the path of a table, with the number of the last element of each array of tables on the way."""
        path: Key = ()
        for name in names:
            path = (*path, name)
            if array and len(path) - sum(isinstance(part, int) for part in path) == len(names):
                counts[path] += 1
            if counts[path]:
                path = (*path, counts[path] - 1)
        return path

    def _key(self) -> Iterator[str]:
        while True:
            self._skip()
            match = _NAME.match(self.text, self.at)
            if match is None:
                return
            self.at = match.end()
            yield next(iter(tomllib.loads(f"{match[0]} = 0")))
            dot = _DOT.match(self.text, self.at)
            if dot is None:
                return
            self.at = dot.end()

    def _assignment(self, table: Key) -> None:
        begin = self.at
        names = (*table, *self._key())
        if self.at == begin:  # nothing that a key begins with: not TOML
            self.at = len(self.text)
            return
        self.keys[names] = begin
        self._skip()
        self._take("=")
        self._value(names)

    def _value(self, key: Key) -> None:
        self._skip()
        self.found[key] = self.at
        if self._take("["):
            self._elements(key, "]")
        elif self._take("{"):
            self._elements(key, "}")
        elif match := _STRING.match(self.text, self.at) or _BARE.match(self.text, self.at):
            self.at = match.end()

    def _elements(self, key: Key, end: str) -> None:
        number = 0
        while self._skip() < len(self.text) and not self._take(end):
            if end == "]":
                self._value((*key, number))
            else:
                self._assignment(key)
            number += 1
            self._skip()
            self._take(",")

    def _skip(self) -> int:
        match = _SKIP.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def _take(self, sign: str) -> bool:
        taken = self.text.startswith(sign, self.at)
        self.at += len(sign) * taken
        return taken
