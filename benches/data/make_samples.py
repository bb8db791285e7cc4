"""Make the samples of benches/data from whole question sets.

    python benches/data/make_samples.py DATA     # the folder of the question sets

A sample has questions drawn with a fixed seed, the passages that answer them, and the passages next to these in the corpus, which
were collected for the same question or the same subject and are hard to tell from the right ones. Small sets are copied whole. Lines
are copied as they are, so the same sets give the same samples.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
SEED: Final = 52


@dataclass(frozen=True)
class Sample:
    """How a sample is drawn: from which set, how many questions, and how many neighbours each passage has on either side."""

    source: str
    questions: int | None = None
    neighbours: int = 0


SAMPLES: Final = {
    "musique": Sample("musique-dev", 250, 4),
    "2wiki": Sample("2wiki-dev", 300, 4),
    "hotpotqa": Sample("hotpotqa-dev", 250, 5),
    "xquad-en": Sample("xquad-en"),
    "lihua-world": Sample("lihua-world"),
    "cosqa": Sample("cosqa-dev", 500, 2),
}


def make(sample: Sample, source: Path) -> dict[str, list[str]]:
    """Return the lines of each file of a sample."""
    corpus, queries, qrels = (
        (source / name).read_text("utf-8").splitlines()
        for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
    )
    gold: dict[str, set[str]] = {}
    for row in qrels[1:]:
        question, passage, _ = row.split("\t")
        gold.setdefault(question, set()).add(passage)
    asked = [line for line in queries if json.loads(line)["_id"] in gold]
    if sample.questions is not None:
        chosen = sorted(random.Random(SEED).sample(range(len(asked)), sample.questions))
        asked = [asked[at] for at in chosen]
        ids = {json.loads(line)["_id"] for line in asked}
        at = {json.loads(line)["_id"]: number for number, line in enumerate(corpus)}
        around = range(-sample.neighbours, sample.neighbours + 1)
        kept = {at[passage] + step for question in ids for passage in gold[question] for step in around}
        corpus = [line for number, line in enumerate(corpus) if number in kept]
    wanted = {json.loads(line)["_id"] for line in asked}
    rows = [row for row in qrels[1:] if row.split("\t")[0] in wanted]
    return {"corpus.jsonl": corpus, "queries.jsonl": asked, "qrels.tsv": [qrels[0], *rows]}


def main() -> None:
    """Write all samples."""
    for name, sample in SAMPLES.items():
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        for file, lines in make(sample, Path(sys.argv[1]) / sample.source).items():
            text = "".join(f"{line}\n" for line in lines).encode()
            (folder / f"{file}.gz").write_bytes(gzip.compress(text, mtime=0))
            print(f"{name}/{file}: {len(lines):,} lines")


if __name__ == "__main__":
    main()
