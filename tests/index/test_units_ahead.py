"""Documents are cut while the sources are read: the bytes are those of a build that cuts them afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import Cancelled, StorageFull
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.shared import units_ahead
from ketrag_fast.systems.shared.units_ahead import UnitsAhead
from ketrag_fast.types.locations import Locator
from tests.index.test_memory_bound import SETTINGS, articles, build

TEXT = "Nansen met {0} bears. The Fram drifted {0} miles. "
CORPUS = [Document(f"d{n:03}", TEXT.format(n) * 4, f"T{n}") for n in range(90)]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Cut small blocks, and list whether each build used them."""
    found: list[bool] = []
    real = UnitsAhead.take

    def take(self: UnitsAhead, contents: Any) -> Any:
        made = real(self, contents)
        found.append(made is not None)
        return made

    monkeypatch.setattr(UnitsAhead, "take", take)
    monkeypatch.setattr(units_ahead, "_BLOCK", 2_000)
    return found


def lines(path: Path, documents: list[Document]) -> str:
    """Write JSON lines and return their path."""
    with path.open("w") as out:
        for one in documents:
            record = {"_id": one.id, "title": one.title, "text": one.text, "metadata": dict(one.metadata)}
            out.write(json.dumps(record) + "\n")
    return str(path)


def without(patches: pytest.MonkeyPatch, place: Path, source: Any, settings: Settings) -> dict[str, bytes]:
    """Build without work ahead."""
    with patches.context() as patch:
        patch.setattr(UnitsAhead, "add", lambda *_: None)
        return build(place, source, settings)


@pytest.mark.parametrize("cut", ["sentences", "windows"])
@pytest.mark.parametrize("kind", ["program", "lines", "metadata"])
def test_the_bytes_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: list[bool], kind: str, cut: str
) -> None:
    documents = CORPUS
    if kind == "metadata":  # from the middle on
        some = {True: {"n": 1, "a": "é"}, False: {}}
        documents = [Document(one.id, one.text, one.title, some[one.id > "d040"]) for one in CORPUS]
    source: Any = documents if kind == "program" else lines(tmp_path / "a.jsonl", documents)
    settings = SETTINGS.having(cut=cut, language="auto")
    whole = without(monkeypatch, tmp_path / "whole", source, settings)
    for threads in (1, 2, 4):
        place = tmp_path / f"{threads}"
        assert build(place, source, settings.having(threads=threads)) == whole
    assert taken == [False, True, True, True]


def test_documents_of_every_kind(tmp_path: Path, taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    long = "Nansen met the bears. " * 70
    parts = (
        Locator(700, len(long), "heading", ("Maud", "Ice")),
        Locator(0, len(long), "lines", 1),
        Locator(0, 700, "heading", ["Fram"]),
    )
    documents = [*articles(), Document("sections", long, "Ships", locators=parts)]
    whole = without(monkeypatch, tmp_path / "whole", documents, SETTINGS)
    assert build(tmp_path / "index", documents) == whole
    assert taken == [False, True]


def _fail(*_: Any) -> Any:
    raise StorageFull("no space left")


@pytest.mark.parametrize("what", ["error", "repeated", "two sources"])
def test_work_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: list[bool], what: str
) -> None:
    source: Any = lines(tmp_path / "a.jsonl", CORPUS)
    if what == "repeated":
        source = lines(tmp_path / "b.jsonl", [*CORPUS, CORPUS[3], *CORPUS[:2]])
    elif what == "two sources":
        more = [Document(f"e{one.id}", one.text + " More.", one.title) for one in CORPUS]
        source = [source, *more]
    whole = without(monkeypatch, tmp_path / "whole", source, SETTINGS)
    if what == "error":
        monkeypatch.setattr(units_ahead, "cut_documents", _fail)
    assert build(tmp_path / "index", source) == whole
    assert taken[0] is False
    if what != "two sources":
        assert taken[1] is (what == "repeated")


def test_a_stop_while_it_works_leaves_nothing(tmp_path: Path, taken: list[bool]) -> None:
    source = lines(tmp_path / "a.jsonl", CORPUS)
    place = tmp_path / "index"
    with pytest.raises(Cancelled):
        Index.build(source, place, settings=SETTINGS, progress=lambda event: event.done < 50)
    assert not list(Layout(place).work.iterdir())
    whole = build(tmp_path / "whole", source)  # type: ignore[arg-type]
    assert build(place, source) == whole  # type: ignore[arg-type]
    assert taken[-1]


def test_a_change_works_on_the_new_documents_alone(tmp_path: Path, taken: list[bool]) -> None:
    place, source = tmp_path / "index", tmp_path / "a.jsonl"
    Index.build(lines(source, CORPUS), place, settings=SETTINGS).close()
    more = [*CORPUS, Document("z", "Amundsen came back.", "Z")]
    Index.build(lines(source, more), place, settings=SETTINGS).close()
    assert taken == [True]
    whole = build(tmp_path / "whole", lines(tmp_path / "b.jsonl", more))  # type: ignore[arg-type]
    folder = place / "gen-000002"
    made = {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("*/*.*")}
    assert {name: data for name, data in made.items() if not name.endswith("stage.json")} == whole
