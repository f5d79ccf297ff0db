"""The job inspect: what is in a file, which filters it has, and who can read it.

An inspection: `tamis.cli.commands.inspect` calls `job`, which opens the store (`tamis.formats.registry`) and looks at
its arrays one by one; `result` renders itself as text, JSON or HTML.

- `arguments`: filters as arguments of other programs.
- `cdl`: the header of the store as CDL.
- `cost`: requests and bytes to read a file over a network.
- `page`: the page of the command's option ``--html``.
"""
