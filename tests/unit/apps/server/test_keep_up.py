"""The service indexes what takes longer behind its answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Index
from ketrag_fast.index import freshness
from tests.support.parts import part


def test_what_takes_longer_is_indexed_behind_the_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part("starlette", "server")
    from ketrag_fast.apps.server.service import OpenIndex

    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# a\n\nThe text is about penguins.\n")
    monkeypatch.setattr(freshness, "QUICK", -1.0)  # every update takes too long
    with Index.build(notes, tmp_path / "ix") as index:
        entry = OpenIndex("notes", index, 0)
        (notes / "a.md").write_text("# a\n\nThe text is about walruses.\n")
        found = index.freshen()
        assert (found.changes, found.updated, found.is_pending) == (1, False, True)
        assert [Path(path).name for path in found.files] == ["a.md"] and "a.md" in str(found.line)
        entry.keep_up()
        assert index.generation == 2 and index.search("walruses")
        assert index.freshen().changes == 0
