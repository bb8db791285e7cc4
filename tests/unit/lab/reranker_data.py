"""A small data set that needs two hops: a ship's page names its captain, whose page has the answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu")


def name(generator: np.random.Generator) -> str:
    """Return a random name of four syllables."""
    return "".join(generator.choice(SYLLABLES, 4)).capitalize()


def save(folder: Path, *, questions: int = 24, seed: int = 0) -> Path:
    """Write the data set to a folder and return it."""
    generator = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    corpus, queries, judged = [], [], ["query-id\tcorpus-id\tscore"]
    for at in range(questions):
        ship, captain, town = (name(generator) for _ in range(3))
        ship_text = (
            f"{ship} was a ship of the northern fleet. Its captain for many years was {captain}. "
            f"It carried timber and fish along the coast in summer."
        )
        captain_text = (
            f"{captain} was a sailor of the north. He was born in the town of {town} near the sea. "
            f"He liked to read old maps in his cabin at night."
        )
        town_text = (
            f"{town} is a town. The fleet of the north stopped there. Many a captain was born in such a town."
        )
        for kind, title, text in (
            ("s", ship, ship_text),
            ("c", captain, captain_text),
            ("t", town, town_text),
        ):
            corpus.append({"_id": f"{kind}{at}", "title": title, "text": text})
        queries.append({"_id": f"q{at}", "text": f"In which town was the captain of {ship} born?"})
        judged += [f"q{at}\ts{at}\t1", f"q{at}\tc{at}\t1"]
    for file, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        (folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "qrels.tsv").write_text("\n".join(judged) + "\n", "utf-8")
    return folder
