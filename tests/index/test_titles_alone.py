"""Documents that consist of a title, such as references without an abstract."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings

TEXT = "The ship drifted with the ice for three years, and her crew measured the depth of the polar sea."
LONG = [Document(f"long-{n}", f"{TEXT} Report {n} of the Fram's expedition.", "") for n in range(12)]
ALONE = Document("alone", " ", "Preliminary report on algebraic language")


@pytest.mark.parametrize("mode", ["bm25", "text", "fused", "walk"])
def test_a_document_is_found_by_its_title(tmp_path: Path, mode: str) -> None:
    with Index.build([*LONG, ALONE], tmp_path / "i", settings=Settings(modes="all")) as index:
        found = index.retrieve("algebraic language", mode=mode).passages
        assert (found[0].document, found[0].text) == ("alone", ALONE.title)


def test_json_lines_and_changes_give_the_same(tmp_path: Path) -> None:
    lines = [json.dumps({"_id": d.id, "text": d.text, "title": d.title}) for d in [*LONG, ALONE]]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with (
        Index.build(tmp_path / "a.jsonl", tmp_path / "read") as read,
        Index.build([*LONG, ALONE], tmp_path / "given") as given,
        Index.build(LONG, tmp_path / "changed") as changed,
    ):
        changed.update(add=[ALONE])
        answers = [index.retrieve("algebraic language").text for index in (read, given, changed)]
        assert ALONE.title in answers[0]
        assert answers == [answers[0]] * 3
        assert changed.digest == given.digest
        assert not changed.update(add=[ALONE]).changed
