"""A signal in the middle of the exact product of many vectors, with each set of instructions that is here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from ketrag_fast import _core
from tests.support.effort import ended_after

WORK = """
import signal, sys
import numpy as np
from ketrag_fast import _core
signal.signal(signal.SIGINT, signal.default_int_handler)
x = np.random.default_rng(1).standard_normal((300_000, 256), dtype=np.float32)
print("begin", flush=True)
_core.cosine_knn(x, 2, simd=sys.argv[1])
print("end", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="no process can be sent SIGINT alone")
@pytest.mark.parametrize("level", _core.simd_levels())
def test_a_signal_ends_the_products(level: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", WORK, level], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "begin\n"
    time.sleep(0.4)  # into the products: all of them take many seconds
    (printed, errors), spent = ended_after(child, signal.SIGINT)
    assert printed == ""
    assert "KeyboardInterrupt" in errors
    assert child.returncode != 0
    assert spent < 1.5 * (os.cpu_count() or 1)
