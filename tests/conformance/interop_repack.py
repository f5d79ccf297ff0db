"""Repack a file once for each recipe: TASKS, a JSON file; a second argument names a module to import first."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

for module in sys.argv[2:]:
    importlib.import_module(module)

import tamis  # noqa: E402  # after the module, which may register filters

tasks = json.loads(Path(sys.argv[1]).read_text())
for target, recipe in tasks["recipes"].items():
    tamis.repack(tasks["source"], target, {"*": recipe}, min_size=0, larger=True)
