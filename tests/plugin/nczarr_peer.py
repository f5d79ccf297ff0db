"""Write and read Zarr stores with netCDF-C, in a folder.

jobs.json has what to do; outcomes.json gets an error or an empty text for each. A program of its own, since netCDF-C
reads its plugin path once.
"""

import ctypes
import json
import sys
from pathlib import Path

import netCDF4
import numpy as np

folder = Path(sys.argv[1])
library = ctypes.CDLL(
    next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libnetcdf" in line)
)


def url(job: dict) -> str:
    return f"file://{folder / job['store']}#mode=zarr,file"


def write(job: dict) -> None:
    values = np.load(folder / job["values"])
    with netCDF4.Dataset(url(job), "w") as file:
        names = [f"d{axis}" for axis in range(values.ndim)]
        for name, extent in zip(names, values.shape, strict=True):
            file.createDimension(name, extent)
        keywords = {"chunksizes": job["chunks"], **job["keywords"]}
        variable = file.createVariable("v", job["dtype"] or values.dtype.str[1:], names, **keywords)
        for number, words in job["filters"]:
            parameters = (ctypes.c_uint * len(words))(*words)
            count = ctypes.c_size_t(len(words))
            status = library.nc_def_var_filter(file._grpid, variable._varid, number, count, parameters)
            assert status == 0, status
        variable.set_auto_maskandscale(False)
        variable[...] = values


def append(job: dict) -> None:
    """Write one step. netCDF4's modes a and r+ would replace the store: it looks for a file of this name."""
    step = np.load(folder / job["values"])
    ncid, varid = ctypes.c_int(), ctypes.c_int()
    start = (ctypes.c_size_t * (step.ndim + 1))(job["at"])
    count = (ctypes.c_size_t * (step.ndim + 1))(1, *step.shape)
    done = [
        library.nc_open(url(job).encode(), 1, ctypes.byref(ncid)),
        library.nc_inq_varid(ncid, b"v", ctypes.byref(varid)),
        library.nc_put_vara_float(ncid, varid, start, count, step.ctypes.data_as(ctypes.c_void_p)),
        library.nc_close(ncid),
    ]
    assert done == [0] * 4, done


def read(job: dict) -> None:
    with netCDF4.Dataset(url(job)) as file:
        variable = file["v"]
        variable.set_auto_maskandscale(False)
        np.save(folder / f"{job['store']}.npy", variable[...])


def outcome(job: dict) -> str:
    try:
        {"write": write, "append": append, "read": read}[job["do"]](job)
    except (RuntimeError, OSError) as error:
        return str(error)
    return ""


outcomes = [outcome(job) for job in json.loads((folder / "jobs.json").read_text())]
(folder / "outcomes.json").write_text(json.dumps(outcomes))
