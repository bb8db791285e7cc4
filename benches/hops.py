"""Quality by the number of hops of a question: recall and all gold with intervals, on the sets that name the hops.

python benches/hops.py musique-dev             # vectors fitted on the corpus
python benches/hops.py musique-dev --model     # all-MiniLM-L6-v2
"""

from __future__ import annotations

from dataclasses import replace

from common import MODEL, WORK, arguments, publish, require_data, require_model, reuse_vectors
from common import result_table as table
from ketrag_fast import Index, Settings
from ketrag_fast.lab.eval import collect, load_dataset
from ketrag_fast.lab.eval.metrics import all_gold, recall
from quality import share

MODES = ("bm25", "text", "fused", "walk")
RECALLS = (2, 5)
ALL_GOLD = (5, 10)
BUDGET = 12_000


def main() -> None:
    """Measure a set with one embedder."""
    parser = arguments(__doc__)
    parser.add_argument("set")
    parser.add_argument("--model", action="store_true", help=f"embed with {MODEL}")
    args = parser.parse_args()
    dataset = load_dataset(require_data(args.set))
    if args.smoke:
        dataset = replace(dataset, questions=dataset.questions[:5])
    hops = {question.id: str(question.metadata.get("hops", "")) for question in dataset.questions}
    if not any(hops.values()):
        raise SystemExit(f"{args.set}: the questions have no metadata.hops")
    modes = MODES[1:] if args.model else MODES
    settings = Settings(modes=",".join(modes))
    if args.model:
        settings = settings.having(embedder=f"native:{require_model()}")
    gold = {question.id: question.gold for question in dataset.questions if question.gold}
    rows = []
    place = WORK / f"{args.set}-hops-{args.model}"
    if args.model:
        reuse_vectors(place, args.set)
    with Index.build(require_data(args.set), place, settings=settings) as index:
        found = collect(index, dataset, list(modes), [BUDGET])
        passages = index.stats()["counts"]["documents"]
    for mode in modes:
        for name in sorted(set(hops.values())):
            results = [r for r in found.of(mode, BUDGET) if r.question in gold and hops[r.question] == name]
            cells = [
                *(
                    share([float(recall(r.found[:k], gold[r.question]) or 0) for r in results])
                    for k in RECALLS
                ),
                *(
                    share([float(all_gold(r.found[:k], gold[r.question]) or 0) for r in results])
                    for k in ALL_GOLD
                ),
            ]
            rows.append([mode, "MiniLM" if args.model else "none", name, len(results), *cells])
    cuts = [f"recall@{k}" for k in RECALLS] + [f"all gold in {k}" for k in ALL_GOLD]
    about = f"{len(dataset.questions):,} questions, {passages:,} passages."
    publish([table("By hops", ["mode", "vectors", "hops", "questions", *cuts], rows)], about)


if __name__ == "__main__":
    main()
