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
