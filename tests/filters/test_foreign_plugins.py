"""U56: filters of other packages run in a process of their own, and what is kept is copied as stored, without them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import h5py
import needs
import numpy as np
import pytest

from tamis.filters.unknown import REGISTERED
from tamis.formats.hdf5.store import Hdf5Store
from tamis.formats.hdf5.writer import copied_file
from tamis.rewrite.transfer import Changes

pytestmark = pytest.mark.xdist_group("foreign plugins")  # they are compiled once

COMMAND = Path(sys.executable).parent / "tamis"
SOURCE = Path(__file__).with_name("foreign_filter.c")
Run = Callable[..., str]
Write = Callable[[str, int], dict[str, str]]
RIGHT, CRASHES_ON_DECODE, ABORTS_ON_DECODE, CRASHES_ON_ENCODE, REFUSES, WAITS = range(6)
WRITE_ALL = """
import sys, h5py, numpy as np
path, names, kind = sys.argv[1], sys.argv[2], int(sys.argv[3])
stored = {"compression": 40056, "compression_opts": (kind,)}
with h5py.File(path, "w") as file:
    file.create_dataset("plain", data=np.arange(4000.0).reshape(40, 100), chunks=(20, 50))
    if "x" in names:
        file.create_dataset("x", data=np.arange(4000, dtype="f4").reshape(40, 100), chunks=(20, 50), **stored)
    if "t" in names:
        texts = np.array(["a", "bb", "", "ccc"] * 3, object)
        file.create_dataset("t", data=texts, dtype=h5py.string_dtype(), chunks=(5,), **stored)
    if "s" in names:
        file.create_dataset("s", (4,), h5py.vlen_dtype("i4"), chunks=(2,), **stored)[1] = np.arange(3)
    if "r" in names:
        file.create_dataset("r", (3,), h5py.ref_dtype, chunks=(3,), **stored)[1] = file["plain"].ref
    if "f" in names:
        file.create_dataset("f", (4,), h5py.string_dtype(), fillvalue="none", chunks=(2,), **stored)[...] = "one"
"""
READ_ALL = """
import sys, numpy as np, tamis
file = tamis.open(sys.argv[1])
assert np.array_equal(file["x"][3:30, 7:], np.arange(4000.0).reshape(40, 100)[3:30, 7:])
assert file["t"][...].tolist() == [b"a", b"bb", b"", b"ccc"] * 3
assert file["s"][1].tolist() == [0, 1, 2]
assert file["r"][1] and not file["r"][0]
assert file["f"][...].tolist() == [b"one"] * 4
"""
READ_BY_XARRAY = """
import sys, numpy as np, xarray
dataset = xarray.open_dataset(sys.argv[1], engine="tamis")
assert np.array_equal(dataset["x"].values, np.arange(4000.0).reshape(40, 100))
assert dataset["t"].values.tolist() == ["a", "bb", "", "ccc"] * 3
"""
NOT_LOADED_HERE = """
assert "foreign_filter" not in open("/proc/self/maps").read()
"""
READ_TWICE = """
import sys, pytest, tamis, xarray
for _ in range(2):
    for name in ("x", "t"):
        reason = rf"a.h5: /{name}: .*filter 40056 \\(xor\\) of .*/libforeign_filter.so: .* was ended by SIGSEGV: copy"
        with tamis.open(sys.argv[1]) as file, pytest.raises(tamis.FileError, match=reason):
            file[name][...]
        with tamis.open(sys.argv[1]) as file:
            assert file["plain"][0, 3] == 3
with pytest.raises(tamis.FileError, match="a.h5: /[xt]: .*SIGSEGV"):
    xarray.open_dataset(sys.argv[1], engine="tamis")["x"].load()
"""
WRITE_AFTER_TAMIS = """
import sys, h5py, numpy as np, tamis
with h5py.File(sys.argv[1]) as file:
    assert tamis.hdf5.pipeline_of(file["x"]).stages
file = h5py.File(sys.argv[2], "w")
stored = {"compression": 40056, "compression_opts": (int(sys.argv[3]),)}
"""
REFUSED = """
import pytest
with file, pytest.raises(ValueError, match="the process that creates a dataset with it was ended by SIGSEGV"):
    file.create_dataset("x", data=np.arange(9), chunks=(9,), **stored)
"""
STORED_WITHOUT_FILTER = """
with file:  # h5py asks for optional filters: HDF5 leaves out one that fails
    dataset = file.create_dataset("x", data=np.arange(9), chunks=(9,), **stored)
    file.flush()
    assert dataset.id.get_chunk_info(0).filter_mask == 1
with h5py.File(sys.argv[2]) as file:
    assert file["x"][...].tolist() == list(range(9))
"""
WRITE_SZ_AFTER_TAMIS = """
import sys, h5py, hdf5plugin, numpy as np, tamis
path, copy = sys.argv[1:]
assert tamis.open(path)["x"][0, 0, 0] < 10
values = np.random.default_rng(56).normal(size=(8, 8, 128)).cumsum(2).astype("f4")
with h5py.File(copy, "w") as file:
    file.create_dataset("x", data=values, chunks=(8, 8, 128), **hdf5plugin.SZ(absolute=0.01))
with h5py.File(path) as file, h5py.File(copy) as other:
    lists = [group["x"].id.get_create_plist().get_filter(0) for group in (file, other)]
    assert lists[0] == lists[1]
    assert np.abs(other["x"][...] - values).max() <= 0.01
"""
LEFT_OPEN = """
file.create_dataset("x", (40, 100), "f4", chunks=(40, 100), **stored)
file["x"][...] = np.arange(4000).reshape(40, 100)
"""
WRITE = (
    "import sys, h5py, hdf5plugin, numpy as np\n"
    "file, values = h5py.File(sys.argv[1], 'w'), np.random.default_rng(56).normal(size=(8, 8, 128)).cumsum(2)\n"
    "file.create_dataset('x', data=values.astype('f4'), chunks=(8, 8, 128), **hdf5plugin.SZ(absolute=0.01))\n"
)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile the plugin, with its macros, and return its folder."""
    needs.need("cc")
    if sys.platform != "linux":
        pytest.skip("needs Linux, whose plugins end in .so")

    def call(*macros: str) -> Path:
        folder = tmp_path_factory.mktemp("plugin")
        options = [f"-D{macro}" for macro in macros]
        subprocess.run(["cc", "-shared", "-fPIC", *options, "-o", folder / "libforeign_filter.so", SOURCE], check=True)
        return folder

    return call


@pytest.fixture(scope="module")
def plugins(build: Callable[..., Path]) -> Path:
    return build()


@pytest.fixture(scope="module")
def written(python: Run, plugins: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """Write datasets by h5py and a plugin that behaves so, each kind once."""
    folder = tmp_path_factory.mktemp("written")

    def call(names: str, kind: int) -> Path:
        path = folder / f"{names}-{kind}.h5"
        if not path.exists():
            python(WRITE_ALL, path, names, str(kind), env={"HDF5_PLUGIN_PATH": str(plugins)})
        return path

    return call


@pytest.fixture
def write(written: Callable[[str, int], Path], plugins: Path, tmp_path: Path) -> Callable[[str, int], dict[str, str]]:
    """Write datasets to ``a.h5`` by h5py and a plugin that behaves so; return the variable that names its folder."""

    def call(names: str, kind: int) -> dict[str, str]:
        shutil.copy(written(names, kind), tmp_path / "a.h5")
        return {"HDF5_PLUGIN_PATH": str(plugins)}

    return call


def run(words: str, folder: Path, plugins: Path) -> tuple[int, str]:
    env = os.environ | {"HDF5_PLUGIN_PATH": str(plugins)}
    command = [COMMAND, *words.split()]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.matrix
@pytest.mark.parametrize(("kind", "end"), [(CRASHES_ON_DECODE, "SIGSEGV"), (ABORTS_ON_DECODE, "SIGABRT")])
@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("t", "repack a.h5 b.h5 -f *:shuffle|deflate(4)"),
        ("s", "repack a.h5 b.h5 -f *:shuffle|deflate(4)"),
        ("r", "copy a.h5 b.h5 -d 4"),
        ("f", "copy a.h5 b.h5 -d 4"),
        ("x", "repack a.h5 b.zarr"),
        ("t", "repack a.h5 b.zarr"),
        ("tsr", "verify a.h5 a.h5"),
    ],
)
def test_u56_plugin_that_crashes_is_an_error_and_nothing_is_left(
    names: str, words: str, kind: int, end: str, write: Write, plugins: Path, tmp_path: Path
) -> None:
    write(names, kind)
    code, said = run(words, tmp_path, plugins)
    assert code == 1, said
    assert [line for line in said.splitlines() if f"/{names[0]}" in line and f"ended by {end}" in line], said
    assert f"filter 40056 (xor) of {plugins}/libforeign_filter.so: the process that decodes with it was" in said
    assert "copy the file again, or install another version of the plugin" in said
    assert "Traceback" not in said
    assert os.listdir(tmp_path) == ["a.h5"]


def test_u56_plugin_that_refuses_a_chunk_is_an_error(write: Write, plugins: Path, tmp_path: Path) -> None:
    write("x", REFUSES)
    code, said = run("repack a.h5 b.zarr", tmp_path, plugins)
    assert code == 1
    assert "libforeign_filter.so cannot decode the chunk" in said
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.matrix
@pytest.mark.parametrize("words", ["inspect a.h5", "repack a.h5 b.h5 -f *:deflate(1)", "verify a.h5 a.h5"])
def test_u56_plugin_that_crashes_where_it_is_loaded_is_an_error(
    words: str, write: Write, build: Callable[..., Path], tmp_path: Path
) -> None:
    write("xt", RIGHT)
    code, said = run(words, tmp_path, broken := build("CRASHES_ON_LOADING"))
    assert code == 1, said
    assert f"filter 40056: the process that loads the plugins in {broken} was ended by SIGSEGV: remove" in said
    assert "Traceback" not in said
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.parametrize(
    ("macros", "kind", "write_on"),
    [(("CRASHES_ON_CREATION",), RIGHT, REFUSED), ((), CRASHES_ON_ENCODE, STORED_WITHOUT_FILTER)],
    ids=["creation", "encode"],
)
def test_u56_plugin_that_crashes_where_h5py_writes_does_not_end_the_program(
    macros: tuple[str, ...],
    kind: int,
    write_on: str,
    python: Run,
    write: Write,
    build: Callable[..., Path],
    tmp_path: Path,
) -> None:
    write("x", RIGHT)
    env = {"HDF5_PLUGIN_PATH": str(build(*macros))}
    python(WRITE_AFTER_TAMIS + write_on, tmp_path / "a.h5", tmp_path / "b.h5", str(kind), env=env)


def test_u56_sz_of_hdf5plugin_writes_the_same_after_tamis(python: Run, tmp_path: Path) -> None:
    if importlib.util.find_spec("hdf5plugin") is None:
        pytest.skip("could not import 'hdf5plugin'")
    python(WRITE, tmp_path / "a.h5")
    python(WRITE_SZ_AFTER_TAMIS, tmp_path / "a.h5", tmp_path / "b.h5")


def test_u56_plugin_that_crashes_is_an_error_in_python_and_other_values_are_read(
    python: Run, write: Write, tmp_path: Path
) -> None:
    env = write("xt", CRASHES_ON_DECODE)
    python(READ_TWICE, tmp_path / "a.h5", env=env)


@pytest.mark.check
@pytest.mark.parametrize(
    ("names", "read", "target", "filters"),
    [("xtsrf", READ_ALL, "b.h5", "-f *:shuffle|deflate(4)"), ("xt", READ_BY_XARRAY, "b.zarr", "")],
    ids=["to HDF5", "to Zarr, by xarray"],
)
def test_u56_values_through_a_right_plugin_are_those_of_h5py(
    names: str, read: str, target: str, filters: str, python: Run, write: Write, plugins: Path, tmp_path: Path
) -> None:
    env = write(names, RIGHT)
    python(read + NOT_LOADED_HERE, tmp_path / "a.h5", env=env)
    for words in ("inspect a.h5", f"repack a.h5 {target} {filters}", f"verify a.h5 {target}"):
        code, said = run(words, tmp_path, plugins)
        assert code == 0, said
    python(read, tmp_path / target, env=env)


def test_u56_file_that_a_program_leaves_open_has_its_values(python: Run, write: Write, tmp_path: Path) -> None:
    env = write("x", RIGHT)
    python(WRITE_AFTER_TAMIS + LEFT_OPEN, tmp_path / "a.h5", tmp_path / "b.h5", str(RIGHT), env=env)
    read = "import sys, h5py; assert h5py.File(sys.argv[1])['x'][39, 99] == 3999"
    python(read, tmp_path / "b.h5", env=env)


def test_u56_interrupt_while_a_plugin_decodes_ends_the_command(write: Write, plugins: Path, tmp_path: Path) -> None:
    write("x", WAITS)
    mark = plugins / "mark"
    env = os.environ | {"HDF5_PLUGIN_PATH": str(plugins), "TAMIS_TEST_MARK": str(mark)}
    command = [COMMAND, "repack", "a.h5", "b.zarr"]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE) as process:
        while not mark.exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, b"tamis: interrupted" in said) == (128 + signal.SIGINT, True), said
    assert os.listdir(tmp_path) == ["a.h5"]


INTERRUPTED = """
import os, signal, sys, threading, time, tamis
def interrupt():
    while not os.path.exists(os.environ["TAMIS_TEST_MARK"]):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    tamis.open(sys.argv[1])["t"][...]
except KeyboardInterrupt:
    print("interrupted")
"""


def test_u56_interrupt_in_python_while_a_plugin_decodes_is_a_keyboard_interrupt(
    python: Run, write: Write, plugins: Path, tmp_path: Path
) -> None:
    env = write("t", WAITS) | {"TAMIS_TEST_MARK": str(plugins / "python")}
    assert python(INTERRUPTED, tmp_path / "a.h5", env=env).strip() == "interrupted"


SZ3_BY_HDF5 = """
import sys, h5py, hdf5plugin, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    values = np.linspace(0, 1, 4096, dtype="f4").reshape(64, 64)
    file.create_dataset("x", data=values, chunks=(32, 32), **hdf5plugin.SZ3(absolute=0.01))
"""
READ_SZ3_BY_HDF5 = """
import sys, h5py, numpy as np, tamis
with h5py.File(sys.argv[1]) as file:
    assert tamis.hdf5.pipeline_of(file["x"]).filters[0].name == "sz3"
    assert np.abs(file["x"][...] - np.linspace(0, 1, 4096).reshape(64, 64)).max() <= 0.0101
assert "libh5sz3" not in open("/proc/self/maps").read()
"""


def test_u56_sz3_that_hdf5_decodes_runs_in_a_process_of_its_own(python: Run, tmp_path: Path) -> None:
    spec = importlib.util.find_spec("hdf5plugin")
    if spec is None or spec.origin is None:
        pytest.skip("could not import 'hdf5plugin'")
    python(SZ3_BY_HDF5, tmp_path / "a.h5")
    env = {"HDF5_PLUGIN_PATH": str(Path(spec.origin).parent / "plugins")}
    python(READ_SZ3_BY_HDF5, tmp_path / "a.h5", env=env)


WRITE_BY_HDF5PLUGIN = """
import sys, h5py, hdf5plugin as peer, numpy as np
filters = {"zfp": peer.Zfp(accuracy=0.01), "sz": peer.SZ(absolute=0.01), "sz3": peer.SZ3(absolute=0.01)}
filters |= {"sperr": peer.Sperr(absolute=0.01), "blosc": peer.Blosc(), "bitshuffle": peer.Bitshuffle()}
values = np.random.default_rng(56).normal(size=(32, 32, 16)).cumsum(2).astype("f4")
with h5py.File(sys.argv[1], "w") as file:
    for name, stored in filters.items():
        file.create_dataset(name, data=values, chunks=(16, 32, 16), **stored)
    file["values"] = values
"""
IMPORT_HDF5PLUGIN_LATER = """
import sys, h5py, numpy as np, tamis
source, target, copy = sys.argv[1:]
opened = tamis.open(source)
values, names = opened["values"][...], ("zfp", "sz", "sz3", "sperr", "blosc", "bitshuffle")
for name in names:
    try:
        assert np.abs(opened[name][...] - values).max() <= 0.0101, name
    except tamis.FileError as error:
        assert name == "sz" and "lacks filter SZ" in str(error)
import hdf5plugin
for again in (opened, tamis.open(source), h5py.File(source)):
    for name in names:
        assert np.abs(again[name][...] - values).max() <= 0.0101, name
result = tamis.repack(source, target, {"*": "zfp(accuracy=0.001)|shuffle|deflate(1)"})
assert not result.unreadable
assert tamis.verify(source, target, bounds={"*": 0.001}).ok
with h5py.File(copy, "w") as file:
    mine = file.create_dataset("mine", data=values, chunks=(16, 32, 16), **tamis.Zfp(accuracy=0.01))
    assert "tamis" in mine.id.get_create_plist().get_filter(0)[3].decode()
    theirs = file.create_dataset("theirs", data=values, chunks=(16, 32, 16), **hdf5plugin.SZ(absolute=0.01))
    assert max(np.abs(array[...] - values).max() for array in (mine, theirs)) <= 0.0101
"""


def test_u56_hdf5plugin_after_tamis_takes_nothing_away(python: Run, tmp_path: Path) -> None:
    """Values that were read before are read after, and those of filters that were not there then."""
    if importlib.util.find_spec("hdf5plugin") is None:
        pytest.skip("could not import 'hdf5plugin'")
    python(WRITE_BY_HDF5PLUGIN, tmp_path / "a.h5")
    python(IMPORT_HDF5PLUGIN_LATER, tmp_path / "a.h5", tmp_path / "b.h5", tmp_path / "c.h5")


KEPT_CHUNKS = """
import sys, h5py, numpy as np, tamis
source, target, filters = sys.argv[1:]
values = np.random.default_rng(56).normal(size=(64, 64, 64)).astype("f4").cumsum(0).round(1)
stored = dict(compression=4, shuffle=True, fletcher32=True) if filters == "deflate" else tamis.Zfp(accuracy=1.0)
with h5py.File(source, "w") as file:
    file.create_dataset("x", data=values, chunks=(8, 64, 64), **stored)
"""
COPIED_BY_TAMIS = """
with h5py.File(source) as file:
    x = file["x"]
    known = x[...]
    for _ in range(3):
        tamis.repack(source, target, {}, overwrite=True)
    with h5py.File(target) as other:
        assert other["x"].id.read_direct_chunk((8, 0, 0)) == x.id.read_direct_chunk((8, 0, 0))
        assert np.array_equal(other["x"][...], known)
with h5py.File(source, "a") as file:
    x = file["x"]
    x[...]
    x[:8] = 7
    tamis.repack(source, target, {}, overwrite=True)
    with h5py.File(target) as other:
        assert np.abs(other["x"][:8] - 7).max() <= 1
with h5py.File(source, "w", libver="latest") as file:
    x = file.create_dataset("x", data=values, chunks=(8, 64, 64), **stored)
    x[...]
    try:
        tamis.repack(source, target, {}, overwrite=True)
    except tamis.FileError as error:
        assert "this process has it open for writing: close it first" in str(error)
        assert "libver='earliest'" in str(error)
"""
COPIED_BY_HDF5 = """
for _ in range(3):
    with h5py.File(source) as file, h5py.File(target, "w") as other:
        known = file["x"][...], file["x"]
        file.copy("x", other, "x")
        assert np.abs(other["x"][...] - known[0]).max() <= 1
"""


@pytest.mark.parametrize("filters", ["deflate", "zfp"])
def test_u56_file_that_is_open_in_the_process_is_copied_as_stored(python: Run, filters: str, tmp_path: Path) -> None:
    """H5Ocopy of HDF5 2.0 corrupts memory if HDF5 keeps decoded chunks of a dataset whose filters shrink buffers."""
    python(KEPT_CHUNKS + COPIED_BY_TAMIS, tmp_path / "a.h5", tmp_path / "b.h5", filters)


def test_u56_h5py_copies_zfp_chunks_that_hdf5_keeps(python: Run, tmp_path: Path) -> None:
    python(KEPT_CHUNKS + COPIED_BY_HDF5, tmp_path / "a.h5", tmp_path / "b.h5", "zfp")


def stored(path: Path, origin: tuple[int, ...]) -> tuple[int, bytes]:
    with h5py.File(path) as file:
        return file["x"].id.read_direct_chunk(origin)  # type: ignore[no-any-return]


@pytest.mark.matrix
@pytest.mark.parametrize(
    "words", [("repack", "a.h5", "b.h5", "-f", "*:shuffle|deflate(4)"), ("copy", "a.h5", "b.h5", "-d", "4")]
)
def test_u56_lossy_chunks_of_foreign_plugins_are_kept_as_they_are(
    words: tuple[str, ...], python: Run, tmp_path: Path
) -> None:
    spec = importlib.util.find_spec("hdf5plugin")
    if spec is None or spec.origin is None:
        pytest.skip("could not import 'hdf5plugin'")
    python(WRITE, tmp_path / "a.h5")
    env = os.environ | {"HDF5_PLUGIN_PATH": str(Path(spec.origin).parent / "plugins")}
    done = subprocess.run([COMMAND, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path)) == ["a.h5", "b.h5"]
    origin = (0, 0, 0)
    assert stored(tmp_path / "b.h5", origin) == stored(tmp_path / "a.h5", origin)


def test_u56_chunks_that_hdf5_has_read_are_copied_as_stored(tmp_path: Path) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    values = np.arange(10_000, dtype="i4").reshape(100, 100) % 77
    with h5py.File(source, "w") as file:
        dataset = file.create_dataset("x", (100, 100), "i4", chunks=(100, 100), compression="gzip", compression_opts=1)
        dataset.id.write_direct_chunk((0, 0), zlib.compress(values.tobytes(), 9))
    with Hdf5Store.open(source) as store:
        array = store.arrays["/x"]
        assert np.array_equal(array.dataset[...], values)
        transaction = SimpleNamespace(path=target, target=target, mode=0o644)
        with copied_file(store, transaction, Changes()) as copy:  # type: ignore[arg-type]
            assert not [*copy.slots()]
            copy.finish({}, "")
    assert stored(target, (0, 0)) == stored(source, (0, 0))


WRITE_ONLY_OF_HDF5PLUGIN = """
import sys, h5py, hdf5plugin, numpy as np

values = (np.arange(64 * 64).reshape(64, 64) % 1000).astype("u2")
kinds = {
    "fcidecomp": (values, hdf5plugin.FciDecomp()),
    "htj2k": (values, hdf5plugin.Htj2k()),
    "sz": (values.astype("f4"), hdf5plugin.SZ(absolute=0.5)),
}
with h5py.File(sys.argv[1], "w") as file:
    for name, (data, filters) in kinds.items():
        file.create_dataset(name, data=data, chunks=(32, 64), **filters)
    np.save(sys.argv[2], np.stack([file[name][...].astype("f4") for name in kinds]))
"""


@pytest.mark.check
def test_u114_every_filter_of_hdf5plugin_is_read_where_it_is_installed(python: Run, tmp_path: Path) -> None:
    if importlib.util.find_spec("hdf5plugin") is None:
        pytest.skip("could not import 'hdf5plugin'")
    path, saved = tmp_path / "a.h5", tmp_path / "values.npy"
    python(WRITE_ONLY_OF_HDF5PLUGIN, path, saved)
    read = """
import sys, numpy as np, tamis
with tamis.open(sys.argv[1]) as file:
    found = np.stack([file[name][...].astype("f4") for name in ("fcidecomp", "htj2k", "sz")])
assert np.array_equal(found, np.load(sys.argv[2]))
assert "hdf5plugin" not in sys.modules
"""
    python(read, path, saved)
    said = subprocess.run([COMMAND, "inspect", path], capture_output=True, text=True, check=True).stdout
    for name in ("FCIDECOMP", "HTJ2K", "SZ"):
        hint = "here: h5py no, import hdf5plugin in the program that reads; tamis yes"
        assert f"HDF5 with the plugin {name} ({hint})" in said
    for target in ("b.h5", "b.zarr"):
        command = [COMMAND, "repack", path, tmp_path / target, "-f", "*:shuffle|deflate(1)", "--larger"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "3 datasets rewritten" in done.stdout


def test_u114_registered_filters_have_names() -> None:
    assert [REGISTERED[code] for code in (32023, 32030, 32031, 32032, 32033)] == [
        "Granular BitRound",
        "FFMPEG",
        "JPEG2000",
        "BitRound",
        "HTJ2K",
    ]
