"""U33: every kernel of the codec that this processor can run is in the package, and the fastest is chosen."""

from __future__ import annotations

import os
import subprocess
import sys

import processor
import pytest

import tamis


@pytest.mark.parametrize("kernel", processor.NEEDED)
def test_u33_kernel_that_this_processor_can_run_is_there(kernel: str) -> None:
    if not processor.can_run(kernel):
        assert kernel not in tamis.config().kernels
        pytest.skip(f"this processor cannot run the kernel {kernel}")
    if processor.left_out(kernel):
        assert kernel not in tamis.config().kernels
        pytest.skip(f"the build was told to leave out the kernel {kernel}")
    if not processor.compiler_makes(kernel):
        assert kernel not in tamis.config().kernels
        pytest.skip(f"this compiler does not make the kernel {kernel}")
    assert kernel in tamis.config().kernels


def test_u33_no_kernel_is_unknown_to_these_tests() -> None:
    assert set(tamis.config().kernels) <= processor.NEEDED.keys()


def test_u33_fastest_kernel_is_chosen() -> None:
    fast = ("avx512", "avx2", "avx2-tzcnt", "portable")
    order = fast if processor.runs_pext_fast() else ("avx2-tzcnt", "portable", "avx2", "avx512")
    environment = {name: value for name, value in os.environ.items() if name != "TAMIS_KERNEL"}
    command = [sys.executable, "-c", "import tamis; print(tamis.config().kernel)"]
    chosen = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    assert chosen == next(kernel for kernel in order if kernel in tamis.config().kernels)
