"""The fold of 100,000 replies into a skeleton: `python benches/fold.py`.

Caveats first. One machine, medians. The replies are those of a recorded extraction (1,890 passages of
musique-train100 read by gpt-3.5-turbo: entities, triples as relations), repeated; in each repetition every
other name is a new one, so that the graph grows with the replies while half of its names are known
everywhere. The fold merges, joins descriptions, looks names up in the text and counts every row's tokens.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from common import header, median, require_data, seconds, table
from ketrag_fast import kernels


def recorded() -> list[tuple[str, list[str], list[list[str]]]]:
    """(text, names, triples) of each passage."""
    folder = require_data("musique-train100")

    def lines(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]

    texts = {row["_id"]: row["text"] for row in lines("corpus.jsonl")}
    found = []
    for row in lines("openie.gpt-3.5-turbo-1106.jsonl"):
        triples = [t for t in row["triples"] if len(t) == 3 and all(isinstance(x, str) for x in t)]
        found.append((texts[row["corpus-id"]], row["entities"], triples))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    header("Fold of replies into a skeleton", [" ".join((__doc__ or "").split("\n\n")[1].split())])
    base = recorded()
    texts, names, sources, targets, said = [], [], [], [], []
    entity_ends, relation_ends = [0], [0]
    for i in range(chosen.replies):
        text, entities, triples = base[i % len(base)]
        turn = i // len(base)

        def name(known: str, turn: int = turn) -> str:
            return known if len(known) % 2 else f"{known} {turn}"

        texts.append(text)
        names += [name(e) for e in entities]
        sources += [name(t[0]) for t in triples]
        targets += [name(t[2]) for t in triples]
        said += [f"{name(t[0])} {t[1]} {name(t[2])}" for t in triples]
        entity_ends.append(len(names))
        relation_ends.append(len(sources))
    blank = kernels.pack([""] * len(names))
    replies = {
        "reply_chunk": np.arange(chosen.replies, dtype=np.uint32),
        "reply_entities_indptr": np.array(entity_ends, np.uint64),
        "reply_relations_indptr": np.array(relation_ends, np.uint64),
        "relation_strength": np.ones(len(sources)),
        "entity_type_blob": blank[0],
        "entity_type_offsets": blank[1],
        "entity_description_blob": blank[0],
        "entity_description_offsets": blank[1],
    }
    for key, column in (
        ("entity_name", names),
        ("relation_source", sources),
        ("relation_target", targets),
        ("relation_description", said),
    ):
        replies[f"{key}_blob"], replies[f"{key}_offsets"] = kernels.pack(column)
    packed = kernels.pack(texts)
    spans = np.array([[0, len(text)] for text in texts], np.uint32)
    units = np.arange(chosen.replies + 1, dtype=np.uint64)
    rows = []
    for threads in (1, 0):
        took = seconds(
            lambda threads=threads: kernels.fold_skeleton(replies, units, packed, spans, threads=threads),
            chosen.runs,
            warmup=0,
        )
        rows.append([chosen.replies, threads or "all", median(took)])
    made = kernels.fold_skeleton(replies, units, packed, spans)
    table(["replies", "threads", "seconds"], rows)
    print(
        f"{len(names):,} entity and {len(sources):,} relation records became {len(made['entity_rank']):,} entities "
        f"and {len(made['relation_rank']):,} relations with {len(made['mention_entity']):,} mentions."
    )


if __name__ == "__main__":
    main()
