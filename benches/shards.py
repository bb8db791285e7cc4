"""Recall, scores and time of one query over several indexes against one index of the same documents.

    python benches/shards.py [FOLDER...] [--generated 300000] [--counts 2,4,8] [--questions 200] [--embedder SPEC] [--work FOLDER]
        [--services] [--copies] [--apart] [--modes bm25,walk]

FOLDER is a data set in BEIR's layout; --generated adds a set of as many generated passages, with one question
for each of some of them. Documents are assigned to indexes by a hash of their ids. The columns
are recall@5 in percent of bm25 and walk, the share of questions whose scores of bm25 are those of one index
to the last digit, and milliseconds of processor time of a question, of services together with that of the
caller. Processor time is the median of three rounds. --services adds rows in which each index is behind a
service on loopback, --copies those in which these services permit copies, and --apart rows in which
local indexes are ranked as if they were too large to be joined. Prints rows of a Markdown table. The indexes
are kept in --work and used again."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import median

import generated
from ketrag_fast import Context, Document, Index, Settings
from ketrag_fast.eval import load_dataset
from ketrag_fast.eval.datasets import DataSet, Question
from ketrag_fast.index.indexes import Indexes
from ketrag_fast.query import shards

TOP, BUDGET, ROUNDS = 20, 60_000, 3


def documents_of(dataset: DataSet) -> list[Document]:
    """Return the documents of a data set."""
    if dataset.corpus is None:
        return list(dataset.documents)
    with dataset.corpus.open() as lines:
        rows = [json.loads(line) for line in lines]
    return [Document(row["_id"], row["text"], row.get("title") or "") for row in rows]


def set_of(folder: Path, most: int) -> tuple[str, list[Document], list[Question]]:
    """Return the name of a data set, its documents, and at most `most` of its questions."""
    dataset = load_dataset(folder)
    questions = [question for question in dataset.questions if question.gold]
    random.Random(1).shuffle(questions)
    return folder.name, documents_of(dataset), questions[:most]


def generated_set(passages: int, most: int) -> tuple[str, list[Document], list[Question]]:
    """Return the name, the documents and the questions of a set of generated passages."""
    documents = list(generated.documents(passages))
    asked = random.Random(1).sample(documents, most)
    questions = [Question(one.id, generated.question(one), (), frozenset({one.id}), {}) for one in asked]
    return f"{passages:,} generated", documents, questions


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


@contextmanager
def services(folders: list[Path], *options: str) -> Iterator[tuple[dict[str, str], Callable[[], float]]]:
    """Serve each index by a process of its own: the addresses by name, and the processor time of all."""
    children = []
    try:
        for folder in folders:
            command = [
                sys.executable,
                "-m",
                "ketrag_fast",
                "serve",
                "-i",
                str(folder),
                "--port",
                "0",
                *options,
            ]
            children.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        addresses = {}
        for number, child in enumerate(children):
            assert child.stderr is not None
            line = next(line for line in child.stderr if " at http://" in line)
            addresses[str(number)] = f"http://127.0.0.1:{line.strip().rpartition(':')[2]}"

        def seconds() -> float:
            ticks = 0
            for child in children:
                fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
            return ticks / os.sysconf("SC_CLK_TCK")

        yield addresses, seconds
    finally:
        for child in children:
            child.terminate()
            child.wait()


def measure(
    indexes: Indexes, questions: list[Question], mode: str, elsewhere: Callable[[], float]
) -> tuple[float, float, list[tuple[float, ...]]]:
    """Return recall@5, milliseconds of a question, and the scores of each question.

    `elsewhere` returns the processor time of services.
    """
    recall, scores = 0.0, []
    indexes.retrieve(questions[-1].text, mode=mode, top=TOP)  # files are read, and indexes joined
    rounds = []
    contexts: list[Context] = []
    for _ in range(ROUNDS):
        begin = time.process_time() + elsewhere()
        contexts = [
            indexes.retrieve(question.text, mode=mode, top=TOP, budget=BUDGET) for question in questions
        ]
        rounds.append((time.process_time() + elsewhere() - begin) / len(questions) * 1000)
    taken = median(rounds)
    for question, context in zip(questions, contexts, strict=True):
        found = list(dict.fromkeys(passage.document for passage in context.passages))[:5]
        recall += len(question.gold & set(found)) / len(question.gold)
        scores.append(tuple(sorted((passage.score for passage in context.passages), reverse=True)[:10]))
    return 100 * recall / len(questions), taken, scores


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--generated", type=int)
    parser.add_argument("--counts", default="2,4,8")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--embedder", default="builtin")
    parser.add_argument("--modes", default="bm25,walk")
    parser.add_argument("--services", action="store_true")
    parser.add_argument("--copies", action="store_true")
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--work", type=Path)
    given = parser.parse_args()
    settings = Settings(embedder=given.embedder, threads=1)
    modes = given.modes.split(",")
    most = shards.MOST_JOINED
    print(f"| set | indexes | {' | '.join(modes)} | equal scores | {' | '.join(f'{m} ms' for m in modes)} |")
    print("|---" * (3 + 2 * len(modes)) + "|")
    with tempfile.TemporaryDirectory() as temporary:
        sets = [partial(set_of, folder, given.questions) for folder in given.folders]
        if given.generated:
            sets.append(partial(generated_set, given.generated, given.questions))
        for read in sets:
            set_name, documents, questions = read()
            embedder = given.embedder.replace("/", "-").replace(":", "-")
            own = (given.work or Path(temporary)) / set_name / embedder
            expected: list[tuple[float, ...]] = []

            def show(
                name: str,
                indexes: Indexes,
                elsewhere: Callable[[], float] = lambda: 0.0,
                dataset_name: str = set_name,
                questions: list[Question] = questions,
                expected: list[tuple[float, ...]] = expected,
            ) -> None:
                rows = [measure(indexes, questions, mode, elsewhere) for mode in modes]
                if not expected:
                    expected += rows[0][2]
                equal = sum(a == b for a, b in zip(expected, rows[0][2], strict=True)) / len(questions)
                recall = " | ".join(f"{row[0]:.1f}" for row in rows)
                taken = " | ".join(f"{row[1]:.1f}" for row in rows)
                print(f"| {dataset_name} | {name} | {recall} | {100 * equal:.1f} | {taken} |", flush=True)

            for count in (1, *map(int, given.counts.split(","))):
                with ExitStack() as stack:
                    opened = open_indexes(documents, count, own, settings)
                    indexes = Indexes({name: stack.enter_context(index) for name, index in opened.items()})
                    show(str(count), indexes)
                    if given.apart and count > 1:
                        shards.MOST_JOINED = 0  # type: ignore[misc]
                        show(f"{count}, ranked apart", indexes)
                        shards.MOST_JOINED = most  # type: ignore[misc]
                folders = [own / f"{count}-{number}" for number in range(count)]
                if given.services and count > 1:
                    with services(folders) as (addresses, seconds):
                        show(f"{count} services", Indexes(addresses), seconds)
                if given.copies and count > 1:
                    with services(folders, "--allow-copies") as (addresses, seconds):
                        indexes = Indexes(addresses)
                        show(f"{count} services, copied", indexes, seconds)
                        indexes.close()


if __name__ == "__main__":
    main()
