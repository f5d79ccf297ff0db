"""What lossy filters do to a field: ``python benchmarks/lossy.py [--pictures FOLDER]``.

The field is TS of ``examples/data/cam_ts.nc``, 30 daily maps. Each filter stores it through `tamis.repack`, once with a
largest error of 0.1 K, and once with about the same ratio as ZFP has then. The tables have, for each, the ratio and
what the errors are like:

rms
    root of the mean square error.
correlation
    of errors of neighbours along longitude; 0 for noise.
excess
    kurtosis of the errors above that of a normal distribution: -1.2 for a uniform one, 0 for a normal one.
gradient
    root mean square error of differences of neighbours along longitude, over the root mean square of these differences.
spectrum
    largest relative change of the mean power along longitude, over wavelengths of 4 points and more.
mean
    largest error of the mean of 30 days at a point.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import tamis

SOURCE = Path(__file__).parents[1] / "examples" / "data" / "cam_ts.nc"
NAME, BOUND, REST = "TS", 0.1, "shuffle|deflate(9)"
CHUNKS = {"pack": (1, 192, 288), "zfp": (28, 32, 32)}
LARGE = (30, 96, 144)
FILTERS = {
    "rounding": "absolute(bound={})|" + REST,
    "packing": "pack(bound={})|szip(nn,16)",
    "zfp": "zfp(bound={})|" + REST,
    "sperr": "sperr(bound={})|" + REST,
    "sz3": "sz3(bound={})|" + REST,
}
MAP = 12  # the day of the pictures
BOX = (slice(96, 160), slice(200, 288))


class Stored(NamedTuple):
    """A field through a filter."""

    bound: float
    ratio: float
    values: NDArray[np.float64]


def stored(filters: str, bound: float, folder: Path) -> Stored:
    """Store the field and read it again."""
    first = filters.partition("(")[0]
    target = folder / "target.nc"
    chunks = CHUNKS.get(first, (1, 192, 288) if first == "absolute" else LARGE)
    result = tamis.repack(SOURCE, target, {NAME: filters.format(bound)}, chunks={NAME: chunks}, overwrite=True)[NAME]
    with tamis.open(target, unpack=True) as file:
        return Stored(bound, float(result.ratio or 0), np.asarray(file[NAME][...], np.float64))


def at_the_ratio(filters: str, ratio: float, folder: Path) -> Stored:
    """Store the field with the bound, to a twentieth, that comes closest to a ratio."""
    low, high = np.log(BOUND / 64), np.log(BOUND * 16)
    for _ in range(10):
        middle = (low + high) / 2
        one = stored(filters, float(f"{np.exp(middle):.3g}"), folder)
        low, high = (middle, high) if one.ratio < ratio else (low, middle)
    return one


def figures(before: NDArray[np.float64], after: NDArray[np.float64]) -> Mapping[str, str]:
    """Return what the errors are like, as text."""
    errors = after - before
    centred = errors - errors.mean()
    slopes = np.diff(before), np.diff(after)
    powers = [np.abs(np.fft.rfft(values - values.mean(-1, keepdims=True)))[..., 1:] ** 2 for values in (before, after)]
    mean = [power.mean((0, 1))[: before.shape[-1] // 4] for power in powers]
    return {
        "largest error": f"{np.abs(errors).max():.4f}",
        "rms": f"{np.sqrt((errors**2).mean()):.4f}",
        "correlation": f"{np.corrcoef(errors[..., 1:].ravel(), errors[..., :-1].ravel())[0, 1]:.2f}",
        "excess": f"{(centred**4).mean() / (centred**2).mean() ** 2 - 3:.1f}",
        "gradient": f"{np.sqrt(((slopes[1] - slopes[0]) ** 2).mean() / (slopes[0] ** 2).mean()):.2%}",
        "spectrum": f"{np.abs(mean[1] / mean[0] - 1).max():.2%}",
        "mean": f"{np.abs(errors.mean(0)).max():.4f}",
    }


def rows(before: NDArray[np.float64], folder: Path) -> Iterator[tuple[str, str, Stored]]:
    """Yield the title of a table, the name of a filter, and the field through it."""
    at_the_bound = {name: stored(filters, BOUND, folder) for name, filters in FILTERS.items()}
    for name, one in at_the_bound.items():
        yield f"largest error {BOUND:g} K", name, one
    ratio = at_the_bound["zfp"].ratio
    for name, filters in FILTERS.items():
        one = at_the_bound[name] if name == "zfp" else at_the_ratio(filters, ratio, folder)
        yield f"ratio of about {ratio:.1f}", name, one


def draw(before: NDArray[np.float64], title: str, fields: Mapping[str, Stored], path: Path) -> None:
    """Draw errors on a part of a map, and their distribution, for each filter."""
    import matplotlib as mpl

    mpl.rcParams.update({"svg.hashsalt": "tamis", "font.size": 8})
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.2 * len(fields), 3.4), layout="constrained", facecolor="#fbfaf7")
    axes = figure.subplots(2, len(fields), height_ratios=(2, 1), squeeze=False)
    most = max(np.abs(one.values - before).max() for one in fields.values())
    for column, (name, one) in enumerate(fields.items()):
        errors = one.values - before
        picture = axes[0][column].imshow(
            errors[MAP][BOX][::-1], cmap="RdBu_r", vmin=-most, vmax=most, interpolation="nearest"
        )
        axes[0][column].set(title=f"{name}: ratio {one.ratio:.1f},\nlargest error {np.abs(errors).max():.3g} K")
        axes[0][column].set(xticks=[], yticks=[])
        axes[1][column].hist(errors.ravel(), bins=80, range=(-most, most), density=True, color="#0072b2")
        axes[1][column].set(yticks=[], xlabel="error, K")
    figure.colorbar(picture, ax=list(axes[0]), shrink=0.8)
    figure.suptitle(f"Errors at a {title}")
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    """Print the tables, and draw them on request."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--pictures", type=Path, metavar="FOLDER", help="draw lossy-bound.png and lossy-ratio.png there"
    )
    options = parser.parse_args()
    with tamis.open(SOURCE) as file:
        before = np.asarray(file[NAME][...], np.float64)
    tables: dict[str, dict[str, Stored]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for title, name, one in rows(before, Path(folder)):
            if title not in tables:
                print(f"\n{title}\n\n| filter | ratio | {' | '.join(figures(before, one.values))} |")
                print(f"|{'---|' * (2 + len(figures(before, one.values)))}")
            tables.setdefault(title, {})[name] = one
            print(f"| {name} | {one.ratio:.2f} | {' | '.join(figures(before, one.values).values())} |", flush=True)
    if options.pictures is not None:
        for (title, fields), name in zip(tables.items(), ("bound", "ratio"), strict=True):
            draw(before, title, fields, options.pictures / f"lossy-{name}.png")


if __name__ == "__main__":
    main()
