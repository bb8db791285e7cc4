"""What holds for every format: hidden documents, equal bytes, complete files, clear errors."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.interchange import EXPORTED as OFFERED
from ketrag_fast.apps.cli.main import main
from ketrag_fast.base.progress import Event
from ketrag_fast.errors import (
    Cancelled,
    ConfigError,
    IndexLocked,
    IndexMissing,
    InputError,
    ModeUnavailable,
    ReadOnly,
    StorageFull,
)
from ketrag_fast.interchange.exporting import FORMATS, export_graph
from tests.unit.interchange.conftest import DOCUMENTS, SETTINGS
from tests.unit.interchange.test_graph_tables import GRAPHS

FILES = ("graphml", "gexf", "jsonl")


def content(target: Path) -> dict[str, bytes]:
    if target.is_file():
        return {"": target.read_bytes()}
    return {path.name: path.read_bytes() for path in sorted(target.iterdir())}


def exported(index: Index, place: Path, **options: object) -> dict[str, dict[str, bytes]]:
    """The bytes of every graph in every format."""
    out = {}
    for name in GRAPHS:
        for kind in FORMATS:
            target = place / f"{name}.{kind}"
            more = {"documents": True} if kind == "jsonl" else {}
            more |= {"communities": True} if kind == "graphrag" else {}
            export_graph(index, kind, target, graph=name, **options, **more)  # type: ignore[arg-type]
            out[target.name] = content(target)
    return out


def test_the_command_offers_every_format() -> None:
    assert tuple(FORMATS) == OFFERED


def test_equal_indexes_give_equal_bytes(index: Index, tmp_path: Path) -> None:
    with Index.build(DOCUMENTS, tmp_path / "again", settings=SETTINGS.having(threads=2)) as again:
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        assert exported(index, tmp_path / "a") == exported(again, tmp_path / "b")


@pytest.fixture(scope="module")
def of_the_seen_alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    place = tmp_path_factory.mktemp("seen")
    seen = [one for one in DOCUMENTS if one.metadata["team"] == "polar"]
    with Index.build(seen, place / "only", settings=SETTINGS) as only:
        return exported(only, place)


@pytest.mark.parametrize("how", ["filter", "allow", "opened"])
def test_hidden_documents_leave_nothing(
    index: Index, of_the_seen_alone: dict[str, dict[str, bytes]], tmp_path: Path, how: str
) -> None:
    if how == "opened":
        with Index.open(index.path, settings=Settings(allow="team=polar")) as restricted:
            assert exported(restricted, tmp_path) == of_the_seen_alone
    else:
        assert exported(index, tmp_path, **{how: "team=polar"}) == of_the_seen_alone


def test_the_filter_of_the_settings_applies(index: Index, tmp_path: Path) -> None:
    with Index.open(index.path, settings=Settings(filter="team=polar")) as opened:
        export_graph(opened, "jsonl", tmp_path / "a", documents=True)
    export_graph(index, "jsonl", tmp_path / "b", documents=True, filter="team=polar")
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert b"Shackleton" not in (tmp_path / "a").read_bytes()


def test_a_filter_that_excludes_nothing_is_no_error_and_such_a_right_is_one(
    index: Index, tmp_path: Path
) -> None:
    export_graph(index, "graphml", tmp_path / "a", filter={})
    export_graph(index, "graphml", tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")
    with pytest.raises(InputError, match="every document"):
        export_graph(index, "graphml", tmp_path / "c", allow={})


def test_an_unknown_field_of_a_filter_is_named(index: Index, target: Path) -> None:
    with pytest.raises(InputError, match="nosuch"):
        export_graph(index, "jsonl", target, filter="nosuch=1")
    with pytest.raises(InputError) as hidden:
        export_graph(index, "jsonl", target, allow="nosuch=1")
    assert "cites" not in f"{hidden.value} {hidden.value.hint}"
    assert not target.exists()


@pytest.mark.parametrize("kind", FORMATS)
def test_a_stopped_export_leaves_what_was_there(index: Index, tmp_path: Path, kind: str) -> None:
    def stop(event: Event) -> bool:
        return event.stage != "export"

    target = tmp_path / "out"
    with pytest.raises(Cancelled):
        export_graph(index, kind, target, progress=stop)
    assert list(tmp_path.iterdir()) == []
    export_graph(index, kind, target)
    before = content(target)
    with pytest.raises(Cancelled):
        export_graph(index, kind, target, graph="walk", progress=stop, replace=True)
    assert content(target) == before
    assert list(tmp_path.iterdir()) == [target]
    export_graph(index, kind, target, graph="walk", replace=True)
    assert content(target) != before
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("kind", FORMATS)
def test_an_existing_target_is_refused(index: Index, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "out"
    export_graph(index, kind, target)
    before = content(target)
    with pytest.raises(ConfigError, match="already exists") as refused:
        export_graph(index, kind, target)
    assert "--replace" in str(refused.value.hint)
    assert content(target) == before
    with pytest.raises(ConfigError, match="does not exist"):
        export_graph(index, kind, tmp_path / "nowhere" / "out")


@pytest.mark.parametrize("kind", ["graphrag", "neo4j"])
def test_a_folder_with_other_files_is_never_replaced(index: Index, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "home"
    target.mkdir()
    (target / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match=r"thesis\.txt"):
        export_graph(index, kind, target, replace=True)
    (target / "thesis.txt").rename(tmp_path / "thesis.txt")
    (target / "nodes-inner").mkdir()
    with pytest.raises(ConfigError, match="nodes-inner"):
        export_graph(index, kind, target, replace=True)
    with pytest.raises(ConfigError, match="not a folder"):
        export_graph(index, kind, tmp_path / "thesis.txt", replace=True)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("kind", FILES)
def test_a_file_does_not_replace_a_folder(index: Index, tmp_path: Path, kind: str) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigError, match="is a folder"):
        export_graph(index, kind, tmp_path / "out", replace=True)


def test_wrong_requests_are_explained(index: Index, target: Path) -> None:
    for options, error, said in (
        ({"format": "dot"}, ConfigError, "graphml"),
        ({"graph": "skeletons"}, ConfigError, "skeleton"),
        ({"schema": 1}, ConfigError, "2 or 3"),
        ({"communities": True}, ConfigError, "graphrag"),
        ({"documents": True}, ConfigError, "jsonl"),
        ({"neighbourhood_of": "Shackletn"}, InputError, "no node 'Shackletn'"),
        ({"neighbourhood_of": "shackleton"}, InputError, "ERNEST SHACKLETON"),
        ({"neighbourhood_of": "Fram", "hops": -1}, InputError, "-1"),
        ({"neighbourhood_of": "Fram", "query": "ice"}, ConfigError, "combined"),
    ):
        given = {"format": "graphml", **options}
        with pytest.raises(error) as found:
            export_graph(index, target=target, **given)  # type: ignore[arg-type]
        assert said in f"{found.value} {found.value.hint}"
    assert not target.exists()


def test_a_graph_that_is_missing_names_its_command(tmp_path: Path) -> None:
    with Index.build(DOCUMENTS, tmp_path / "plain", settings=Settings(modes="bm25")) as plain:
        with pytest.raises(ModeUnavailable, match="no graph 'skeleton'") as found:
            export_graph(plain, "graphml", tmp_path / "out", graph="skeleton")
        assert "ketrag index --llm" in str(found.value.hint)


@pytest.mark.parametrize("documents", [[], [Document("one", "Oslo.")]])
@pytest.mark.parametrize("kind", FORMATS)
def test_next_to_no_nodes(tmp_path: Path, documents: list[Document], kind: str) -> None:
    with Index.build(documents, tmp_path / "little", settings=SETTINGS) as little:
        for name in ("skeleton", "walk"):
            found = export_graph(little, kind, tmp_path / name, graph=name)
            assert found.edges == 0 or documents
            assert found.nodes <= 3


@pytest.mark.parametrize("kind", FORMATS)
def test_a_folder_that_cannot_be_written(index: Index, kind: str) -> None:
    with pytest.raises(ReadOnly, match="/proc") as found:
        export_graph(index, kind, Path("/proc/out"))
    assert "other than /proc" in str(found.value.hint)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_full_disk_leaves_nothing(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull):
        export_graph(index, kind, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_documents_that_changed_meanwhile_are_not_exported(tmp_path: Path) -> None:
    with Index.build(DOCUMENTS, tmp_path / "index", settings=SETTINGS) as old:
        with Index.open(tmp_path / "index") as other:
            other.update(remove="fram")
        export_graph(old, "graphml", tmp_path / "out.graphml")  # the graph of the open generation
        with pytest.raises(IndexLocked, match="have changed"):
            export_graph(old, "jsonl", tmp_path / "out", documents=True)
        assert not (tmp_path / "out").exists()
        old.refresh()
        export_graph(old, "jsonl", tmp_path / "out", documents=True)
    with (
        Index.open(tmp_path / "index" / "gen-000002") as one,
        pytest.raises(IndexMissing, match="texts of the documents"),
    ):
        export_graph(one, "jsonl", tmp_path / "other", documents=True)


def test_the_command(index: Index, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.graphml"
    place = ["-i", str(index.path)]
    assert main(["export", "graphml", str(target), *place]) == 0
    assert "edges of the graph skeleton" in capsys.readouterr().out
    assert main(["export", "graphml", str(target), *place]) == 2
    assert "--replace" in capsys.readouterr().err
    allow = ["--allow", "team=polar", "--neighbourhood", "Fram", "--replace", "--json"]
    assert main(["export", "graphml", str(target), *place, *allow]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["schema"] == "ketrag/export/1"
    assert said["bytes"] == target.stat().st_size
    assert b"SHACKLETON" not in target.read_bytes()
