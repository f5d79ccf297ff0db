"""The recipes for h5repack of H5Z-ZFP's documentation and tests, on its file: the values of libzfp."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest

import tamis

CHUNKS = {
    "217": ("X", "Y", "Z", "Indexes"),
    "1517": ("Indexes2",),
    "10x20x5": ("Pressure", "Pressure2", "Pressure3"),
    "10x20": ("Pressure_2D",),
    "11x21x1x1": ("Stress", "Velocity", "Stress2", "Velocity2", "Stress3", "Velocity3", "VelocityZ"),
    "21x31": ("VelocityX_2D",),
    "651x1": ("XY",),
    "217x1": ("XYZ",),
    "1617x1": ("XYZ2",),
    "33x1": ("XYZ3",),
}
RECIPES = {
    "rate 4.5": ("4,1,0,0,1074921472", {"rate": 4.5}, ("Pressure2",)),
    "accuracy 0.075": ("4,3,0,858993459,1068708659", {"tolerance": 0.075}, ("Pressure2", "Velocity2", "XYZ")),
    "accuracy 0.001": ("4,3,0,3539053052,1062232653", {"tolerance": 0.001}, ("Pressure2", "Stress", "X", "XYZ2")),
}


@pytest.mark.peer
@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_of_the_documentation_gives_the_values_of_libzfp(
    recipe: str, run: Callable[..., str], tmp_path: Path, plugins: Path
) -> None:
    zfpy = pytest.importorskip("zfpy")
    mesh = needs.real("h5zzfp/mesh.h5")
    needs.need("h5repack")
    cd_values, mode, names = RECIPES[recipe]
    layouts = [
        f"-l{','.join(n for n in of if n in names)}:CHUNK={c}" for c, of in CHUNKS.items() if set(of) & set(names)
    ]
    filters = f"-f{','.join(names)}:UD=32013,0,{cd_values}"
    run("h5repack", "-n", filters, *layouts, mesh, tmp_path / "out.h5", HDF5_PLUGIN_PATH=str(plugins))
    with h5py.File(mesh) as source, h5py.File(tmp_path / "out.h5") as target:
        for name in names:
            values, dataset = source[name][()], target[name]
            assert dataset.id.get_create_plist().get_filter(0)[0] == 32013
            for part in dataset.iter_chunks():
                chunk = np.zeros(dataset.chunks, values.dtype)  # what HDF5 fills it up with
                chunk[tuple(slice(0, s.stop - s.start) for s in part)] = values[part]
                stream = zfpy.compress_numpy(chunk.squeeze(), write_header=True, **mode)
                decoded = zfpy.decompress_numpy(stream).reshape(chunk.shape)
                expected = decoded[tuple(slice(0, s.stop - s.start) for s in part)]
                np.testing.assert_array_equal(dataset[part], expected)
    assert tamis.inspect(tmp_path / "out.h5")[names[0]].pipeline is not None
