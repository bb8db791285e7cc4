"""Other processors on this one: variables that hide instructions from the package, NumPy and libc."""

from __future__ import annotations

import os

import numpy as np

CPU_VARIABLE = "KETRAG_CPU_WITHOUT"

PORTABLE = "avx"
"""What hides every set of instructions."""

_GLIBC = "-AVX2,-AVX2_Usable,-FMA,-FMA_Usable,-FMA4,-AVX512F"


def hidden(names: str) -> dict[str, str]:
    """Return the variables that hide `names`, and what the environment of this process hides already."""
    before = os.environ.get(CPU_VARIABLE, "")
    return {CPU_VARIABLE: ",".join(filter(None, (before, names)))}


def old_libraries() -> dict[str, str]:
    """Return the variables that keep NumPy, its BLAS and the C library from FMA, AVX2 and AVX-512.

    glibc's `log` and `exp` round the last bit of some numbers differently then.
    """
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return {
        "NPY_DISABLE_CPU_FEATURES": ",".join(found),
        "OPENBLAS_CORETYPE": "Prescott",
        "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={_GLIBC}",
    }
