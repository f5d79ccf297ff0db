"""The h5repack recipes of H5Z-ZFP's documentation on its own file, through our plugin and through Debian's H5Z-ZFP."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest

import tamis

MESH = needs.DATA / "h5zzfp" / "mesh.h5"
DEBIAN = needs.debian_plugins()
LAYOUT = [
    *("-l", "Pressure,Pressure2,Pressure3:CHUNK=10x20x5"),
    *("-l", "Velocity,Velocity2,Velocity3,VelocityZ,VelocityZ2,VelocityZ3:CHUNK=11x21x1x1"),
    *("-l", "VelocityX_2D:CHUNK=21x31"),
]

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(not MESH.exists(), reason=needs.NO_DATA),
    needs.needs("h5repack", needs.PLUGIN),
]


def values(path: Path) -> dict[str, np.ndarray]:
    with h5py.File(path) as file:
        return {name: item[()] for name, item in file.items() if isinstance(item, h5py.Dataset)}


@pytest.mark.parametrize(
    ("filter_", "left_alone"),
    [
        ("UD=32013,0,4,1,0,0,1074921472", {"Pressure"}),  # rate 4.5
        ("UD=32013,0,4,3,0,858993459,1068708659", {"Pressure", "Indexes", "Indexes2"}),  # accuracy 0.075
        ("UD=32013,0,4,3,0,3539053052,1062232653", {"Pressure", "Indexes", "Indexes2"}),  # accuracy 0.001
    ],
    ids=["rate 4.5", "accuracy 0.075", "accuracy 0.001"],
)
def test_recipe_gives_values_of_h5z_zfp_but_for_integers_it_spoils(
    tmp_path: Path, filter_: str, left_alone: set[str]
) -> None:
    results = []
    for plugin in (tamis.plugin_path(), DEBIAN):
        target = tmp_path / f"{len(results)}.h5"
        env = {**os.environ, "HDF5_PLUGIN_PATH": str(plugin)}
        subprocess.run(["h5repack", "-f", filter_, *LAYOUT, MESH, target], env=env, check=True, capture_output=True)
        results.append(values(target))
    (ours, theirs), source = results, values(MESH)
    assert ours.keys() == theirs.keys() == source.keys()
    assert {name for name in ours if not np.array_equal(ours[name], theirs[name])} == left_alone
    assert all(np.array_equal(ours[name], source[name]) for name in left_alone)
    assert int(theirs["Pressure"].max()) > 4_000_000_000 > int(source["Pressure"].max())
    with h5py.File(tmp_path / "0.h5") as file:
        assert sum(item.chunks is not None for item in file.values() if isinstance(item, h5py.Dataset)) > 20
