"""BM25 and the walk over many passages, one thread: 8,009 real ones and 300,000 generated.

Generated passages are sentences of real ones, drawn at random, so that each sentence, name and title comes
back some forty times: the hard case for links.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Callable

from common import header, median, table
from ketrag_fast.kernels import links as kernel
from retrieval import documents, questions

SETS = ["musique-train100", "2wiki-101"]
WORDS = 90
BATCH = 10
TARGETS = {
    ("bm25", False): "",
    ("walk", False): "1.5",
    ("bm25", True): "",
    ("walk", True): "6",
}


def sentences_of(text: str) -> list[str]:
    """Roughly the sentences of a text."""
    return [s for s in re.split(r"(?<=[.!?])\s+(?=[A-Z])", text) if s.strip()]


def generated(n: int) -> kernel.Links:
    """The arrays of n passages of at least WORDS words, of sentences drawn from the sets."""
    chance = random.Random(5)
    real = documents(SETS)
    pool = [sentence for document in real for sentence in sentences_of(document.text)]
    titles, groups = [], []
    for _ in range(n):
        group: list[str] = []
        words = 0
        while words < WORDS:
            group.append(chance.choice(pool))
            words += len(group[-1].split())
        titles.append(chance.choice(real).title)
        groups.append(group)
    return kernel.build_links(titles, [" ".join(group) for group in groups], groups)


def batches(ask: Callable[[list[str]], object], asked: list[str], rounds: int) -> list[float]:
    """Processor time of a question in milliseconds, by batches; what a call costs by itself is taken off."""

    def spent(batch: list[str]) -> float:
        started = time.process_time()
        ask(batch)
        return 1000 * (time.process_time() - started)

    spent(asked)
    call = min(spent([]) for _ in range(9))
    starts = range(0, len(asked), BATCH)
    return [
        (spent(asked[at : at + BATCH]) - call) / len(asked[at : at + BATCH])
        for _ in range(rounds)
        for at in starts
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    asked = questions(SETS)
    header(
        "The walk over many passages, without a model",
        [
            f"{len(asked)} questions of {' and '.join(SETS)}, {BATCH} at a time, one thread; kernels alone.",
            "Milliseconds of processor time a question: the median of all batches, and of the best of each.",
            "Generated passages: sentences of the same sets at random, each some forty times.",
        ],
    )
    real = documents(SETS)
    groups = [sentences_of(document.text) for document in real]
    small = kernel.build_links([d.title for d in real], [d.text for d in real], groups)
    rows = []
    for large, links in ((False, small), (True, generated(args.size))):
        count = len(links["unit_subject"])
        ways: dict[str, Callable[[list[str]], object]] = {
            "bm25": lambda some, links=links: kernel.bm25(links, some, 100, threads=1),
            "walk": lambda some, links=links: kernel.walk(links, some, 100, threads=1),
        }
        for name, ask in ways.items():
            took = batches(ask, asked, args.rounds)
            step = len(took) // args.rounds
            least = median([min(took[at::step]) for at in range(step)])
            rows.append([f"{count:,}", name, f"{median(took):.2f}", f"{least:.2f}", TARGETS[name, large]])
    table(["passages", "ranking", "median ms", "least of rounds, median", "target"], rows)


if __name__ == "__main__":
    main()
