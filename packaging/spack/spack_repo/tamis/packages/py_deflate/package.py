# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyDeflate(PythonPackage):
    """Python API for libdeflate, which is in its source distribution."""

    homepage = "https://github.com/dcwatson/deflate"
    pypi = "deflate/deflate-0.9.0.tar.gz"

    license("MIT", checked_by="tamis")

    version("0.9.0", sha256="962e0a6f1ea3a94b900a8ea0ce138fa92bfcbafda5b86367104a259ffcd3462b")

    depends_on("c", type="build")
    depends_on("cmake@3.15:", type="build")
    depends_on("ninja", type="build")
    depends_on("py-scikit-build-core@0.9:", type="build")
    depends_on("python@3.10:", type=("build", "link", "run"))
