"""Compare two builds of the core on development questions: rankings, and processor time per question.

python benches/two_cores.py OTHER.so [--sets musique-dev,2wiki-dev,hotpotqa-dev] [--generated 300000] [--rounds 5]

A generated corpus is asked twice: with the rare words of a passage, and with eight of the hundred most common words
that at most a tenth of the passages have.

OTHER.so is a file of the compiled core, for example a copy made before a change of ranking code. Both cores rank the same
arrays with one thread, in turn. Prints for each set and mode the questions whose first ten units differ, those whose scores
differ in any bit, and the medians of the processor time of a question with their ratio.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from common import header, require_data, table
from generated import documents, question
from ketrag_fast import _core
from ketrag_fast.kernels.text import pack
from ketrag_fast.lab.eval import load_dataset
from walk_quality import SETS, Corpus, passages

FIRST, DEPTH = 10, 100
SAMPLE = 5_000
"""Passages whose words are counted."""
QUESTIONS = 200
"""Questions about a generated corpus."""


def load_core(path: Path) -> Any:
    """Return the core in a file, next to the one that the package has loaded."""
    name = "other_core._core"
    spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not an extension module")
    core = module_from_spec(spec)
    spec.loader.exec_module(core)
    return core


def read_set(name: str) -> tuple[Corpus, dict[str, list[str]]]:
    """Return the arrays of a set, or of a generated corpus of that many documents, and lists of questions by name."""
    if name.isdigit():
        rows = list(documents(int(name)))
        chance = random.Random(5)
        asked = {
            f"{name}, rare words": [
                question(rows[at]) for at in chance.choices(range(len(rows)), k=QUESTIONS)
            ],
            f"{name}, common words": common_words([d.text for d in rows[:SAMPLE]], chance),
        }
    else:
        rows = passages(name)
        asked = {name: [one.text for one in load_dataset(require_data(name)).questions]}
    return Corpus.of([d.title for d in rows], [d.text for d in rows]), asked


def common_words(texts: list[str], chance: random.Random) -> list[str]:
    """Return questions of eight of the hundred most common words that at most a tenth of the texts have."""
    counts = Counter(word for text in texts for word in set(re.findall(r"\w{4,}", text.lower())))
    ranked = sorted((-count, word) for word, count in counts.items() if count <= len(texts) / 10)
    words = [word for _, word in ranked[:100]]
    return [" ".join(chance.sample(words, 8)) for _ in range(QUESTIONS)]


def rankers(core: Any, corpus: Corpus) -> dict[str, Callable[[list[str]], Any]]:
    """Return a function from questions to rankings for each mode."""
    links, lengths = dict(corpus.links), corpus.lengths
    return {
        "bm25": lambda asked: core.links_bm25(links, *pack(asked), DEPTH, threads=1),
        "walk": lambda asked: core.walk_rank(links, *pack(asked), DEPTH, lengths=lengths, threads=1),
    }


def differences(one: Any, other: Any) -> tuple[int, int]:
    """Return how many questions have other first units, and how many have any other id or bit of a score."""
    rows = [
        [(ids[a:b].tolist(), scores[a:b].tolist()) for a, b in pairwise(ends.tolist())]
        for ends, ids, scores in (one, other)
    ]
    pairs = list(zip(*rows, strict=True))
    first = sum(a[0][:FIRST] != b[0][:FIRST] for a, b in pairs)
    return first, sum(a != b for a, b in pairs)


def compare(corpus: Corpus, asked: list[str], other: Any, rounds: int) -> list[list[str]]:
    """Return a row of the table for each mode."""
    here, there = rankers(_core, corpus), rankers(other, corpus)
    rows = []
    for mode in here:
        both = (there[mode], here[mode])
        first, bits = differences(*(rank(asked) for rank in both))
        times: list[list[float]] = [[], []]
        for _ in range(rounds):
            for rank, kept in zip(both, times, strict=True):
                # A call checks the arrays first, which is not part of a question.
                took = []
                for questions in ([], asked):
                    started = time.process_time()
                    rank(questions)
                    took.append(time.process_time() - started)
                kept.append(1000 * (took[1] - took[0]) / len(asked))
        old, new = (statistics.median(kept) for kept in times)
        ratio = statistics.median(np.divide(times[1], times[0]).tolist())
        rows.append(
            [mode, str(len(asked)), str(first), str(bits), f"{old:.3f}", f"{new:.3f}", f"{ratio:.2f}"]
        )
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument(
        "--generated", type=int, default=0, help="also compare on a generated corpus of N documents"
    )
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    other = load_core(options.other)
    names = [name for name in options.sets.split(",") if name]
    rows = []
    for name in names + [str(options.generated)] * (options.generated > 0):
        corpus, asked = read_set(name)
        for kind, questions in asked.items():
            found = compare(corpus, questions, other, options.rounds)
            rows += [[kind, f"{len(corpus.lengths):,}", *row] for row in found]
    header("Two cores compared", [f"The other core is {options.other}; medians of {options.rounds} rounds."])
    columns = [
        "set",
        "units",
        "mode",
        "questions",
        "other first ten",
        "other bits",
        "other ms",
        "ms",
        "ratio",
    ]
    table(columns, rows)


if __name__ == "__main__":
    main()
