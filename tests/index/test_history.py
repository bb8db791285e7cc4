"""Past builds and example questions of an index."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Event, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import IndexLocked, InputError
from ketrag_fast.index.annotations import LONGEST_EXAMPLE, MOST_EXAMPLES, read_examples

SHIPS = [
    Document("fram", "Nansen sailed the Fram.", metadata={"team": "polar"}),
    Document("maud", "The Maud."),
]


@pytest.fixture
def ships(tmp_path: Path) -> Iterator[Index]:
    settings = Settings(threads=1)
    with Index.build(
        SHIPS, tmp_path / "ships", settings=settings, examples=["Who?", " Who  else? ", "Who?"]
    ) as own:
        yield own


def test_builds_are_listed_the_latest_first(ships: Index) -> None:
    (first,) = ships.inspect.builds()
    assert (first.generation, first.documents, first.added, first.removed) == (1, 2, 2, 0)
    assert {"units", "links"} <= set(first.ran)
    ships.update(remove="maud")
    ships.update(remove="maud")  # changes nothing
    later = ships.inspect.builds()
    assert [one.generation for one in later] == [2, 2, 1] or [one.generation for one in later] == [2, 1]
    assert (later[-2].documents, later[-2].removed) == (1, 1)
    assert later[-1] == first
    assert len(ships.inspect.builds(1)) == 1
    assert ships.inspect.running_build() is None


def test_an_altered_row_is_left_out(ships: Index) -> None:
    ships.update(remove="maud")
    with sqlite3.connect(ships.path / "index.sqlite") as db:
        db.execute("UPDATE runs SET report = '[]' WHERE generation = 1")
    db.close()
    assert [one.generation for one in ships.inspect.builds()] == [2]


def test_a_part_of_the_documents_shows_neither_builds_nor_questions(ships: Index) -> None:
    with ships.allowed("team=polar") as part:
        assert part.inspect.builds() == []
        assert part.inspect.examples() == ()
        assert part.inspect.running_build() is None


def test_a_build_of_another_thread_is_seen(ships: Index) -> None:
    stopped, running = threading.Event(), threading.Event()

    stages: list[str] = []
    seen: list[str] = []

    def slowly(event: Event) -> bool:
        stages.append(event.stage)
        found = ships.inspect.running_build()
        if found is not None:
            seen.append(found["stage"])  # of this event, or of one before it
            running.set()
        stopped.wait(0.2)
        return True

    def build() -> None:
        with Index.open(ships.path) as other:
            other.update(
                add=[Document(f"d{n}", f"Text {n} of the Gjoa.") for n in range(50)], progress=slowly
            )

    thread = threading.Thread(target=build)
    thread.start()
    assert running.wait(60)
    stopped.set()
    thread.join()
    assert set(seen) <= set(stages)
    assert ships.inspect.running_build() is None


def test_questions_stay_until_they_are_replaced(ships: Index, tmp_path: Path) -> None:
    assert ships.inspect.examples() == ("Who?", "Who else?")
    digest = ships.digest
    ships.update(remove="maud")
    assert ships.inspect.examples() == ("Who?", "Who else?")
    with Index.build(SHIPS, ships.path, settings=Settings(threads=1), examples=["Where?"]) as again:
        assert again.inspect.examples() == ("Where?",)
    with Index.build(SHIPS, ships.path, settings=Settings(threads=1), examples=[]) as again:
        assert again.inspect.examples() == ()
    with Index.build(SHIPS, tmp_path / "other", settings=Settings(threads=1)) as other:
        assert other.inspect.examples() == ()
        assert other.digest == digest


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        (["x"] * (MOST_EXAMPLES + 1), None),
        ([f"x{n}" for n in range(MOST_EXAMPLES + 1)], "at most"),
        ([" "], "1 to"),
        (["x" * (LONGEST_EXAMPLE + 1)], "1 to"),
        ("Who?", "a list"),
        (["\ud800"], "surrogate"),
    ],
)
def test_questions_are_checked_before_the_build(
    tmp_path: Path, questions: list[str], said: str | None
) -> None:
    if said is None:  # equal ones count once
        Index.build(SHIPS, tmp_path / "index", examples=questions).close()
        return
    with pytest.raises(InputError, match=said):
        Index.build(SHIPS, tmp_path / "index", examples=questions)
    assert not (tmp_path / "index").exists()


def test_files_of_questions(tmp_path: Path) -> None:
    file = tmp_path / "questions"
    file.write_text('# Questions\n\nWho?\r\n{"question": "Where?"}\n{"_id": 1, "text": "When?"}\n', "utf-8")
    assert read_examples(file) == ("Who?", "Where?", "When?")
    for content, said in (
        (b"\xff\xfe", "UTF-8"),
        (b"Who?\n{", "line 2"),
        (b'{"question": 1}', "line 1"),
        (b"x" * 1_100_000, "larger"),
    ):
        file.write_bytes(content)
        with pytest.raises(InputError, match=said):
            read_examples(file)
    with pytest.raises(InputError, match="cannot read"):
        read_examples(tmp_path)


def test_the_command_stores_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fram.txt").write_text("Nansen sailed the Fram.")
    (tmp_path / "questions.txt").write_text("Who sailed the Fram?\n")
    place, file = ["-i", str(tmp_path / "index")], str(tmp_path / "questions.txt")
    assert main(["index", str(tmp_path / "fram.txt"), *place, "--examples", str(tmp_path / "none")]) == 2
    assert "cannot read the example questions" in capsys.readouterr().err
    assert not (tmp_path / "index").exists()
    assert main(["index", str(tmp_path / "fram.txt"), *place]) == 0
    assert main(["index", *place, "--examples", file]) == 0  # nothing else changes
    with Index.open(tmp_path / "index") as index:
        assert index.inspect.examples() == ("Who sailed the Fram?",)
        assert index.generation == 1


def test_while_another_build_runs_the_questions_are_not_stored(ships: Index) -> None:
    from ketrag_fast.index.annotations import store_examples
    from ketrag_fast.storage.layout import Layout
    from ketrag_fast.storage.lock import builder_lock

    with builder_lock(Layout(ships.path)), pytest.raises(IndexLocked):
        store_examples(ships.path, ["Where?"])
    assert ships.inspect.examples() == ("Who?", "Who else?")
