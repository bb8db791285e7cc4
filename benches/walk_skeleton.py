"""Whether a skeleton's entities and relations help the walk as links: `python benches/walk_skeleton.py`.

The walk of `ketrag_fast.reference.walk` on sparse matrices (compared with the compiled one before anything
is printed), with links that the product does not have. With a model (`--embedder`) variant A, else C. As a
fourth matrix of the walk (stage 1), as one more shared thing of linked pairs (stage 2), or both:

* entities: units that name the same entity, which the question does not name;
* relations: a unit names A, another B, and the skeleton joins A and B; neither is named in the question;
* bridges: both units name B, and the skeleton joins B to an entity that the question names.

Beside them, as a control, the walk's own names with twice their weight: no skeleton, only more link.

`--keep FOLDER` keeps the indexes, one for each set, so that a second run embeds nothing but questions.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from common import header, require_data, table
from ketrag_fast import Index, Settings
from ketrag_fast.eval import load_dataset
from walk_links import Corpus, Links, Variant

RECORDING = "openie.gpt-3.5-turbo-1106.jsonl"


def variants() -> list[Variant]:
    """The plain walk, each link in each place, and weights around those of names and subjects."""
    made = [Variant("plain"), Variant("names again, pairs", pairs={"names": 0.3})]
    for kind in ("entities", "relations"):
        made.append(Variant(f"{kind}, walk", walk={kind: 0.33}))
        made.append(Variant(f"{kind}, pairs", pairs={kind: 0.3}))
        made.append(Variant(f"{kind}, both", walk={kind: 0.33}, pairs={kind: 0.3}))
    made += [Variant(f"relations, pairs x {weight}", pairs={"relations": weight}) for weight in (0.1, 0.6)]
    made += [Variant(f"bridges, pairs x {weight}", pairs={"bridges": weight}) for weight in (0.1, 0.3, 0.6)]
    every = {"entities": 0.33, "relations": 0.33}
    return [*made, Variant("all", walk=every, pairs={"entities": 0.3, "relations": 0.3, "bridges": 0.3})]


def main() -> None:
    """Prints a table for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="musique-train100,hotpotqa-train100")
    parser.add_argument("--budgets", default="12000,6000,3000,1500")
    parser.add_argument("--embedder", default="builtin")
    parser.add_argument("--core-ratio", type=float, default=0.8)
    parser.add_argument("--llm", help="who makes the skeleton; default: the set's recording, else heuristic")
    parser.add_argument("--only", help="variants by the beginning of their names, by semicolon; default: all")
    parser.add_argument("--keep", type=Path, help="a folder for the indexes")
    args = parser.parse_args()
    budgets = [int(x) for x in args.budgets.split(",")]
    letter = "C" if args.embedder == "builtin" else "A"
    header(
        f"A skeleton's links in the walk, variant {letter}",
        [
            "Coverage: % of questions with an answer in the context (token rule, yes/no left out); recall: %",
            "of supporting passages in it. 100 questions: differences under 2 or 3 points are noise.",
            "The walk's own constants were chosen on these sets, without a skeleton.",
        ],
    )
    for name in args.sets.split(","):
        folder = require_data(name)
        recorded = folder / RECORDING
        llm = args.llm or (f"replay:{recorded}" if recorded.exists() else "heuristic")
        settings = Settings(llm=llm, embedder=args.embedder, core_ratio=args.core_ratio, offline=True)
        with tempfile.TemporaryDirectory() as temporary:
            place = (args.keep or Path(temporary)) / name
            Index.build(folder, place, settings=settings).close()
            corpus = Corpus(place, settings, load_dataset(folder))
            corpus.links.check(corpus)
            print(f"## {name}, {llm.split(':')[0]}: {_size(corpus.links)}\n")
            _table(corpus, budgets, args.only.split(";") if args.only else [""])


def _size(links: Links) -> str:
    entities, relations = links.names["entities"].shape[1], links.joined.nnz // 2
    return f"{entities:,} entities, {relations:,} pairs of them joined by relations"


def _table(corpus: Corpus, budgets: list[int], only: list[str]) -> None:
    rows: list[list[str]] = []
    plain = 0.0, 0.0
    chosen = [v for v in variants() if v.name == "plain" or v.name.startswith(tuple(only))]
    for variant in chosen:
        coverage, recall = corpus.score(variant, budgets)
        means = sum(coverage) / len(coverage), sum(recall) / len(recall)
        if not rows:
            plain = means
        rows.append(
            [
                variant.name,
                " / ".join(f"{x:.1f}" for x in coverage),
                " / ".join(f"{x:.1f}" for x in recall),
                f"{means[0] - plain[0]:+.1f}",
                f"{means[1] - plain[1]:+.1f}",
            ]
        )
    table(["links", f"coverage at {budgets}", "recall", "coverage, mean", "recall, mean"], rows)


if __name__ == "__main__":
    main()
