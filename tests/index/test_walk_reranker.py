"""A reranker of the walk that the command trains: served as a plain oracle computes, resumed, and refused."""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import BackendError, Cancelled, ConfigError, InputError, StorageFull
from ketrag_fast.lab.reranker import training
from ketrag_fast.lab.reranker.training import train_reranker
from tests import cross_encoder, small_model
from tests.oracles import walk_reranker
from tests.unit.lab import reranker_data

QUESTION = "In which town was the captain born?"


@pytest.fixture(scope="module", params=["words", "vectors"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A data set, its index, and the weights that the command trained on it."""
    folder = tmp_path_factory.mktemp(request.param)
    data = reranker_data.save(folder / "ships")
    embedder = "builtin"
    if request.param == "vectors":
        embedder = f"native:{small_model.save(folder / 'model', small_model.config())}"
    line = ["bench", "train", "reranker", str(data), "--out", str(folder / "weights"), "--cut", "12", "-q"]
    assert main([*line, "--embedder", embedder]) == 0
    settings = Settings(modes="walk,bm25", embedder=embedder)
    Index.build(str(data), folder / "index", settings=settings).close()
    return {"folder": folder, "data": data, "vectors": request.param == "vectors"}


WORDS = pytest.mark.parametrize("trained", ["words"], indirect=True)
"""Of tests that vectors change nothing about."""


def opened(trained: dict[str, Any], **settings: Any) -> Index:
    spec = f"walk-features:{trained['folder'] / 'weights'}"
    return Index.open(trained["folder"] / "index", settings=Settings(**{"rerank": spec} | settings))


def test_serving_equals_the_plain_oracle(trained: dict[str, Any]) -> None:
    lines = (trained["data"] / "queries.jsonl").read_text("utf-8").splitlines()[:6]
    changed = 0
    for question in [json.loads(line)["text"] for line in lines]:
        with opened(trained, rerank=None) as index:
            plain = index.retrieve(question, mode="walk", budget=100_000, explain=True).passages
            state = index._opened
            vector = state.questions.vectors([question])[0] if trained["vectors"] else None
            request = training_request(index)
            found = state.searcher.candidates(request, question, 40, vector=vector)
            collection = walk_reranker.Collection(state.generation.stages)
            query = None if vector is None else [float(x) for x in vector]
            rows = walk_reranker.features(collection, found, query)
        units, partners, terms = found
        assert units.tolist() == [p.unit for p in plain[: len(units)]]
        assert terms[:, 0].tolist() == [p.score for p in plain[: len(units)]]
        for passage, partner in zip(plain, partners, strict=False):
            pairs = [why["partner"] for why in passage.why if why.get("partner")]
            assert all(one["unit"] == partner for one in pairs)
        want = walk_reranker.reorder(trained["folder"] / "weights", rows, terms[:, 0].tolist())
        order = np.argsort(-np.asarray(want), kind="stable")
        with opened(trained) as index:
            got = index.retrieve(question, mode="walk", budget=100_000).passages
            many = index.retrieve_many([question, QUESTION], mode="walk", budgets=[300, 100_000], threads=2)
        assert [p.unit for p in got] == [
            *units[order].tolist(),
            *(p.unit for p in plain[len(units) :]),
        ]
        assert [p.score for p in got[: len(units)]] == pytest.approx([want[k] for k in order], abs=1e-6)
        assert [p.unit for p in many[0][1].passages] == [p.unit for p in got]
        assert [p.unit for p in many[0][0].passages] == [p.unit for p in got][: len(many[0][0].passages)]
        changed += [p.unit for p in got] != [p.unit for p in plain]
    assert changed, "the weights change some order"


def training_request(index: Index) -> Any:
    from ketrag_fast.query.plan import plan_query
    from ketrag_fast.query.query import Query

    return plan_query(index._opened, index.path, Query(QUESTION, mode="walk")).request()


def test_only_named_leaves_other_queries_in_the_order_of_the_walk(
    trained: dict[str, Any], tmp_path: Path
) -> None:
    weights = trained["folder"] / "weights"
    model = json.loads((weights / "reranker.json").read_text("utf-8"))
    assert model["only_named"] is False
    (tmp_path / "reranker.json").write_text(json.dumps(model | {"only_named": True}))
    lines = (trained["data"] / "queries.jsonl").read_text("utf-8").splitlines()[:6]
    naming = [json.loads(line)["text"] for line in lines]

    def units(question: str, **settings: Any) -> list[int]:
        with opened(trained, **settings) as index:
            return [p.unit for p in index.retrieve(question, mode="walk", budget=100_000).passages]

    gated = {"rerank": f"walk-features:{tmp_path}"}
    assert units(QUESTION, **gated) == units(QUESTION, rerank=None) == units(QUESTION, rerank="none")
    assert [units(text, **gated) for text in naming] == [units(text) for text in naming]
    (tmp_path / "reranker.json").write_text(json.dumps(model | {"only_named": 1}))
    with opened(trained, **gated) as index, pytest.raises(BackendError, match="only_named"):
        index.retrieve(QUESTION, mode="walk")


def test_other_modes_other_vectors_and_no_match(trained: dict[str, Any], tmp_path: Path) -> None:
    with opened(trained) as index:
        with pytest.raises(ConfigError, match="reorders mode walk, not mode bm25"):
            index.retrieve(QUESTION, mode="bm25")
        if not trained["vectors"]:
            assert index.retrieve("qqq", mode="walk").reason == "no_match"
        only = index.retrieve(QUESTION, mode="walk", top=3).passages
        assert len(only) == 3
        words = QUESTION.split()
        long = " ".join(words * (2_000 // len(words) + 1))
        assert index.retrieve(long, mode="walk").passages, "a question of 2,000 words"
    model = json.loads((trained["folder"] / "weights" / "reranker.json").read_text("utf-8"))
    model["vectors"] = not model["vectors"]
    (tmp_path / "reranker.json").write_text(json.dumps(model))
    with (
        opened(trained, rerank=f"walk-features:{tmp_path}") as index,
        pytest.raises(ConfigError, match="an embedding model"),
    ):
        index.retrieve(QUESTION, mode="walk")


def test_damaged_weights_are_refused(trained: dict[str, Any], tmp_path: Path) -> None:
    good = json.loads((trained["folder"] / "weights" / "reranker.json").read_text("utf-8"))
    names = good["features"]
    bad: dict[str, tuple[Any, str]] = {
        "nan": (good | {"bias": [float("nan"), *good["bias"][1:]]}, "not finite"),
        "order": (good | {"features": [names[1], names[0], *names[2:]]}, "another order"),
        "schema": (good | {"schema": "other/1"}, "schema"),
        "shape": (good | {"output": good["output"][1:]}, "shape"),
        "strength": (good | {"strength": 7}, "strength"),
        "missing": ({"schema": good["schema"], "features": names}, "cannot be loaded"),
        "text": ("no object", "cannot be loaded"),
    }
    for name, (data, message) in bad.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "reranker.json").write_text(json.dumps(data))
        with (
            opened(trained, rerank=f"walk-features:{tmp_path / name}") as index,
            pytest.raises(BackendError, match=message),
        ):
            index.retrieve(QUESTION, mode="walk")
    other = cross_encoder.save(tmp_path / "cross")
    for spec, error in (
        (f"walk-features:{other}", BackendError),
        (f"walk-features:{tmp_path / 'absent'}", BackendError),
        ("walk-features:", ConfigError),
        (f"native:{trained['folder'] / 'weights'}", BackendError),
    ):
        with opened(trained, rerank=spec) as index, pytest.raises(error):
            index.retrieve(QUESTION, mode="walk")


@WORDS
def test_an_interrupted_training_resumes_with_the_same_weights(
    trained: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = reranker_data.save(tmp_path / "more", seed=5)
    paths = [str(trained["data"]), str(second)]
    settings = Settings(embedder="builtin")

    def stop(*_: Any, **__: Any) -> Any:
        raise Cancelled("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(training, "cross_validate", stop)
        with pytest.raises(Cancelled):
            train_reranker(paths, tmp_path / "out", settings=settings, probes=5)
    assert not (tmp_path / "out" / "reranker.json").exists()
    told: list[str] = []
    resumed = train_reranker(paths, tmp_path / "out", settings=settings, probes=5, tell=told.append)
    assert [line for line in told if "finished before" in line] == [
        "ships: finished before",
        "more: finished before",
    ]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["reranker.json"]
    train_reranker(paths, tmp_path / "whole", settings=settings, probes=5)
    whole = (tmp_path / "whole" / "reranker.json").read_bytes()
    assert (tmp_path / "out" / "reranker.json").read_bytes() == whole
    assert resumed.questions == 48
    assert {row.dataset for row in resumed.validation.rows} == {"ships", "more"}


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Files cannot grow beyond a size: the system then reports what a full disk reports."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@WORDS
def test_a_full_disk_and_data_that_teach_nothing(trained: dict[str, Any], tmp_path: Path) -> None:
    out, settings = tmp_path / "out", Settings(embedder="builtin")
    result = train_reranker([str(trained["data"])], out, settings=settings, probes=5)
    before = (out / "reranker.json").read_bytes()
    with largest_file(1000), pytest.raises(StorageFull):
        result.model.save(out)
    assert (out / "reranker.json").read_bytes() == before, "the old weights stay"
    one = reranker_data.save(tmp_path / "one", questions=1)
    with pytest.raises(InputError, match="1 questions"):
        train_reranker([str(one)], tmp_path / "x", settings=settings)
    unjudged = reranker_data.save(tmp_path / "unjudged")
    (unjudged / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n")
    with pytest.raises(InputError, match="0 questions"):
        train_reranker([str(unjudged)], tmp_path / "x", settings=settings)
    few = reranker_data.save(tmp_path / "few", questions=4)
    with pytest.raises(InputError, match="at least 10"):
        train_reranker([str(few)], tmp_path / "x", settings=settings, probes=0)
    with pytest.raises(ConfigError, match="same name"):
        train_reranker([str(few), str(few)], tmp_path / "x", settings=settings)


@WORDS
def test_the_command_reports_the_cross_validation(
    trained: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [
        "bench",
        "train",
        "reranker",
        str(trained["data"]),
        "--out",
        str(tmp_path / "w"),
        "--cut",
        "12",
        "-q",
    ]
    assert main([*line, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["schema"] == "ketrag/reranker-training/1"
    assert (report["questions"], report["vectors"]) == (24, False)
    assert {row["measure"] for row in report["rows"]} >= {"recall@5", "all gold in 5", "all gold in 10"}
    assert main(line) == 0
    assert "cross-validated, strength" in capsys.readouterr().out
    assert main([*line, "--cut", "x"]) == 2
