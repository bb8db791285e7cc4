"""Questions that pages of a repository answer, and questions that its code answers: which file is first?

    python benches/pages_and_code.py NAME=FOLDER... [--modes bm25,walk] [--work FOLDER]

NAME is a repository of benches/pages_and_code.jsonl: `ketrag` (a checkout of this package), `httpx` (0.28.1) or
`ripgrep` (15.2.0), and FOLDER its sources. The questions were written before any was asked. Prints rows of a
Markdown table: for questions of both kinds the number whose file is first, and among the first three files,
and the mean reciprocal rank. The indexes are kept in --work and used again."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from ketrag_fast import Index

QUESTIONS = Path(__file__).with_suffix(".jsonl")
DEPTH = 60


def place_of(index: Index, mode: str, question: str, wanted: list[str]) -> int | None:
    """Return the rank of the first file that answers, among the files of the hits."""
    hits = index.search(question, limit=DEPTH, mode=mode)
    files = dict.fromkeys(hit.path or hit.document for hit in hits)
    others = [
        file for file in files if Path(file).stem != QUESTIONS.stem
    ]  # the questions, in this repository
    found = (at for at, file in enumerate(others, 1) if any(file.endswith(f"/{one}") for one in wanted))
    return next(found, None)


def row(places: list[int | None]) -> str:
    """Return the cells of one kind of questions."""
    first, three = (sum(at is not None and at <= most for at in places) for most in (1, 3))
    return f"{first} | {three} | {sum(1 / at for at in places if at) / len(places):.3f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repositories", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--modes", default="bm25,walk")
    parser.add_argument("--work", type=Path)
    given = parser.parse_args()
    folders = dict(one.split("=", 1) for one in given.repositories)
    with QUESTIONS.open(encoding="utf-8") as lines:
        questions = [json.loads(line) for line in lines]
    with tempfile.TemporaryDirectory() as temporary:
        indexes = {}
        for name, folder in folders.items():
            path = (given.work or Path(temporary)) / name
            if not path.exists():
                Index.build(folder, path).close()
            indexes[name] = Index.open(path)
        print("| mode | pages: first | three | MRR | code: first | three | MRR |")
        print("|---|---|---|---|---|---|---|")
        for mode in given.modes.split(","):
            cells = []
            for kind in ("page", "code"):
                asked = [one for one in questions if one["kind"] == kind and one["repository"] in indexes]
                places = [
                    place_of(indexes[one["repository"]], mode, one["question"], one["files"]) for one in asked
                ]
                cells.append(row(places))
            print(f"| `{mode}` | {' | '.join(cells)} |", flush=True)
        for index in indexes.values():
            index.close()


if __name__ == "__main__":
    main()
