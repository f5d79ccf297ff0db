"""The job repack: copy a file with new filters, and prove what was written.

A repack goes through these steps:

1. `tamis.cli.commands.repack` turns options into a call of `job`.
2. `tamis.formats.registry` finds the format of the source; its store lists arrays, and reads no values.
3. `tamis.jobs.recipes` and `planning` say what is asked of each array; `decide` makes a plan (`tamis.rewrite.plan`) of
   it, or says why the array is kept.
4. `tamis.safety.transaction` begins the target, and `tamis.safety.journal` records progress.
5. The target's format copies everything else, and yields the place of each array that is written anew
   (`tamis.rewrite.transfer.NewStore`). At each, `new_target` lets `tamis.rewrite.write` read the source
   (`tamis.arrays.gather`), encode chunks in threads (`tamis.rewrite.encode`), and give them to the format in order.
6. `new_target` reads all of it back (`tamis.rewrite.prove`) and compares both stores; then the target gets its name.

`tamis.jobs.many` does steps 2 to 6 for each of many files, in several processes.

- `option_table`, `options`: the options, declared once, and what a call makes of them.
- `refusals`, `required`, `stored_units`, `survey`: what `decide` stands on.
- `resuming`: what earlier runs left.
- `spread`: one file in several processes.
- `upload`: targets on object stores.
- `views`: virtual datasets, and what a run makes of the datasets that they show.
- `witnessing`: what xarray is told before it reads the target.
- `notes`, `result`: what is said about each dataset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.jobs.repack import option_table
    from tamis.jobs.repack.decide import has_checksum, packs
    from tamis.jobs.repack.job import Warn, needed_files, repack, run_preview, run_repack, save_store, targets_led_to
    from tamis.jobs.repack.option_table import Option
    from tamis.jobs.repack.options import (
        RepackKeywords,
        RepackOptions,
        check_kinds,
        kinds_of,
        refuse_unknown,
        takes_options,
        takes_repack_options,
    )
    from tamis.jobs.repack.planning import Planning, may_spoil, plan_datasets
    from tamis.jobs.repack.result import Repacked, RepackPreview, RepackResult
    from tamis.jobs.repack.resuming import MADE_AGAIN, NOTHING_LEFT
    from tamis.jobs.repack.survey import ReadSurvey, Survey
    from tamis.jobs.repack.views import Fates, sources_of, with_needed
    from tamis.jobs.repack.witnessing import look, witness_of

__all__ = [
    "MADE_AGAIN",
    "NOTHING_LEFT",
    "Fates",
    "Option",
    "Planning",
    "ReadSurvey",
    "RepackKeywords",
    "RepackOptions",
    "RepackPreview",
    "RepackResult",
    "Repacked",
    "Survey",
    "Warn",
    "check_kinds",
    "has_checksum",
    "kinds_of",
    "look",
    "may_spoil",
    "needed_files",
    "option_table",
    "packs",
    "plan_datasets",
    "refuse_unknown",
    "repack",
    "run_preview",
    "run_repack",
    "save_store",
    "sources_of",
    "takes_options",
    "takes_repack_options",
    "targets_led_to",
    "with_needed",
    "witness_of",
]

__getattr__ = face_names(
    globals(),
    {
        "decide": "has_checksum packs",
        "job": "Warn needed_files repack run_preview run_repack save_store targets_led_to",
        "option_table": "Option option_table",
        "options": "RepackKeywords RepackOptions check_kinds kinds_of refuse_unknown takes_options"
        " takes_repack_options",
        "planning": "Planning may_spoil plan_datasets",
        "result": "RepackPreview RepackResult Repacked",
        "resuming": "MADE_AGAIN NOTHING_LEFT",
        "survey": "ReadSurvey Survey",
        "views": "Fates sources_of with_needed",
        "witnessing": "look witness_of",
    },
)
