from __future__ import annotations

import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Event
from ketrag_fast.building import async_writer as behind
from ketrag_fast.building import stages as stage_run
from ketrag_fast.building.runner import BuildOptions, build
from ketrag_fast.errors import (
    Cancelled,
    ConfigError,
    IndexIncompatible,
    ModelMismatch,
    StorageFull,
)
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.index_settings import stored_settings
from ketrag_fast.systems.spec.stage import (
    Outputs,
    Stage,
    StageContext,
    StageInputs,
    check_order,
    fingerprint_of,
)
from ketrag_fast.types import BuildReport, Document
from tests.unit.building import small_stages
from tests.unit.building.small_stages import STAGES

Paths = tuple[Path, Path]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Ada\n\nAda wrote the first program.\n")
    (docs / "b.txt").write_text("Charles built an engine.")
    small_stages.RAN.clear()
    return tmp_path / "index", docs


def how(report: BuildReport) -> dict[str, str]:
    return {stage.name: stage.how for stage in report.stages}


def test_second_build_does_nothing_and_says_so(paths: Paths) -> None:
    index, docs = paths
    first = build(index, str(docs), STAGES)
    assert (first.changed, first.generation, first.documents, first.added) == (True, 1, 2, 2)
    assert how(first) == {"words": "ran", "histogram": "ran"}
    before = {p: p.stat().st_mtime_ns for p in index.glob("gen-*/**/*")}
    second = build(index, str(docs), STAGES)
    assert (second.changed, second.generation, second.digest) == (False, 1, first.digest)
    assert {p: p.stat().st_mtime_ns for p in index.glob("gen-*/**/*")} == before
    assert small_stages.RAN == ["words", "histogram"]
    assert list((index / "work").iterdir()) == []


def test_only_stages_whose_fingerprint_changed_run(paths: Paths) -> None:
    index, docs = paths
    build(index, str(docs), STAGES)
    report = build(index, str(docs), STAGES, Settings(knn_k=5))
    assert how(report) == {"words": "reused", "histogram": "ran"}
    assert report.settings_changed == (("knn_k", 2, 5),)
    kept = build(index, str(docs), STAGES)  # the index's own value holds now
    assert not kept.changed
    assert open_current(Layout(index)).manifest.settings["knn_k"] == 5
    assert stored_settings(index) == open_current(Layout(index)).manifest.settings


def test_sources_accumulate_and_replace_sets_them_anew(paths: Paths, tmp_path: Path) -> None:
    index, docs = paths
    more = tmp_path / "more stuff é.txt"
    more.write_text("More.")
    build(index, str(docs), STAGES)
    assert build(index, str(more), STAGES).documents == 3
    assert build(index, [Document("x", "Handed over.")], STAGES).documents == 4
    assert build(index, [Document("y", "Another.")], STAGES).documents == 5
    replaced = build(index, str(more), STAGES, options=BuildOptions(others="drop"))
    assert (replaced.documents, replaced.removed) == (1, 4)


def test_documents_handed_over_keep_their_place(paths: Paths) -> None:
    index, _ = paths
    build(index, [Document("b", "one"), Document("a", "two")], STAGES)
    report = build(index, [Document("b", "uno")], STAGES)
    assert (report.updated, report.removed, report.documents) == (1, 0, 2)
    assert bytes(open_current(Layout(index)).stages["words"]["blob"]) == b"unotwo"


def run_child(how: str, index: Path, docs: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.unit.building.small_stages", how, str(index), str(docs)]
    root = Path(__file__).parents[3]
    path = os.pathsep.join([str(root / "python"), str(root)])
    return subprocess.Popen(command, cwd=root, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.PIPE)


def test_stages_written_behind_the_next_are_the_same(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large stages are written while the next ones run; here the smallest count as large."""
    index, docs = paths
    plain = build(index, str(docs), STAGES)
    monkeypatch.setattr(stage_run, "_SMALL", 0)
    other = index.with_name("other")
    made = build(other, str(docs), STAGES)
    assert (made.digest, how(made)) == (plain.digest, how(plain))
    assert [stage.bytes for stage in made.stages] == [stage.bytes for stage in plain.stages]
    assert not build(other, str(docs), STAGES).changed
    # What was made before a stop is kept.
    (docs / "c.txt").write_text("More words.")
    with pytest.raises(Cancelled):
        build(other, str(docs), STAGES, progress=lambda event: event.stage != "histogram")
    assert how(build(other, str(docs), STAGES)) == {"words": "resumed", "histogram": "resumed"}


def test_inputs_in_memory_are_as_from_a_file(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    index, docs = paths
    monkeypatch.setattr(stage_run, "_SMALL", 0)
    writing = threading.Event()
    real = behind.write_arrays

    def late(*args: Any) -> Any:
        assert writing.wait(60)
        return real(*args)

    def turned(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
        return {"table": np.arange(6, dtype=">u4").reshape(2, 3).T}

    def reads(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
        table = inputs["turned"]["table"]
        assert table.dtype == np.dtype("<u4") and table.flags.c_contiguous and not table.flags.writeable
        assert list(inputs["turned"]) == ["table"] and "other" not in inputs["turned"]
        writing.set()
        return {"sum": table.sum(0)}

    monkeypatch.setattr(behind, "write_arrays", late)
    stages = [Stage("turned", 1, (), (), turned), Stage("reads", 1, ("turned",), (), reads)]
    build(index, str(docs), stages)
    assert open_current(Layout(index)).stages["reads"]["sum"].tolist() == [3, 12]


def test_arrays_go_as_soon_as_they_are_written(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    index, docs = paths
    monkeypatch.setattr(stage_run, "_SMALL", 0)
    made: list[weakref.ref[np.ndarray]] = []

    def large(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
        array = np.arange(1000)
        made.append(weakref.ref(array))
        return {"numbers": array}

    def waits(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
        end = time.monotonic() + 60
        while made[0]() is not None and time.monotonic() < end:
            time.sleep(0.01)
        assert made[0]() is None, "nobody asks for it, and it is still in memory"
        return {"none": np.zeros(1, np.uint32)}

    stages = [Stage("large", 1, (), (), large), Stage("waits", 1, ("large",), (), waits)]
    build(index, str(docs), stages)


def test_a_disk_that_is_full_behind_the_next_stage(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    index, docs = paths
    monkeypatch.setattr(stage_run, "_SMALL", 0)
    real = behind.write_arrays

    def full(*args: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(behind, "write_arrays", full)
    with pytest.raises(StorageFull):
        build(index, str(docs), STAGES)
    assert not any(path.name.startswith("gen-") for path in index.iterdir())
    assert list((index / "work").iterdir()) == []
    monkeypatch.setattr(behind, "write_arrays", real)
    assert how(build(index, str(docs), STAGES)) == {"words": "ran", "histogram": "ran"}


@pytest.mark.parametrize("broken", ["unlink", "iterdir"])
def test_leftovers_that_cannot_be_removed_do_not_fail_a_published_build(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    index, docs = paths
    real = getattr(Path, broken)

    def fails(path: Path, *args: Any, **more: Any) -> Any:
        inside = path.parent if broken == "unlink" else path
        if inside == index / "work":
            raise OSError(errno.EIO, "Input/output error", str(path))
        return real(path, *args, **more)

    build(index, str(docs), STAGES)
    (docs / "a.md").write_text("# Ada\n\nAda wrote another program.\n")
    (index / "work" / "leftover").write_text("of a stopped build")
    with monkeypatch.context() as patch:
        patch.setattr(Path, broken, fails)
        report = build(index, str(docs), STAGES)
    assert report.generation == 2 == open_current(Layout(index)).manifest.generation
    assert (index / "work" / "leftover").exists()
    build(index, str(docs), STAGES)
    assert not (index / "work" / "leftover").exists()


def test_damaged_work_is_not_resumed(paths: Paths) -> None:
    index, docs = paths
    assert run_child("histogram", index, docs).wait() == -signal.SIGKILL
    (file,) = (index / "work").glob("words-*/lengths.npy")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert how(build(index, [], STAGES))["words"] == "ran"


def test_a_finished_stage_that_names_no_files_is_not_resumed(paths: Paths) -> None:
    index, docs = paths
    assert run_child("histogram", index, docs).wait() == -signal.SIGKILL
    (file,) = (index / "work").glob("words-*/stage.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"files": {}}), "utf-8")
    assert how(build(index, [], STAGES))["words"] == "ran"


@pytest.mark.parametrize("at", range(5))
def test_callback_that_says_stop(paths: Paths, at: int) -> None:
    index, docs = paths
    seen: list[Event] = []

    def stop(event: Event) -> bool | None:
        seen.append(event)
        return False if len(seen) > at else None

    with pytest.raises(Cancelled):
        build(index, str(docs), STAGES, progress=stop)
    assert len(seen) == at + 1
    assert build(index, str(docs), STAGES).changed


def test_limit_seconds_stops_and_the_next_build_goes_on(paths: Paths) -> None:
    index, docs = paths
    with pytest.raises(Cancelled):
        build(index, str(docs), STAGES, Settings(limit_seconds=0))
    assert build(index, str(docs), STAGES).documents == 2


def test_other_units_or_embedder_need_rebuild(paths: Paths) -> None:
    index, docs = paths
    build(index, str(docs), STAGES)
    with pytest.raises(ConfigError, match="chunk_tokens is 200, not 300") as caught:
        build(index, str(docs), STAGES, Settings(chunk_tokens=300))
    assert "--rebuild" in (caught.value.hint or "")
    with pytest.raises(ModelMismatch, match="embedder"):
        build(index, str(docs), STAGES, Settings(embedder="native:other"))
    report = build(index, str(docs), STAGES, Settings(chunk_tokens=300), BuildOptions(rebuild=True))
    assert how(report) == {"words": "ran", "histogram": "ran"}
    assert not build(index, str(docs), STAGES).changed


def test_presets_fill_what_was_not_given(paths: Paths) -> None:
    index, docs = paths
    report = build(index, str(docs), STAGES, Settings(system="ket-rag", core_ratio=0.0))
    settings = open_current(Layout(index)).manifest.settings
    assert (settings["chunk_tokens"], settings["split_level"], settings["core_ratio"]) == (1200, 3, 0.0)
    assert any("stages that need a reader are not" in warning for warning in report.warnings)


def test_an_index_of_an_older_development_format_is_refused_by_name(paths: Paths) -> None:
    index, docs = paths
    index.mkdir()
    # Format 2 had the texts in this table.
    with closing(sqlite3.connect(index / "index.sqlite")) as db:
        db.executescript(
            "CREATE TABLE documents (key INTEGER PRIMARY KEY, id TEXT, content TEXT, text TEXT);"
            "PRAGMA user_version = 2;"
        )
    for work in (lambda: build(index, str(docs), STAGES), lambda: Tables(index / "index.sqlite")):
        with pytest.raises(IndexIncompatible, match=r"has format 2; .* reads format 5") as caught:
            work()
        assert "build the index again" in (caught.value.hint or "")


def test_publication_interrupted_after_the_rename(paths: Paths) -> None:
    index, docs = paths
    build(index, str(docs), STAGES)
    (docs / "c.txt").write_text("Third.")
    report = build(index, [], STAGES)
    (index / "CURRENT").write_text("gen-000001\n")  # as if it had died before this last step
    assert open_current(Layout(index)).number == 1
    again = build(index, [], STAGES)
    assert (again.changed, again.generation) == (False, report.generation)
    assert open_current(Layout(index)).number == 2


def test_index_inside_its_source(paths: Paths) -> None:
    _, docs = paths
    index = docs / "my-index"
    build(index, str(docs), STAGES)
    assert not build(index, str(docs), STAGES).changed


def test_fingerprints_chain() -> None:
    def prints(k: int = 2, documents: str = "d", version: int = 1) -> dict[str, str]:
        words = Stage("words", version, ("documents",), (), small_stages.run_words)
        found = {"documents": documents}
        for stage in (words, small_stages.HISTOGRAM):
            found[stage.name] = fingerprint_of(stage, Settings(knn_k=k), found)
        return found

    base = prints()
    assert prints(k=3)["words"] == base["words"]
    assert prints(k=3)["histogram"] != base["histogram"]
    assert prints(documents="e")["histogram"] != base["histogram"]
    assert prints(version=2)["histogram"] != base["histogram"]
    with pytest.raises(ConfigError, match="needs words"):
        check_order([small_stages.HISTOGRAM], Settings())
    with pytest.raises(ConfigError, match="twice"):
        check_order([small_stages.WORDS, small_stages.WORDS], Settings())


def test_a_stage_sees_only_what_it_declared(paths: Paths) -> None:
    index, docs = paths

    def peek(inputs: object, settings: Settings, ctx: object) -> dict[str, np.ndarray]:
        return {"n": np.array([len(inputs.documents)])}  # type: ignore[attr-defined]

    with pytest.raises(KeyError, match="documents"):
        build(index, str(docs), [small_stages.WORDS, Stage("peek", 1, ("words",), (), peek)])
