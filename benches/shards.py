"""Recall, scores and time of one query over several indexes against one index of the same documents.

    python benches/shards.py FOLDER... [--counts 2,4,8] [--questions 200] [--embedder SPEC] [--work FOLDER]

FOLDER is a data set in BEIR's layout. Documents are assigned to indexes by a hash of their ids. The columns
are recall@5 in percent of bm25 and walk, the share of questions whose scores of bm25 are those of one index
to the last digit, and milliseconds of processor time of a question. Prints rows of a Markdown table. The
indexes are kept in --work and used again."""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

from ketrag_fast import Context, Document, Index, Settings
from ketrag_fast.eval import load_dataset
from ketrag_fast.eval.datasets import DataSet, Question
from ketrag_fast.index.indexes import Indexes

MODES = ("bm25", "walk")
TOP, BUDGET = 20, 60_000
HEAD = "| set | indexes | bm25 | walk | equal scores | bm25 ms | walk ms |\n|---|---|---|---|---|---|---|"


def documents_of(dataset: DataSet) -> list[Document]:
    """Return the documents of a data set."""
    if dataset.corpus is None:
        return list(dataset.documents)
    with dataset.corpus.open() as lines:
        rows = [json.loads(line) for line in lines]
    return [Document(row["_id"], row["text"], row.get("title") or "") for row in rows]


def open_indexes(documents: list[Document], count: int, folder: Path, settings: Settings) -> dict[str, Index]:
    """Return `count` indexes of the documents, which are built if they do not exist."""
    opened = {}
    for number in range(count):
        path = folder / f"{count}-{number}"
        if not path.exists():
            own = [
                one for one in documents if int(sha256(one.id.encode()).hexdigest()[:8], 16) % count == number
            ]
            Index.build(own, path, settings=settings).close()
        opened[str(number)] = Index.open(path, settings=settings)
    return opened


def measure(
    indexes: Indexes, questions: list[Question], mode: str
) -> tuple[float, float, list[tuple[float, ...]]]:
    """Return recall@5, milliseconds of a question, and the scores of each question."""
    recall, scores = 0.0, []
    begin = time.process_time()
    contexts: list[Context] = [
        indexes.retrieve(question.text, mode=mode, top=TOP, budget=BUDGET) for question in questions
    ]
    taken = (time.process_time() - begin) / len(questions) * 1000
    for question, context in zip(questions, contexts, strict=True):
        found = list(dict.fromkeys(passage.document for passage in context.passages))[:5]
        recall += len(question.gold & set(found)) / len(question.gold)
        scores.append(tuple(sorted((passage.score for passage in context.passages), reverse=True)[:10]))
    return 100 * recall / len(questions), taken, scores


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--counts", default="2,4,8")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--embedder", default="builtin")
    parser.add_argument("--work", type=Path)
    given = parser.parse_args()
    settings = Settings(embedder=given.embedder, threads=1)
    print(HEAD)
    with tempfile.TemporaryDirectory() as temporary:
        for folder in given.folders:
            dataset = load_dataset(folder)
            questions = [question for question in dataset.questions if question.gold]
            random.Random(1).shuffle(questions)
            questions = questions[: given.questions]
            documents = documents_of(dataset)
            own = (
                (given.work or Path(temporary))
                / folder.name
                / given.embedder.replace("/", "-").replace(":", "-")
            )
            expected: list[tuple[float, ...]] = []
            for count in (1, *map(int, given.counts.split(","))):
                with ExitStack() as stack:
                    opened = open_indexes(documents, count, own, settings)
                    indexes = Indexes({name: stack.enter_context(index) for name, index in opened.items()})
                    rows = {mode: measure(indexes, questions, mode) for mode in MODES}
                expected = expected or rows["bm25"][2]
                equal = sum(a == b for a, b in zip(expected, rows["bm25"][2], strict=True)) / len(questions)
                recall = " | ".join(f"{rows[mode][0]:.1f}" for mode in MODES)
                taken = " | ".join(f"{rows[mode][1]:.1f}" for mode in MODES)
                print(f"| {folder.name} | {count} | {recall} | {100 * equal:.1f} | {taken} |", flush=True)


if __name__ == "__main__":
    main()
