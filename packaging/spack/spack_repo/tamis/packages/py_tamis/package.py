# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyTamis(PythonPackage):
    """Filters for chunked scientific arrays in HDF5, netCDF-4 and Zarr: an HDF5 plugin and a codec for ZFP (filter
    32013, H5Z-ZFP), and commands that make files smaller within a bound that is proven for each value."""

    pypi = "tamis/tamis-1.0.0.tar.gz"

    license("BSD-3-Clause", checked_by="tamis")

    # Replace the sum by that of the released sdist.
    version("1.0.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("netcdf", default=False, description="Filters for variables of netCDF4-python")
    variant("xarray", default=False, description="Engine and accessor for xarray")

    depends_on("cxx", type="build")
    depends_on("python@3.11:", type=("build", "link", "run"))
    depends_on("py-scikit-build-core@1.1:", type="build")
    depends_on("py-nanobind@3.1:", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")

    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-h5py@3.11:", type=("build", "run"))
    depends_on("py-deflate@0.8:", type=("build", "run"))
    depends_on("py-click@8.1:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-netcdf4@1.6.2:", type=("build", "run"), when="+netcdf")
    depends_on("py-h5netcdf@1.6:", type=("build", "run"), when="+xarray")
    depends_on("py-xarray@2025.3:", type=("build", "run"), when="+xarray")

    conflicts("platform=windows", msg="the Python package was never run on Windows")
    conflicts("%gcc@:11", msg="C++20 and vector conversions of GCC 12")

    import_modules = ["tamis", "tamis.zfp"]

    def setup_run_environment(self, env):
        # Every libhdf5 of the environment finds the plugin, as with the package h5z-zfp.
        env.prepend_path("HDF5_PLUGIN_PATH", join_path(python_platlib, "tamis", "hdf5_plugin"))
