"""Build the wheel for another processor, and run it under qemu: ``check_emulated.py PROCESSOR FOLDER [TESTS ...]``.

- the whole wheel, by Debian's compiler for the processor;
- the demo;
- files from here, read there, and the other way round: the same values, parameters, and chunks of tamis' own filters;
- tests of the codec, the filters, the plugin and repack, or those that are named.

`emulated.py` makes the environment. The variable CI is left out: there are no compilers, and not all packages.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from emulated import MACHINES, Emulated, Machine
from zig import ROOT, run

import tamis

HERE = Path(__file__).parent

TESTS = (
    *("tests/zfp", "tests/filters", "tests/notation", "tests/test_rounding.py", "tests/jobs/test_each_kind.py"),
    *("tests/plugin/test_bound.py", "tests/plugin/test_chunk_data.py", "tests/plugin/test_creation.py"),
    *("tests/plugin/test_edges.py", "tests/plugin/test_non_finite.py", "tests/plugin/test_refusals.py"),
    *("tests/plugin/test_netcdf_tools.py", "tests/plugin/test_stored_headers.py"),
)
"""What takes a quarter of an hour: whatever calls native code, and one repack of each kind."""

OLD_LIBRARY = (
    "tests/filters/test_native_filters.py::test_nbit_gives_the_chunk_of_hdf5_and_reads_it",
    "tests/filters/test_native_filters.py::test_scaleoffset_of_integers_is_that_of_hdf5",
    "tests/filters/test_chains.py::test_nbit_of_enumerations_stored_as_hdf5_leaves_it",
)
"""Tests that count on HDF5 2.0 and h5py 3.14, where Debian has HDF5 1.14.5 and h5py 3.13: the one cannot read some
chunks of scaleoffset that it writes, the other gives no more than 16 parameters of a filter."""

LEFT_OUT = (
    # They need imagecodecs, hdf5plugin or the newest netCDF4, which PyPI has not for this processor.
    *("tests/filters/test_codecs.py", "tests/filters/test_damage.py", "tests/filters/test_foreign.py"),
    *("tests/filters/test_foreign_plugins.py", "tests/filters/test_szip.py"),
    *("tests/filters/test_values_of_any_type.py",),
    *("tests/plugin/test_netcdf_tools.py", "tests/plugin/test_stored_headers.py"),
    "tests/plugin/test_chunk_data.py::test_d19_file_whose_filter_was_never_set_up",
    "tests/filters/test_chains.py::test_szip_after_part_of_a_pixel_left_out_and_never_other_values[lzf|szip]",
    # They write down what a little-endian machine has: words of parameters, and types that zfp takes and refuses.
    *("tests/filters/test_zfp.py", "tests/plugin/test_bound.py", "tests/plugin/test_creation.py"),
    *("tests/plugin/test_refusals.py", "tests/notation/test_cdl.py"),
    "tests/notation/test_h5py_keywords.py::test_code_run_dataset_with_that_pipeline",
    "tests/notation/test_h5repack.py::test_parse_filter_good_text_filter_with_flag",
    "tests/notation/test_text.py::test_parse_filters_by_number_typed_where_known",
)
"""Tests that say nothing on a machine where these packages are absent, or whose order of bytes is another."""


def exchange_problems(there: Emulated, folder: Path) -> Iterator[str]:
    """Yield where files differ that the two machines write, or what they read of each other's."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    script = HERE / "exchange.py"

    def here(verb: str, files: str) -> str:
        return run([sys.executable, script, verb, folder / files], HDF5_PLUGIN_PATH=str(tamis.plugin_path()))

    wrote = {"here": here("write", "here"), "there": there.output(script, "write", folder / "there")}
    read = {"here": there.output(script, "read", folder / "here"), "there": here("read", "there")}
    own = {where: json.loads(text) for where, text in wrote.items()}
    # What has the machine's order of bytes differs: types that zfp takes, parameters, attributes.
    yield from _differences(
        own["here"], own["there"], "written here and there", ("values", "by HDF5", "masks", "chunks")
    )
    for where, found in own.items():
        yield from _differences(found, json.loads(read[where]), f"written {where}, read on both")
    print(f"{there.machine.name}: {len(own['here'])} arrays in files, written and read on both machines", flush=True)


def _differences(
    first: dict[str, dict[str, object]], second: dict[str, dict[str, object]], what: str, keys: tuple[str, ...] = ()
) -> Iterator[str]:
    if first.keys() != second.keys():
        yield f"{what}: expected the same arrays, got {sorted(first.keys() ^ second.keys())}"
    for name in first.keys() & second.keys():
        for key in keys or first[name]:
            if first[name].get(key) != second[name].get(key):
                yield f"{what}: {name}, {key}: {first[name].get(key)} and {second[name].get(key)}"


def main(processor: str, folder: str, *tests: str) -> int:
    """Build and check; 1 if anything is wrong."""
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{processor}: {what}, after {time.monotonic() - began:.0f} s", flush=True)

    machine: Machine = MACHINES[processor]
    there = Emulated(machine, Path(folder).resolve())
    say("has an environment")
    wheel = there.build_wheel(ROOT)
    there.install(wheel)
    say(f"has {wheel.name} of {wheel.stat().st_size:,} bytes")
    there.output("examples/demo.py")
    say("ran the demo")
    problems = [*exchange_problems(there, Path(folder).resolve() / "files")]
    for problem in problems:
        print(problem, flush=True)
    say("exchanged files")
    left_out, chosen = [], [*tests] or [*TESTS]
    if machine.packages:
        chosen = [name for name in chosen if name not in LEFT_OUT]  # --ignore leaves out what is in folders
        for name in (*OLD_LIBRARY, *LEFT_OUT):
            left_out.append(f"--{'deselect' if '::' in name else 'ignore'}={name}")
    code = there.run("-m", "pytest", "-q", "-n", "2", *left_out, *chosen)
    say("ran the tests")
    print(f"check-{processor}: {'failed' if problems or code else 'all as it should be'}")
    return 1 if problems or code else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
