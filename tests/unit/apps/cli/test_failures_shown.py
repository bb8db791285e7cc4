"""Failures are counted by what happened: a document read in part is not one that could not be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast.apps.cli import output
from ketrag_fast.apps.cli.main import main
from ketrag_fast.readers import SourceFile, mark_partial
from ketrag_fast.types import Document, Failure
from tests.support.office_files import docx, paragraph


def test_failures_by_code(capsys: pytest.CaptureFixture[str]) -> None:
    codes = ("document", "part", "part", "chunk", "unknown", "of another version")
    output.report_failures([Failure(f"d{at}", code, "why") for at, code in enumerate(codes)])
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "ketrag: warning: 2 documents could not be read:",
        "  d0: why",
        "  d5: why",
        "ketrag: warning: 2 documents were read in part:",
        "  d1: why",
        "  d2: why",
        "ketrag: warning: 1 chunk could not be read:",
        "  d3: why",
        "ketrag: warning: 1 id is not in the index:",
        "  d4: why",
    ]


def test_a_failure_after_a_document_is_of_a_part() -> None:
    file = SourceFile(Path("a.pdf"), "a.pdf", data=b"")
    document = Document("a.pdf", "text")
    items = [file.failure("first"), document, file.failure("page 2"), file.failure("line", 3)]
    codes = [item.code if isinstance(item, Failure) else None for item in mark_partial(file, iter(items))]
    assert codes == ["document", None, "part", "document"]


def test_what_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()
    for number in range(6):
        Path(f"docs/{number}.docx").write_bytes(docx(paragraph("x"))[:-40])
    Path("docs/a.md").write_text("# Ships\n\nThe ship sailed south.")
    assert main(["index", "docs"]) == output.PARTIAL
    assert "6 documents could not be read" in capsys.readouterr().err
    assert main(["remove", "nobody", "nothing"]) == output.PARTIAL
    told = capsys.readouterr().err
    assert "2 ids are not in the index" in told
    assert "could not be read" not in told
    assert main(["stats"]) == 0
    brief = capsys.readouterr().out
    assert len(brief.splitlines()) < 45
    assert "... and 3 more (--verbose)" in brief
    assert "settings:" not in brief
    assert main(["stats", "--verbose"]) == 0
    whole = capsys.readouterr().out
    assert "settings:" in whole
    assert all(f"{number}.docx" in whole for number in range(6))
    assert main(["ask", "ship", "--llm", "heuristic"]) == 0
    assert "hyde" not in capsys.readouterr().err
