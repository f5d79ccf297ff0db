"""The options of a copy like nccopy's, each declared once: for Python, for the command line, and for what both check.

Nothing is imported here that takes long, because the command line builds its help from the table.
"""

from __future__ import annotations

from tamis.jobs.repack import Option, option_table

OF_NCCOPY = (
    Option(
        "chunks",
        (),
        help="Chunk lengths of dimensions, such as time/10,lat/96,lon/ (no length: the whole dimension), or the chunk"
        " shape of a variable, such as TS:10,96,144; repeatable.",
        metavar="CHUNKS",
        is_repeated=True,
        flags=("-c",),
    ),
    Option(
        "level",
        None,
        help="Deflate all variables that -F does not name, at level 1 to 9; 0 removes deflate and shuffle.",
        metavar="N",
        least=0,
        most=9,
        flags=("-d",),
    ),
    Option("shuffle", default=False, help="With -d: shuffle before deflate.", is_flag=True, flags=("-s",)),
    Option(
        "kind",
        None,
        help="Kind of OUT, nc4 or nc7; only a check: OUT keeps the kind of IN.",
        metavar="KIND",
        flags=("-k",),
    ),
)
"""Those that only nccopy has, but for the filters (``-F``), which Python's functions take without a name."""

_REPACK = {option.name: option for option in option_table.TABLE}

OF_REPACK = (
    _REPACK["min_size"]._replace(
        help="Keep variables with fewer bytes of values unchanged unless -F or -c names them; by default 4096 without"
        " chunks, 0 with chunks.",
        flags=("-M", "--min-size"),
    ),
    _REPACK["checksum"]._replace(default=False, is_negated=False, shows_default=False),
    _REPACK["threads"],
    _REPACK["missing"]._replace(
        default="exact", help="Missing values under lossy filters, as for tamis repack.", shows_default=True
    ),
    _REPACK["follow"]._replace(help="Also filter unnamed variables whose values are in other files."),
    _REPACK["self_contained"]._replace(help="Store all that is in other files in OUT, as for tamis repack."),
    _REPACK["larger"]._replace(help="Also filter unnamed variables that become larger than in IN."),
    _REPACK["history"]._replace(
        default=False,
        help="Record the command in OUT's attribute history, if OUT has history or Conventions.",
        is_negated=False,
        shows_default=False,
    ),
    _REPACK["resume"],
    _REPACK["drop"]._replace(help="Leave out a variable, or a pattern of them; repeatable."),
)
"""Those of a repack, as a copy has them: it adds nothing to the target that nccopy would not."""

TABLE = (*OF_NCCOPY, *OF_REPACK)
DEFAULTS = {option.name: option.default for option in TABLE}
