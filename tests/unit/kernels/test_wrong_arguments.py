"""No argument of a kernel ends the process, panics, or is taken for what it is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast.errors import InputError, OutOfMemory
from tests.support import all_kernels as kernels
from tests.support import kernel_calls

ROOT = Path(__file__).parents[3]
EYE = np.eye(3, dtype=np.float32)
LIMITED = """
import resource, sys
import numpy as np
from tests.support import all_kernels as kernels
from ketrag_fast.errors import InputError, OutOfMemory
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
rows = np.array([0, 1], np.uint64), np.array([0], np.uint32)
size = int(sys.argv[2])
try:
    {
        "transpose": lambda: kernels.transpose(*rows, size),
        "renumber": lambda: kernels.renumber(*rows, size, [0]),
        "fit_embedder": lambda: kernels.fit_embedder(rows, [1], size),
        "select_uniform": lambda: kernels.select_uniform(size, 1),
    }[sys.argv[1]]()
except (InputError, OutOfMemory) as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("wrong", [2**32, -(2**32), -1, 0.9, True, "1"])
def test_an_id_is_never_taken_for_another(wrong: object) -> None:
    ends = [0, 1, 1, 1]
    for call in (
        lambda: kernels.top_k(EYE, EYE[:1], 1, ids=[wrong]),
        lambda: kernels.fuse_ranks([[wrong]]),
        lambda: kernels.keyword_means((ends, [wrong]), EYE),
        lambda: kernels.cosine_knn(EYE, 1, exclude=(ends, [wrong])),
        lambda: kernels.transpose([0, 1], [wrong], 3),
    ):
        with pytest.raises(InputError):
            call()


@pytest.mark.parametrize("kind", ["u8", "i8", ">u4", "u1"])
def test_an_id_of_any_width_is_read_as_it_is(kind: str) -> None:
    ids = np.array([0, 2, 9, 9], kind)[:2]
    assert kernels.top_k(EYE, EYE[2:], 1, ids=ids)[0].tolist() == [[2]]


def test_every_kernel_is_called() -> None:
    assert sorted(kernel_calls.functions()) == sorted([*kernel_calls.GOOD, *kernel_calls.ELSEWHERE])
    for name, arguments in kernel_calls.GOOD.items():
        getattr(kernels, name)(**arguments)


@pytest.mark.parametrize("size", [2**31, 2**32, 2**43, 2**62])
@pytest.mark.parametrize("kernel", ["transpose", "renumber", "fit_embedder", "select_uniform"])
def test_memory_that_there_is_not_is_a_typed_error(kernel: str, size: int) -> None:
    command = [sys.executable, "-c", LIMITED, kernel, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    # The drawing numbers what it draws from in 32 bits; the others need 2^32 columns only as memory.
    too_many = size > 2**32 or (size == 2**32 and kernel == "select_uniform")
    assert done.stdout.strip() == ("InputError" if too_many else "OutOfMemory")


def test_the_error_is_pythons_own_too() -> None:
    assert issubclass(OutOfMemory, MemoryError)


def fuzz(first: int, count: int) -> None:
    command = [sys.executable, "-m", "tests.support.kernel_calls", str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrong_arguments_give_typed_errors() -> None:
    fuzz(0, 500)


@pytest.mark.soak
def test_a_hundred_thousand_wrong_calls() -> None:
    fuzz(500, 100_000)
