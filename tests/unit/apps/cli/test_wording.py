"""Sentences of the command: what they count, name and leave out."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli import output
from ketrag_fast.apps.cli.main import main
from ketrag_fast.readers import SourceFile, mark_partial
from ketrag_fast.types import Failure
from tests.process import command
from tests.support.office_files import docx, paragraph


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with one note."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ship.md").write_text("# Ship\n\nThe Fram sailed.\n", "utf-8")
    return tmp_path


def test_chunks_that_are_read_by_two_systems_are_counted_once(place: Path) -> None:
    argv = ("index", "notes", "--llm", "heuristic", "--modes")
    done = command(*argv, "ket", "-i", "one", cwd=place)
    assert "  extraction: 1 of 1 core chunks read, 1 reply in" in done.out
    done = command(*argv, "ket,noderag,cg-rag", "-i", "two", cwd=place)
    assert "  extraction: 2 of 2 core chunks read (1 in 2 passes), 2 replies in" in done.out
    assert "cg-rag:\n" not in command("stats", "-i", "two", cwd=place).out


def test_failures_by_code(capsys: pytest.CaptureFixture[str]) -> None:
    codes = ("document", "part", "part", "chunk", "unknown", "of another version")
    output.report_failures([Failure(f"d{at}", code, "why") for at, code in enumerate(codes)])
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        *("ketrag: warning: 2 documents could not be read:", "  d0: why", "  d5: why"),
        *("ketrag: warning: 2 documents were read in part:", "  d1: why", "  d2: why"),
        *("ketrag: warning: 1 chunk could not be read:", "  d3: why"),
        *("ketrag: warning: 1 id is not in the index:", "  d4: why"),
    ]


def test_a_failure_after_a_document_is_of_a_part() -> None:
    file = SourceFile(Path("a.pdf"), "a.pdf", data=b"")
    items = [
        file.failure("first"),
        Document("a.pdf", "text"),
        file.failure("page 2"),
        file.failure("line", 3),
    ]
    codes = [item.code if isinstance(item, Failure) else None for item in mark_partial(file, iter(items))]
    assert codes == ["document", None, "part", "document"]


def test_failures_and_statistics_of_an_index(place: Path) -> None:
    for number in range(6):
        (place / f"notes/{number}.docx").write_bytes(docx(paragraph("x"))[:-40])
    done = command("index", "notes", cwd=place)
    assert (done.code, "6 documents could not be read" in done.err) == (3, True)
    done = command("remove", "nobody", "nothing", cwd=place)
    assert (done.code, "2 ids are not in the index" in done.err) == (3, True)
    assert "could not be read" not in done.err
    brief = command("stats", cwd=place).out
    assert len(brief.splitlines()) < 45
    assert "failures: 6" in brief and "... and 3 more (--verbose)" in brief and "settings:" not in brief
    whole = command("stats", "--verbose", cwd=place).out
    assert all(f"{number}.docx" in whole for number in range(6))
    lines = whole.splitlines()
    assert "settings:" in lines and "  gitignore: true" in lines
    assert not [line for line in lines if line.endswith((": None", ": True", ": False"))]
    assert "hyde" not in command("ask", "ship", "--llm", "heuristic", cwd=place).err


def test_a_failure_in_the_statistics_is_a_sentence(place: Path) -> None:
    (place / "notes" / "empty.txt").write_text("", "utf-8")
    assert command("index", "notes", cwd=place).code == 3
    assert "failures: 1\n  empty.txt: the file is empty\n" in command("stats", cwd=place).out


def test_statistics_are_written_for_people(place: Path) -> None:
    """No Python value, no heading without lines, and sizes with their units."""
    assert command("index", "notes", cwd=place).code == 0
    out = command("stats", cwd=place).out
    lines = [*out.splitlines(), ""]
    assert "None" not in out and "{" not in out
    assert all(after.startswith("  ") for line, after in pairwise(lines) if line.endswith(":"))
    assert re.search(r"^disk:\n  arrays: [\d.]+ kB\n", out, re.MULTILINE)
    data = json.loads(command("stats", "--json", cwd=place).out)
    assert data["backends"]["dimension"] is None and data["disk"]["arrays"] > 1000


def test_an_index_without_citations_names_the_command_that_adds_them(place: Path) -> None:
    assert command("index", "notes", cwd=place).code == 0
    done = command("graph", "ship.md", "--kind", "document", cwd=place)
    assert done.code == 4
    assert "no citation graph" in done.err and "`ketrag index --modes +cg-rag` adds it" in done.err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("documents", "--first", "x"), "argument --first: 'x' is not a whole number"),
        (("export", "grafml", "x"), "argument format: 'grafml' is not one of graphrag, graphml, gexf, neo4j"),
        (("export", "grafml", "x"), "hint: did you mean graphml?"),
        (("bench", "zzz"), "hint: ketrag bench -h"),
    ],
)
def test_wrong_values_are_named_in_plain_words(argv: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = command(*argv, cwd=tmp_path)
    assert (done.code, words in done.err) == (2, True)


def test_ctrl_c_while_the_command_is_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ketrag_fast.apps.cli.main.parse", stop)
    assert main(["stats"]) == 130
    assert "run the same command again" in capsys.readouterr().err


def test_a_bundle_that_does_not_exist_is_not_a_damaged_index(tmp_path: Path) -> None:
    done = command("import", "bundle", "none.bundle", "-i", "copy", cwd=tmp_path)
    assert done.code == 4
    assert "no such file" in done.err and "`ketrag bundle FILE -i DIR` writes one" in done.err
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("allow", ["", " ", "none", "team=sales"])
def test_a_bundle_does_not_write_what_allow_hides(allow: str, tmp_path: Path) -> None:
    Index.build([Document("a", "Ada.", metadata={"team": "sales"})], tmp_path / "ix").close()
    words = ("bundle", "file", "-i", "ix")
    done = command(*words, cwd=tmp_path, KETRAG_ALLOW=allow)
    assert (done.code, "allow is" in done.err) == (2, True)
    assert not (tmp_path / "file").exists()
    assert command(*words, cwd=tmp_path).code == 0
