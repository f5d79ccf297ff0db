"""The examples in C and Fortran, and programs that try what the libraries refuse."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest

import tamis

PROGRAMS = Path(__file__).parent / "programs"
CODEC = ("--codec",)
FORTRAN = ("-std=f2008", "-Wall", "-Wno-c-binding-type", "-Wno-uninitialized", "-Wno-maybe-uninitialized", "-Werror")
Build = Callable[..., Path]
Run = Callable[..., str]
pytestmark = pytest.mark.peer


def fortran_source(name: str) -> Path:
    return tamis.config().fortran_path / name


def tensor(steps: int) -> np.ndarray:
    x, y, z, i, j, t = np.indices((11, 11, 11, 3, 3, steps))
    return (1 + i + 3 * j) * np.sin(x / 5 + t / 7) * np.cos(y / 6) * np.cos(z / 8)


def test_chunks_of_the_codec_are_those_of_the_filter(build: Build, run: Run, tmp_path: Path) -> None:
    printed = run(build("h5cc", "c/chunks.c", libs=CODEC), tmp_path / "chunks.h5")
    assert printed.startswith("rank 2, 70x90, error 0.00")
    with h5py.File(tmp_path / "chunks.h5") as file:
        direct, filtered = file["direct"], file["filtered"]
        for step in range(3):
            assert direct.id.read_direct_chunk((step, 0, 0)) == filtered.id.read_direct_chunk((step, 0, 0))
        t, i, j = np.indices((3, 70, 90))
        np.testing.assert_allclose(direct[()], 300 + 20 * np.sin(i / 11 + t) * np.cos(j / 17), rtol=0, atol=0.0101)


def test_codec_encodes_and_decodes_in_memory(build: Build, run: Run) -> None:
    nbytes, whole, error = re.findall(r"[\d.]+", run(build("cc", "c/codec.c", libs=CODEC)))
    assert int(whole) == 200 * 300 * 8
    assert 0 < int(nbytes) < int(whole) / 4
    assert 0 < float(error) <= 0.001


def test_steps_gathered_in_c_fill_chunks_of_six_axes(build: Build, run: Run, tmp_path: Path) -> None:
    assert run(build("h5cc", "c/sixd.c"), tmp_path / "sixd.h5") == "279936 bytes of 862488\n"
    with h5py.File(tmp_path / "sixd.h5") as file:
        assert file["tensor"].chunks == (11, 11, 11, 1, 1, 4)
        np.testing.assert_allclose(file["tensor"][()], tensor(9), rtol=0, atol=0.05)


def test_fortran_writes_every_mode_and_python_reads_it(build: Build, run: Run, tmp_path: Path) -> None:
    source = fortran_source("H5Zzfp_props_f.F90")
    printed = run(build("h5fc", source, "fortran/modes.f90", options=FORTRAN), tmp_path / "modes.h5")
    row, column = np.indices((60, 100))
    values = 20 + 15 * np.sin(row / 9) * np.cos(column / 13)
    with h5py.File(tmp_path / "modes.h5") as file:
        for number, mode in enumerate(("rate", "precision", "accuracy", "expert", "reversible"), start=1):
            properties, generic = file[f"{mode}_properties"], file[f"{mode}_generic"]
            assert printed.count(f": mode {number},") == 2
            assert properties.id.get_create_plist().get_filter(0) == generic.id.get_create_plist().get_filter(0)
            assert properties.id.read_direct_chunk((0, 0)) == generic.id.read_direct_chunk((0, 0))
            np.testing.assert_allclose(properties[()], values, rtol=0, atol=0.05)


def test_fortran_writes_its_own_chunks_and_a_tensor_in_time(build: Build, run: Run, tmp_path: Path) -> None:
    sources = (fortran_source("H5Zzfp_props_f.F90"), fortran_source("tamis_zfp.f90"), "fortran/chunks.f90")
    run(build("h5fc", *sources, libs=CODEC, options=FORTRAN), tmp_path / "chunks.h5")
    with h5py.File(tmp_path / "chunks.h5") as file:
        j, i = np.indices((70, 90)) + 1
        np.testing.assert_allclose(file["direct"][()], 300 + 20 * np.sin(j / 11) * np.cos(i / 17), rtol=0, atol=0.0101)
        assert file["tensor"].chunks == (11, 11, 11, 1, 1, 4)
        np.testing.assert_allclose(file["tensor"][()], tensor(9), rtol=0, atol=0.05)


def test_parallel_program_writes_collectively(build: Build, run: Run, tmp_path: Path) -> None:
    needs.need("h5pcc", "mpirun")
    needs.need_shared_memory()
    mpirun = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4")
    printed = run(*mpirun, build("h5pcc", "c/parallel.c"), tmp_path / "parallel.h5")
    assert "4 processes, " in printed
    with h5py.File(tmp_path / "parallel.h5") as file:
        i, j = np.indices((128, 64))
        assert file["field"].id.get_num_chunks() == 16
        np.testing.assert_allclose(file["field"][()], np.sin(i / 9) * np.cos(j / 13), rtol=0, atol=1e-4)


def test_python_writes_what_c_reads(build: Build, run: Run, tmp_path: Path) -> None:
    values = np.linspace(0, 9, 1000, dtype="f4")
    with h5py.File(tmp_path / "python.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(100,), **tamis.Zfp(accuracy=0.01))
    printed = run(build("h5cc", PROGRAMS / "read.c"), tmp_path / "python.h5")
    mode, number, *read = printed.split()
    assert (mode, float(number)) == ("3", 2**-7)
    np.testing.assert_allclose(np.array(read, "f8"), values, rtol=0, atol=0.01)


def test_refusals_of_the_filter(build: Build, run: Run, tmp_path: Path) -> None:
    printed = run("env", "-C", tmp_path, build("h5cc", PROGRAMS / "refusals.c"))
    on_stdout = printed.partition("HDF5-DIAG")[0]
    lines = [line.strip() for line in on_stdout.splitlines()]
    for call, result, reason in (
        ("H5Pget_zfp_mode(dcpl)", 0, ""),
        ("H5Pget_zfp_mode(access)", -1, "zfp: not a dataset creation property list class"),
        ("H5Pset_zfp_rate(access, 8)", -1, "zfp: not a dataset creation property list class"),
        ("H5Pset_zfp_reversible(none)", -1, "zfp: not a dataset creation property list class"),
        ("H5Pset_zfp_rate(dcpl, 0)", -1, "zfp: rate out of range: expected 0.00195 to 8192 bits per value, got 0"),
        ("H5Pset_zfp_rate(dcpl, NAN)", -1, "zfp: rate out of range"),
        ("H5Pset_zfp_rate(dcpl, 0.001)", -1, "zfp: rate out of range: expected 0.00195 to 8192 bits per"),
        ("H5Pset_zfp_rate(dcpl, 8193)", -1, "zfp: rate out of range"),
        ("H5Pset_zfp_precision(dcpl, 0)", -1, "zfp: precision out of range: expected 1 to 64 bit planes, got 0; rev"),
        ("H5Pset_zfp_precision(dcpl, 200)", -1, "zfp: precision out of range: expected 1 to 64 bit planes, got 200"),
        ("H5Pset_zfp_precision(access, 20)", -1, "zfp: not a dataset creation property list class: expected a list"),
        ("H5Pset_zfp_accuracy(dcpl, NAN)", -1, "zfp: accuracy out of range"),
        ("H5Pset_zfp_accuracy(dcpl, -1)", -1, "zfp: accuracy out of range: expected a finite number of 0 or more"),
        ("H5Pset_zfp_accuracy(dcpl, INFINITY)", -1, "zfp: accuracy out of range"),
        ("H5Pset_zfp_expert(dcpl, 2, 1, 64, 0)", -1, "zfp: expected minbits <= maxbits"),
        ("H5Pset_zfp_expert(dcpl, 1, 100, 65, 0)", -1, "zfp: expected minbits <= maxbits"),
        ("H5Pset_zfp_expert(dcpl, 1, 100, 0, 0)", -1, "zfp: expected minbits <= maxbits"),
        ("H5Pset_zfp_expert(dcpl, 0, 0, 64, 0)", -1, "zfp: expected minbits <= maxbits, minbits <= 32768, maxbits >="),
        ("H5Pget_zfp_accuracy(dcpl, &number)", -1, "zfp: expected a property list of mode accuracy, got rate"),
        ("H5Pget_zfp_precision(dcpl, &a)", -1, "zfp: expected a property list of mode precision, got rate"),
        ("H5Pget_zfp_expert(dcpl, &a, &b, &c, &exponent)", -1, "zfp: expected a property list with numbers of bits"),
        ("H5Pget_zfp_rate(dcpl, &number)", -1, "zfp: expected a property list of mode rate, got accuracy"),
        ("H5Pget_zfp_accuracy(dcpl, NULL)", 0, ""),
        ("H5Pget_zfp_expert(dcpl, NULL, NULL, NULL, NULL)", 0, ""),
        ("H5Pset_zfp_rate(dcpl, 1. / 512)", 0, ""),
        ("H5Pset_zfp_rate(dcpl, 8192)", 0, ""),
        ("H5Pset_zfp_precision(dcpl, 1)", 0, ""),
        ("H5Pset_zfp_precision(dcpl, 64)", 0, ""),
        ("H5Pset_zfp_accuracy(dcpl, 0)", 0, ""),
        ('H5Dcreate2(file, "contiguous"', -1, "filters can only be used with chunked layout"),
        ('H5Dcreate2(file, "text"', -1, "zfp: requires datatype class of H5T_FLOAT or H5T_INTEGER, got"),
        ('H5Dcreate2(file, "wide"', -1, "zfp: requires datatype size of 4 or 8, got"),
        ('H5Dcreate2(file, "short"', -1, "zfp: requires datatype size of 4 or 8, got"),
        ('H5Dcreate2(file, "integers"', -1, "zfp: accuracy below 1 does not make integers exact"),
        ('H5Dcreate2(file, "one"', -1, "zfp: expected a chunk of more than one value, got 1;"),
        ('H5Dcreate2(file, "five"', -1, "zfp: chunk must have only 1...4 non-unity dimensions, got 4x4x4x4x4 with 5"),
    ):
        place = next(i for i, line in enumerate(lines) if line.startswith(call))
        assert lines[place].endswith(f": {result}"), call
        assert lines[place + 1].startswith(reason), call
    assert "1 16658 64 -4" in lines
    # HDF5 prints on stderr what its own calls leave on the stack: ours, too.
    assert printed.count("HDF5-DIAG: Error detected") == 1
    assert "in H5Pset_zfp_precision(): zfp: precision out of range" in printed
    assert "reported 2 times" in lines
    assert lines[lines.index("3 7") :] == [
        "3 7",
        "0 0",
        "H5Pset_zfp_reversible(dcpl): 0",
        "H5Pget_zfp_mode(dcpl): 5",
        "H5Pget_nfilters(dcpl): 1",
        "H5Z_zfp_finalize(): -1",
        *lines[lines.index("H5Z_zfp_finalize(): -1") + 1 : -4],
        "H5Zfilter_avail(H5Z_FILTER_ZFP): 1",
        "H5Z_zfp_initialize(): 1",
        "H5Z_zfp_finalize(): 1",
        "H5Zfilter_avail(H5Z_FILTER_ZFP): 0",
    ]


def test_refusals_of_the_codec(build: Build, run: Run) -> None:
    printed = run(build("cc", PROGRAMS / "codec.c", libs=CODEC))
    assert {int(line.split()[0]) for line in printed.splitlines()[:-1]} == {1, 2, 3, 4, 5, 6, 7, 8, 10, 11}
    assert printed.splitlines()[-1] == f"{tamis.config().version} no code of tamis"
    assert "NaN or infinity at value 902" in printed


@pytest.mark.parametrize("plugin", ["ours", "h5zzfp"])
def test_library_works_while_a_plugin_of_its_number_is_there(
    plugin: str, build: Build, run: Run, tmp_path: Path, plugins: Path
) -> None:
    theirs = sorted(Path("/usr/lib").glob("*/hdf5/serial/plugins"))
    folder = plugins if plugin == "ours" else next(iter(theirs), Path("/nonexistent"))
    program = build("h5cc", "c/modes.c", options=("-shlib",))
    printed = run(program, tmp_path / "modes.h5", HDF5_PLUGIN_PATH=str(folder))
    assert "stored accuracy 0.000976562" in printed
    with h5py.File(tmp_path / "modes.h5") as file:
        assert b"tamis" in file["rate_generic"].id.get_create_plist().get_filter(0)[3]


@pytest.mark.parametrize("options", [("-xc", "-std=c99"), ("-xc++", "-std=c++11"), ("-xc++", "-std=c++20")])
def test_headers_are_c99_and_cpp(options: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    needs.need("h5cc")
    include = [word for word in run("h5cc", "-show").split() if word.startswith("-I")]
    source = tmp_path / "all.c"
    source.write_text('#include "H5Zzfp.h"\n#include "tamis.h"\nint main(void) { return H5Z_zfp_finalize() - 1; }\n')
    flags = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fsyntax-only", tamis.config().cflags)
    run("cc", *options, *flags, *include, source)


@pytest.mark.check
def test_static_library_leaves_no_memory_behind(build: Build, run: Run, tmp_path: Path) -> None:
    program = build("h5cc", "c/sixd.c", libs=("--static",), options=("-O1",))
    checker = ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full") if shutil.which("valgrind") else ()
    assert "279936 bytes" in run(*checker, program, tmp_path / "sixd.h5")


def test_array_that_silo_compressed_is_read() -> None:
    # Written by Debian's Silo 4.11 with DBSetCompression("METHOD=ZFP ACCURACY=0.001") and DBWrite.
    with h5py.File(Path(__file__).parent / "data" / "silo.silo") as file:
        assert file["v"].id.get_create_plist().get_filter(0)[3] == b"SILO-H5Z-ZFP-1.0.1 (ZFP-0.5.5)"
        expected = np.sin(np.arange(2048) / 300).reshape(8, 16, 16)
        assert 0 < abs(file["v"][()] - expected).max() <= 0.001


@pytest.mark.parametrize("fill", ["0", "-9999", "9.97e36", "nan"])
def test_u97_steps_beside_a_fill_value_are_stored(build: Build, run: Run, tmp_path: Path, fill: str) -> None:
    path = tmp_path / "steps.h5"
    run(build("h5cc", PROGRAMS / "append.c"), path, fill, "6")
    with h5py.File(path) as file:
        steps = file["T"]
        assert np.abs(steps[()] - (280 + np.arange(6)[:, None] + np.arange(1024) % 64 / 8)).max() <= 0.01
        assert steps.id.get_chunk_info(0).filter_mask == 0
