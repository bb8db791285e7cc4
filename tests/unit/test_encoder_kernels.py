"""Which kernel the encoder takes, and what tiles must survive: refusal, forks, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast.errors import IndexDamaged, InputError
from ketrag_fast.kernels.encoder import KERNEL_VARIABLE, Encoder, kernels
from tests import small_model
from tests.process import environment

TEXTS = [" ".join(f"w{(i * 7 + n) % 40}" for i in range(n)) for n in (1, 5, 17, 40)]
needs_tiles = pytest.mark.skipif("amx" not in kernels(), reason="this process has no tiles")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=64))


def test_the_fastest_of_the_measured_is_taken_and_int8_if_it_gains_a_quarter(folder: Path) -> None:
    encoder = Encoder.open(folder)
    times = [took for *_, took in encoder.timings]
    assert times == sorted(times) and all(took > 0 for took in times)
    if encoder.timings:
        best = min(encoder.timings, key=lambda one: one[2] * (1.25 if one[1] == "int8" else 1))
        assert (encoder.kernel, encoder.precision) == best[:2]
    exact = Encoder.open(folder, precision="f32")
    assert exact.precision == "f32" and all(precision == "f32" for _, precision, _ in exact.timings)


@pytest.mark.parametrize("kernel", kernels())
def test_a_kernel_can_be_forced(folder: Path, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KERNEL_VARIABLE, kernel)
    encoder = Encoder.open(folder)
    assert (encoder.kernel, encoder.timings) == (kernel, [])
    for precision in ("f32", "bf16", "int8"):
        if precision in serves(kernel):
            made = Encoder.open(folder, precision=precision)
            assert (made.kernel, made.precision) == (kernel, precision)
        else:
            with pytest.raises(InputError, match=f"{kernel} only supports .*, not {precision}"):
                Encoder.open(folder, precision=precision)


def serves(kernel: str) -> set[str]:
    """What a kernel computes in, as the documents say it."""
    if kernel in ("avx-vnni", "avx512-vnni"):
        return {"int8"}
    return {"avx512-bf16": {"bf16"}, "amx": {"bf16", "int8"}}.get(kernel, {"f32", "bf16", "int8"})


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_int8_has_the_same_bits_with_every_kernel(tmp_path: Path, family: str) -> None:
    sizes = small_model.config(family, hidden_size=96, intermediate_size=200, max_position_embeddings=66)
    folder = small_model.save(tmp_path / family, sizes)
    want = Encoder.open(folder, precision="int8", kernel="portable").encode(TEXTS)
    exact = Encoder.open(folder, precision="f32").encode(TEXTS)
    assert (want * exact).sum(1).min() > 0.99
    for kernel in kernels():
        if "int8" in serves(kernel):
            encoder = Encoder.open(folder, precision="int8", kernel=kernel)
            assert np.array_equal(encoder.encode(TEXTS), want), kernel
            assert np.array_equal(encoder.encode(TEXTS[1:2]), want[1:2]), kernel


@pytest.mark.parametrize("family", ["bert", "mpnet"])
@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_kernels_that_add_in_their_own_order_differ_by_rounding(
    tmp_path: Path, family: str, precision: str
) -> None:
    """f32 with every kernel, and `avx512-bf16`, which has an order of its own, against the portable one."""
    sizes = small_model.config(family, hidden_size=96, intermediate_size=200, max_position_embeddings=66)
    folder = small_model.save(tmp_path / family, sizes)
    portable = Encoder.open(folder, precision=precision, kernel="portable").encode(TEXTS)
    exact = Encoder.open(folder, precision="f32", kernel="portable").encode(TEXTS)
    names = kernels() if precision == "f32" else [name for name in kernels() if name == "avx512-bf16"]
    for kernel in names:
        if precision not in serves(kernel):
            continue
        encoder = Encoder.open(folder, precision=precision, kernel=kernel)
        vectors = encoder.encode(TEXTS)
        # Within one kernel a vector depends on its text alone, to the bit.
        assert np.array_equal(encoder.encode(TEXTS[1:2]), vectors[1:2]), kernel
        assert np.array_equal(encoder.encode(TEXTS, threads=2), vectors), kernel
        if precision == "f32":
            assert np.abs(vectors - portable).max() < 1e-6, kernel
        else:
            # The two are as near to each other as either is to f32.
            own, other = distance(vectors, portable), distance(portable, exact)
            assert 0 < own < 1.5 * other and distance(vectors, exact) < 1.5 * other
            assert (vectors * portable).sum(1).min() > 0.9999


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference of two rows' directions, as the length of the difference."""
    return float(np.linalg.norm(a - b, axis=1).max())


def test_int8_is_measured_and_close(folder: Path) -> None:
    encoder = Encoder.open(folder, precision="int8")
    assert encoder.precision == "int8" and 0.99 < encoder.closeness() < 1
    assert all(precision == "int8" for _, precision, _ in encoder.timings)
    assert encoder.fingerprint() != Encoder.open(folder, precision="f32").fingerprint()


def test_texts_of_one_token_and_of_100_000(folder: Path) -> None:
    encoder = Encoder.open(folder)
    texts = ["w3", " ".join(f"w{i % 40}" for i in range(100_000)), "w3"]
    made = encoder.encode_counted(texts)
    assert made.tokens == 100_002 and made.more >= 100_000 // encoder.longest
    assert np.allclose(np.linalg.norm(made.vectors, axis=1), 1, atol=1e-5)
    assert np.array_equal(made.vectors[0], made.vectors[2])


def run(code: str, *argv: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *argv], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["attention.self.query.weight", "intermediate.dense.weight"])
def test_overflow_in_softmax_and_gelu(tmp_path: Path, name: str) -> None:
    """Scores so far apart that one key has all of the attention, and inputs of GELU far beyond its curve.

    With every kernel a vector is one, or the weights are named; never NaN.
    """
    sizes = small_model.config(max_position_embeddings=64)
    for power in (3, 8, 20, 36):
        weights = small_model.tensors(sizes)
        weights = {key: x * np.float32(10.0**power) if name in key else x for key, x in weights.items()}
        folder = small_model.save(tmp_path / f"{name}{power}", sizes)
        small_model.write_safetensors(folder / "model.safetensors", weights)
        exact = []
        for kernel in kernels():
            for precision in sorted(serves(kernel)):
                try:
                    vectors = Encoder.open(folder, precision=precision, kernel=kernel).encode(TEXTS)
                except IndexDamaged as error:
                    assert "not finite" in error.message and power > 8
                    continue
                assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4), (kernel, precision)
                if precision == "f32":
                    exact.append(vectors)
        if power == 3:  # beyond, a rounding decides which key is the first
            vectors_too = kernels() != ["portable"]  # else all of them are hidden
            assert len(exact) > vectors_too and all((x * exact[0]).sum(1).min() > 0.99 for x in exact)


@needs_tiles
def test_a_system_that_refuses_the_tiles(folder: Path) -> None:
    """Linux refuses them to a process with a stack for signals that is too small to save them on."""
    code = """
import ctypes, sys
class Stack(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]
room = ctypes.create_string_buffer(4096)
stack = Stack(ctypes.addressof(room), 0, 4096)
libc = ctypes.CDLL(None, use_errno=True)
if libc.sigaltstack(ctypes.byref(stack), None) != 0:
    sys.exit("no such small stack")
from ketrag_fast.errors import IndexDamaged, InputError
from ketrag_fast.kernels.encoder import Encoder, kernels
assert "amx" not in kernels(), kernels()
encoder = Encoder.open(sys.argv[1])
assert encoder.kernel != "amx" and encoder.encode(["w1 w2"]).any()
print(encoder.note)
try:
    Encoder.open(sys.argv[1], kernel="amx")
except InputError as error:
    print(error.message)
"""
    said = run(code, str(folder))
    assert said.count("does not grant this process") == 2, said


@needs_tiles
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_children_use_tiles_after_a_fork(folder: Path, precision: str) -> None:
    encoder = Encoder.open(folder, kernel="amx", precision=precision)
    want = encoder.encode(TEXTS)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, encoder.encode(TEXTS, threads=2).tobytes())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        got = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert got == want.tobytes() == encoder.encode(TEXTS).tobytes()


@needs_tiles
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_signals_in_the_middle_and_many_threads(folder: Path, precision: str) -> None:
    encoder = Encoder.open(folder, kernel="amx", precision=precision)
    texts = TEXTS * 400
    want = encoder.encode(texts, threads=1)
    heard = 0

    def hear(*_: object) -> None:
        nonlocal heard
        heard += 1
        encoder.encode(TEXTS)  # tiles within a signal's handler

    before = signal.signal(signal.SIGALRM, hear)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        for _ in range(20):
            assert np.array_equal(encoder.encode(texts, threads=2), want)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert heard > 0
    made: list[bool] = []
    threads = [
        threading.Thread(target=lambda: made.append(np.array_equal(encoder.encode(texts, threads=2), want)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [True] * 4
