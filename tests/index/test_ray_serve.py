"""Search on a real Ray Serve: answers of a local index, replicas that are replaced, missing indexes."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import BackendMissing, ConfigError, IndexMissing, InputError
from ketrag_fast.index.indexes import Indexes
from ketrag_fast.index.on_ray.serving import SearchReplica
from ketrag_fast.ray import search_application
from ketrag_fast.storage.layout import Layout
from tests.process import environment
from tests.support.merging import build, document
from tests.support.parts import part
from tests.support.ray_cluster import RayCluster, ray_cluster

QUESTIONS = ("Who met Nansen by the river?", "Frank Wild and Tom Crean in winter", "harbour library D3")
MODES = ("bm25", "walk", "text", "fused")
FIELDS: tuple[dict[str, Any], ...] = (
    {},
    {"filter": "year>=1920"},
    {"allow": "year>=1915"},
    {"budget": 90, "explain": True},
    {"top": 2, "deadline": 60.0},
)

_PRELUDE = """
import json, os, signal, sys, time
from ketrag_fast import Index, Settings
from ketrag_fast.errors import KetragError
from ketrag_fast.ray import search_application
import ray
from ray import serve
from ray._common.usage import usage_lib

given = json.loads(sys.argv[1])
ray.init(log_to_driver=False, configure_logging=False)
serve.start(proxy_location="Disabled")

def run(names, **more):
    return serve.run(search_application(names, **more), name="search", route_prefix=None)

def ask(handle, question, **fields):
    found = handle.retrieve.remote(question, **fields).result(timeout_s=60)
    return {key: found[key] for key in found if key not in ("timings_ms", "generation")}

def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)

try:
    result = main(given)
finally:
    serve.shutdown()
    ray.shutdown()
print("RESULT" + json.dumps(result))
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    part("ray.serve", "checks")
    with ray_cluster() as found:
        yield found


def drive(cluster: RayCluster, body: str, **given: Any) -> Any:
    """The result of `main(given)` in a process that uses the cluster."""
    code = body + _PRELUDE
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(given)],
        env=environment(**cluster.variables),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    assert len(lines) == 1, done.stderr[-4000:] + done.stdout[-1000:]
    return json.loads(lines[0].removeprefix("RESULT"))


def answer(index: Index, question: str, **fields: Any) -> dict[str, Any]:
    data = index.retrieve(question, **fields).to_json()
    return {key: data[key] for key in data if key not in ("timings_ms", "generation")}


ANSWERS = """
def main(given):
    handle = run(given["name"])
    found = [
        ask(handle, question, mode=mode, **fields)
        for fields in given["fields"] for mode in given["modes"] for question in given["questions"]
    ]
    many = handle.retrieve_many.remote(given["questions"], mode="walk").result(timeout_s=60)
    errors = []
    for wrong in ({"budget": -1}, {"mode": "x"}, {"filter": "year >"}, {"filter": "no=1"}, {"deadline": 0.0}):
        try:
            handle.retrieve.remote(given["questions"][0], **wrong).result(timeout_s=60)
        except KetragError as error:
            errors.append([error.code, error.hint is not None])
    state = handle.state.remote().result(timeout_s=60)
    return {"found": found, "many": [one["context"] for one in many], "errors": errors,
            "digest": state["digest"], "usage": usage_lib.usage_stats_enabled()}
"""


def test_answers_are_those_of_a_local_index(cluster: RayCluster, tmp_path: Path) -> None:
    """In every mode, with filters, rights, explanations and deadlines; errors keep their types."""
    documents = [document(f"d{number}") for number in range(24)]
    build(tmp_path / "whole", documents, Settings(chunk_tokens=40, modes=",".join(MODES)))
    given = {"fields": FIELDS, "modes": MODES, "questions": QUESTIONS}
    result = drive(cluster, ANSWERS, name=str(tmp_path / "whole"), **given)
    with Index.open(tmp_path / "whole") as whole:
        wanted = [
            answer(whole, question, mode=mode, **fields)
            for fields in FIELDS
            for mode in MODES
            for question in QUESTIONS
        ]
        assert json.dumps(result["found"]) == json.dumps(wanted)
        assert result["many"] == [one.text for one in whole.retrieve_many(QUESTIONS, mode="walk")]
        assert result["digest"] == whole.digest
    codes = ["config", "config", "input", "input", "deadline"]
    assert [code for code, _ in result["errors"]] == codes and all(hint for _, hint in result["errors"])
    assert result["usage"] is False


KILLED = """
def main(given):
    handle = run(given["name"], replicas=2, options={"health_check_period_s": 0.5})
    wanted = ask(handle, given["question"])

    def processes(handle):
        found = set()
        for _ in range(40):
            try:
                found.add(handle.state.remote().result(timeout_s=60)["process"])
            except ray.exceptions.RayError:  # the request was with the replica that died
                continue
        return found

    until(lambda: len(processes(handle)) == 2)
    before = processes(handle)
    os.kill(min(before), signal.SIGKILL)
    until(lambda: len(processes(handle)) == 2 and min(before) not in processes(handle))
    return {"same": ask(handle, given["question"]) == wanted, "others": len(processes(handle) - before)}
"""


def test_a_killed_replica_is_replaced(cluster: RayCluster, tmp_path: Path) -> None:
    build(tmp_path / "one", [document(f"d{number}") for number in range(5)])
    result = drive(cluster, KILLED, name=str(tmp_path / "one"), question=QUESTIONS[0])
    assert result == {"same": True, "others": 1}


SHARDS = """
import threading
from ketrag_fast import Document

def main(given):
    handle = run(given["folder"], replicas=2, refresh_seconds=0.2, options={"health_check_period_s": 0.5})
    found = [ask(handle, question, mode="walk", top=3) for question in given["questions"]]
    failed, answered, ended = [], [], threading.Event()

    def load():
        while not ended.is_set():
            try:
                answered.append(bool(ask(handle, given["questions"][0], mode="walk")["passages"]))
            except ray.exceptions.ActorDiedError:
                failed.append("died")
            except Exception as error:
                failed.append(repr(error))

    def generations():
        states = [handle.state.remote().result(timeout_s=60) for _ in range(20)]
        return {(one["process"], one["shards"]["north"]["generation"]) for one in states}

    until(lambda: len(generations()) == 2)
    clients = [threading.Thread(target=load) for _ in range(2)]
    for client in clients:
        client.start()
    try:
        with Index.open(given["folder"] + "/north") as index:
            index.add(Document("new", given["added"]))
        until(lambda: {generation for _, generation in generations()} == {2})
        after_change = list(failed)
        newest = ask(handle, given["added"], mode="walk", top=1)["passages"][0]
        killed = min(process for process, _ in generations())
        count = len(answered)
        os.kill(killed, signal.SIGKILL)
        until(lambda: len(answered) > count + 20)
    finally:
        ended.set()
        for client in clients:
            client.join()
    return {"found": found, "after_change": after_change, "newest": newest["index"],
            "all_found": all(answered), "failed": sorted(set(failed))}
"""


def test_shards_are_ranked_together_under_load(cluster: RayCluster, tmp_path: Path) -> None:
    """Answers equal local ones. A new generation of one shard fails no request; a killed replica fails
    at most those that it was answering.
    """
    for name, first in (("north", 0), ("south", 12)):
        build(tmp_path / "shards" / name, [document(f"d{number}") for number in range(first, first + 12)])
    text = "Quartermaine crossed the Zambezi in 1911."
    with (
        Index.open(tmp_path / "shards" / "north") as north,
        Index.open(tmp_path / "shards" / "south") as south,
    ):
        both = Indexes({"north": north, "south": south})
        wanted = [both.retrieve(question, mode="walk", top=3).to_json() for question in QUESTIONS]
    result = drive(cluster, SHARDS, folder=str(tmp_path / "shards"), questions=QUESTIONS, added=text)
    for found, local in zip(result["found"], wanted, strict=True):
        assert found == json.loads(json.dumps({key: local[key] for key in found}))
    assert result["after_change"] == [] and result["newest"] == "north" and result["all_found"]
    assert set(result["failed"]) <= {"died"}


MISSING = """
def main(given):
    try:
        run(given["name"], options={"max_constructor_retry_count": 1})
    except RuntimeError:
        message = serve.status().applications["search"].deployments["ketrag"].message
        serve.delete("search")
    Index.build(given["source"], given["name"]).close()
    handle = run(given["name"], refresh_seconds=0.2)
    before = ask(handle, given["question"], mode="walk")
    with Index.open(given["name"]) as index:
        index.update(remove="late.md")
        digest = index.digest
    until(lambda: ask(handle, given["question"], mode="walk") != before)
    return {"message": message, "same": handle.state.remote().result(timeout_s=60)["digest"] == digest}
"""


def test_a_missing_index_fails_and_changes_are_followed(cluster: RayCluster, tmp_path: Path) -> None:
    (tmp_path / "late.md").write_text("Nansen met Amundsen by the river.")
    result = drive(
        *(cluster, MISSING),
        name=str(tmp_path / "gone"),
        question=QUESTIONS[0],
        source=str(tmp_path / "late.md"),
    )
    assert "IndexMissing: no index in" in result["message"] and "gone" in result["message"]
    assert result["same"]


def test_a_replica_of_another_version_or_without_an_index(tmp_path: Path) -> None:
    build(tmp_path / "a", [document("d0")])
    with pytest.raises(ConfigError, match=r"the deployment 0\.0\.1"):
        SearchReplica({"a": str(tmp_path / "a")}, {}, "0.0.1", 1.0)
    from ketrag_fast._core import __version__

    with pytest.raises(IndexMissing):
        SearchReplica({"b": str(tmp_path / "b")}, {}, __version__, 1.0)


def test_a_generation_that_cannot_be_opened_leaves_the_open_one(tmp_path: Path) -> None:
    from ketrag_fast._core import __version__

    build(tmp_path / "a", [document("d0"), document("d1")])
    replica = SearchReplica({"a": str(tmp_path / "a")}, {}, __version__, 60.0)
    with Index.open(tmp_path / "a") as index:
        index.update(remove="d1")
    manifest = Layout(tmp_path / "a").generation(2) / "manifest.json"
    good = manifest.read_bytes()
    manifest.write_bytes(b"{" + good)
    replica._look()
    assert replica._problem and replica._opened["a"].generation == 1
    assert replica._opened["a"].retrieve(QUESTIONS[0], mode="bm25").passages
    manifest.write_bytes(good)
    replica._look()
    assert not replica._problem and replica._opened["a"].generation == 2
    replica.__del__()
    with pytest.raises(InputError, match="closed"):
        replica._opened["a"].retrieve("x")


def test_what_an_application_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="replicas must be at least 1, got 0"):
        search_application(tmp_path, replicas=0)
    with pytest.raises(ConfigError, match="refresh_seconds must be above 0"):
        search_application(tmp_path, refresh_seconds=0)

    def lacking(name: str) -> Any:
        raise ImportError("No module named 'fastapi'. You can run `pip install \"ray[serve]\"`")

    monkeypatch.setattr(importlib, "import_module", lacking)
    with pytest.raises(BackendMissing, match="No module named 'fastapi'") as caught:
        search_application(tmp_path)
    assert caught.value.hint == "pip install 'ray[client,serve]>=2.40'"
