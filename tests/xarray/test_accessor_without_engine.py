"""Known defect U61: `ds.tamis` did not exist until xarray looked for an engine."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Run = Callable[..., str]
USED = "xarray.Dataset().tamis.filters, xarray.DataTree().tamis.to_netcdf\n"


@pytest.mark.matrix
@pytest.mark.parametrize(
    "imports", ["import xarray, tamis", "import tamis, xarray", "import xarray as x, tamis, xarray"]
)
def test_u61_accessors_are_there_after_both_imports(python: Run, imports: str) -> None:
    python(f"{imports}\n{USED}")


def test_u61_tamis_alone_imports_no_xarray(python: Run) -> None:
    python(
        """
import importlib.util, sys, tamis
assert not [name for name in sys.modules if name.partition(".")[0] in ("xarray", "tamis_xarray")]
assert importlib.util.find_spec("xarray").name == "xarray" and "xarray" not in sys.modules
"""
    )


@pytest.mark.check
def test_u61_xarray_is_as_without_tamis(python: Run) -> None:
    code = """
import importlib, inspect, pickle, xarray
print(type(xarray.__loader__), type(xarray.__spec__.loader), xarray.__spec__.loader is xarray.__loader__)
print(inspect.getsource(xarray)[:80], importlib.resources.files(xarray).joinpath("py.typed").is_file())
print(importlib.reload(xarray) is xarray)
"""
    with_tamis = python(f"import importlib.resources, tamis\n{code}\n{USED}")
    assert with_tamis == python(f"import importlib.resources\n{code}")


@pytest.mark.check
def test_u61_both_imported_at_once_by_threads(python: Run) -> None:
    python(
        f"""
import importlib, threading
start = threading.Barrier(4)
def load(name):
    start.wait()
    importlib.import_module(name)
threads = [threading.Thread(target=load, args=(name,)) for name in ("xarray", "tamis", "tamis", "xarray")]
[thread.start() for thread in threads], [thread.join() for thread in threads]
import xarray
{USED}"""
    )


def test_u61_xarray_that_fails_leaves_tamis(python: Run) -> None:
    python(
        """
import sys, tamis
sys.modules["numpy"], numpy = None, sys.modules["numpy"]
try:
    import xarray
except ImportError:
    sys.modules["numpy"] = numpy
else:
    raise SystemExit("xarray without numpy")
import xarray
xarray.Dataset().tamis
"""
    )
