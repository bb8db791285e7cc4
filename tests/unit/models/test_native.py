"""`native:` and `local:` as embedders, on small random models: no other package is needed."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.base.installed import install_command
from ketrag_fast.errors import BackendError, BackendMissing, Cancelled, ConfigError, ModelMismatch
from ketrag_fast.kernels.encoder import Encoder
from ketrag_fast.models.embedders import discovery as find
from ketrag_fast.models.embedders.fingerprint import identify, of_folder, require_same
from ketrag_fast.models.embedders.model_folder import look
from ketrag_fast.models.embedders.native import FILE, PrecisionChoice, Verified, cache_folder, keep_open
from ketrag_fast.models.embedders.protocol import least_cosine
from ketrag_fast.models.embedders.query_vectors import QueryEmbedder
from ketrag_fast.models.embedders.registry import EmbedderOptions, fingerprint, load
from ketrag_fast.types import Document
from tests import small_model
from tests.process import environment

EXACT = EmbedderOptions(precision="fp32", offline=True)


@pytest.fixture(autouse=True)
def no_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_model.save(tmp_path / "model", small_model.config(), longest=18)


def words(n: int, seed: int = 0) -> str:
    return " ".join(f"w{i}" for i in np.random.default_rng(seed).integers(0, small_model.WORDS, n))


def other(folder: Path, **changes: Any) -> Path:
    """The folder of an architecture that is not built in."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "deberta-v2"} | changes))
    return folder


def test_vectors_are_the_encoders_and_of_length_one(folder: Path) -> None:
    model = load(f"native:{folder}", EXACT)
    texts = ["w1 w2 w3", words(9), words(60)]
    want = Encoder.open(folder, precision="f32").encode(texts)
    assert np.abs(model.embed(texts) - want).max() < 1e-6
    assert (model.dimension, model.longest) == (24, 18)
    assert (model.engine.name, model.engine.device, model.engine.precision) == ("native", "cpu", "fp32")
    assert model.count(["w1 w2", "", words(60)]) == [2, 0, 60]
    assert (model.tally.texts, model.tally.windowed, model.tally.tokens) == (3, 3, 3 + 9 + 60)


def test_empty_and_odd_texts(folder: Path) -> None:
    model = load(f"native:{folder}", EXACT)
    got = model.embed(["", "w1", " \n\u3000", "\ud800 w1", "nothing known", "w1\0w2"])
    assert np.allclose(np.linalg.norm(got, axis=1), [0, 1, 0, 1, 1, 1], atol=1e-6)
    assert model.tally.empty == 2
    assert np.array_equal(got[3], model.embed(["? w1"])[0])
    assert model.embed([]).shape == (0, 24)


def test_prompts_of_the_roles(folder: Path) -> None:
    path = folder / "config_sentence_transformers.json"
    path.write_text(json.dumps({"prompts": {"query": "w7 w8 ", "document": None, "passage": "w9 "}}))
    model = load(f"native:{folder}", EXACT)
    text = words(5)
    assert np.array_equal(model.embed([text], "query"), model.embed([f"w7 w8 {text}"]))
    assert not np.array_equal(model.embed([text], "query"), model.embed([text]))
    long = words(40)  # 16 tokens a window, two of them the prompt's: 14, 13 and 13
    parts = [" ".join(long.split()[a:b]) for a, b in ((0, 14), (14, 27), (27, 40))]
    mean = (model.embed(parts, "query") * np.array([[14], [13], [13]])).sum(0)
    assert np.abs(model.embed([long], "query")[0] - mean / np.linalg.norm(mean)).max() < 1e-6
    path.write_text(json.dumps({"prompts": {"query": words(16)}}))
    with pytest.raises(BackendError, match="prompt alone fills"):
        load(f"native:{folder}", EXACT).embed(["w1"], "query")


def test_progress_and_cancel(folder: Path) -> None:
    model = load(f"native:{folder}", EXACT)
    texts = [words(15, n) for n in range(2000)]
    seen: list[int] = []
    model.embed(texts, progress=lambda done, _: seen.append(done))
    assert seen[-1] == 2000 * 15 == model.tally.tokens and seen == sorted(seen)
    for stop in ({"progress": lambda done, _: False}, {"cancel": lambda: True}):
        with pytest.raises(Cancelled):
            model.embed(texts, **stop)  # type: ignore[arg-type]


def test_the_fingerprint_is_that_of_the_files_whoever_computes(folder: Path) -> None:
    marks = {fingerprint(f"{kind}:{folder}") for kind in ("native", "local", "sentence-transformers")}
    assert marks == {of_folder(look(folder))}
    model = load(f"native:{folder}", EXACT)
    assert model.fingerprint in marks
    rough = load(f"native:{folder}", EmbedderOptions(precision="bf16"))
    assert rough.engine.precision == "bf16" and 0.999 < require_same(identify(model), rough) < 1
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 17}')
    with pytest.raises(ModelMismatch):
        require_same(identify(model), load(f"native:{folder}", EXACT))


def test_another_architecture_is_refused_by_name_and_left_to_the_library(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other(folder)
    with pytest.raises(BackendError, match=r"deberta-v2.*sentence-transformers:"):
        load(f"native:{folder}", EXACT)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BackendMissing, match=r"deberta-v2.*torch") as caught:
        load(f"local:{folder}", EXACT)
    assert install_command("embed") in str(caught.value.hint)


def test_local_takes_native_and_says_when_it_does_not(folder: Path) -> None:
    assert load(f"local:{folder}", EXACT).engine.name == "native"
    with pytest.raises(BackendMissing, match="not on cuda"):
        load(f"native:{folder}", EmbedderOptions(device="cuda"))
    with pytest.raises(ConfigError, match="precision"):
        load(f"native:{folder}", EmbedderOptions(precision="fp8"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", None),
        ("config.json", b'{"model_type": "bert", "hidden_size": -1}'),
        ("1_Pooling/config.json", b'{"pooling_mode_mean_tokens": false}'),
    ],
)
def test_damaged_folders_are_the_backends_error(folder: Path, name: str, content: bytes | None) -> None:
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(BackendError) as caught:
        load(f"native:{folder}", EXACT)
    assert caught.value.hint


def test_too_large_weights_name_the_model_and_do_not_panic(folder: Path) -> None:
    tensors = small_model.tensors(small_model.config())
    tensors["embeddings.LayerNorm.weight"][:] = 3e38
    small_model.write_safetensors(folder / "model.safetensors", tensors)
    with pytest.raises(BackendError, match="not finite"):
        load(f"native:{folder}", EXACT).embed(["w1 w2"])


def test_a_choice_is_made_once_and_remembered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, str | None]] = []
    real = Encoder.open.__func__  # type: ignore[attr-defined]

    def open_(cls: type[Encoder], path: Path, *, precision: str, kernel: str, threads: int) -> Encoder:
        opened.append((precision, kernel))
        return real(cls, path, precision=precision, kernel=kernel, threads=threads)  # type: ignore[no-any-return]

    monkeypatch.setattr(Encoder, "open", classmethod(open_))
    first = load(f"native:{folder}")
    engine, timings = first.engine, first.timings  # type: ignore[attr-defined]
    del first
    gc.collect()  # while it is open it would be shared
    second = load(f"native:{folder}")
    assert opened[0] == ("auto", "auto") and engine == second.engine
    assert opened[1] == (second._encoder.precision, second._encoder.kernel)  # type: ignore[attr-defined]
    assert second.timings == timings  # type: ignore[attr-defined]
    mark = of_folder(look(folder))
    choice = Verified().get(mark, "auto auto")
    assert choice is not None and least_cosine(choice.precision) <= choice.closeness <= 1
    assert Verified().get(mark, "bf16 auto") is None


def test_a_build_and_a_query_share_one_encoder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is opened once, and embeds the sample once, while someone uses it; changed files are another."""
    opened, embedded = [], []
    real, encode = Encoder.open, Encoder.encode_counted

    def counted(texts: Any, **more: Any) -> Any:
        embedded.append(len(texts))
        return encode(*texts, **more)

    monkeypatch.setattr(Encoder, "open", lambda *args, **more: opened.append(args) or real(*args, **more))
    monkeypatch.setattr(Encoder, "encode_counted", lambda *args, **more: counted(args, **more))
    options = EmbedderOptions(precision="fp32")
    one = load(f"native:{folder}", options)
    with pytest.raises(Cancelled):
        one.sample_vectors(cancel=lambda: True)  # type: ignore[attr-defined]
    stored = identify(one)
    many = len(embedded)
    opened.clear()
    other = load(f"native:{folder}", options)
    assert require_same(stored, other) > 0.999
    assert not opened and len(embedded) == many
    assert one.tally is not other.tally  # what a build counts is its own
    load(f"native:{folder}", EmbedderOptions(precision="int8"))
    assert opened  # another precision is another encoder
    del one, other
    gc.collect()
    opened.clear()
    with keep_open():
        load(f"native:{folder}", options)
        assert len(opened) == 1  # the first was freed with its last embedder
        load(f"native:{folder}", options)
        assert len(opened) == 1
        settings = folder / "config_sentence_transformers.json"
        settings.write_text(json.dumps({"prompts": {"document": "text: "}}), "utf-8")
        changed = load(f"native:{folder}", options)
        assert len(opened) == 2
    assert changed.fingerprint != stored.fingerprint


def test_bf16_that_is_too_far_is_not_used(folder: Path) -> None:
    mark = of_folder(look(folder))
    Verified().put(mark, "bf16 auto", PrecisionChoice("portable", "bf16", 0.5))
    engine = load(f"native:{folder}").engine
    assert engine.closeness is not None and engine.closeness >= least_cosine(engine.precision)
    with pytest.raises(BackendError, match="too far from fp32"):
        load(f"native:{folder}", EmbedderOptions(precision="bf16"))
    Verified().put(mark, "auto auto", PrecisionChoice("portable", "f32", 1.0, (), "bf16 was 0.5 close"))
    model = load(f"native:{folder}")
    assert (model.engine.precision, model.engine.notes) == ("fp32", ("bf16 was 0.5 close",))


def test_queries_are_in_the_precision_of_the_index(folder: Path) -> None:
    spec = f"native:{folder}"
    stored = {
        name: identify(load(spec, EmbedderOptions(precision=name))).to_json() for name in ("int8", "fp32")
    }
    wanted = {("int8", "auto"): {"int8"}, ("fp32", "auto"): {"fp32", "bf16"}, ("fp32", "fp32"): {"fp32"}}
    for (built, asked), allowed in wanted.items():
        embedder = QueryEmbedder(stored[built], Settings(embedder=spec, precision=asked))
        embedder.load()
        loaded = embedder._embedder
        assert loaded is not None and loaded.engine.precision in allowed, (built, asked)
        embedder.close()


def test_float_is_never_int8(folder: Path) -> None:
    mark = of_folder(look(folder))
    Verified().put(mark, "auto auto", PrecisionChoice("portable", "int8", 0.9985))
    assert load(f"native:{folder}").engine.precision == "int8"
    assert load(f"native:{folder}", EmbedderOptions(precision="float")).engine.precision != "int8"


def test_what_was_verified_is_believed_only_as_it_was_written(tmp_path: Path) -> None:
    verified = Verified(tmp_path / "c")
    assert verified.get("a", "auto auto") is None
    choice = PrecisionChoice("portable", "bf16", 0.9995, (("portable", "bf16", 2.5),), "why")
    verified.put("a", "auto auto", choice)
    assert Verified(tmp_path / "c").get("a", "auto auto") == choice
    assert verified.get("b", "auto auto") is None and verified.get("a", "f32 auto") is None
    path = tmp_path / "c" / FILE
    key, entry = next(iter(json.loads(path.read_text()).items()))
    for lie in (None, 0.9995, [], "x", {}, entry[:1], [{**entry[0], "kernel": "mmx"}, entry[1]]):
        path.write_text(json.dumps({key: lie}))
        assert verified.get("a", "auto auto") is None, lie
    path.write_text(json.dumps({key.replace(" [portable", " [other portable"): entry}))
    assert verified.get("a", "auto auto") is None, "another machine's"
    for junk in ("[", "[1]", "[" * 100_000):
        path.write_text(junk)
        assert verified.get("a", "auto auto") is None
    blocked = tmp_path / "file"
    blocked.write_text("")
    Verified(blocked).put("a", "auto auto", choice)
    assert cache_folder().name == "ketrag-fast"


def test_listed_and_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list", str(folder)]) == 0
    text = capsys.readouterr().out
    assert f"native:{folder}  (folder, " in text and "24 dimensions, reads 18 tokens" in text
    assert main(["models", "check", f"local:{folder}", "--precision", "fp32", "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["engine"]["name"] == "native" and checked["batching"] == 1.0
    assert find.find_models([other(folder)])[0].spec == f"sentence-transformers:{folder}"


def test_an_index_without_any_other_package(folder: Path, tmp_path: Path) -> None:
    """Built and asked in a process that can import none of the libraries of models."""
    code = """
import sys
for name in ("torch", "transformers", "sentence_transformers", "tokenizers", "safetensors"):
    sys.modules[name] = None
from ketrag_fast.apps.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
    (tmp_path / "docs").mkdir()
    for n in range(6):
        (tmp_path / "docs" / f"d{n}.txt").write_text(f"w{n} w{n + 1} w{n + 2} w{n}. w{n + 3} w{n}.")

    def ketrag(*argv: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, *argv],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    ketrag("index", "docs", "-i", "made", "--embedder", f"native:{folder}", "--offline")
    assert "d3" in ketrag(
        "retrieve", "-i", "made", "--mode", "text", "--top", "1", "--json", "w3 w4 w5 w3. w6 w3."
    )


def test_an_index_opens_with_the_same_model_elsewhere(folder: Path, tmp_path: Path) -> None:
    documents = [Document(f"d{n}", f"w{n} w{n + 1} w{n + 2}.", "") for n in range(5)]
    Index.build(documents, tmp_path / "i", settings=Settings(embedder=f"native:{folder}")).close()
    moved = folder.rename(tmp_path / "moved")
    with Index.open(tmp_path / "i", settings=Settings(embedder=f"local:{moved}")) as index:
        assert index.retrieve("w2 w3 w4.", mode="text", budget=100).passages[0].document == "d2"
