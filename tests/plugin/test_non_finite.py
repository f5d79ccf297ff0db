"""NaN and infinities in lossy modes, encoded as H5Z-ZFP does (``TAMIS_ZFP_NONFINITE=encode``): the bytes of libzfp."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis

Run = Callable[..., str]

SHAPES = {1: (37,), 2: (9, 14), 3: (6, 9, 5), 4: (5, 6, 4, 9)}
MODES: dict[str, dict[str, Any]] = {
    "rate": {"rate": 4.5},
    "precision": {"precision": 50},
    "accuracy": {"accuracy": 1e-3},
    "coarse": {"accuracy": 10.0},
}
WRITE = """
import h5py, sys, tamis
with h5py.File(sys.argv[1]) as source, h5py.File(sys.argv[2], "w") as target:
    for name, data in source.items():
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(data.shape)
        optional = len(target) % 2  # that makes no difference
        plist.set_filter(32013, optional, tamis.Zfp(**{data.attrs["mode"]: data.attrs["value"]}).requested)
        made = h5py.h5d.create(target.id, name.encode(), data.id.get_type(), data.id.get_space(), plist)
        h5py.Dataset(made)[...] = data[...]
"""


def with_non_finite(dtype: str, rank: int) -> dict[str, np.ndarray]:
    """Return arrays by name: small, common and large numbers with NaN, infinities or both, and nothing else."""
    rng = np.random.default_rng(rank)
    arrays = {}
    for scale in (np.finfo(dtype).smallest_subnormal * 99, 1.0, np.finfo(dtype).max / 9):
        values = (rng.normal(size=SHAPES[rank]) * scale).astype(dtype)
        for label, others in {"nan": [np.nan], "inf": [np.inf], "both": [np.nan, -np.inf, np.inf, 0, -np.nan]}.items():
            few = np.where(rng.random(values.shape) < 0.1, rng.choice(others, values.shape), values).astype(dtype)
            few.flat[0] = others[0]
            arrays[f"{label}{scale:g}"] = few
    return arrays | {"only": np.full(SHAPES[rank], np.nan, dtype), "none": np.full(SHAPES[rank], np.inf, dtype)}


@pytest.mark.check
@pytest.mark.peer
def test_bytes_of_libzfp_in_every_mode(tmp_path: Path, python: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    zfpy = pytest.importorskip("zfpy")
    if platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        pytest.skip("libzfp converts NaN in another way here")
    expected = {}
    with h5py.File(tmp_path / "source.h5", "w") as file:
        for rank in SHAPES:
            for dtype in ("f4", "f8"):
                for label, values in with_non_finite(dtype, rank).items():
                    for mode, (keyword, value) in ((name, *options.items()) for name, options in MODES.items()):
                        name = f"{rank}{dtype}{label}{mode}"
                        file[name] = values
                        file[name].attrs.update(mode=keyword, value=value)
                        option = {{"accuracy": "tolerance"}.get(keyword, keyword): value}
                        expected[name] = zfpy.compress_numpy(values, write_header=False, **option)
    monkeypatch.setenv("TAMIS_ZFP_NONFINITE", "encode")
    python(WRITE, tmp_path / "source.h5", tmp_path / "target.h5")
    with h5py.File(tmp_path / "target.h5") as file:
        for name, stream in expected.items():
            mask, raw = file[name].id.read_direct_chunk((0,) * file[name].ndim)
            # zfpy fills up to 8 bytes, and the plugin to another size than that of the values.
            length = min(len(raw), len(stream))
            assert (mask, raw[:length]) == (0, stream[:length]), name
            assert not any(raw[length:] + stream[length:]), name
            assert abs(len(raw) - len(stream)) <= 8, name


@pytest.mark.peer
def test_h5repack_as_with_debians_h5z_zfp(
    tmp_path: Path, tool: Run, plugins: Path, debian_plugins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.linspace(1, 2, 16 * 16, dtype="f4").reshape(16, 16)
    values[3, 4], values[9, 1], values[12, 13] = np.nan, np.inf, -np.inf
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["v"] = values
    monkeypatch.setenv("TAMIS_ZFP_NONFINITE", "encode")
    for keyword in ("accuracy", "precision"):
        words = ",".join(map(str, tamis.Zfp(**{keyword: 12}).requested))
        chunks = []
        for folder in (plugins, debian_plugins):
            target = tmp_path / f"{keyword}{len(chunks)}.h5"
            filters = f"v:UD=32013,0,{words.count(',') + 1},{words}"
            tool("h5repack", "-l", "v:CHUNK=16x16", "-f", filters, tmp_path / "source.h5", target, plugins=folder)
            with h5py.File(target) as file:
                chunks.append(file["v"].id.read_direct_chunk((0, 0)))
        assert chunks[0] == chunks[1]


@pytest.mark.check
def test_other_chunks_keep_the_proof_and_unknown_words_are_said(
    tmp_path: Path, python: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import h5py, numpy, sys, tamis
values = numpy.ones((3, 64), "f4")
values[0, 5], values[1, 5] = numpy.nan, 3e8
with h5py.File(sys.argv[1], "w") as file:
    data = file.create_dataset("v", data=values, chunks=(1, 64), **tamis.Zfp(accuracy=0.1))
    print(*(data.id.get_chunk_info(i).filter_mask for i in range(3)))
"""
    for word, masks in {"encode": "0 1 0", "refuse": "1 1 0", "yes": "1 1 0"}.items():
        monkeypatch.setenv("TAMIS_ZFP_NONFINITE", word)
        said = python(code, tmp_path / "a.h5")
        assert masks in said
        warning = "expected TAMIS_ZFP_NONFINITE to be refuse or encode, got 'yes'; using refuse"
        assert (warning in said) == (word == "yes")
