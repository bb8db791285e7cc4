"""Answers quoted by an extractive model: exact spans, the threshold, bad models and bad input."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import BackendError, ConfigError, DeadlineExceeded
from ketrag_fast.models.cross_encoders import Extractor, SpanScores
from ketrag_fast.query.answer.prompt import NOTHING
from tests import cross_encoder, extractive_model, small_model

QUESTION = "w1 w2"
TEXTS = {
    "first": "w1 w2 w3 w4 🙂 w5 and more\n of w6",
    "second": "w1 ünbekannt 🙂🙂  w7 , then w2 w9",
    "third": "w1 w2 w8 w8 w8",
}


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`index`, and the folder `model`, which answers w7."""
    folder = tmp_path_factory.mktemp("extraction")
    documents = [Document(name, text, name.title()) for name, text in TEXTS.items()]
    Index.build(documents, folder / "index", settings=Settings(threads=1)).close()
    extractive_model.choose(folder / "model", "w7")
    return folder


def spec(where: Path) -> str:
    return f"native:{where / 'model'}"


def test_the_answer_is_an_exact_span_of_a_document(where: Path) -> None:
    pieces: list[str] = []
    with Index.open(where / "index", settings=Settings(answer_llm=spec(where))) as index:
        assert index.inspect.has_answer_llm
        found = index.ask(QUESTION, on_text=pieces.append)
        again = index.ask(QUESTION, llm=spec(where))
    (citation,) = found.citations
    assert (citation.passage.document, found.plain, found.is_quoted) == ("second", "w7", True)
    assert found.text == f"“w7” [{citation.number}]" == "".join(pieces) == again.text
    (quote,) = found.quotes
    assert TEXTS["second"][quote.start : quote.end] == quote.text == "w7"
    assert quote.score is not None and quote.score > 0
    assert (found.reason, found.finish, found.warnings) == (None, "stop", ())
    assert found.model is not None and found.model["kind"] == "extractive"
    assert found.model == again.model and len(found.model["fingerprint"]) == 64
    told = found.to_json()
    assert told["quotes"] == [quote.to_json()] and told["quotes"][0]["score"] == quote.score


def shift_leads(monkeypatch: pytest.MonkeyPatch, more: float) -> None:
    """Let each span lead "no answer" by `more` logits than its model says."""
    own = SpanScores.margins.fget
    assert own is not None
    monkeypatch.setattr(SpanScores, "margins", property(lambda scores: own(scores) + more))


def test_a_span_that_does_not_lead_no_answer_is_no_answer(
    where: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(answer_llm=spec(where))
    with monkeypatch.context() as patch, Index.open(where / "index", settings=settings) as index:
        shift_leads(patch, -50.0)
        found = index.ask(QUESTION)
        assert (found.text, found.plain, found.reason) == (NOTHING, NOTHING, "no_answer")
        assert not found.citations and not found.is_quoted
        assert found.quotes and all(quote.score is None for quote in found.quotes)
    with monkeypatch.context() as patch, Index.open(where / "index", settings=settings) as index:
        shift_leads(patch, 50.0)
        found = index.ask(QUESTION)
        assert found.plain == "w7" and len(found.quotes) == len(found.context.passages) == 3
        scores = [quote.score for quote in found.quotes]
        assert scores == sorted(scores, key=lambda score: -(score or 0.0))
        for quote in found.quotes:
            assert TEXTS[quote.document][quote.start : quote.end] == quote.text
    absent = extractive_model.choose(tmp_path / "absent", "w30")
    with Index.open(where / "index") as index:
        assert index.ask(QUESTION, llm=f"native:{absent}").reason == "no_answer"
        assert index.ask("zzz", mode="bm25", llm=f"native:{absent}").reason == "no_match"


def test_a_part_of_a_word_becomes_the_word(tmp_path: Path) -> None:
    folder = extractive_model.choose(tmp_path, "w7")
    tokeniser = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokeniser["model"]["vocab"]
    rows = {f"##{word}" if word == "w7" else word: at for word, at in vocabulary.items()}
    tokeniser["model"] = {
        "type": "WordPiece",
        "vocab": rows,
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokeniser))
    model = Extractor(f"native:{folder}")
    text = "w3 w4w7 w5"
    found = model.spans("w1", [text])
    assert text[int(found.starts[0]) : int(found.ends[0])] == "w4w7"


def test_long_passages_and_long_questions(where: Path, tmp_path: Path) -> None:
    model = Extractor(spec(where))
    long = " ".join(["w1 w2 w3 w4"] * 2_500)
    at = len(long) - 5
    text = f"{long[:at]} w7 {long[at:]}"
    before = time.process_time()
    found = model.spans(QUESTION, [text, long, "", "w7", "\0 \n"])
    assert time.process_time() - before < 60
    assert text[int(found.starts[0]) : int(found.ends[0])] == "w7"
    margins = found.margins
    assert margins[0] > 0 > margins[1] and margins[2] == -np.inf and margins[3] > 0
    assert not found.is_cut
    found = model.spans("w1 " * 2_000, [text])
    assert found.is_cut and text[int(found.starts[0]) : int(found.ends[0])] == "w7"
    assert model.spans("", ["w3 w7"]).starts.tolist() == [3]
    assert model.spans("\ud800", ["\ud800 w7"]).starts.tolist() == [2]
    assert model.spans("w1", []).scores.shape == (0,)
    with pytest.raises(DeadlineExceeded):
        model.spans(QUESTION, [text] * 50, seconds=0.0)
    with Index.open(where / "index") as index:
        asked = index.ask("w1 " * 2_000, llm=spec(where))
        assert asked.plain == "w7" and "beginning of the question" in asked.warnings[-1]
        with pytest.raises(DeadlineExceeded):
            index.ask(QUESTION, llm=spec(where), deadline=0.0)


def test_what_is_no_extractive_model_is_refused(where: Path, tmp_path: Path) -> None:
    def refuse(folder: Path, reason: str) -> None:
        with (
            Index.open(where / "index", settings=Settings(answer_llm=f"native:{folder}")) as index,
            pytest.raises(BackendError, match=reason) as caught,
        ):
            index.ask(QUESTION)
        assert caught.value.hint

    refuse(tmp_path / "absent", "no such folder")
    refuse(cross_encoder.save(tmp_path / "pairs"), "qa_outputs")
    refuse(extractive_model.save(tmp_path / "three", labels=3), "qa_outputs.weight has shape")
    other = extractive_model.save(tmp_path / "other")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"model_type": "deberta-v2"}))
    refuse(other, "deberta-v2")
    (other / "config.json").write_text(json.dumps(config | {"id2label": {"0": "END", "1": "START"}}))
    refuse(other, "labels in the order end, start")
    (other / "config.json").write_text(json.dumps(config | {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}))
    Extractor(f"native:{other}")
    small = extractive_model.save(tmp_path / "vocabulary")
    (small / "config.json").write_text(json.dumps(config | {"vocab_size": 20}))
    refuse(small, "has no row in the model's table of 20")
    large = extractive_model.save(tmp_path / "large", vocab_size=500)
    refuse(large, "belongs to another model")
    short = extractive_model.save(tmp_path / "short", max_position_embeddings=5)
    refuse(short, "no room for a question and a text")
    damaged = extractive_model.save(tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes((damaged / "model.safetensors").read_bytes()[:2000])
    refuse(damaged, "cannot be loaded")


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    for name in ("qa_outputs.weight", "bert.embeddings.LayerNorm.weight"):
        for value, reason in ((np.nan, "NaN or an infinity"), (3e38, "not finite")):
            folder = extractive_model.save(tmp_path / f"{name}{value}")
            sizes = small_model.config()
            weights = {f"bert.{key}": rows for key, rows in small_model.tensors(sizes).items()}
            weights["qa_outputs.weight"] = np.ones((2, sizes["hidden_size"]))
            weights["qa_outputs.bias"] = np.zeros(2)
            weights[name] = np.full_like(weights[name], value)
            small_model.write_safetensors(folder / "model.safetensors", weights)
            if name == "qa_outputs.weight" and value > 0:
                continue  # the sum of finite numbers in double precision
            with pytest.raises(BackendError, match=reason):
                Extractor(f"native:{folder}").spans("w1", ["w2 w3"])


def test_forms_that_a_span_cannot_have(where: Path) -> None:
    with Index.open(where / "index") as index:
        for form in ({"kind": "yes-no"}, {"options": ["a", "b"]}):
            with pytest.raises(ConfigError, match="quotes a span"):
                index.ask(QUESTION, llm=spec(where), **form)  # type: ignore[arg-type]


def test_the_command_says_that_it_quotes(
    where: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["ask", "-i", str(where / "index"), "--answer-llm", spec(where), QUESTION]
    assert main(line) == 0
    told = capsys.readouterr()
    assert told.out.startswith("“w7” [") and "second" in told.out
    assert "quotes from the passage" in told.err
    assert main([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["quotes"][0]["text"] == "w7"
    shift_leads(monkeypatch, -100.0)
    assert main(line) == 0
    told = capsys.readouterr()
    assert told.out.startswith(NOTHING) and "finds no answer" in told.err
