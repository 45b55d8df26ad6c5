"""Which of a processor's instructions are computed with: machines that use the same ones round almost alike.

Every numerical library picks the widest instructions it finds, and sums in another order with each. A library looks at
its variable once, when it is loaded. What cannot be told apart this way is the maker: MKL has other code for Intel's
processors than for AMD's.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys

from pruners.core.errors import PruneBoardError

VARIABLES = {
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",  # torch
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",  # numpy, scipy
        "NUMBA_CPU_NAME": "haswell",
    }
}
"""By the name of the instructions, what each library is told."""


def compute_with(name: str) -> None:
    """From now on this process, and those that it starts, compute with these instructions and no wider ones."""
    if name not in VARIABLES:
        raise PruneBoardError(f"--instructions {name} is unknown; there is {', '.join(VARIABLES)}")
    told = VARIABLES[name]
    if loaded := [module for module in ("numpy", "torch", "numba") if module in sys.modules]:
        variables = " ".join(f"{variable}={value}" for variable, value in told.items())
        raise PruneBoardError(f"{loaded[0]} is loaded already, and has chosen: start Python with {variables}")
    os.environ.update(told)
    found = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__  # no library has it in public
    if not found.get(name.upper()):
        raise PruneBoardError(f"this processor has no {name.upper()}: leave --instructions away")


def processor() -> str:
    """The processor's kind, and the widest instructions that torch computes with here."""
    import torch

    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
