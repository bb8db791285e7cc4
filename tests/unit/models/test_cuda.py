"""sentence-transformers on a GPU: the vectors of the processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.models.embedders.fingerprint import SAMPLE
from ketrag_fast.models.embedders.registry import EmbedderOptions, load

TEXTS = [*SAMPLE, "Mill.", " ".join(["river"] * 600)]


@pytest.fixture(scope="module", autouse=True)
def gpu() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("this machine has no CUDA device")


@pytest.mark.parametrize(("precision", "least"), [("fp32", 0.99999), ("bf16", 0.998), ("auto", 0.998)])
def test_the_vectors_are_those_of_the_processor(
    embedder: Any, minilm: Path, precision: Any, least: float
) -> None:
    loaded = load(
        f"sentence-transformers:{minilm}", EmbedderOptions(precision=precision, device="cuda", offline=True)
    )
    try:
        assert loaded.engine.device.startswith("cuda")
        ours, wanted = loaded.embed(TEXTS), embedder.embed(TEXTS)
    finally:
        loaded.close()
    assert ours.dtype == wanted.dtype and ours.shape == wanted.shape
    assert (ours * wanted).sum(1).min() >= least
    assert np.abs(np.linalg.norm(ours, axis=1) - 1).max() < 1e-5


def test_an_index_of_a_gpu_opens_on_the_processor(minilm: Path, tmp_path: Path) -> None:
    documents = [Document(f"{n}.md", text) for n, text in enumerate(SAMPLE)]
    spec = f"sentence-transformers:{minilm}"
    settings = Settings(embedder=spec, device="cuda", modes="text", precision="fp32")
    Index.build(documents, tmp_path / "index", settings=settings).close()
    with Index.open(tmp_path / "index", settings=Settings(device="cpu")) as index:
        found = index.retrieve(SAMPLE[0], mode="text").passages
    assert found[0].document == "0.md"
