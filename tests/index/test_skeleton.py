"""An index with a skeleton: built, kept, stopped, gone on with, and looked at. Readers are real ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import ModeUnavailable, UnknownName
from ketrag_fast.storage.arrays import read_array
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from tests.process import POLAR, command
from tests.support.copied import copy_confirmed

SKELETON = ["replies", "skeleton", "entities"]
HEURISTIC = Settings(llm="heuristic")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the polar articles, read by rules, with its recording."""
    place = tmp_path_factory.mktemp("skeleton")
    done = command(
        "index", str(POLAR / "articles"), "--llm", "heuristic", "--record", "said.jsonl", "--json", cwd=place
    )
    assert done.code == 0, done.err
    return place


def built(path: Path, *argv: str) -> dict[str, Any]:
    done = command("index", *argv, "--json", cwd=path)
    assert done.code in (0, 3), done.err
    found: dict[str, Any] = json.loads(done.out)
    return {**found, "code": done.code}


def how(report: dict[str, Any]) -> dict[str, str]:
    return {stage["name"]: stage["how"] for stage in report["stages"]}


def copied(whole: Path, to: Path) -> Path:
    copy_confirmed(whole / ".ketrag", to / ".ketrag")
    return to


def test_the_skeleton_is_one_of_the_stages(whole: Path) -> None:
    with Index.open(whole / ".ketrag") as index:
        stats = index.stats()
    counts, found = stats["counts"], stats["extraction"]
    assert found["read"] == counts["core_chunks"] > 50
    assert counts["entities"] > 100
    assert counts["relations"] > 50
    assert (found["failed"], found["pending"]) == (0, 0)
    assert stats["backends"]["llm"] == "heuristic"
    assert stats["edges"]["relation"] == counts["relations"]


def test_nothing_is_done_twice(whole: Path, tmp_path: Path) -> None:
    place = copied(whole, tmp_path)
    again = built(place)
    assert not again["changed"]
    assert again["extraction"]["asked"] == 0
    assert again["extraction"]["hits"] == again["extraction"]["core"]
    with Index.open(place / ".ketrag") as index:
        assert index.stats()["extraction"]["cache_hits"] == again["extraction"]["core"]


def test_another_core_ratio_reads_what_is_new_alone(whole: Path, tmp_path: Path) -> None:
    place = copied(whole, tmp_path)
    fewer = built(place, "--core-ratio", "0.5")
    assert fewer["extraction"]["asked"] == 0
    more = built(place, "--core-ratio", "1")
    found = more["extraction"]
    assert 0 < found["asked"] < found["core"]
    fresh = built(tmp_path, str(POLAR / "articles"), "--llm", "heuristic", "--core-ratio", "1", "-i", "fresh")
    assert more["digest"] == fresh["digest"]
    assert how(more)["vectors"] == "reused"


def test_an_index_without_a_reader_has_no_skeleton(tmp_path: Path) -> None:
    report = built(tmp_path, str(POLAR / "articles"))
    assert not set(how(report)) & set(SKELETON)
    assert report["extraction"] is None
    plain = report["digest"]
    assert built(tmp_path, "--llm", "heuristic")["digest"] != plain
    kept = built(tmp_path, "--llm", "none")  # what took hours is not dropped by leaving a model out
    assert not kept["changed"]
    assert set(how(kept)) >= set(SKELETON)
    assert built(tmp_path, "--llm", "none", "--rebuild")["digest"] == plain
    with (
        Index.open(tmp_path / ".ketrag") as index,
        pytest.raises(ModeUnavailable, match="no graph of named things"),
    ):
        index.inspect.entity("Fram")
    assert built(tmp_path, "--llm", "heuristic")["extraction"]["asked"] == 0  # and its replies are still here


def test_a_rebuild_folds_anew_and_asks_nothing(whole: Path, tmp_path: Path) -> None:
    place = copied(whole, tmp_path)
    with Index.open(place / ".ketrag") as index:
        before = index.digest
    report = built(place, "--rebuild")
    assert how(report)["replies"] == how(report)["skeleton"] == "ran"
    assert (report["extraction"]["asked"], report["digest"]) == (0, before)


def test_a_recording_brings_the_same_skeleton(whole: Path, tmp_path: Path) -> None:
    """All but the kept replies' own counts is equal to the byte."""
    report = built(tmp_path, str(POLAR / "articles"), "--llm", f"replay:{whole / 'said.jsonl'}")
    assert report["code"] == 0
    with Index.open(whole / ".ketrag") as one, Index.open(tmp_path / ".ketrag") as other:
        assert one.digest == other.digest


def test_gleanings_change_nothing_where_no_model_reads(whole: Path, tmp_path: Path) -> None:
    for reader in ("heuristic", f"replay:{whole / 'said.jsonl'}"):
        digests = set()
        for gleanings in ("0", "1"):
            shutil.rmtree(tmp_path / ".ketrag", ignore_errors=True)
            report = built(tmp_path, str(POLAR / "articles"), "--llm", reader, "--gleanings", gleanings)
            assert report["usage"]["calls"] == 0
            digests.add(report["digest"])
        assert len(digests) == 1


def test_a_recording_that_lacks_chunks(whole: Path, tmp_path: Path) -> None:
    lines = (whole / "said.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "part.jsonl").write_text("\n".join(lines[:41]) + "\n", "utf-8")
    done = command(
        "index", str(POLAR / "articles"), "--llm", "replay:part.jsonl", "--core-ratio", "1", cwd=tmp_path
    )
    assert done.code == 3
    assert "the recording lacks this chunk" in done.err
    assert "chunks could not be read" in done.err
    with Index.open(tmp_path / ".ketrag") as index:
        stats = index.stats()
        assert stats["extraction"]["read"] >= 40
        assert stats["extraction"]["failed"] == stats["counts"]["core_chunks"] - stats["extraction"]["read"]
        assert {failure["code"] for failure in stats["failures"]} == {"chunk"}
        assert index.retrieve("Who built the Fram?").passages


def test_documents_that_come_later_are_pending_until_somebody_reads(whole: Path, tmp_path: Path) -> None:
    said = f"replay:{whole / 'said.jsonl'}"
    articles = shutil.copytree(POLAR / "articles", tmp_path / "docs")
    (articles / "fram.md").rename(tmp_path / "fram.md")
    first = built(tmp_path, "docs", "--llm", said)
    (tmp_path / "fram.md").rename(articles / "fram.md")
    report = built(tmp_path, "docs")
    # Nobody was told to read, so the build ends as before: the recording lacks some chunks.
    assert report["code"] == first["code"]
    pending = report["extraction"]["pending"]
    assert 0 < pending < first["extraction"]["core"]
    assert any(f"{pending} of" in warning and "pending" in warning for warning in report["warnings"])
    with Index.open(tmp_path / ".ketrag") as index:
        assert index.stats()["extraction"]["pending"] == pending
    report = built(tmp_path, "--llm", said)
    assert (report["extraction"]["pending"], report["extraction"]["asked"]) == (0, pending)


def test_a_recording_is_not_written_over_another(whole: Path, tmp_path: Path) -> None:
    place = copied(whole, tmp_path)
    (tmp_path / "mine.jsonl").write_text("{}\n")
    done = command("index", "--record", "mine.jsonl", cwd=place)
    assert done.code == 2
    assert "not a recording of this model" in done.err
    assert (tmp_path / "mine.jsonl").read_text() == "{}\n"
    assert command("index", "--record", "nowhere/x.jsonl", cwd=place).code == 2
    for _ in range(2):  # its own it may
        assert command("index", "--record", "own.jsonl", cwd=place).code == 0
    assert (place / "own.jsonl").read_bytes() == (whole / "said.jsonl").read_bytes()


def test_publish_partial_needs_something_to_publish(tmp_path: Path) -> None:
    done = command("index", str(POLAR / "articles"), "--publish-partial", cwd=tmp_path)
    assert done.code == 2
    assert "no chunks have been read" in done.err
    done = command("index", "--publish-partial", "-i", "nowhere", cwd=tmp_path)
    assert done.code == 2
    assert "nowhere has nothing to publish" in done.err


def test_no_core_chunk_and_no_document(tmp_path: Path) -> None:
    report = built(tmp_path, str(POLAR / "articles"), "--llm", "heuristic", "--core-ratio", "0")
    assert report["extraction"]["core"] == 0
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "a.txt").write_text("The Fram drifted.")
    built(tmp_path, "gone", "--llm", "heuristic", "-i", "none")
    assert command("remove", "*", "-i", "none", cwd=tmp_path).code == 0
    report = built(tmp_path, "--llm", "heuristic", "-i", "none")
    assert report["code"] == 0
    with Index.open(tmp_path / "none") as index:
        assert index.stats()["counts"]["entities"] == 0


def test_an_entity_with_its_sentences(whole: Path) -> None:
    texts = {path.name: path.read_text("utf-8") for path in (POLAR / "articles").iterdir()}
    with Index.open(whole / ".ketrag") as index:
        found = index.inspect.entity("  roald   AMUNDSEN ")
        assert found.name == "ROALD AMUNDSEN"
        assert found.rank == len(found.relations) > 0
        weights = [relation.weight for relation in found.relations]
        assert weights == sorted(weights, reverse=True)
        spans = [*found.sources, *(span for relation in found.relations for span in relation.sources)]
        assert found.sources
        for span in spans:
            assert span.text == texts[span.document][span.start : span.end] != ""
        assert all("amundsen" in span.text.lower() for span in found.sources)
        for relation in found.relations:
            assert "ROALD AMUNDSEN" in (relation.source, relation.target)
            assert relation.sources
        with pytest.raises(UnknownName, match="no entity 'Amundsn'") as caught:
            index.inspect.entity("Amundsn")
        assert "ROALD AMUNDSEN" in str(caught.value.hint)
        for nothing in ("", "zzzzqqqq", "\ud800", "x" * 10_000):
            with pytest.raises(UnknownName):
                index.inspect.entity(nothing)


def test_the_command_graph(whole: Path) -> None:
    done = command("graph", "roald amundsen", cwd=whole)
    assert done.code == 0
    assert done.out.startswith("ROALD AMUNDSEN")
    assert "named in" in done.out
    data = json.loads(command("graph", "roald amundsen", "--json", cwd=whole).out)
    assert data["schema"] == "ketrag/entity/1"
    assert {"name", "type", "description", "relations", "sources"} <= set(data)
    done = command("graph", "nobody at all", cwd=whole)
    assert (done.code, done.out) == (1, "")
    done = command("graph", "roald amundsn", "--json", cwd=whole)
    assert (done.code, done.out) == (1, "")
    error = json.loads(done.err)
    assert error["code"] == "unknown_name"
    assert "ROALD AMUNDSEN" in error["hint"]


def test_replies_are_arrays_and_nothing_of_time(whole: Path) -> None:
    generation = open_current(Layout(whole / ".ketrag"))
    record = generation.manifest.stages["replies"]
    chunks = read_array(generation.folder / "replies" / "reply_chunk.npy", record.files["reply_chunk"])
    assert chunks.tolist() == sorted(chunks.tolist())
    assert not [name for name in record.files if "seconds" in name or "tokens" in name]


def test_the_opened_skeleton_is_kept_until_there_is_a_newer_one(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path)
    with Index.open(path / ".ketrag") as index:
        inspectors = index._opened.inspectors
        before = index.inspect.entity("Roald Amundsen")
        assert index._opened.inspectors is inspectors
        built(path, "--rebuild")
        assert index.refresh()
        assert index._opened.inspectors is not inspectors
        assert index.inspect.entity("Roald Amundsen") == before
