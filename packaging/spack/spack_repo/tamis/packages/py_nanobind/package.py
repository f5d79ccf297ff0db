# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.packages.py_nanobind.package import PyNanobind as Builtin

from spack.package import *


class PyNanobind(Builtin):
    """The version that tamis needs, which Spack's own recipe does not have yet."""

    version("3.1.0", sha256="6661e3dc1434d78781ccf7913442d90361dab395c3424efadb63bbb6ddea7ea3")
