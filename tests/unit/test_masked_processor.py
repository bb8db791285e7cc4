"""Processors (or hypervisors) without some instructions: what is left serves, and gives the same results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import _core
from ketrag_fast.kernels.encoder import kernels as encoder_kernels
from tests import cross_encoder, extractive_model, small_model
from tests.process import environment
from tests.support import all_kernels as kernels
from tests.support.processors import CPU_VARIABLE, hidden

_CODE = """
import hashlib, json, os, sys
import numpy as np
from ketrag_fast import _core
from tests.oracles import vectors as oracle
from tests.support import all_kernels as kernels
from ketrag_fast.models.cross_encoders import Extractor
from ketrag_fast.models.cross_encoders import CrossEncoder
from ketrag_fast.kernels.encoder import KERNEL_VARIABLE, Encoder, kernels as encoder_kernels
rng = np.random.default_rng(5)
texts = [" ".join(f"w{(i * 7 + n) % 40}" for i in range(n)) for n in (1, 5, 17, 40)]
def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in arrays)).hexdigest()
def csr(rows, columns, size):
    rows = [np.unique(rng.integers(0, columns, size)) for _ in range(rows)]
    return np.cumsum([0, *map(len, rows)]).astype(np.uint64), np.concatenate(rows).astype(np.uint32)
encoder, model, quoting, same = sys.argv[1], "native:" + sys.argv[2], "native:" + sys.argv[3], {}

# Kernels that promise the same bytes with any instructions.
vectors, graph = oracle.normalise(rng.standard_normal((300, 40))), csr(200, 90, 12)
repeats = np.ones(len(graph[1]), np.uint32)
codes = kernels.quantise(vectors)
same["codes"] = digest(*codes)
same["scan"] = digest(*kernels.top_k(vectors, vectors[:9], 7))
same["scan of codes"] = digest(*kernels.top_k(vectors, vectors[:9], 7, codes=codes))
same["neighbours"] = digest(*kernels.cosine_knn(vectors, 5))
same["clusters"] = digest(*(np.asarray(x) for x in kernels.kmeans(vectors, 9)))
basis = kernels.fit_embedder(graph, repeats, 90, dims=20)
same["space"] = digest(basis, kernels.embed_rows(basis, graph, repeats))
same["keywords"] = digest(kernels.keyword_means(csr(60, 300, 8), vectors))
found = kernels.concept_graph(graph, vectors[:90], theta_co=1, theta_sem=0.1)
same["concepts"] = digest(*found.edges, found.shared, found.cosines, found.weights)
same["cooccurrence"] = digest(*kernels.cooccurrence_knn(*graph, 90, 4))
same["int8"] = digest(Encoder.open(encoder, precision="int8").encode(texts))
emulated = "amx" if "amx" in encoder_kernels() else "portable"
same["bf16"] = digest(Encoder.open(encoder, precision="bf16", kernel=emulated).encode(texts))

# The same spans with any instructions; their scores differ in the last bits.
made = Extractor(quoting)
found = made.spans("w1 w2 w3", texts)
same["spans"] = [found.starts.tolist(), found.ends.tolist(), made.precision]

# Models, with the kernel that auto takes for each precision.
took, near = {}, {}
for precision in ("auto", "f32", "bf16", "int8"):
    made = Encoder.open(encoder, precision=precision)
    took["encoder", precision] = made.kernel, made.precision, [t[:2] for t in made.timings]
    near["encoder", precision] = made.encode(texts).tolist()
for precision in ("auto", "fp32", "bf16", "int8"):
    made = CrossEncoder(model, precision=precision)
    took["pairs", precision] = made.kernel, made.precision, [t[:2] for t in made.timings]
    near["pairs", precision] = made.scores("w1 w2 w3", texts).tolist()
for kernel in encoder_kernels():
    os.environ[KERNEL_VARIABLE] = kernel
    made = CrossEncoder(model)
    took["pairs by", kernel] = made.kernel, made.precision, [t[:2] for t in made.timings]
    near["pairs by", kernel] = made.scores("w1 w2 w3", texts).tolist()
quoted = found.scores.tolist()
rows = lambda table: [[*key, value] for key, value in table.items()]
print(json.dumps({"encoder": encoder_kernels(), "levels": _core.simd_levels(), "same": same,
                  "cooccurrence": kernels.cooccurrence_kernels(), "took": rows(took), "near": rows(near),
                  "quoted": quoted}))
"""

BYTES_ALONE = ("avx-vnni", "avx512-vnni")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """An encoder, a cross-encoder, and a model that quotes."""
    where = tmp_path_factory.mktemp("masked")
    sizes = small_model.config(max_position_embeddings=64)
    return (
        small_model.save(where / "model", sizes),
        cross_encoder.save(where / "pairs", max_position_embeddings=64),
        extractive_model.save(where / "quoting", max_position_embeddings=64),
    )


@pytest.fixture(scope="module")
def whole(folders: tuple[Path, ...]) -> dict[str, Any]:
    return found(folders, "")


def found(folders: tuple[Path, ...], names: str) -> dict[str, Any]:
    """Return what a process without these instructions runs and computes."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE, *map(str, folders)],
        env=environment(KETRAG_ENCODER_KERNEL="auto", **hidden(names)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    for table in ("took", "near"):
        made[table] = {(kind, name): value for kind, name, value in made[table]}
    return made


def test_nothing_more_is_hidden_by_default(whole: dict[str, Any]) -> None:
    assert (whole["encoder"], whole["levels"]) == (encoder_kernels(), _core.simd_levels())
    assert whole["cooccurrence"] == kernels.cooccurrence_kernels()


CASES = {
    "amx": ("amx",),
    "avx512bf16,avx512vnni": ("amx", "avx512-bf16", "avx512-vnni"),
    "avx512": ("amx", "avx512"),
    " AVX512 ,avxVNNI, ": ("amx", "avx512", "avx-vnni", "avx2-vnni"),
    "fma": ("avx2", "avx512-vnni", "avx-vnni"),
    "avx": ("amx", "avx"),
}
"""What is hidden, and what the names of the kernels that need it begin with."""


@pytest.mark.parametrize("names", CASES)
def test_what_is_hidden_is_not_used(folders: tuple[Path, ...], whole: dict[str, Any], names: str) -> None:
    made, gone = found(folders, names), CASES[names]
    if names == "fma":  # the encoder's AVX-512 needs no FMA of AVX2; the scan's does
        assert "avx2" not in made["encoder"] and made["levels"] == ["portable"]
    else:
        assert made["encoder"] == [name for name in whole["encoder"] if not name.startswith(gone)]
        assert not any(name.startswith(gone) for name in made["levels"])
        assert not any(name.startswith(gone) for name in made["cooccurrence"])
    assert made["same"] == whole["same"]
    check_choices(made)
    check_models(made, whole)


def test_every_choice_with_nothing_more_hidden(whole: dict[str, Any]) -> None:
    check_choices(whole)
    check_models(whole, whole)


def check_choices(made: dict[str, Any]) -> None:
    """Every precision has a kernel, of those that are there and compute in it."""
    here = made["encoder"]
    for (kind, wanted), (kernel, precision, timed) in made["took"].items():
        assert kernel in here and {name for name, _ in timed} <= set(here), (kind, wanted)
        if kind == "encoder" and wanted != "auto":
            assert precision == wanted
        elif kind == "pairs":
            assert precision == {"fp32": "f32", "auto": precision}.get(wanted, wanted)
            assert wanted != "auto" or precision != "int8"
            if wanted != "bf16":  # its bits are those of no other kernel
                assert "avx512-bf16" not in (kernel, *(name for name, _ in timed))
        elif kind == "pairs by" and wanted not in BYTES_ALONE:
            assert kernel == wanted
    # bf16 is computed by the hardware that has it, by any other kernel otherwise.
    hardware = [name for name in ("amx", "avx512-bf16") if name in here]
    for kind in ("encoder", "pairs"):
        assert made["took"][kind, "bf16"][0] in (hardware or here)
    if "amx" in here:
        assert made["took"]["pairs", "bf16"][0] == "amx"


def check_models(made: dict[str, Any], whole: dict[str, Any]) -> None:
    """Vectors and scores of each precision stay near those of f32 with all instructions."""
    exact = np.array(whole["near"]["encoder", "f32"])
    for precision, least in (("f32", 1 - 1e-6), ("bf16", 0.9995), ("int8", 0.99), ("auto", 0.99)):
        vectors = np.array(made["near"]["encoder", precision])
        assert (vectors * exact).sum(axis=1).min() > least, precision
    assert np.allclose(made["quoted"], whole["quoted"], atol=1e-4)
    scores = np.array(whole["near"]["pairs", "fp32"])
    for (kind, name), values in made["near"].items():
        if kind == "encoder":
            continue
        apart = np.abs(np.array(values) - scores).max() / np.ptp(scores)
        limit = 1e-5 if made["took"][kind, name][1] == "f32" else 0.1
        assert apart < limit, (kind, name, apart)


def test_the_variable_of_this_process_stays_hidden() -> None:
    """A suite that runs without some instructions runs every process without them."""
    code = "from ketrag_fast.kernels.encoder import kernels; print(kernels())"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(encoder_kernels())
    assert hidden("amx")[CPU_VARIABLE] == ",".join(filter(None, (os.environ.get(CPU_VARIABLE), "amx")))
