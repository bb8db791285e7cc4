"""Processors (or hypervisors) without some instructions: what is left serves, and gives the same results."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import _core
from ketrag_fast.kernels.encoder import kernels
from tests import small_model
from tests.process import environment

_CODE = """
import hashlib, json, sys
import numpy as np
from ketrag_fast import _core, kernels
from ketrag_fast.kernels.encoder import Encoder, kernels as encoder_kernels
rng = np.random.default_rng(5)
texts = [" ".join(f"w{(i * 7 + n) % 40}" for i in range(n)) for n in (1, 5, 17, 40)]
def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in arrays)).hexdigest()
vectors = kernels.normalise(rng.standard_normal((300, 40)))
rows = [np.unique(rng.integers(0, 90, 12)) for _ in range(200)]
ends = np.cumsum([0, *map(len, rows)])
graph = (ends, np.concatenate(rows))
basis = kernels.fit_embedder(graph, np.ones(len(graph[1]), np.uint32), 90, dims=20)
auto = Encoder.open(sys.argv[1])
same = {p: digest(Encoder.open(sys.argv[1], precision=p).encode(texts)) for p in ("int8",)}
kernel = "portable" if "amx" not in encoder_kernels() else "amx"
same["bf16"] = digest(Encoder.open(sys.argv[1], precision="bf16", kernel=kernel).encode(texts))
same["scan"] = digest(*kernels.top_k(vectors, vectors[:9], 7))
same["neighbours"] = digest(*kernels.cosine_knn(vectors, 5))
same["space"] = digest(basis, kernels.embed_rows(basis, graph, np.ones(len(graph[1]), np.uint32)))
same["cooccurrence"] = digest(*_core.cooccurrence_knn(
    np.asarray(graph[0], np.uint64), np.asarray(graph[1], np.uint32), 90, 4))
print(json.dumps({"encoder": encoder_kernels(), "levels": _core.simd_levels(), "took": auto.kernel,
                  "timed": [t[0] for t in auto.timings], "same": same}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model.save(
        tmp_path_factory.mktemp("masked") / "model", small_model.config(max_position_embeddings=64)
    )


@pytest.fixture(scope="module")
def whole(folder: Path) -> dict[str, Any]:
    return found(folder, "")


def found(folder: Path, hidden: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", _CODE, str(folder)],
        env=environment(KETRAG_CPU_WITHOUT=hidden, KETRAG_ENCODER_KERNEL="auto"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def test_nothing_is_hidden_by_default(whole: dict[str, Any]) -> None:
    assert (whole["encoder"], whole["levels"]) == (kernels(), _core.simd_levels())


@pytest.mark.parametrize(
    ("hidden", "gone"),
    [
        ("amx", ("amx",)),
        ("avx512bf16", ("amx", "avx512-bf16")),
        ("avx512", ("amx", "avx512")),
        ("avx512, avxvnni ,AMX", ("amx", "avx512", "avx-vnni", "avx2-vnni")),
        ("fma", ("avx2", "avx512-vnni", "avx-vnni")),
        ("avx", ("amx", "avx")),
    ],
)
def test_what_is_hidden_is_not_used(
    folder: Path, whole: dict[str, Any], hidden: str, gone: tuple[str, ...]
) -> None:
    made = found(folder, hidden)
    if hidden == "fma":  # the encoder's AVX-512 needs no FMA of AVX2; the scan's does
        assert "avx2" not in made["encoder"] and made["levels"] == ["portable"]
    else:
        left = [name for name in whole["encoder"] if not name.startswith(gone)]
        assert made["encoder"] == left
        assert not any(name.startswith(gone) for name in made["levels"])
    assert made["took"] in made["encoder"] and set(made["timed"]) <= set(made["encoder"])
    assert made["same"] == whole["same"]
