"""Draw the picture of the README: ``python benchmarks/picture.py FOLDER``.

The field is TS of ``examples/data/cam_ts.nc``: one day of it, its error after packing, and, for four filters with one
bound of 0.1 K, how many times smaller the 30 days become and their largest error. Each filter stores them through
`tamis.repack`, in the chunks of `lossy.py`. ``sample-light.png`` and ``sample-dark.png`` differ in the colours of text.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from lossy import BOUND, FILTERS, MAP, NAME, SOURCE, Stored, stored
from matplotlib.figure import Figure
from numpy.typing import NDArray

import tamis

SHOWN = {
    "rounding": "rounding, any HDF5",
    "packing": "packing, HDF5 with szip",
    "zfp": "ZFP, with the plugin",
    "sperr": "SPERR, with hdf5plugin",
}
TEXT = {"light": "#1f2328", "dark": "#e6edf3"}
BARS = {"light": "#0b65c2", "dark": "#58a6ff"}


def draw(before: NDArray[np.float64], fields: Mapping[str, Stored], scheme: str, path: Path) -> None:
    """Draw the field, its error, and a bar for each filter."""
    colour = TEXT[scheme]
    figure = Figure(figsize=(9.6, 2.7), layout="constrained")
    field, error, bars = figure.subplots(1, 3, width_ratios=(1, 1, 1.15))
    for axes, values, title, unit, style in (
        (field, before[MAP], "surface temperature, one day", "K", {"cmap": "cividis"}),
        (error, fields["packing"].values[MAP] - before[MAP], "its error after packing", "K", {"cmap": "RdBu_r"}),
    ):
        limits = {"vmin": -BOUND, "vmax": BOUND} if axes is error else {}
        picture = axes.imshow(values[::-1], interpolation="nearest", aspect="auto", **style, **limits)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color(colour)
        axes.set_title(title, color=colour, fontsize=10)
        scale = figure.colorbar(picture, ax=axes, location="bottom", shrink=0.8, aspect=30)
        scale.set_label(unit, color=colour, fontsize=8)
        scale.outline.set_edgecolor(colour)
        scale.ax.tick_params(colors=colour, labelsize=8)
    names = [*SHOWN][::-1]
    ratios = [fields[name].ratio for name in names]
    bars.barh([SHOWN[name] for name in names], ratios, color=BARS[scheme], height=0.55)
    for place, name in enumerate(names):
        most = np.abs(fields[name].values - before).max()
        words = f"{SHOWN[name]}: {fields[name].ratio:.1f}× (largest error {most:.3g} K)"
        bars.text(0, place + 0.4, words, color=colour, fontsize=8.5, va="center")
    bars.set(yticks=[], xticks=[], ylim=(-0.45, len(names) - 0.35))
    bars.set_title(f"times smaller, each value within {BOUND:g} K", color=colour, fontsize=10)
    bars.spines[:].set_visible(False)
    figure.savefig(path, dpi=170, transparent=True, metadata={"Software": None})


def main() -> None:
    """Store the field through each filter, print the figures, and draw both pictures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the pictures go")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tamis.open(SOURCE) as file:
        before = np.asarray(file[NAME][...], np.float64)
    with tempfile.TemporaryDirectory() as folder:
        fields = {name: stored(FILTERS[name], BOUND, Path(folder)) for name in SHOWN}
    for name, one in fields.items():
        print(f"{name}: ratio {one.ratio:.2f}, largest error {np.abs(one.values - before).max():.4f}")
    for scheme in TEXT:
        draw(before, fields, scheme, options.folder / f"sample-{scheme}.png")


if __name__ == "__main__":
    main()
