"""Known defect D28: with PyPI's zfpy installed other packages may fail to import."""

from __future__ import annotations

import subprocess
import sys

USED = """
import sys
sys.modules["zfpy"] = sys.modules["numcodecs"] = None  # importing either raises
import numpy, tamis
values = numpy.arange(64.0).reshape(4, 4, 4)
mode = tamis.zfp.Reversible()
assert (tamis.zfp.decode(tamis.zfp.encode(values, mode), values.shape, values.dtype, mode) == values).all()
assert "32013" in str(tamis.spec("zfp(accuracy=0.1)"))
print("done")
"""


def test_d28_neither_zfpy_nor_numcodecs_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", USED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("done\n", "")
