"""Training of a model that quotes answers: its examples, its loss, what is learned, and bad data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import BackendError, ConfigError, InputError, StorageFull
from ketrag_fast.lab.answers import fitting, training
from ketrag_fast.lab.answers.examples import (
    LONGEST,
    NEGATIVES,
    SpanExample,
    find_spans,
    load_examples,
    make_examples,
    save_examples,
)
from ketrag_fast.lab.answers.fitting import Fitting, load_libraries
from ketrag_fast.lab.answers.judging import judge_answers
from ketrag_fast.lab.answers.training import train_answers
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.models.extractive import Extractor
from tests import extractive_model, small_model


def save_dataset(folder: Path, *, questions: int = 16, answers: bool = True) -> Path:
    """Questions whose answer follows the word w1 in one passage; others have other words."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(3)
    corpus, queries, judged = [], [], ["query-id\tcorpus-id\tscore"]
    for at in range(questions):
        name, answer = f"w{10 + at}", f"w{26 + at % 14}"
        words = [f"w{k}" for k in rng.integers(2, 10, 12)]
        corpus.append({"_id": f"a{at}", "title": "", "text": " ".join([name, *words, "w1", answer])})
        other = [f"w{k}" for k in rng.integers(2, 10, 12)]
        corpus.append({"_id": f"b{at}", "title": "", "text": " ".join([name, *other])})
        metadata = {"answers": [answer.upper()]} if answers else {}
        queries.append({"_id": f"q{at}", "text": f"which w1 of {name}", "metadata": metadata})
        judged.append(f"q{at}\ta{at}\t1")
    for file, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        (folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "qrels.tsv").write_text("\n".join(judged) + "\n", "utf-8")
    return folder


def save_base(folder: Path) -> Path:
    """A small random transformer without outputs for answers."""
    sizes = small_model.config()
    small_model.save(folder, sizes)
    tokeniser = small_model.tokeniser()
    tokeniser["post_processor"]["pair"] += [{"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    (folder / "tokenizer.json").write_text(json.dumps(tokeniser))
    return folder


def test_spans_are_whole_words_in_any_case_and_the_longest_counts() -> None:
    assert find_spans("Nansen built the Fram; the FRAM sailed, Framheim did not", ["fram"]) == (
        (17, 21),
        (27, 31),
    )
    assert find_spans("in New York City", ["York", "New  York"]) == ((3, 11),)
    assert find_spans("İ fram", ["fram"]) == ((2, 6),), "a letter that grows in lower case"
    assert find_spans("text", ["", "none"]) == ()
    assert find_spans("about $5.", ["$5"]) == ((6, 8),)


def test_examples_have_the_answer_once_and_passages_without_it(tmp_path: Path) -> None:
    data = load_dataset(save_dataset(tmp_path / "data"))
    with Index.build(list(data.sources), tmp_path / "index", settings=Settings(modes="walk")) as index:
        examples = make_examples(data, index, seed=0)
        assert examples == make_examples(data, index, seed=0)
    assert len(examples) == 16
    for one in examples:
        assert 1 < len(one.texts) <= 1 + NEGATIVES
        assert one.spans[0] and not any(one.spans[1:])
        start, end = one.spans[0][0]
        assert "w1 " + one.texts[0][start:end] in one.texts[0]
    save_examples(tmp_path / "some.jsonl", examples)
    assert load_examples(tmp_path / "some.jsonl") == examples
    (tmp_path / "some.jsonl").write_text('["a", [1')
    assert load_examples(tmp_path / "some.jsonl") is None
    assert load_examples(tmp_path / "absent.jsonl") is None


def test_a_long_passage_is_cut_around_its_answer(tmp_path: Path) -> None:
    data = save_dataset(tmp_path / "data", questions=12)
    rows = [json.loads(line) for line in (data / "corpus.jsonl").read_text("utf-8").splitlines()]
    rows[0]["text"] = "w5 " * 3_000 + rows[0]["text"]
    (data / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    loaded = load_dataset(data)
    with Index.build(list(loaded.sources), tmp_path / "index", settings=Settings(modes="walk")) as index:
        first = make_examples(loaded, index, seed=0)[0]
    (start, end), *_ = first.spans[0]
    assert len(first.texts[0]) == LONGEST and first.texts[0][start:end] == "w26"


def test_the_loss_is_that_of_its_definition(tmp_path: Path) -> None:
    libraries = load_libraries()
    torch = libraries.torch
    one = SpanExample("w1 w20", ("w20 w3 w1 w26", "w20 w4 w5"), (((10, 13),), ()))
    trained = Fitting(libraries, save_base(tmp_path / "base"), [one] * 10, 0)
    trained.model.eval()
    found = float(trained.loss([one]).item())
    inside, margins = [], []
    for text, right in zip(one.texts, (4, None), strict=True):
        inputs = trained.tokens(one.question, text, return_tensors="pt", return_token_type_ids=True)
        with torch.no_grad():
            out = trained.model(**inputs)
        places = [0] + [k for k, kind in enumerate(inputs.sequence_ids(0)) if kind == 1]
        margin = 0.0
        for logits in (out.start_logits[0].double(), out.end_logits[0].double()):
            own = logits[places]
            inside.append(float(torch.logsumexp(own, 0) - own[right or 0]))
            margin += float(torch.logsumexp(own[1:], 0) - own[0])
        margins.append(margin)
    among = np.log(np.exp(margins).sum()) - margins[0]
    assert found == pytest.approx(np.mean(inside) + 0.5 * among, rel=1e-4)


def test_a_planted_answer_is_learned_and_the_same_seed_gives_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "_RATE", 1e-2)
    monkeypatch.setattr(fitting, "_HEAD_RATE", 1e-2)
    base, libraries = save_base(tmp_path / "base"), load_libraries()
    examples = [
        SpanExample(
            f"w{10 + k % 16}", (f"w2 w{5 + k % 4} w1 w{26 + k % 14} w3", "w4 w9 w5"), (((9, 12),), ())
        )
        for k in range(16)
    ]
    for name in ("one", "two"):
        trained = Fitting(libraries, base, examples, 0)
        trained.run(15, tmp_path / f"{name}.checkpoint", lambda _: None)
        trained.save(tmp_path / name)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert weights[0] == weights[1]
    model = Extractor(f"native:{tmp_path / 'one'}")
    right = 0
    for one in examples:
        found = model.spans(one.question, one.texts)
        start, end = one.spans[0][0]
        right += (
            int(found.starts[0]) == start
            and int(found.ends[0]) == end
            and found.margins[0] > max(0.0, found.margins[1])
        )
    assert right >= 14


def test_scores_are_those_of_the_spans_and_of_the_best_sentence(tmp_path: Path) -> None:
    data = load_dataset(save_dataset(tmp_path / "data"))
    extractive_model.choose(tmp_path / "model", "w26")
    with Index.build(list(data.sources), tmp_path / "index", settings=Settings(modes="walk")) as index:
        found = judge_answers(index, data, Extractor(f"native:{tmp_path / 'model'}"))
        nothing = judge_answers(index, replace(data, questions=()), Extractor(f"native:{tmp_path / 'model'}"))
    assert nothing is None
    assert found is not None and found.questions == 16
    sentence, span = found.scores
    assert sentence.exact == 0 < sentence.f1, "a sentence is not an answer, but contains it"
    assert 0 < span.exact <= found.answered / found.questions
    assert found.exact.difference == pytest.approx(span.exact)


def test_the_command_judges_on_another_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, other = save_dataset(tmp_path / "data"), save_dataset(tmp_path / "other", questions=12)
    base, out = save_base(tmp_path / "base"), tmp_path / "out"
    line = ["bench", "train", "answers", str(data), "--judge", str(other), "--base", str(base)]
    assert main([*line, "--out", str(out), "--epochs", "1", "--json", "-q"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["schema"] == "ketrag/answers-training/1" and report["steps"] == 8
    assert [one["dataset"] for one in report["judged"]] == ["other"]
    assert [s["answers"] for s in report["judged"][0]["scores"]] == ["best sentence", "model"]
    with Index.build(str(data), tmp_path / "index", settings=Settings(modes="walk")) as index:
        answer = index.ask("which w1 of w10", llm=f"native:{out}")
    assert answer.model is not None and answer.model["kind"] == "extractive"


def test_an_interrupted_training_resumes_with_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, base = save_dataset(tmp_path / "data"), save_base(tmp_path / "base")
    monkeypatch.setattr(fitting, "SAVE_EVERY", 2)

    def train(name: str) -> Any:
        return train_answers([str(data)], tmp_path / name, settings=Settings(), base=str(base), epochs=2)

    whole = train("whole")
    learn = Fitting._learn
    calls = {"left": 5}

    def stop(self: Fitting, *given: Any) -> float:
        calls["left"] -= 1
        if calls["left"] < 0:
            raise KeyboardInterrupt
        return learn(self, *given)

    monkeypatch.setattr(Fitting, "_learn", stop)
    with pytest.raises(KeyboardInterrupt):
        train("parts")
    calls["left"] = whole.steps - 4
    train("parts")
    assert calls["left"] == 0, "four of the five steps are not repeated"
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]
    (tmp_path / "parts" / training.WORK).mkdir()
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"\xff" * 40)
    one = Fitting(load_libraries(), base, _examples(12), 0)
    one.restore(damaged)
    assert one.step == 0


def _examples(count: int) -> list[SpanExample]:
    return [SpanExample("w1 w2", ("w3 w26", "w4 w5"), (((3, 6),), ())) for _ in range(count)]


def test_bad_data_and_bad_models_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, libraries = save_base(tmp_path / "base"), load_libraries()
    with pytest.raises(InputError, match="1 questions have an answer"):
        Fitting(libraries, base, _examples(1), 0)
    every = [SpanExample("w1", ("w26",), (((0, 3),),)) for _ in range(12)]
    with pytest.raises(InputError, match="without its answer"):
        Fitting(libraries, base, every, 0)
    data = save_dataset(tmp_path / "data")
    silent = save_dataset(tmp_path / "silent", answers=False)
    with pytest.raises(InputError, match="0 questions have an answer"):
        train_answers([str(silent)], tmp_path / "out", settings=Settings(), base=str(base))
    with pytest.raises(ConfigError, match="same name"):
        train_answers([str(data)], tmp_path / "out", settings=Settings(), base=str(base), judged=[str(data)])
    with pytest.raises(BackendError, match="no such model"):
        train_answers([str(data)], tmp_path / "out", settings=Settings(), base="absent-model")
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text('{"model_type": "resnet", "architectures": ["ResNetModel"]}')
    with pytest.raises(BackendError, match="cannot be trained"):
        Fitting(libraries, other, _examples(12), 0)
    assert main(["bench", "train", "answers", str(data), "--epochs", "0", "--out", str(tmp_path / "o")]) == 2
    assert "--epochs" in capsys.readouterr().err


def test_weights_that_are_not_finite_and_a_full_disk_end_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, libraries = save_base(tmp_path / "base"), load_libraries()
    broken = Fitting(libraries, base, _examples(12), 0)
    for parameter in broken.model.parameters():
        parameter.data.fill_(float("nan"))
    with pytest.raises(BackendError, match="not finite"):
        broken.run(1, tmp_path / "c.safetensors", lambda _: None)

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device", str(tmp_path))

    whole = Fitting(libraries, base, _examples(12), 0)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StorageFull):
        whole.run(1, tmp_path / "work" / "c.safetensors", lambda _: None)
    with pytest.raises(StorageFull):
        whole.save(tmp_path / "out")


def test_each_question_is_read_once_an_epoch_next_to_one_of_its_length(tmp_path: Path) -> None:
    examples = [SpanExample("w1", ("w26 " * (1 + k), "w4"), (((0, 3),), ())) for k in range(141)]
    trained = Fitting(load_libraries(), save_base(tmp_path / "base"), examples, 0)
    first, second = trained.order(0), trained.order(1)
    assert sorted(first) == sorted(second) == list(range(141)) and first != second
    assert first == trained.order(0)
    gaps = [abs(a - b) for a, b in zip(first[0:140:2], first[1:140:2], strict=True)]
    assert np.mean(gaps) < 8


def test_a_very_long_question_is_cut(tmp_path: Path) -> None:
    one = SpanExample("w1 " * 2_000, ("w3 w26", "w4 w5"), (((3, 6),), ()))
    trained = Fitting(load_libraries(), save_base(tmp_path / "base"), [one] * 10, 0)
    inputs, is_text, starts, ends = trained._encode([one])
    assert inputs["input_ids"].shape[1] <= int(trained.model.config.max_position_embeddings)
    assert is_text.any(dim=1).all() and starts[0].sum() == ends[0].sum() == 1 and not starts[0, 0]
