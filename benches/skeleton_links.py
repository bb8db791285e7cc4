"""Whether a skeleton's entities and relations help the walk: `python benches/skeleton_links.py`.

They become names in addition to the walk's names, so that the compiled walk goes over them (stage 1, the step from the best) and
counts them in pairs, as it does with names:

* entities: a name for each entity, in the units and the sentences that mention it (a control: no relation, more link);
* relations: a name for each pair of joined entities, wherever one of the two is mentioned.

`python benches/skeleton_links.py [--sets musique-dev,musique-train100] [--llm heuristic]`; a set with a recording of a
language model's triples takes that, others the rules.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ablations import Values, paired
from common import header, require_data, table
from ketrag_fast import Index, Settings
from ketrag_fast.kernels import links as kernel
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.lab.eval.metrics import is_yes_no, normalise
from ketrag_fast.lab.eval.question import DataSet
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from skeleton_matrices import RECORDING, Links, rows
from walk_quality import BUDGETS, DEPTH, coverage
from walk_quality import Corpus as Units

LAST = "\U0010fffd"
"""Sorts behind every name of a text."""
MOST = 200
"""Names of more units are not walked over anyway."""


def with_names(stored: dict[str, Any], units: sp.csr_array, sentences: sp.csr_array, weight: float) -> Any:
    """The walk's arrays with a name for each column, whose rarity counts `weight` times."""
    df = np.asarray(units.sum(axis=0)).ravel()
    kept = np.flatnonzero((df >= 2) & (df <= MOST))
    n = units.shape[0]
    names = unpack(stored["names_blob"], stored["names_offsets"])
    both = sp.hstack([rows(stored, "unit_names", len(names)), units[:, kept]]).tocsr()
    inside = sp.hstack([rows(stored, "sentence_names", len(names)), sentences[:, kept]]).tocsr()
    idf = weight * np.log(1 + (n - df[kept] + 0.5) / (df[kept] + 0.5))
    made = dict(stored)
    made["names_blob"], made["names_offsets"] = pack([*names, *(f"{LAST}{i:08d}" for i in range(len(kept)))])
    made["name_idf"] = np.concatenate([stored["name_idf"], idf])
    for name, matrix in (("unit_names", both), ("name_units", both.T.tocsr()), ("sentence_names", inside)):
        matrix.sort_indices()
        made[f"{name}_indptr"] = matrix.indptr.astype(np.uint64)
        made[f"{name}_indices"] = matrix.indices.astype(np.uint32)
    sums = np.array(stored["unit_sums"], float)
    sums[n : 2 * n] = both @ made["name_idf"]
    made["unit_sums"] = sums
    return made


def relations(links: Links) -> tuple[sp.csr_array, sp.csr_array]:
    """For each pair of joined entities the units, and the sentences, that mention one of the two."""
    upper = sp.triu(links.joined, 1).tocoo()
    pairs = np.arange(len(upper.row))
    ends = sp.coo_array(
        (np.ones(2 * len(pairs)), (np.concatenate([upper.row, upper.col]), np.concatenate([pairs, pairs]))),
        (links.joined.shape[0], len(pairs)),
    ).tocsr()
    return _some(links.units @ ends), _some(links.sentences @ ends)


def _some(matrix: sp.csr_array) -> sp.csr_array:
    found: sp.csr_array = (matrix > 0).astype(float).tocsr()
    return found


def values_of(units: Units, normal: list[str], ids: list[str], dataset: DataSet, arrays: Any) -> Values:
    """Questions by coverage at the budgets, recall@5 and all gold in 10; NaN where a question has none."""
    texts = [q.text for q in dataset.questions]
    found = kernel.walk(arrays, texts, DEPTH, lengths=units.lengths, threads=1)
    out = []
    for question, (ranked, _) in zip(dataset.questions, found, strict=True):
        answers = [a for a in map(normalise, question.answers) if a]
        counts = bool(answers) and not is_yes_no(answers)
        row = coverage(units, normal, ranked, answers) if counts else [np.nan] * len(BUDGETS)
        documents = list(dict.fromkeys(ids[d] for d in units.document[ranked]))
        gold = question.gold
        recall = len(gold & set(documents[:5])) / len(gold) if gold else np.nan
        out.append([*row, recall, float(gold <= set(documents[:10])) if gold else np.nan])
    return np.array(out, float)


def table_of(place: Path, dataset: DataSet) -> list[list[str]]:
    """A row for each kind of link and weight."""
    stages = open_current(Layout(place), "sizes").stages
    links, stored = Links(stages), {name: stages["links"][name] for name in stages["links"]}
    cut = stages["units"]
    texts = unpack(cut["unit_texts_blob"], cut["unit_texts_offsets"])
    titles = unpack(cut["document_titles_blob"], cut["document_titles_offsets"])
    ids = unpack(cut["document_ids_blob"], cut["document_ids_offsets"])
    document = np.asarray(cut["unit_document"])
    shown = [f"{titles[d]}\n{text}" if titles[d] else text for d, text in zip(document, texts, strict=True)]
    lengths = np.log([len(text) + 1.0 for text in shown])
    units = Units(stored, document, np.asarray(cut["unit_tokens"]), shown, lengths)
    normal = [f" {normalise(text)} " for text in shown]
    kinds = {
        "entities": (links.units, links.sentences),
        "relations": relations(links),
    }
    print(f"{links.joined.shape[0]:,} entities, {links.joined.nnz // 2:,} pairs of them joined\n")
    base = values_of(units, normal, ids, dataset, stored)
    tried = {"the walk": base}
    for kind, (own, inside) in kinds.items():
        for weight in (0.3, 1.0):
            made = with_names(stored, own, inside, weight)
            tried[f"{kind} x {weight:g}"] = values_of(units, normal, ids, dataset, made)
    out = []
    for label, values in tried.items():
        mean = 100 * np.nanmean(values, axis=0)
        changes = ["", ""]
        if values is not base:
            means = np.nanmean(values, axis=1), np.nanmean(base, axis=1)
            changes = [paired(*means), paired(values[:, 3], base[:, 3])]
        out.append(
            [label, " / ".join(f"{x:.1f}" for x in mean[:4]), f"{mean[4]:.1f}", f"{mean[5]:.1f}", *changes]
        )
    return out


def main() -> None:
    """Print a table for each set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default="musique-train100,musique-dev,2wiki-dev")
    parser.add_argument("--llm", help="who makes the skeleton; default: the set's recording, else heuristic")
    parser.add_argument("--core-ratio", type=float, default=0.8)
    args = parser.parse_args()
    header(
        "A skeleton's links in the walk",
        [
            f"No embedding model; coverage at {BUDGETS} tokens, recall@5, all gold in 10.",
            "Mean of the six, and coverage at 1,500 tokens: change with the paired 95 % interval, in points.",
            "The walk's weights were chosen without a skeleton.",
        ],
    )
    for name in args.sets.split(","):
        folder = require_data(name)
        recorded = folder / RECORDING
        llm = args.llm or (f"replay:{recorded}" if recorded.exists() else "heuristic")
        settings = Settings(llm=llm, core_ratio=args.core_ratio, offline=True)
        with tempfile.TemporaryDirectory() as temporary:
            place = Path(temporary) / name
            Index.build(folder, place, settings=settings).close()
            print(f"## {name}, {llm.split(':')[0]}\n")
            table(
                ["links", "coverage", "recall@5", "all gold", "mean", "1.5k"],
                table_of(place, load_dataset(folder)),
                about=name,
            )


if __name__ == "__main__":
    main()
