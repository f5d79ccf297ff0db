"""Draw what `codec.py` measured: ``python benchmarks/plot.py CSV PICTURE``.

A row per rank and type, and one of reversible mode, whose aims are its own; a dot per case, on a logarithmic axis of
times as fast as libzfp; the geometric mean of each row, and the least mean that `aims.py` asks of its group. The
picture is an SVG, of the same bytes for the same figures and the same matplotlib.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import matplotlib as mpl
from aims import AIMS, DTYPES, PORTABLE, Aim, Case, geometric_mean
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

# Blue and vermilion of Okabe and Ito, which all eyes tell apart; a light card of its own, for dark pages too.
WAYS = {"encode": ("#0072b2", "^", -0.19), "decode": ("#d55e00", "o", 0.19)}
BESIDE = (1.11, 1.22)  # where columns of numbers end, in widths of the axes
INK, QUIET, CARD, LINES = "#24292f", "#57606a", "#fbfaf7", "#d0d7de"
STYLE = {
    "svg.hashsalt": "tamis",
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # which matplotlib brings along; readers without it see another
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": LINES,
    "axes.labelcolor": QUIET,
    "xtick.color": QUIET,
    "ytick.color": INK,
}


def read(path: Path) -> tuple[list[Case], str, str, str]:
    """Return the cases, the machine, the kernel and the peer."""
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    if not rows:
        raise SystemExit(f"expected rows of benchmarks/codec.py --csv, got none: {path}")
    missing = sorted({*Case._fields, "machine", "kernel", "peer"} - set(rows[0]))
    if missing:
        raise SystemExit(f"expected the columns of benchmarks/codec.py --csv, got none called {missing}: {path}")
    numbers = Case._fields[4:]
    cases = [
        Case(int(row["rank"]), row["dtype"], row["field"], row["mode"], *(float(row[name]) for name in numbers))
        for row in rows
    ]
    return cases, rows[0]["machine"], rows[0]["kernel"], rows[0]["peer"]


def grouped(cases: list[Case], kernel: str) -> dict[str, tuple[list[Case], Aim | None]]:
    """Return the cases of each row by its name, and what they are held against."""
    found: dict[str, tuple[list[Case], Aim | None]] = {}
    for case in sorted(cases, key=lambda case: (case.rank, DTYPES.index(case.dtype))):
        name = "reversible, all" if case.mode == "reversible" else f"{case.rank}-D {case.dtype}"
        aims = [aim for aim in ((PORTABLE,) if kernel == "portable" else AIMS) if case in aim]
        found.setdefault(name, ([], aims[0] if aims else None))[0].append(case)
    if "reversible, all" in found:
        found["reversible, all"] = found.pop("reversible, all")  # as the last row
    return found


def draw_row(axes: Any, y: float, cases: list[Case], aim: Aim | None) -> None:
    """Draw the dots of a row, encoding above decoding, with mean and gate."""
    beside = axes.get_yaxis_transform()
    for index, (way, (colour, marker, offset)) in enumerate(WAYS.items()):
        ratios = [getattr(case, f"{way}_ratio") for case in cases]
        mean, at = geometric_mean(ratios), y + offset
        axes.plot(ratios, [at] * len(ratios), marker, color=colour, alpha=0.45, markersize=4, markeredgewidth=0)
        if aim:
            axes.plot([aim.mean[index]] * 2, [at - 0.17, at + 0.17], color=INK, linewidth=1.4)
        axes.plot(mean, at, "D", color=colour, markeredgecolor=CARD, markersize=6.5, markeredgewidth=0.9)
        axes.text(BESIDE[index], y, f"{mean:.1f}×", color=colour, ha="right", va="center", transform=beside)


def legend(axes: Any) -> None:
    """Explain the marks in one line below the axis."""
    dots = [
        Line2D([], [], linestyle="", marker=marker, color=colour, alpha=0.5, markersize=5, label=f"{way}, a case")
        for way, (colour, marker, _) in WAYS.items()
    ]
    mean = Line2D([], [], linestyle="", marker="D", color=QUIET, markersize=6, label="geometric mean")
    gate = Line2D(
        [], [], linestyle="", marker="|", color=INK, markersize=8, markeredgewidth=1.4, label="least mean aimed at"
    )
    axes.legend(
        handles=[*dots, mean, gate],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.5 / axes.bbox.height * 72),
        ncols=4,
        frameon=False,
    )


def draw(cases: list[Case], title: str, kernel: str, picture: Path) -> None:
    """Write the picture."""
    rows = grouped(cases, kernel)
    height = 1.35 + 0.31 * len(rows)
    figure = Figure(figsize=(7.6, height), facecolor=CARD)
    axes = figure.add_axes((0.145, 0.8 / height, 0.68, 1 - 1.35 / height), facecolor=CARD)
    for y, (group, aim) in enumerate(rows.values()):
        draw_row(axes, y, group, aim)
    ratios = [ratio for case in cases for ratio in (case.encode_ratio, case.decode_ratio)]
    ticks = [2.0**power for power in range(-3, 8) if min(*ratios, 1) / 2 < 2**power < max(*ratios, 4) * 2]
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(*ratios, 1) * 0.9, max(*ratios, 4) * 1.1)
    axes.set_xticks(ticks, [f"{tick:g}×" for tick in ticks])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("times as fast as libzfp, one thread, logarithmic")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.tick_params(length=0)
    axes.grid(axis="x", color=LINES, linewidth=0.8)
    axes.axvline(1, color=QUIET, linewidth=1)
    axes.hlines(
        [y + 0.5 for y in range(len(rows) - 1)], 0, 1, LINES, linewidth=0.5, transform=axes.get_yaxis_transform()
    )
    axes.set_axisbelow(True)
    for index, (way, (colour, _, _)) in enumerate(WAYS.items()):
        axes.text(BESIDE[index], -0.8, way, color=colour, ha="right", transform=axes.get_yaxis_transform())
    axes.set_title(title, loc="left", fontsize=9, pad=20, x=-0.19)
    legend(axes)
    figure.savefig(picture, format="svg", metadata={"Date": None, "Title": title})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path, metavar="CSV", help="what codec.py --csv wrote")
    parser.add_argument("picture", type=Path, metavar="PICTURE", help="the SVG to write")
    parser.add_argument("--title", help="what stands above, by default the kernel, the peer and the machine of the CSV")
    options = parser.parse_args()
    cases, machine, kernel, peer = read(options.csv)
    mpl.rcParams.update(STYLE)
    draw(cases, options.title or f"tamis, kernel {kernel}, against {peer} on {machine}", kernel, options.picture)
    print(f"{options.picture}: {options.picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
