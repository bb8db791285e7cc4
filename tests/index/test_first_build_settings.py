"""A first build that is stopped at any moment is continued with the settings that it began with."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import Cancelled, ConfigError, DocumentError
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.index_settings import begun_settings, stored_settings
from tests.process import POLAR, command, python

GIVEN = {
    "chunk_tokens": 50,
    "split_level": 1,
    "language": "none",
    "modes": "bm25,walk,text",
    "core_ratio": 0.5,
    "exclude": "a*.md",
    "keep_generations": 3,
    "llm": "heuristic",
}
STAGES = ("read", "units", "embedder", "skeleton", "links")
BUILD = f"""
import os, signal, sys
from ketrag_fast import Index, Settings
import ketrag_fast.building.runner as runner

docs, path, moment = sys.argv[1:]
if moment == "begun":
    runner.Meter = lambda *_: os.kill(os.getpid(), signal.SIGKILL)

def stop(event):
    if event.stage == moment:
        os.kill(os.getpid(), signal.SIGKILL)

Index.build(docs, path, settings=Settings(**{GIVEN!r}), progress=stop)
"""


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for path in sorted((POLAR / "articles").iterdir())[:8]:
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.fixture(scope="module")
def whole(docs: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    with Index.build(docs, tmp_path_factory.mktemp("whole") / "ix", settings=Settings(**GIVEN)) as index:
        return index.digest


def test_killed_at_every_stage(docs: Path, whole: str, tmp_path: Path) -> None:
    killed = 0
    for moment in ("begun", *STAGES):
        place = tmp_path / moment
        done = python(BUILD, str(docs), str(place), moment, cwd=tmp_path)
        if done.code == 0:  # this build has no such stage
            continue
        killed += 1
        assert done.code == -signal.SIGKILL, done.err
        begun = begun_settings(Layout(place))
        assert begun is not None
        assert {name: begun[name] for name in GIVEN} == GIVEN
        assert stored_settings(place) is not None
        again = command("index", "-i", str(place), cwd=tmp_path)
        assert again.code == 0, again.err
        with Index.open(place) as index:
            assert index.digest == whole, moment
    assert killed >= 4


def test_ctrl_c_then_the_command_without_settings(docs: Path, tmp_path: Path) -> None:
    """The settings of the first command are those of the second, which may change some."""
    with pytest.raises(Cancelled):
        Index.build(
            docs,
            tmp_path / "ix",
            settings=Settings(chunk_tokens=50),
            progress=lambda event: event.stage != "units",
        )
    done = command("index", "-i", "ix", "-o", "core_ratio=0.5", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    stored = stored_settings(tmp_path / "ix")
    assert stored is not None
    assert (stored["chunk_tokens"], stored["core_ratio"]) == (50, 0.5)


def test_a_folder_in_which_nothing_has_begun(docs: Path, tmp_path: Path) -> None:
    """What a build that was killed before it stored its settings leaves is not an index to continue."""
    from ketrag_fast.storage.tables import Tables

    layout = Layout(tmp_path / "ix")
    layout.create()
    for begin in (layout.tables.touch, lambda: Tables(layout.tables).close()):
        begin()
        done = command("index", "-i", "ix", cwd=tmp_path)
        assert done.code == 2
        assert "no source was named" in done.err
        assert command("index", str(docs), "-i", "ix", cwd=tmp_path).code == 0
        shutil.rmtree(tmp_path / "ix")
        layout.create()


def test_a_second_command_that_fails_keeps_the_settings(docs: Path, tmp_path: Path) -> None:
    place = tmp_path / "ix"
    with pytest.raises(Cancelled):
        Index.build(
            docs, place, settings=Settings(chunk_tokens=50), progress=lambda event: event.stage != "units"
        )
    (tmp_path / "empty").mkdir()
    broken = Document("x", "text", metadata={"of": {1}})
    with pytest.raises(DocumentError):
        Index.build([docs, broken], place, settings=Settings(chunk_tokens=70, on_error="stop"))
    begun = begun_settings(Layout(place))
    assert begun is not None
    assert begun["chunk_tokens"] == 50


def test_an_index_without_documents_may_get_other_units(tmp_path: Path) -> None:
    page = Document("a", "The Fram sailed north. " * 40)
    Index.build([page], tmp_path / "index", settings=Settings(chunk_tokens=50)).close()
    with pytest.raises(ConfigError, match="different units"):
        Index.build([page], tmp_path / "index", settings=Settings(chunk_tokens=500))
    with Index.open(tmp_path / "index") as index:
        index.update(remove=["a"])
    with Index.build([page], tmp_path / "index", settings=Settings(chunk_tokens=500)) as index:
        assert index._opened.settings.chunk_tokens == 500 and len(index.inspect.documents()) == 1
