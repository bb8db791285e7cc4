"""A new module among the built-in systems: no other file has to change for a system in Python."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings, systems
from ketrag_fast.apps.cli.main import main
from ketrag_fast.base.config import catalogue
from ketrag_fast.errors import ConfigError
from ketrag_fast.index.training import train
from ketrag_fast.systems.registry import OWN, registry
from tests.systems.outside import WORKING

DOCUMENTS = [Document("a", "Ada wrote the first program."), Document("b", "Charles built an engine for Ada.")]
TRAINING = """
from ketrag_fast.systems.spec.system import Trained, Training


def learn(arrays, questions, out, options, on_epoch):
    out.write_text(" ".join(question.text for question in questions))
    return Trained(1, 1, len(questions), 0, None)


SYSTEM = System(
    **PARTS, train=Training("ketrag_fast.systems.backwards:learn", "backwards", "own_share", "own.txt")
)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The file `systems/backwards.py`, in a folder that belongs to the package for the length of a test."""
    folder = tmp_path / "systems"
    folder.mkdir()
    (folder / "backwards.py").write_text(WORKING + TRAINING, "utf-8")
    monkeypatch.setattr(systems, "__path__", [*systems.__path__, str(folder)])
    monkeypatch.setenv("KETRAG_EXTENSIONS", "none")  # it is found without an entry point
    registry.cache_clear()
    catalogue.cache_clear()
    yield
    sys.modules.pop("ketrag_fast.systems.backwards", None)
    monkeypatch.undo()
    registry.cache_clear()
    catalogue.cache_clear()


@pytest.mark.usefixtures("module")
def test_a_module_is_a_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert registry().systems[-1].name == "mine"  # after those that declare an order
    assert registry().origins["mine"] == OWN
    with Index.build(DOCUMENTS, tmp_path / "ix", settings=Settings(system="mine")) as index:
        context = index.retrieve("Ada", budget=100)
        assert context.mode == "backwards"
        assert [passage.document for passage in context.passages] == ["b", "a"]
        assert "own" in index.stats()["stages"]
    assert main(["config", "list", "mine"]) == 0
    assert "own_start" in capsys.readouterr().out


@pytest.mark.usefixtures("module")
def test_a_system_with_training_can_be_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "train", "--help"])
    assert "system to train: cg-rag, mine" in " ".join(capsys.readouterr().out.split())
    with Index.build(
        DOCUMENTS, tmp_path / "ix", settings=Settings(system="mine", modes="auto,text")
    ) as index:
        outcome = train(index, "mine", [("engine?", ["b"])], tmp_path / "w")
        assert outcome.questions == 1
        assert (tmp_path / "w").read_text("utf-8") == "engine?"


@pytest.mark.parametrize("name", ["cgrag", "walk", "CG-RAG", ""])
def test_only_the_declared_name_is_trained(name: str, tmp_path: Path) -> None:
    with (
        Index.build(DOCUMENTS, tmp_path / "ix", settings=Settings(modes="bm25")) as index,
        pytest.raises(ConfigError, match=f"{name!r} is not a system with training") as error,
    ):
        train(index, name, [("engine?", ["b"])], tmp_path / "w")
    assert "cg-rag" in (error.value.hint or "")
