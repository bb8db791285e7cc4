"""A purge keeps sources that may get documents, reports what it cannot erase, and continues after a kill."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import InputError, StorageFailed
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.tables import Tables
from tests.process import environment

SECRET = b"Zanzibar"


def files_with(word: bytes, place: Path) -> list[str]:
    """The files in a folder that contain a word."""
    files = (path for path in sorted(place.rglob("*")) if path.is_file())
    return [str(path.relative_to(place)) for path in files if word in path.read_bytes()]


def specs(place: Path) -> list[str]:
    """The names of the registered sources."""
    with Tables(Layout(place).tables, read_only=True) as tables:
        return [Path(source.spec).name for source in tables.sources()]


def killed(patched: str, call: str) -> None:
    """Run a call in another process that is killed when it gets to a function."""
    code = (
        "import os, signal\n"
        "from ketrag_fast import Index, Settings\n"
        "import ketrag_fast.building.runner as runner, ketrag_fast.building.runner as purge\n"
        "def kill(*_, **__): os.kill(os.getpid(), signal.SIGKILL)\n"
        f"{patched} = kill\n{call}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), check=False, capture_output=True)
    assert done.returncode == -9, done.stderr


def test_a_purge_keeps_sources_that_may_get_documents(tmp_path: Path) -> None:
    inbox, other = tmp_path / "inbox", tmp_path / "other"
    for folder in (inbox, other):
        folder.mkdir()
    (inbox / "secret.md").write_text("A secret.", "utf-8")
    (other / "zanzibar.txt").write_text("Another secret.", "utf-8")
    (other / "ship.txt").write_text("A ship.", "utf-8")
    (other / "rows.jsonl").write_text('{"id": "r1", "text": "A row."}\n', "utf-8")
    sources = [inbox, other / "zanzibar.txt", str(other / "s*.txt"), other / "rows.jsonl"]
    with Index.build(sources, tmp_path / "ix") as index:
        assert index.report is not None and index.report.documents == 4
        index.update(remove=["secret.md", "zanzibar.txt", "ship.txt", "r1"], purge=True)
    assert specs(tmp_path / "ix") == ["inbox", "s*.txt", "rows.jsonl"]
    assert files_with(b"zanzibar", tmp_path / "ix") == []
    (inbox / "new.md").write_text("New in the inbox.", "utf-8")
    (other / "sail.txt").write_text("New for the pattern.", "utf-8")
    (other / "rows.jsonl").write_text('{"id": "r2", "text": "A new row."}\n', "utf-8")
    with Index.build([], tmp_path / "ix") as index:
        assert [one.document for one in index.inspect.documents()] == ["new.md", "sail.txt", "r2"]


def test_a_purge_drops_a_source_that_is_gone(tmp_path: Path) -> None:
    for name in ("zanzibar.md", "ship.md"):
        (tmp_path / name).write_text(f"About {name[0]}.", "utf-8")
    with Index.build([tmp_path / "zanzibar.md", tmp_path / "ship.md"], tmp_path / "ix") as index:
        (tmp_path / "zanzibar.md").unlink()
        index.update(remove="zanzibar.md", purge=True)
    assert specs(tmp_path / "ix") == ["ship.md"]
    assert files_with(b"zanzibar", tmp_path / "ix") == []


def ships(place: Path, count: int = 50) -> None:
    """Build an index in which the first three documents are secret."""
    made = [
        Document(f"sec{i}", f"Ship {i} sailed to Zanzibar.", f"Zanzibar {i}", {"kind": "secret"})
        if i < 3
        else Document(f"a{i}", f"Ship {i} sailed.", "", {"kind": "open"})
        for i in range(count)
    ]
    Index.build(made, place).close()


@contextmanager
def reading(place: Path) -> Iterator[None]:
    """Hold a read transaction of the tables."""
    db = sqlite3.connect(Layout(place).tables, isolation_level=None)
    try:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM documents").fetchone()
        yield
    finally:
        db.close()


def test_a_purge_that_a_reader_blocks_is_an_error(tmp_path: Path) -> None:
    place = tmp_path / "ix"
    ships(place)
    with reading(place), Index.open(place) as index:
        with pytest.raises(StorageFailed, match="still holds purged data") as caught:
            index.update(where={"kind": "secret"}, purge=True)
        assert "remove --purge" in (caught.value.hint or "")
        assert "index.sqlite" in files_with(SECRET, place)
    with Index.build([], place) as index:  # does not complete it, but names it
        assert index.report is not None
        assert any("purge was not completed" in warning for warning in index.report.warnings)
    with Index.open(place) as index:
        index.update(purge=True)
        assert not any("purge" in warning for warning in index.update(remove="a9").warnings)
    assert files_with(SECRET, place) == []


@pytest.mark.parametrize(
    ("moment", "change"),
    [
        ("runner.purge", {"where": {"kind": "secret"}}),
        ("purge.discard", {"remove": "sec*"}),
        ("purge.discard", {"where": {"kind": "secret"}}),
        ("runner._run_stages", {"remove": ["sec0", "sec[12]"]}),
    ],
)
def test_a_killed_purge_continues(tmp_path: Path, change: dict[str, Any], moment: str) -> None:
    place = tmp_path / "ix"
    ships(place)
    killed(moment, f"Index.open({str(place)!r}).update(**{change!r}, purge=True)")
    assert files_with(SECRET, place)
    with Index.open(place) as index:
        report = index.update(**change, purge=True)
        assert (report.documents, report.failures) == (47, ())
        assert files_with(SECRET, place) == []
        with Tables(Layout(place).tables, read_only=True) as tables:
            assert tables.pending_purge() is None
        if change != {"remove": ["sec0", "sec[12]"]}:  # ids that were purged earlier are known
            with pytest.raises(InputError, match="nothing was purged"):
                index.update(remove="typo*", purge=True)


def test_a_pending_purge_is_no_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "ix"
    ships(place)
    killed("runner.purge", f"Index.open({str(place)!r}).update(remove='sec*', purge=True)")
    with Tables(Layout(place).tables, read_only=True) as tables:
        assert tables.pending_purge() is not None
        assert all(name.isidentifier() for name in tables.settings())
    assert main(["config", "show", "-i", str(place)]) == 0
    assert main(["doctor", "-i", str(place)]) == 0
    assert "pending purge" not in capsys.readouterr().out
    with Index.open(place) as index:  # a typing error is still reported
        report = index.update(remove="typo*", purge=True)
    assert [failure.document for failure in report.failures] == ["typo*"]
    assert files_with(SECRET, place) == []
