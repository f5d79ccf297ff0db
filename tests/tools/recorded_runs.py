"""The runs of `recorded.py`: a table of sources × jobs, and tables of options, filters, arguments and functions.

A run is a line. One that begins with ``tamis`` is a command, which runs in the process of the recorder. One that begins
with ``$`` is given to a shell, and starts processes. All others are Python, of which the last expression is the result.
Lines of a sequence share a folder, which has copies of the sources that the sequence names: so a copy can be verified.
"""

# ruff: noqa: E501 - a run is one line
from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from recorded_sources import BROKEN, SOURCES

COMMANDS = (
    *("completion", "config", "copy", "doctor", "export", "filters", "inspect", "manifest", "plan", "plugin-path"),
    *("repack", "repair", "report", "sample", "spec", "status", "verify"),
)
NOTATIONS = ("h5repack", "nccopy", "ncgen", "h5py", "zarr", "zarr2", "zarr3", "nczarr", "tamis")

FILTERS = (
    *("none", "deflate", "deflate(9)", "shuffle|deflate(4)", "shuffle|deflate(4)|fletcher32", "fletcher32", "szip"),
    *("szip(ec,16)", "nbit|deflate(1)", "scaleoffset(float,2)", "scaleoffset", "bzip2(9)", "lzf", "blosc", "lz4"),
    *("blosc(zstd,5,bit)", "bitshuffle", "bitshuffle(zstd,3)", "shuffle|zstd(3)", "blosc2", "blosc2(lz4,5,bit)"),
    *("zfp(accuracy=0.1)", "zfp(rate=8)", "zfp(precision=16)", "zfp(reversible=true)", "zfp(bound=0.1)"),
    *("zfp(minbits=1,maxbits=800,maxprec=20,minexp=-10)", "zfp(accuracy=0.1)!", "zfp(accuracy=0.1)|shuffle|deflate(4)"),
    *(
        "zfp(accuracy=1e-12)|zstd",
        "sz3(absolute,0.1)",
        "sperr(rate,8)",
        "sperr(bound=0.1)",
        "pcodec",
        "filter(300,1,2)",
    ),
    *("absolute(bound=0.1)|shuffle|deflate(4)", "bitround(7)|shuffle|zstd(3)", "granular(digits=3)|shuffle|deflate(4)"),
    *(
        "bitgroom(digits=3)|shuffle|deflate(4)",
        "pack(bound=0.1)|shuffle|deflate(4)",
        "bits(9)|lz4",
        "digits(3)|deflate",
    ),
    *(
        "shuffle|zfp(rate=8)",
        "zfp(accuracy=-1)",
        "deflate(11)",
        "nonsense",
        "zfp(rate=8",
        "unknown(3)",
        "pack(bound=0)",
    ),
)
"""Each filter and each rounding, with some of its parameters; and texts that are wrong."""

NETCDF_FILTERS = (
    *("*,none", "*,1,9", "TS,2|1,4", "TS,32013,3,0,0.1d", "TS,32013,1,0,8d|3", "TS&SST,32015,3", "TS,307,9"),
    *("TS,bzip2,5", "*,zstd,3|fletcher32", "nowhere,1,4", "TS", "TS,99999,1", "TS,deflate", "lat,32013,3,0,0.1d"),
)

REQUIREMENTS = (
    *("abs=0.1", "abs=0.01,sign", "rel=0.001", "range=1e-4", "std=0.01", "digits=3", "bits=9", "limits", "zeros"),
    *("rmse=0.02", "psnr=80", "corr=0.99999", "dssim=0.9995", "ks=0.05", "spectrum=0.01", "information=0.99"),
    *("lossless", "recommended", "psnr=300", "abs=-1", "nonsense=1", "abs"),
)

REPACK_OPTIONS = (
    *("-c TS:12x16x24", "-c *:2x4x6 -f *:lz4", "-c TS:0x1x1", "-c TS:4x4", "-c nowhere:1x1", "-c TS:4,x", "-c TS"),
    *(
        "--no-checksum -f TS:zfp(rate=8)",
        "--checksum -f TS:zfp(rate=8)",
        "-f TS:lz4 -f TS:none",
        "-f lz4",
        "-f nowhere:lz4",
    ),
    *("-f standard_name=surface_*:lz4", "-f */TS:lz4", "-f lat:zfp(accuracy=0.1)", "-f *:zfp(accuracy=0.1)"),
    *(
        "-f *:zfp(accuracy=0.1) -j 1",
        "-f *:zfp(accuracy=0.1) -j 4",
        "-f *:lz4 --min-size 0",
        "-f *:lz4 --min-size 1000000",
    ),
    *("-f *:deflate --larger", "-f *:none --larger", "-f *:lz4 --cloud", "-f *:lz4 --storage s3", "--storage tape"),
    *("-f *:lz4 --no-history", "-f *:lz4 --history", "--drop TS", "--drop TS --drop lat", "--drop nowhere", "--drop *"),
    *("-f *:lz4 --keep-classic", "-f *:lz4 --follow", "--self-contained", "-f *:lz4 --resume", "-f *:lz4 --quiet"),
    *("-f *:lz4 --log log.txt", "-f *:lz4 --json", "-f *:lz4 --dry-run", "-f *:lz4 --dry-run --json", "--keep-damaged"),
    *(
        "-f SST:zfp(accuracy=0.1) --missing exact",
        "-f SST:zfp(accuracy=0.1) --missing mask",
        "-f *:lz4 --recipe none.toml",
    ),
    *("-f SST:zfp(accuracy=0.1) --missing refuse", "-f SST:zfp(accuracy=0.1) --missing companion", "--missing no"),
    *("-f SST:pack(bound=0.1)|deflate --missing mask", "-f PR:absolute(bound=0.5)|deflate", "-f PR:zfp(accuracy=0.5)"),
    *("-f *:lz4 --recipe-out recipe.toml", "-f TS:lz4 --recipe-out climate.nc", "--threads 0", "--zarr-format 2"),
    *(
        "--shards 4",
        "--no-consolidated",
        "--storage-option x",
        "--packing one",
        "--settle 0",
        "--to zarr",
        "--retries 1",
    ),
    *(
        "-f *:lz4 --workers 2",
        "--shard 1/2",
        "--combine time",
        "--witness xarray -f TS:zfp(accuracy=0.1)",
        "--nonsense",
    ),
)
"""Options of a repack of one netCDF-4 file."""

ZARR_OPTIONS = (
    *("-f *:shuffle|deflate(4)", "-f *:zfp(accuracy=0.1)", "-f *:zfp(accuracy=0.1)|shuffle|deflate(4) --larger"),
    *("--zarr-format 2", "--zarr-format 2 -f *:zfp(accuracy=0.1) --min-size 0 --larger", "--shards 4", "--storage s3"),
    *("--shards 4 -f *:zstd --min-size 0", "--shards 4 --zarr-format 2", "--no-consolidated", "--consolidated"),
    *("-f *:zfp(accuracy=0.1) --missing mask", "--cloud", "-f TS:pcodec", "-f TS:blosc", "-f TS:bitround(7)|blosc"),
    *("-f *:zfp(accuracy=0.1) --dry-run --json", "-f *:szip", "-c TS:5x7x11", "--zarr-format 4", "--drop TS --json"),
)
"""Options of a repack to a Zarr store."""

COPY_OPTIONS = (
    *(
        "",
        "-d 4",
        "-d 4 -s",
        "-d 0",
        "-d 10",
        "-s",
        "-c time/10,lat/96,lon/",
        "-c TS:4,8,12",
        "-c nowhere/3",
        "-c TS:1",
    ),
    *("-k nc4", "-k nc7", "-4", "-7", "-k classic", "-M 0 -d 1", "-M 100000 -d 1", "-d 4 --checksum", "-d 4 -j 1"),
    *("-d 4 --missing mask", "-d 4 --follow", "--self-contained", "-d 4 --larger", "-d 4 --history", "-d 4 --resume"),
    *(
        "--drop TS",
        "-d 4 --dry-run",
        "-d 4 --dry-run --json",
        "-d 4 --json",
        "-d 4 -q",
        "-d 4 --log log.txt",
        "-u",
        "-w",
    ),
    *(
        "-v TS",
        "-3",
        "-L 1",
        "-h",
        "-F TS,32013,3,0,0.1d -F *,none -d 4 --json",
        "-F SST,32013,3,0,0.1d --missing mask",
    ),
)

PLAN_OPTIONS = (
    *(
        "--prefer speed",
        "--prefer archive",
        "--readers any",
        "--readers netcdf-plugins",
        "--readers zfp",
        "--sample 4kB",
    ),
    *("--readers hdf5plugin", "--readers zarr", "--readers all", "--access series", "--access series=0.7,map=0.3"),
    *("--access box:time=4,lat=8", "--access whole --storage lustre", "--storage s3 --access map", "--chunks auto"),
    *(
        "--chunks keep",
        "--allow unstable --readers all",
        "--ratio 4",
        "--size 20kB",
        "--all",
        "--confirm",
        "--missing mask",
    ),
    *(
        "-o recipe.toml",
        "--compare sz3",
        "--quiet",
        "--json",
        "--log log.txt",
        "-w TS:abs=0.1",
        "--ratio 0",
        "--size many",
    ),
    *(
        "--sample 1kB --all",
        "-o climate.nc",
        "--access nonsense",
        "--plot plot.txt",
        "-r nowhere:abs=0.1",
        "-r TS:abs=0.5",
    ),
)

MANY_OPTIONS = (
    *(
        "-f *:lz4",
        "-f *:zfp(accuracy=0.1)|shuffle|deflate(4) --larger",
        "-f *:lz4 --dry-run",
        "-f *:lz4 --dry-run --json",
    ),
    *(
        "-f *:lz4 --include *2.nc",
        "-f *:lz4 --exclude *2.nc",
        "-f *:lz4 --to zarr",
        "-f *:lz4 --shard 1/2",
        "--other copy",
    ),
    *("-f *:lz4 --other fail", "-f *:lz4 --checksums --json", "-f TS:pack(bound=0.1)|deflate", "-f nowhere:lz4 --stop"),
    *(
        "-f TS:pack(bound=0.1)|deflate --packing each",
        "-f *:lz4 --retries 0 --keep-going",
        "-f *:lz4 --quiet --overwrite",
    ),
    *("-f TS:zfp(accuracy=0.1) -r TS:psnr=300", "-f *:lz4 --log log.txt", "-f SST:zfp(rate=8) --missing mask"),
)
"""Options of a repack of a folder."""

WRONG_WORDS = (
    *(
        "tamis",
        "tamis nonsense",
        "tamis inspekt a",
        "tamis --nonsense",
        "tamis inspect",
        "tamis inspect -",
        "tamis repack",
    ),
    *(
        "tamis repack climate.nc",
        "tamis repack climate.nc climate.nc",
        "tamis repack absent.nc a.nc",
        "tamis copy climate.nc",
    ),
    *(
        "tamis repack climate.nc no/folder/a.nc",
        "tamis repack climate.nc years/2001.nc",
    ),
    *(
        "tamis inspect climate.nc --json --as zarr",
        "tamis inspect climate.nc --cdl --json",
        "tamis inspect a.nc climate.nc",
    ),
    *(
        "tamis inspect climate.nc --cost --json",
        "tamis inspect climate.nc years --html p.html",
        "tamis inspect -v no climate.nc",
    ),
    *("tamis inspect climate.nc --as nonsense", "tamis inspect climate.nc --latency -1", "tamis verify climate.nc"),
    *("tamis verify climate.nc absent.nc", "tamis verify climate.nc years", "tamis verify climate.nc fields.h5 --json"),
    *("tamis verify climate.nc climate.nc --bound TS", "tamis verify climate.nc climate.nc --bound TS:x", "tamis plan"),
    *("tamis verify climate.nc climate.nc --bound no:1", "tamis verify climate.nc climate.nc --bound recorded -v TS"),
    *(
        "tamis verify climate.nc climate.nc --bound TS:1 --bound TS:2",
        "tamis verify years years --bound recorded --json",
    ),
    *("tamis export climate.nc", "tamis export climate.nc --to nonsense -o a", "tamis export climate.nc --to kerchunk"),
    *(
        "tamis export climate.nc --to kerchunk -o climate.nc",
        "tamis export climate.nc fields.h5 --to kerchunk -o a.json",
    ),
    *(
        "tamis report climate.nc",
        "tamis report climate.nc absent.nc",
        "tamis report climate.nc climate.nc -o climate.nc",
    ),
    *("tamis report climate.nc fields.h5 --json", "tamis report climate.nc climate.nc --time x --json", "tamis spec"),
    *(
        "tamis repair climate.nc",
        "tamis repair absent",
        "tamis status years",
        "tamis status absent --json",
        "tamis manifest years",
    ),
    *(
        "tamis filters nonsense",
        "tamis filters zfp nonsense --json",
        "tamis config --cflags --install x",
        "tamis config --fc f",
    ),
    *(
        "tamis repack climate.nc a.nc -f *:lz4 -f '*:zfp('",
        "tamis repack climate.nc a.nc --recipe climate.nc",
        "tamis status",
    ),
    *(
        "tamis plan climate.nc -r TS:abs=0.1 -r TS:rel=1",
        "tamis plan absent.nc --json",
        "tamis plan text.nc",
        "tamis manifest",
    ),
    *(
        "tamis repack --replace",
        "tamis repack climate.nc --replace",
        "tamis repack years out/ --combine nowhere --json",
    ),
    *("tamis inspect s3://", "tamis inspect nonsense://a/b", "tamis repack climate.nc years"),
)

PYTHON = {
    "arguments": """
        tamis.repack("climate.nc", "a.nc", {"TS": "zfp(accuracy=0.1)"}, chunks={"TS": {"time": 2}}, require={"TS": "abs=0.1"})
        tamis.repack("climate.nc", "b.nc", {"TS": tamis.Zfp(rate=8)}, checksum=False, larger=True, threads=1, history=False)
        tamis.repack("climate.nc", "c.nc", tamis.Recipe({"TS": "lz4"}, round={"TS": "absolute(0.125)"}, drop=["PR"]))
        tamis.repack("climate.nc", "d.zarr", {"*": "zstd"}, shards=4, zarr_format=3, consolidated=False, min_size=0)
        tamis.repack("climate.nc", "e.nc", {}, self_contained=True, cloud=True, storage="s3")
        tamis.repack("climate.nc", "a.nc", {"TS": "zfp(accuracy=0.1)"})
        tamis.repack("climate.nc", "a.nc", {"TS": "lz4"}, overwrite=True, resume=True)
        tamis.repack("climate.nc", "a.nc", {"TS": "lz4"}, resume=True)
        tamis.repack("climate.nc", "f.nc", {"SST": "zfp(accuracy=0.1)"}, missing="mask").to_dict()
        tamis.repack("climate.nc", "g.nc", {"SST": "zfp(accuracy=0.1)"}, missing="refuse")
        tamis.repack("climate.nc", "g.nc", {"TS": "zfp(rate=1)"}, require={"TS": {"abs": 0.001, "limits": True}})
        tamis.repack("climate.nc", "h.nc", {"TS": "zfp(rate=1)"}, require={"TS": "psnr=300"})
        tamis.repack("climate.nc", 5, {"TS": "lz4"})
        tamis.repack("climate.nc", "i.nc", "lz4")
        tamis.repack("climate.nc", "i.nc", {"TS": 5})
        tamis.repack("climate.nc", "i.nc", {"TS": "lz4"}, threads="two")
        tamis.repack("climate.nc", "i.nc", {"TS": "lz4"}, nonsense=True)
        tamis.repack("climate.nc", "i.nc", {"TS": "lz4"}, missing="never")
        tamis.repack("climate.nc", "i.nc", {"TS": "lz4"}, chunks={"TS": (4, "x", 5)})
        tamis.preview_repack("climate.nc", "i.nc", {"TS": "lz4"})
        tamis.preview_repack("climate.nc", "i.zarr", {"*": "zfp(accuracy=0.1)"}, shards=2).to_json()
        steps = []; tamis.repack("climate.nc", "j.nc", {"*": "lz4"}, progress=lambda *step: steps.append(step)); steps
        warned = []; tamis.repack("climate.nc", "k.nc", {"TS": "zfp(accuracy=90)"}, warn=warned.append); warned
        tamis.copy("climate.nc", "l.nc", "TS,32013,3,0,0.1d", level=4, shuffle=True)
        tamis.copy("climate.nc", "m.nc", ["TS,2|1,4", "*,none"], chunks="time/2,lat/4,lon/", kind="nc4")
        tamis.copy("climate.nc", "n.nc", nonsense=1)
    """,
    "looks": """
        tamis.inspect("climate.nc").to_json(indent=1)
        tamis.inspect("climate.nc", ["TS"])["TS"]
        tamis.inspect("climate.nc", ["nowhere"])
        tamis.inspect("climate.nc").html
        tamis.inspect("climate.nc").save("page.html")
        tamis.inspect("climate.nc")._repr_html_()
        list(tamis.inspect("climate.nc"))
        tamis.plan("climate.nc", {"TS": "abs=0.1"})
        tamis.plan("climate.nc", {"TS": {"abs": 0.1}}, readers="any", prefer="archive", sample=None).recipe
        tamis.plan("climate.nc", sample=5)
        tamis.verify("climate.nc", "climate.nc")
        tamis.verify("climate.nc", "climate.nc", bounds={"TS": 0.1}, variables=["T*"], drop=["lat"]).to_json()
        tamis.verify("climate.nc", "climate.nc", bounds={"TS": -1})
        tamis.verify_many("years", "years", bounds="recorded", include="*2.nc")
        tamis.report("climate.nc", "climate.nc", ["TS"], time=[0, 3], also="zfp(accuracy=0.5)").to_dict()
        tamis.export("climate.nc", "a.json").to_dict()
        tamis.export(["years/2001.nc", "years/2002.nc"], "b.json", concat="time", url="s3://bucket/run", drop=["crs"])
        values_of("b.json")
        tamis.combine("years/*.nc", "all.nc", {"TS": "zfp(accuracy=0.1)"}, "time")
        tamis.combine(["years/2002.nc", "years/2001.nc"], "all.zarr", {}, "time", overwrite=True)
        tamis.combine("years", "none.nc", {}, "depth")
        values_of("all.nc")
        tamis.status("years")
        tamis.spec("zfp(accuracy=0.1)|shuffle|deflate(4)", variable="TS", chunks=(4, 8, 12), dtype="f4").to_dict()
        tamis.config()
        tamis.plugin_path()
        tamis.Recipe({"TS": "lz4", "*": "zfp(bound=0.1)"}, chunks={"TS": (1, 2, 3)}, missing="mask", drop=["x"]).dump("r.toml")
        tamis.Recipe.load("r.toml")
        tamis.Pipeline.parse("shuffle|deflate(4)"), tamis.Zfp(accuracy=0.1), tamis.Sperr(bound=0.1), tamis.Absolute(0.1)
        tamis.Zfp(accuracy=0.1, rate=4)
        tamis.Deflate(99)
        tamis.Pipeline(5)
        sorted(tamis.__all__)
    """,
    "open": """
        file = tamis.open("climate.nc"); file, list(file), file.attrs, file["TS"], file["TS"].attrs
        [(k, getattr(file["TS"], k)) for k in ("shape", "dtype", "chunks", "dims", "fill_value", "pipeline") if hasattr(file["TS"], k)]
        file["TS"][2:5, ::3, -4:], file["TS"][3], file["TS"][..., 5], file["TS"][()]
        file["TS"][[1, 4], 2:4]
        file["TS"][100]
        file["nowhere"]
        file["TS"]["x"]
        tamis.open("climate.nc", unpack=True)["SST"][0, 0]
        tamis.open("climate.nc", threads=2)["TS"][:]
        tamis.open("climate.nc", restore=False)["SST"][:]
        tamis.open("climate.nc", threads=0)
        pickle.loads(pickle.dumps(tamis.open("climate.nc")["TS"]))[1, 2]
        file.close(); file["TS"]
        tamis.open("absent.nc")
        tamis.open("text.nc")
        tamis.open(open("climate.nc", "rb"))["TS"][0]
    """,
    "xarray": """
        ds = xarray.open_dataset("climate.nc", engine="tamis"); ds
        xarray.open_dataset("climate.nc", engine="tamis", chunks={}).mean().compute()
        xarray.open_dataset("climate.nc", engine="tamis", mask_and_scale=False, decode_times=False, threads=1)
        xarray.open_dataset("climate.nc", engine="tamis", group="nowhere")
        xarray.open_dataset("climate.nc", engine="tamis", nonsense=1)
        xarray.open_mfdataset("years/*.nc", engine="tamis")
        xarray.open_datatree("groups.nc", engine="tamis")
        xarray.open_dataset("fields.h5", engine="tamis", phony_dims="access", group="g")
        xarray.open_dataset("v3.zarr", engine="tamis")
        xarray.open_dataset("text.nc", engine="tamis")
        ds.tamis.filters
        ds.tamis.to_netcdf("a.nc", {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"}, chunks={"TS": (2, 8, 8)})
        ds.tamis.to_netcdf("a.nc", {"*": "lz4"})
        ds.tamis.to_netcdf("a.nc", {"*": "lz4"}, overwrite=True)
        ds.tamis.to_netcdf("b.nc", {"SST": "zfp(accuracy=0.1)"}, missing="mask", require={"SST": "abs=0.1"})
        ds.tamis.to_netcdf("c.nc", {"nowhere": "lz4"})
        ds.tamis.to_netcdf("c.nc", {"TS": "nonsense"})
        ds.tamis.to_zarr("a.zarr", {"TS": "zfp(accuracy=0.1)"})
        ds.tamis.to_zarr("b.zarr", {"*": "zstd"}, zarr_format=2, consolidated=False)
        ds.tamis.to_zarr("c.zarr", {"TS": "shuffle|deflate"}, shards=4)
        ds.chunk(time=4).tamis.to_netcdf("d.nc", {"TS": "pack(bound=0.1)|shuffle|deflate(4)"})
        xarray.open_datatree("groups.nc", engine="tamis").tamis.to_netcdf("e.nc", {"*": "zfp(accuracy=0.1)"})
        values_of("b.nc"), values_of("d.nc"), values_of("a.zarr")
        tamis.encoding(ds, {"TS": "zfp(accuracy=0.1)"})
        tamis.encoding(ds, {"TS": "shuffle|deflate(4)"}, engine="netcdf4", chunks={"TS": {"time": 2}})
        tamis.encoding(ds, {"TS": "zfp(accuracy=0.1)"}, engine="netcdf4")
        tamis.encoding(ds, {"TS": "zfp(accuracy=0.1)"}, engine="zarr")
        tamis.encoding(ds, {"TS": "lz4"}, engine="nonsense")
        encoding = tamis.encoding(ds, {"TS": "zfp(accuracy=0.1)"}); ds.to_netcdf("f.nc", engine="h5netcdf", encoding=encoding)
        xarray.open_dataset("f.nc", engine="tamis")["TS"].encoding["pipeline"]
    """,
    "netcdf": """
        nc = tamis.netcdf; ds = netCDF4.Dataset("a.nc", "w"); [ds.createDimension(n, s) for n, s in dict(t=None, y=8, x=12).items()]
        v = nc.create_variable(ds, "v", "f4", ("t", "y", "x"), "zfp(accuracy=0.1)|fletcher32", chunksizes=(4, 8, 12)); v
        v[:] = field((6, 8, 12)); nc.filters(v), nc.inq_var_filter_ids(v), nc.inq_var_filter_info(v, "zfp")
        nc.create_variable(ds, "w", "i2", ("y", "x"), "shuffle|deflate(4)", fill_value=-1, endian="big")
        nc.create_variable(ds, "v", "f4", ("y",), "lz4")
        nc.create_variable(ds, "u", "f4", ("y",), "nonsense")
        nc.create_variable(ds, "u", "f4", ("nowhere",), "deflate")
        d = ds.createVariable("d", "f4", ("y", "x")); nc.def_var_deflate(d, True, True, 4); nc.inq_var_deflate(d)
        nc.def_var_fletcher32(d); nc.def_var_zstandard(d); nc.inq_var_fletcher32(d), nc.inq_var_zstandard(d), nc.filters(d)
        q = ds.createVariable("q", "f4", ("y", "x")); nc.def_var_quantize(q, "BitRound", 9); nc.inq_var_quantize(q)
        b = ds.createVariable("b", "f4", ("y", "x")); nc.def_var_blosc(b, "zstd", 3); nc.def_var_szip(b)
        nc.def_var_filter(b, "shuffle|bzip2(5)"); nc.inq_var_bzip2(b), nc.inq_var_szip(b), nc.inq_var_blosc(b)
        nc.def_var_filter(v, "deflate(4)")
        nc.def_var_szip(q, "xx", 3)
        nc.inq_filter_avail(ds, 33000), nc.inq_filter_avail(ds, "zfp")
        nc.filterspec_parse("32013,3,0,0.1d"), nc.filterspec_parse_parameter("0.1d"), nc.filterspec_parselist("2|1,4")
        nc.filterspec_parse("x")
        nc.filterspec_parselist("")
        nc.plugin_path_set(["years", "."]); nc.plugin_path_append("/"); nc.plugin_path_prepend("years"); nc.plugin_path_get()
        ds.close()
        values_of("a.nc")
    """,
    "hdf5": """
        from tamis.hdf5 import *; file = h5py.File("a.h5", "w"); ts = field((10, 8, 12)); file
        write(file, "TS", ts, filters="zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32", chunks=(4, 8, 12), attrs={"units": "K"})
        pipeline_of(file["TS"]), chunk_type(file["TS"]), read_chunk(file["TS"], (4, 0, 0))
        write(file, "TS", ts)
        write(file, "bound", ts, filters="zfp(bound=0.1)|shuffle|deflate(4)", chunks=(4, 8, 12), threads=1)
        write(file, "packed", ts, filters="pack(bound=0.1)|deflate", chunks=(4, 8, 12)); dict(file["packed"].attrs)
        write(file, "plain", ts); write(file, "filled", ts, filters="lz4", chunks=(5, 8, 12), fillvalue=ts[0, 0, 0])
        write(file, "wrong", ts, filters="nonsense")
        write(file, "wrong", ts, filters="zfp(accuracy=0.1)!", chunks=(4, 8, 12), fillvalue=ts[0, 0, 0])
        write(file["TS"], ts)
        create_dataset(file, "grown", (0, 8, 12), "f4", maxshape=(None, 8, 12), chunks=(4, 8, 12), filters="zfp(accuracy=0.1)|lz4")
        a = Appender(file["grown"]); [a.append(step) for step in ts[:6]]; a.flush(); a.steps, a.partial, str(a.partial)
        a.append(ts[:, :3])
        a.append(ts[6:]); a.close(); file["grown"].shape
        with create_appender(file, "made", ts[:5], filters="zfp(bound=0.1)|deflate", chunks=(4, 8, 12)) as b: b.append(ts[5:])
        with Appender(file["made"], bound=0.1, recode=True) as b: b.append(ts[:3])
        Appender(file["plain"])
        mode = tamis.zfp.Rate(10); s = create_dataset(file, "s", (8, 12), "f8", chunks=(4, 12), filters=f"zfp({mode})|fletcher32"); s
        write_stream(s, (0, 0), tamis.zfp.encode(ts[0, :4].astype("f8"), mode), mode); s[:4]
        write_stream(s, (0, 0), b"short", mode)
        g = create_group(file, "g", "deflate", max_compact=2); group_filters(g), group_phase_change(g)
        create_group(file, "h", "zfp(rate=8)")
        file.create_dataset("h5py", data=ts, chunks=(4, 8, 12), **tamis.Zfp(accuracy=0.1))
        file.close()
        values_of("a.h5")
    """,
    "codecs": """
        ts = field((9, 14, 22)); zfp = tamis.zfp; zfp.encode(ts, zfp.Accuracy(0.1))
        [zfp.encode(ts.astype(t), m) for t in ("f4", "f8") for m in (zfp.Rate(8), zfp.Precision(16), zfp.Reversible(), zfp.Expert(1, 800, 20, -10))]
        [zfp.encode((ts * 100).astype(t), m, threads=2) for t in ("i4", "i8") for m in (zfp.Rate(8), zfp.Precision(16), zfp.Reversible())]
        [zfp.decode(zfp.encode(ts[(0,) * r], m), ts[(0,) * r].shape, "f4", m) for r in (0, 1, 2) for m in (zfp.Accuracy(0.1), zfp.Rate(8))]
        zfp.decode_with_header(zfp.encode_with_header(ts, zfp.Precision(20)))
        zfp.encode(ts.astype("f2"), zfp.Rate(8))
        zfp.encode(ts, zfp.Accuracy(-1))
        zfp.decode(b"short", (4, 4), "f4", zfp.Rate(8))
        zfp.decode_with_header(b"no header")
        zfp.mode(accuracy=0.1), zfp.mode(rate=8), zfp.as_mode(tamis.Zfp(rate=8)), zfp.is_lossless(zfp.Reversible()), zfp.max_extent(3)
        zfp.mode(accuracy=0.1, rate=8)
        zfp.prove(ts, zfp.encode(ts, zfp.Accuracy(0.1)), zfp.Accuracy(0.1))
        zfp.prove(ts, zfp.encode(ts, zfp.Rate(1)), zfp.Accuracy(0.1))
        c = tamis.zarr; [str(c.codecs("zfp(accuracy=0.1)", "f4", shape)) for shape in ((1, 14, 22), (9, 14, 22))]
        c.codecs("zfp(accuracy=0.1)|deflate(4)", "f4", (9, 14, 22), zarr_format=2)
        a = zarr.create_array("a.zarr", shape=ts.shape, dtype="f4", chunks=(1, 14, 22), **c.codecs("zfp(accuracy=0.1)", "f4", (1, 14, 22))); a[:] = ts; a[:]
        b = zarr.create_array("b.zarr", shape=ts.shape, dtype="f4", chunks=(3, 7, 11), serializer=c.PipelineCodec("zfp(accuracy=0.1)|shuffle|deflate(4)"), compressors=None); b[:] = ts; b[:]
        d = zarr.create_array("c.zarr", shape=ts.shape, dtype="f4", chunks=(3, 7, 11), zarr_format=2, **c.codecs("zfp(accuracy=0.1)|zstd", "f4", (3, 7, 11), zarr_format=2)); d[:] = ts; d[:]
        c.H5zZfp("fixed_accuracy", "float32", (4, 4), tolerance=0.1).get_config(), c.Zfpy(tolerance=0.1).get_config(), c.ReshapeCodec((3, -1)).to_dict()
        c.Zfpy(tolerance=0.1).encode(ts), c.Pipeline2Codec("shuffle|deflate", "f4", (9, 14, 22)).encode(ts)
        c.PipelineCodec("nonsense")
        c.codecs("szip", "f4", (4, 4))
        tamis.cf.packing_of({"scale_factor": 0.5, "add_offset": 2.0}), tamis.cf.missing_values({"_FillValue": np.float32(3)}, np.dtype("f4"))
        tamis.cf.valid_range({"valid_min": 3}, np.dtype("i2"))
        tamis.filters.filter_named("zfp"), sorted(tamis.filters.by_id()), tamis.filters.from_values(tamis.filters.Request(1, (4,)))
    """,
    "references": """
        import logging; logging.getLogger("asyncio").disabled = True  # the server's, about connections that were closed
        from range_server import range_server; from contextlib import ExitStack; stack = ExitStack(); server = stack.enter_context(range_server(Path.cwd())); None
        tamis.inspect(server.url("climate.nc")).to_json()
        tamis.open(server.url("climate.nc"))["TS"][2:4, 3]
        values_of(server.url("climate.nc")), values_of(server.url("classic.nc"))
        tamis.repack(server.url("climate.nc"), "a.nc", {"TS": "zfp(accuracy=0.1)"})
        tamis.verify(server.url("climate.nc"), "a.nc", bounds="recorded")
        tamis.plan(server.url("climate.nc"), {"TS": "abs=0.1"}, sample=None)
        tamis.export(server.url("climate.nc"), "a.json")
        values_of("a.json")
        tamis.open(server.url("absent.nc"))
        tamis.open(server.url("text.nc"))
        tamis.repack(server.url("climate.nc"), server.url("b.nc"), {})
        xarray.open_dataset(server.url("climate.nc"), engine="tamis")
        run_tamis("inspect", server.url("climate.nc"), "--cost")
        import fsspec; memory = fsspec.filesystem("memory"); memory.put("climate.nc", "/d/a.nc"); values_of(tamis.Address("d/a.nc", memory))
        tamis.repack("climate.nc", "memory://d/b.nc", {"TS": "lz4"}); values_of("memory://d/b.nc")
        stack.close()
    """,
}
"""Lines of Python that share names and a folder, by what they are about."""


class Sequence(NamedTuple):
    """Runs that share a folder, in this order."""

    name: str
    sources: tuple[str, ...]
    lines: tuple[str, ...]


def sequences() -> Iterator[Sequence]:
    """Yield all, the long ones first."""
    yield from of_processes()
    yield from of_python()
    yield from of_folders()
    for source in SOURCES:
        yield from of_source(source.name, source.ending)
    yield from of_options()
    yield from of_filters()
    yield from of_words()


def of_source(name: str, ending: str) -> Iterator[Sequence]:
    """Yield what is done with every source."""

    def sequence(job: str, *lines: str) -> Sequence:
        return Sequence(f"{job} {name}", (name,), tuple(line.replace("@in", name) for line in lines))

    yield sequence(
        "look at",
        *("tamis inspect @in", "tamis inspect @in --json", "tamis inspect @in --cdl", "tamis inspect @in --cost"),
        *(
            "values_of('@in')",
            "xarray.open_dataset('@in', engine='tamis')",
            "xarray.open_datatree('@in', engine='tamis')",
        ),
    )
    yield sequence("plan", "tamis plan @in", "tamis plan @in -r '*:abs=0.1' --json")
    to_same = f"same{ending}"
    yield sequence(
        "keep",
        f"tamis repack @in {to_same}",
        f"tamis verify @in {to_same}",
        "tamis repack @in whole.nc --self-contained --json",
        "values_of('whole.nc')",
    )
    lossy = "-f '*:zfp(accuracy=0.1)|shuffle|deflate(4)' --larger --min-size 0"
    yield sequence(
        "shrink",
        f"tamis repack @in {to_same} {lossy} --dry-run",
        f"tamis repack @in {to_same} {lossy}",
        f"tamis repack @in {to_same} {lossy} --resume --json",
        f"tamis verify @in {to_same} --bound recorded",
        f"tamis verify @in {to_same} --json",
        f"tamis inspect {to_same}",
        f"values_of('{to_same}')",
        f"tamis report @in {to_same} --json",
    )
    other = "other.h5" if ending == ".zarr" else "other.zarr"
    yield sequence(
        "translate",
        f"tamis repack @in {other} {lossy} --json",
        f"tamis verify @in {other} --bound recorded",
        f"tamis inspect {other}",
        f"values_of('{other}')",
    )
    yield sequence("round", f"tamis repack @in {to_same} -f '*:absolute(bound=0.1)|shuffle|zstd(3)' --json")
    yield sequence("mask", f"tamis repack @in {to_same} -f '*:zfp(rate=16)' --missing mask --follow")
    yield sequence("old Zarr", "tamis repack @in old.zarr -f '*:shuffle|deflate(1)' --zarr-format 2")
    yield sequence("copy", "tamis copy @in copy.nc -d 4 -s")
    yield sequence(
        "refer to", "tamis export @in --to kerchunk -o new.json", "tamis inspect new.json", "values_of('new.json')"
    )


def of_options() -> Iterator[Sequence]:
    """Yield runs with each option of the commands, and files that tamis refuses."""
    climate = ("climate.nc",)
    for command, table, target in (
        ("repack", REPACK_OPTIONS, "out.nc"),
        ("repack", ZARR_OPTIONS, "out.zarr"),
        ("copy", COPY_OPTIONS, "out.nc"),
    ):
        for options in table:
            line = f"tamis {command} climate.nc {target} {quoted(options)}"
            yield Sequence(f"options of {command} to {target}", climate, (line.strip(),))
    for options in PLAN_OPTIONS:
        require = "" if "-r" in options or "-w" in options else "-r TS:abs=0.1 -r SST:rel=0.001 "
        yield Sequence("options of plan", climate, (f"tamis plan climate.nc {require}{quoted(options)}",))
    yield Sequence(
        "plan a larger file",
        ("cam.nc",),
        (
            "tamis plan cam.nc",
            "tamis plan cam.nc -r '*:abs=0.1' --access series --json",
            "tamis plan cam.nc --size 1MB --plot plot.svg -o recipe.toml",
        ),
    )
    for requirement in REQUIREMENTS:
        lines = (
            f"tamis plan climate.nc -r TS:{requirement}",
            f"tamis repack climate.nc a.nc -f 'TS:zfp(accuracy=0.1)' -r TS:{requirement}",
        )
        yield Sequence(f"requirement {requirement}", climate, lines)
    for name in ("climate.nc", "fields.h5", "filters.h5", "by_tamis.h5", "classic.nc", "coded2.zarr", "coded3.zarr"):
        lines = tuple(f"tamis inspect {name} --as {notation}" for notation in NOTATIONS)
        yield Sequence("notations", (name,), lines)
    yield Sequence(
        "again",
        (*climate, "years"),
        (
            "tamis repack climate.nc a.nc -f 'TS:zfp(accuracy=0.1)' -f '*:lz4' --recipe-out r.toml",
            "tamis repack climate.nc a.nc -f '*:lz4'",
            "tamis repack climate.nc a.nc -f '*:lz4' --resume",
            "tamis repack climate.nc a.nc -f '*:lz4' --resume --overwrite",
            "tamis repack climate.nc b.nc --recipe r.toml --json",
            "tamis repack climate.nc c.nc --recipe r.toml -f TS:none --recipe-out r.toml --overwrite",
            "tamis verify b.nc c.nc",
            "tamis verify b.nc c.nc --drop TS --quiet",
            "tamis verify climate.nc b.nc --bound TS:0.001 -v TS --json",
            "tamis verify climate.nc b.nc --bound TS:recorded --log log.txt",
            "tamis report climate.nc b.nc -o page.html --recipe r.toml --time 0,5",
            "tamis report climate.nc b.nc --bound TS:0.001 --also 'zfp(accuracy=0.5)' -v TS",
            "tamis report climate.nc b.nc --budget 50kB -q --overwrite",
            "tamis inspect b.nc --html b.html",
            "tamis inspect b.nc --html b.html",
            "tamis inspect b.nc -v 'T*' --json",
            "tamis inspect b.nc years",
            "tamis plan climate.nc years -r 'TS:abs=0.1' -o plan.toml --overwrite",
            "tamis repack climate.nc d.nc --recipe plan.toml",
        ),
    )
    yield Sequence(
        "export",
        (*climate, "years", "fields.h5"),
        (
            "tamis export climate.nc --to zarr-manifest -o climate.manifests",
            "tamis export climate.nc --to icechunk -o climate.icechunk",
            "tamis export years/2001.nc years/2002.nc --concat time --to kerchunk -o joined.json --url s3://bucket/run1",
            "tamis export years/2001.nc years/2002.nc years/2003.nc --concat time --to kerchunk -o all.json --json",
            "tamis inspect all.json",
            "values_of('all.json')",
            "tamis repack all.json all.nc -f '*:lz4'",
            "tamis export fields.h5 --drop '/outside' --to kerchunk -o fields.json",
            "tamis export climate.nc --to kerchunk -o all.json",
            "tamis export climate.nc --to kerchunk -o all.json --overwrite -q",
        ),
    )
    yield Sequence(
        "other options",
        (*climate, "references.json"),
        (
            *(
                f"tamis copy climate.nc a.nc {option}"
                for option in ("-5", "-6", "-r", "-m 1", "-e 1", "-V x", "-g x", "-G x")
            ),
            "tamis copy climate.nc a.nc --keep-damaged --storage-option region=x --anonymous --allow-outside",
            "tamis copy climate.nc a.nc -d 1",
            "tamis copy climate.nc a.nc -d 1 --overwrite",
            "tamis repack references.json b.h5 --allow-outside --anonymous --storage-option region=x -f '*:lz4'",
            "tamis verify climate.nc a.nc --threads 1 --anonymous --allow-outside --storage-option region=x",
            "tamis inspect references.json --allow-outside --anonymous --storage-option region=x",
            "tamis inspect references.json --storage-option region",
            "tamis inspect climate.nc --cost --latency 100 --price 5",
            "tamis inspect climate.nc --html page.html --overwrite",
            "tamis plan climate.nc -r TS:abs=0.1 --allow-outside --anonymous --storage-option region=x",
            "tamis report climate.nc a.nc --threads 1 --log log.txt --anonymous --allow-outside --storage-option a=b",
            "tamis export climate.nc --to kerchunk -o a.json --allow-outside --anonymous --storage-option region=x",
            "tamis config --install prefix",
            "tamis config --install prefix --overwrite",
            "tamis repair references.json --quiet",
            "tamis manifest absent --quiet",
        ),
    )
    for name in BROKEN:
        lines = (
            f"inspect {name}",
            f"inspect {name} --json",
            f"repack {name} a.nc",
            f"repack {name} a.zarr",
            f"verify {name} {name}",
        )
        more = f"plan {name}", f"copy {name} a.nc", f"export {name} --to kerchunk -o a.json", f"repair {name} --dry-run"
        yield Sequence(f"broken {name}", (name,), tuple(f"tamis {line}" for line in lines + more))
    for name in ("v2.zarr", "coded2.zarr", "coded3.zarr", "climate.nc"):
        yield Sequence("repair", (name,), (f"tamis repair {name}", f"tamis repair {name} --dry-run --json"))
    for name in ("damaged_chunk.h5", "damaged.zarr"):
        lines = (
            f"tamis repack {name} a.h5 -f '*:lz4'",
            f"tamis repack {name} b.h5 -f '*:lz4' --keep-damaged",
            f"tamis verify {name} b.h5 --keep-damaged",
            f"tamis verify {name} b.h5 --json",
        )
        yield Sequence(f"damage {name}", (name,), lines)


def of_filters() -> Iterator[Sequence]:
    """Yield runs with each filter and rounding: as text, in each format, and on integers."""
    for text in FILTERS:
        word = shlex.quote(text)
        yield Sequence(
            "filters as text", (), (f"tamis spec {word} --chunks 4x8x12 --dtype f4", f"tamis spec {word} --json -v TS")
        )
        recipe = shlex.quote(f"TS:{text}"), shlex.quote(f"/i4:{text}")
        yield Sequence(
            f"filters {text}",
            ("climate.nc", "numbers.h5"),
            (
                f"tamis repack climate.nc a.nc -f {recipe[0]}",
                "tamis verify climate.nc a.nc --bound recorded",
                "values_of('a.nc')",
                f"tamis repack climate.nc b.zarr -f {recipe[0]} --json",
                f"tamis repack numbers.h5 c.h5 -f {recipe[1]}",
            ),
        )
    for text in NETCDF_FILTERS:
        yield Sequence("filters of copy", ("climate.nc",), (f"tamis copy climate.nc a.nc -F {shlex.quote(text)}",))
    for text, options in (
        ("32013,3,0,0.1d", ""),
        ("TS,32013,3,0,0.1d|2|1,4", "--compat doc"),
        ("UD=32013,0,3,2,0,16", "--from h5repack"),
        ("TS:GZIP=4", ""),
        ("compression='gzip', compression_opts=4", "--from h5py"),
        ('TS:_Filter = "32013,1,0,8d" ;', "--from cdl"),
        ('[{"name": "gzip", "configuration": {"level": 4}}]', "--from zarr"),
        ("1,4", "--from tamis"),
    ):
        yield Sequence("other notations", (), (f"tamis spec {options} {shlex.quote(text)}",))


def of_words() -> Iterator[Sequence]:
    """Yield help, lists, and wrong arguments."""
    yield Sequence("help", (), ("tamis --help", "tamis -h", *(f"tamis {command} --help" for command in COMMANDS)))
    lists = (
        "tamis filters",
        "tamis filters --json",
        "tamis filters zfp sperr blosc pack absolute",
        "tamis filters zfp --json",
    )
    configs = (
        "cflags",
        "libs",
        "libs --static",
        "libs --codec",
        "fortran",
        "plugin-path",
        "pkg-config-path",
        "cmake-path",
    )
    places = (
        "tamis config",
        *(f"tamis config --{option}" for option in configs),
        "tamis config --install prefix --dry-run",
    )
    yield Sequence(
        "lists", (), (*lists, *places, "tamis plugin-path", "tamis plugin-path --with-others", "tamis --version")
    )
    yield Sequence("wrong words", ("climate.nc", "fields.h5", "text.nc", "years"), WRONG_WORDS)


def of_folders() -> Iterator[Sequence]:
    """Yield runs over folders: repack, its record, and one file of several."""
    sources = ("years", "text.nc")
    for options in MANY_OPTIONS:
        yield Sequence(
            f"folders {options}", sources, (f"tamis repack years text.nc out/ --workers 1 {quoted(options)}",)
        )
    yield Sequence(
        "folder",
        sources,
        (
            "tamis repack years out -f '*:zfp(accuracy=0.1)|shuffle|deflate(4)' --workers 2",
            "tamis repack years out -f '*:zfp(accuracy=0.1)|shuffle|deflate(4)' --json",
            "tamis status out",
            "tamis status out --json",
            "tamis manifest out",
            "tamis manifest out --json",
            "tamis manifest out --format csv",
            "tamis manifest out --format markdown",
            "tamis manifest out --check",
            "tamis verify years out --bound recorded",
            "tamis verify years out --json",
            "tamis report years out -o index.html --each 1",
            "Path('out/2002.nc').write_bytes(b'changed')",
            "tamis manifest out --check --json",
            "tamis status out",
        ),
    )
    yield Sequence(
        "in place",
        ("years",),
        (
            "tamis repack years --replace --settle 0 --yes -f '*:lz4' --dry-run",
            "tamis repack years --replace --settle 0 --yes -f '*:lz4' --keep-originals kept --workers 1",
            "tamis repack years --replace --settle 0 --yes -f '*:none' --larger --break-hard-links --workers 1 --json",
        ),
    )
    combine = "tamis repack years/2001.nc years/2002.nc years/2003.nc"
    for target in ("all.nc", "all.zarr"):
        yield Sequence(
            f"combine to {target}",
            ("years",),
            (
                f"{combine} {target} --combine time -f 'TS:zfp(accuracy=0.1)|shuffle|deflate(4)' --dry-run",
                f"{combine} {target} --combine time -f 'TS:zfp(accuracy=0.1)|shuffle|deflate(4)'",
                f"{combine} {target} --combine time",
                f"tamis repack years {target} --combine time -c TS:8x8x8 --overwrite --json",
                f"tamis inspect {target}",
                f"values_of('{target}')",
            ),
        )


def of_python() -> Iterator[Sequence]:
    """Yield calls of functions from Python."""
    sources = ("climate.nc", "classic.nc", "groups.nc", "fields.h5", "v3.zarr", "text.nc", "years")
    for name, lines in PYTHON.items():
        yield Sequence(f"Python: {name}", sources, tuple(line.strip() for line in lines.strip().splitlines()))


def of_processes() -> Iterator[Sequence]:
    """Yield a few runs as users start them, for what only a process shows."""
    yield Sequence(
        "processes",
        ("climate.nc", "years", "text.nc"),
        (
            "$ tamis --version",
            "$ python -m tamis inspect climate.nc",
            "$ tamis repack climate.nc a.nc -f 'TS:zfp(accuracy=0.1)|shuffle|deflate(4)' --json",
            "$ tamis verify climate.nc a.nc --bound recorded",
            "$ tamis inspect text.nc",
            "$ ls years/*.nc | tamis repack --files-from - out/ -f '*:lz4' --workers 1",
            "$ echo n | tamis repack years --replace --settle 0 -f '*:lz4' --workers 1",
            "$ echo y | tamis repack years --replace --settle 0 -f '*:lz4' --workers 1",
            "$ tamis inspect climate.nc >/dev/full",
            "$ PYTHONIOENCODING=ascii tamis inspect climate.nc",
            "$ COLUMNS=40 tamis inspect climate.nc",
            "$ COLUMNS=300 tamis plan climate.nc -r TS:abs=0.1",
        ),
    )


def quoted(options: str) -> str:
    """Return options, written without quotation marks, with those that a shell needs."""
    return shlex.join(options.split())
