"""`--instructions`: every library computes with what it was told. Each case is a new process."""

import subprocess
import sys
from importlib import import_module

import pytest

HERE = import_module("numpy._core._multiarray_umath").__cpu_features__
needs_avx2 = pytest.mark.skipif(not HERE.get("AVX2"), reason="this processor has no AVX2")


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)


TOLD = """
from harness.instructions import compute_with
compute_with("avx2")
import numba, numpy, torch
from threadpoolctl import threadpool_info
numpy.ones((2, 2)) @ numpy.ones((2, 2))
print(torch.backends.cpu.get_cpu_capability(), numba.config.CPU_NAME)
print({i["architecture"] for i in threadpool_info() if i["internal_api"] == "openblas"})
"""


@needs_avx2
def test_libraries_compute_with_what_they_are_told() -> None:
    said = python(TOLD)
    assert said.stdout.splitlines() == ["AVX2 haswell", "{'Haswell'}"], said.stderr


def test_a_library_that_has_chosen_already_is_named_with_the_way_out() -> None:
    said = python('import numpy\nfrom harness.instructions import compute_with\ncompute_with("avx2")')
    assert "numpy is loaded already" in said.stderr
    assert "ATEN_CPU_CAPABILITY=avx2" in said.stderr


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ('compute_with("avx9")', "avx9 is unknown; there is avx2"),
        ('VARIABLES["avx9"] = {}; compute_with("avx9")', "this processor has no AVX9"),
    ],
)
def test_instructions_that_are_not_there_are_refused(changed: str, says: str) -> None:
    said = python(f"from harness.instructions import VARIABLES, compute_with\n{changed}")
    assert said.returncode
    assert says in said.stderr
