"""Made format-1.zip: an index as the first house wrote it, with what it answered. Kept, not run again.

python -m tests.golden.make_format_1   (at the commit that added this file)
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path

from ketrag_fast import Index, Settings
from ketrag_fast.types import Document
from tests.golden.make_contexts import PLAIN, POLAR, TABLES, digest_of, questions

FILE = Path(__file__).with_name("format-1.zip")
ANSWERS = "answers.json"
BUDGET = 400


def documents() -> list[Document]:
    """The first eight articles of the demo."""
    lines = (POLAR / "corpus.jsonl").read_text("utf-8").splitlines()[:8]
    return [Document(row["_id"], row["text"], row["title"]) for row in map(json.loads, lines)]


def answers(index: Index) -> dict[str, list[str]]:
    """For each mode a digest of the context of each question."""
    return {
        mode: [digest_of(c) for c in index.retrieve_many(questions(), mode=mode, budget=BUDGET)]
        for mode in (*PLAIN, *TABLES)
    }


def main() -> None:
    """Writes the file."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "index"
        settings = Settings(llm="heuristic", builtin_dim=32)
        with Index.build(documents(), folder, settings=settings) as index:
            told = answers(index)
        with zipfile.ZipFile(FILE, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr(ANSWERS, json.dumps(told))
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    out.write(path, path.relative_to(folder).as_posix())


if __name__ == "__main__":
    main()
