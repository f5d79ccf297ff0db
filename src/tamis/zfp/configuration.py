"""The version of tamis, its codec, the kernels for this machine, and what programs in C and Fortran need."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path

from tamis import _native
from tamis.arguments import FLAG
from tamis.system.libraries import shared_library_in, static_library_in

CODEC = "ZFP codec 5"


@dataclass(frozen=True, slots=True)
class Config:
    """The result of `config`."""

    version: str
    """Version of tamis."""
    codec: str
    """The format that the codec writes and reads."""
    kernel: str
    """The codec's implementation in use, named after an instruction set."""
    kernels: tuple[str, ...]
    """All implementations that this machine can run, the default first; all write the same bytes."""

    @property
    def include_path(self) -> Path:
        """The folder of the headers for C and C++: ``H5Zzfp.h`` (the HDF5 filter) and ``tamis.h`` (the codec)."""
        return _package() / "include"

    @property
    def library_path(self) -> Path:
        """The folder of the libraries ``h5zzfp`` and ``tamis``, shared and static; on Windows ``h5zzfp`` is static."""
        return _package() / "lib"

    @property
    def fortran_path(self) -> Path:
        """The folder of the Fortran modules' sources, compiled with a program: module files fit only one compiler.

        ``H5Zzfp_props_f.F90`` is the filter, ``tamis_zfp.f90`` the codec.
        """
        return _package() / "fortran"

    @property
    def cflags(self) -> str:
        """Options for the compiler."""
        return f"-I{self.include_path}"

    def libs(self, *, codec: bool = False, static: bool = False) -> str:
        """Return linker options, which must come before those of HDF5.

        Parameters
        ----------
        codec
            The codec, which needs no HDF5, instead of the filter.
        static
            The static library, which the program then contains. On Windows the filter has no other.
        """
        FLAG.check("codec", codec)
        FLAG.check("static", static)
        name, folder = "tamis" if codec else "h5zzfp", self.library_path
        shared = shared_library_in(folder, f"lib{name}")
        if shared is not None and not static:
            # Programs of Windows look for libraries in their own folder, and in those of PATH.
            return f"-L{folder} -l{name}" if shared.suffix == ".dll" else f"-L{folder} -Wl,-rpath,{folder} -l{name}"
        library = static_library_in(folder, f"lib{name}")
        if library.suffix == ".lib":
            return str(library)  # which names what it needs of Windows
        if codec and shared is not None and shared.suffix == ".dylib":
            return f"{library} -lc++"
        return f"{library} {'-lstdc++ -lm -pthread' if codec else '-lm'}"

    def __str__(self) -> str:
        others = f" (of {', '.join(self.kernels)})" if len(self.kernels) > 1 else ""
        return f"tamis {self.version}, {self.codec}, kernel {self.kernel}{others}"


def _package() -> Path:
    return Path(_native.__file__).parent


def config() -> Config:
    """Return the version of tamis, its codec and kernel on this machine, and what builds in C and Fortran need.

    Kernels are ``avx512`` (x86-64 with AVX-512 and GFNI), ``avx2`` (x86-64 with AVX2, BMI2 and PCLMUL), ``avx2-tzcnt``
    (the same without PDEP and PEXT, which AMD before Zen 3 runs slowly), ``neon`` (aarch64) and ``portable`` (any
    machine).

    The environment variable ``TAMIS_KERNEL`` chooses another kernel, for tests and comparisons. It is read once per
    process, by tamis and by its HDF5 plugin. A kernel that this machine cannot run has no effect, except for a warning.

    Examples
    --------
    >>> tamis.config().kernels
    ('avx2', 'avx2-tzcnt', 'portable')
    """
    return Config(_native.version, CODEC, _native.kernel(), tuple(_native.kernels()))


def warn_unless_as_asked() -> None:
    """Warn if the environment asks for a kernel that this machine cannot run."""
    if not _native.kernel_as_asked():
        name = _native.kernel_variable
        expected = " or ".join(_native.kernels())
        message = f"expected {name} to be {expected} on this machine, got {os.environ.get(name)!r}; using {{}}"
        warnings.warn(message.format(_native.kernel()), RuntimeWarning, stacklevel=3)
