"""The main job on a real field: thirty days of surface temperature from a climate model, made smaller within 0.1 K."""

from __future__ import annotations

import tempfile
from pathlib import Path

import h5py
import numpy as np

import tamis

SAMPLE = Path(__file__).parent / "data" / "cam_ts.nc"
BOUND = 0.1  # kelvin


def main() -> None:
    """Repack the sample, check the bound again with h5py alone, and say what to do next."""
    folder = Path(tempfile.mkdtemp(prefix="tamis-demo-"))
    target = folder / "cam_ts_small.nc"
    print(f"Repacking {SAMPLE.name}: TS (30 × 192 × 288 float32, CESM CAM), largest error allowed {BOUND} K\n")
    result = tamis.repack(SAMPLE, target, {"TS": f"zfp(accuracy={BOUND})"})

    with h5py.File(SAMPLE) as before, h5py.File(target) as after:
        error = float(np.abs(before["TS"][:].astype("f8") - after["TS"][:].astype("f8")).max())
    assert error <= BOUND, f"expected an error of at most {BOUND} K, found {error} K"

    (values,) = result.datasets
    print(f"  file            {result.source_nbytes:>10,} bytes → {result.target_nbytes:,} bytes")
    deflated = values.nbytes / values.source_nbytes
    print(f"  TS as deflate   {values.source_nbytes:>10,} bytes, 1/{deflated:.2f} of the raw values")
    print(f"  TS as zfp       {values.target_nbytes:>10,} bytes, 1/{values.ratio:.2f} of the raw values")
    print(f"  largest error   {error:>10.4f} K of {BOUND} K allowed, checked value by value: kept")
    print(f"  time            {result.seconds:>10.2f} s, including reading it all again\n")
    print(tamis.inspect(target), "\n")
    print("Next:")
    print(f"  .venv/bin/tamis inspect {target}")
    print(f"  HDF5_PLUGIN_PATH=$(.venv/bin/tamis plugin-path) ncdump -v TS {target}")
    print("  .venv/bin/tamis repack YOUR.nc SMALL.nc -f 'NAME:zfp(accuracy=0.01)'")
    print("  .venv/bin/tamis --help")


if __name__ == "__main__":
    main()
