"""tamis inspect --cdl prints what ncdump -hs prints, but for filters that netCDF cannot tell; ncgen reads it."""

from __future__ import annotations

import cProfile
import os
import pstats
import subprocess
from importlib.util import find_spec
from pathlib import Path

import h5py
import needs
import netCDF4
import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import tamis
from tamis import FileError
from tamis.cli import main
from tamis.jobs.inspect.cdl import cdl_header

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "cam_ts.nc"

TYPES = r"""
netcdf types {
types:
  byte enum cloud_t {Clear = 0, Cumulonimbus = 1, odd\ member = 2, Missing = 127} ;
  ushort enum us_t {a = 0, b = 65535} ;
  opaque(11) raw_t ;
  int(*) row_t ;
  compound cmp1 { short i ; int j ; }
  compound complex_t { float r ; float i ; }
  compound obs_t { byte day ; double time(2, 3) ; cmp1 c ; char tag(4) ; float f ; string s ; cloud_t cl ; row_t r ;
    raw_t o ; int64 big ; } ;
  string(*) words_t ; cmp1(*) cmps_t ; float(*) floats_t ;
dimensions:
  a = 2 ; b = UNLIMITED ; c = UNLIMITED ; odd\ name = 3 ; \5x = 4 ; z = 1 ;
variables:
  cloud_t primary(a) ; cloud_t primary:_FillValue = Missing ; cloud_t primary:list = Clear, Cumulonimbus, odd\ member ;
  us_t wide(a) ;
  obs_t obs(b) ; cmp1 obs:att = {1, 2}, {3, 4} ; obs:plain = 1b, 2b ;
  raw_t raw(a) ; raw_t raw:_FillValue = 0XCAFEBABECAFEBABECAFEBA ;
  row_t rows(b, c) ; row_t rows:att = {1, 2, 3}, {}, {4} ;
  words_t many(a) ; cmps_t lists(a) ;
  string names(a) ; string names:att = "one", "two\n\"quoted\"", "tab\there", "ü" ; string names:_FillValue = "none" ;
  char text(a, odd\ name) ; text:_FillValue = "x" ;
  byte by(a) ; by:v = 1b, -2b ; by:_FillValue = -1b ;
  ubyte ub(a) ; ub:v = 1ub, 255ub ;
  short sh ; sh:v = -32768s ;
  ushort us ; us:v = 65535us ;
  int in ; in:v = -2147483648, 5 ;
  uint ui ; ui:v = 4294967295u ;
  int64 il ; il:v = -9223372036854775807ll ;
  uint64 ul ; ul:v = 18446744073709551615ull ;
  float fl ; fl:v = 1.f, 0.1f, 1.e20f, NaNf, Infinityf, -Infinityf, 123456789.f, 1.0000001f, 9.96921e+36f, 0.f, -0.f,
    1e-10f, 100000.f ;
  double db ; db:v = 1., 0.1, 1e20, NaN, Infinity, -Infinity, 3.14159265358979312, 1e15, 1e16, 0., 1e-5, 0.0001 ;
  float \5start(\5x) ; \5start:_Endianness = "big" ; \5start:_Storage = "compact" ;
  float größe(z) ; größe:_NoFill = "true" ;
  float with\ space\,comma\:colon(a) ; with\ space\,comma\:colon:att\ with\ space = "v" ;
  float dat(a, z) ; dat:multi = "line1\nline2\nline3" ; dat:empty = "" ; dat:nl = "end\n" ;
    dat:esc = "back\\slash 'single' \r \f \b \v \a \033" ; cmp1 dat:one = {5, 6} ;
    complex_t dat:two = {1.5, -2}, {0, 3} ; floats_t dat:fs = {1, 2.5, 1e20} ;
  int filtered(a, z) ; filtered:_ChunkSizes = 2, 1 ; filtered:_Filter = "2|3|1,4" ;
  int more(a, z) ; more:_ChunkSizes = 2, 1 ; more:_Filter = "2|1,4|307,9" ;
  :g1 = "global" ; :num = 1.5f, 2.f ; cloud_t :cg = Clear ;
group: g1 {
  types: compound inner_t { cmp1 x ; double d ; } ; short(*) sv_t ;
  dimensions: a = 5 ;
  variables: inner_t v(a, b) ; cloud_t cl(a) ; sv_t sv ; float a(a) ; obs_t outer ;
  :ga = 5s ;
  group: sub\ group { variables: inner_t deep(a) ; }
}
group: empty { }
}
"""


def run(*command: str | Path) -> str:
    """Run a program of netCDF with our plugin and those of the wheel of netCDF4."""
    needs.need(command[0])
    spec = find_spec("netCDF4")
    assert spec is not None
    assert spec.origin is not None
    plugins = f"{tamis.plugin_path()}:{Path(spec.origin).parent / 'plugins'}"
    env = os.environ | {"HDF5_PLUGIN_PATH": plugins}
    done = subprocess.run([*map(str, command)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def generated(cdl: str, path: Path, kind: str = "4") -> Path:
    """Make a file of CDL by ncgen."""
    source = path.with_suffix(".cdl")
    source.write_text(cdl)
    run("ncgen", f"-{kind}", "-o", path, source)
    return path


def unwrapped(text: str) -> str:
    """Join the lines of lists: we break them elsewhere than ncdump."""
    return " ".join(text.split())


def test_user_types_and_names_are_as_ncdump_prints_them(tmp_path: Path) -> None:
    path = generated(TYPES, tmp_path / "types.nc")
    assert unwrapped(cdl_header(path)) == unwrapped(run("ncdump", "-hs", path))
    assert cdl_header(path).count("\n") == run("ncdump", "-hs", path).count("\n")


def test_ncgen_reads_it_and_makes_the_same_header(tmp_path: Path) -> None:
    text = cdl_header(generated(TYPES, tmp_path / "types.nc"))
    (tmp_path / "again").mkdir()
    assert cdl_header(generated(text, tmp_path / "again" / "types.nc")) == text


@pytest.mark.parametrize(
    "name", ["cam_ts_100days.nc", "cam_t_3months.nc", "pop_sst_60days.nc", "era5_levels_members.nc", "sample"]
)
def test_real_file_is_as_ncdump_prints_it(name: str) -> None:
    path = SAMPLE if name == "sample" else needs.real(name)
    assert cdl_header(path) == run("ncdump", "-hs", path)


def test_classic_model_has_a_text_for_each_line(tmp_path: Path) -> None:
    path = tmp_path / "odd name,1.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF4_CLASSIC") as file:
        file.createDimension("x", 2)
        file.createVariable("v", "f4", ("x",)).text = "one\n\ntwo\n"
    assert cdl_header(path) == run("ncdump", "-hs", path)


def test_name_of_another_group_has_its_path(tmp_path: Path) -> None:
    cdl = """netcdf n { types: byte enum t {one = 1} ; dimensions: x = 2 ; variables: t a(x) ;
        group: g { types: byte enum t {two = 2} ; dimensions: x = 3 ; variables: t a(x) ; /t b(x) ; } }"""
    text = cdl_header(generated(cdl, tmp_path / "n.nc"))
    assert "\tt a(x) ;" in text
    assert "\t/t b(x) ;" in text  # ncdump writes t, which is another type
    (tmp_path / "again").mkdir()
    assert cdl_header(generated(text, tmp_path / "again" / "n.nc")) == text


def test_d26_filters_that_netcdf_reports_in_another_order_are_printed_as_stored(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(100), chunks=(10,), shuffle=True, compression=4, fletcher32=True)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((10,))
        plist.set_deflate(4)
        plist.set_deflate(9)
        space = h5py.h5s.create_simple((100,))
        h5py.h5d.create(file.id, b"twice", h5py.h5t.STD_I32LE, space, plist)
    text = cdl_header(path)
    assert 'x:_Filter = "2,8|1,4|3" ; // as stored; ncgen makes it 3|2,8|1,4' in text
    assert 'twice:_Filter = "1,4|1,9" ; // as stored; ncgen makes it 1,9' in text
    generated(text, tmp_path / "again.nc")


def test_d03_zfp_comes_back_through_ncdump_and_ncgen_with_right_values(tmp_path: Path) -> None:
    source = generated(
        """netcdf s { dimensions: t = 4 ; y = 16 ; x = 24 ; variables: float v(t, y, x) ;
           v:_ChunkSizes = 4, 8, 24 ; v:_Filter = "32013,3,0,0.001d" ; }""",
        tmp_path / "s.nc",
    )
    values = np.cos(np.arange(4 * 16 * 24) / 50).reshape(4, 16, 24).astype("f4")
    with h5py.File(source, "r+") as file:
        file["v"][...] = values
    header = run("ncdump", "-hs", source)
    assert cdl_header(source) == header
    assert '"32013,269504785,' in header  # the stored header of zfp
    (tmp_path / "again.cdl").write_text(run("ncdump", "-s", source).replace("= 4, 8, 24", "= 2, 16, 12"))
    again = tmp_path / "again.nc"
    run("ncgen", "-4", "-o", again, tmp_path / "again.cdl")
    with tamis.open(again) as file:
        assert file["v"].chunks == (2, 16, 12)
        assert np.abs(file["v"][()] - values).max() <= 0.001


def test_netcdfs_own_example_of_two_filters_goes_both_ways(tmp_path: Path) -> None:
    cdl = (
        """netcdf multi { dimensions: d = 4 ; variables: float var(d, d, d, d) ;
        var:_Storage = "chunked" ; var:_ChunkSizes = 4, 4, 4, 4 ; var:_Filter = "307,9|4,32,32" ;
        data: var = """
        + ", ".join(map(str, range(256)))
        + " ; }"
    )
    path = generated(cdl, tmp_path / "multi.nc")
    assert cdl_header(path) == run("ncdump", "-hs", path)
    assert 'var:_Filter = "307,9|4,32,32" ;' in cdl_header(path)
    (tmp_path / "again.cdl").write_text(run("ncdump", "-s", path))
    run("ncgen", "-4", "-o", tmp_path / "again.nc", tmp_path / "again.cdl")
    with tamis.open(tmp_path / "again.nc") as file:
        assert np.array_equal(file["var"][()].ravel(), np.arange(256))


def test_what_netcdf_cannot_have_is_named_in_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "h.h5"
    with h5py.File(path, "w") as file:
        file["good"] = np.arange(3)
        file["good"].attrs["flag"] = True
        file["half"], file["ref"] = np.zeros(2, "f2"), file["good"].ref
        file["bool"] = np.array([True])
        file["bytes"] = b"\xff"
        file["good"].attrs["raw"] = np.bytes_(b"a\xff\n")
        h5py.h5a.create(file["good"].id, b"\xfe", h5py.h5t.STD_I32LE, h5py.h5s.create(h5py.h5s.SCALAR))
    text = cdl_header(path)
    assert "\t// left out: half: netCDF has no such type\n" in text
    assert "\t// left out: ref: " in text
    assert "its name is not UTF-8" in text
    assert "\t// left out: bool: its type has no name in the file, which netCDF needs\n" in text
    assert "\t// left out: good\\:flag: its type has no name" in text
    assert 'good:raw = "a\\377\\n" ;' in text
    generated(text, tmp_path / "again.nc")


@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
def test_classic_file_is_as_ncdump_prints_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "c.nc"
    with netCDF4.Dataset(path, "w", format=kind) as file:
        for name, extent in (("time", None), ("x", 3), ("s", 8)):
            file.createDimension(name, extent)
        variable = file.createVariable("T", "f4", ("time", "x"), fill_value=9e36)
        variable[:] = np.zeros((5, 3))
        variable.text, variable.bytes, variable.double = "a\nb\n", np.array([1, 2], "i1"), 1.5
        file.createVariable("name", "S1", ("s",))
        file.history, file.short = "line1\nline2", np.int16(5)
    # ncdump 4.9 fails at -s of CDF-5.
    special = kind != "NETCDF3_64BIT_DATA"
    theirs = run("ncdump", "-hs" if special else "-h", path)
    ours = cdl_header(path)
    assert (ours if special else ours.replace('\t\t:_Format = "cdf5" ;\n', "")) == theirs


def test_zarr_has_its_codecs_and_ncgen_reads_it(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "z.zarr", mode="w")
    array = group.create_array("T", shape=(8, 16), chunks=(4, 16), dtype="f4", dimension_names=("y", "x"))
    array.attrs["units"] = "K\nm"
    text = cdl_header(tmp_path / "z.zarr")
    assert 'T:_Codecs = "[{\\"name\\": \\"bytes\\"' in text
    assert '\tfloat T(y, x) ;\n\t\tT:units = "K\\nm" ;' in text
    generated(text, tmp_path / "again.nc")


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file"):
        cdl_header(tmp_path / "none.nc")


def test_command_prints_the_header_and_refuses_other_forms(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["inspect", "--cdl", str(SAMPLE)])
    assert (done.exit_code, done.stdout) == (0, cdl_header(SAMPLE))
    assert CliRunner().invoke(main, ["inspect", "--cdl", "--json", str(SAMPLE)]).exit_code == 2
    assert CliRunner().invoke(main, ["inspect", "--cdl", str(tmp_path / "none.nc")]).exit_code == 1


@pytest.mark.parametrize("name", ["a.h5", "a.zarr"])
def test_cdl_of_many_groups_takes_calls_in_proportion(name: str, tmp_path: Path) -> None:
    counts = []
    for count in (150, 300):
        with h5py.File(tmp_path / f"{count}.h5", "w") as file:
            for number in range(count):
                file.create_group(f"g/m{number}")
        path = tmp_path / f"{count}.h5"
        if name == "a.zarr":
            path = tmp_path / f"{count}.zarr"
            tamis.repack(tmp_path / f"{count}.h5", path, {})
        profile = cProfile.Profile()
        profile.enable()
        cdl_header(path)
        profile.disable()
        counts.append(pstats.Stats(profile).total_calls)
    assert counts[1] < 2.3 * counts[0]
