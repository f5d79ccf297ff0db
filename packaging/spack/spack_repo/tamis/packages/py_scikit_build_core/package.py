# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.packages.py_scikit_build_core.package import PyScikitBuildCore as Builtin

from spack.package import *


class PyScikitBuildCore(Builtin):
    """The version that tamis needs, which Spack's own recipe does not have yet."""

    version("1.1.2", sha256="7893709119c5ab1be75cd10442383132c9433b9f104dacef5185949efbea7974")
