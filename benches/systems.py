"""Every system at its best next to text, fused and walk, at equal tokens: shares of questions with an answer in the context.

python benches/systems.py musique-dev             # vectors by all-MiniLM-L6-v2, entities and relations by rules
python benches/systems.py musique-dev --plain     # vectors fitted on the corpus
python benches/systems.py musique-train100        # entities and relations that GPT-3.5 extracted, recorded by HippoRAG
"""

from __future__ import annotations

import sys
from dataclasses import replace

from common import MODEL, WORK, arguments, publish, require_data, require_model, reuse_vectors
from common import result_table as table
from ketrag_fast import Index, Settings
from ketrag_fast.lab.eval import METRICS, collect, load_dataset
from quality import share
from recorded import RECORDING

BASE = ("text", "fused", "walk", "cg-rag", "g2cons")
NODES = ("noderag", "noderag:reference")
BUDGETS = (12_000, 6_000, 3_000)
RECORDED = "musique-train100"


def rows(index: Index, dataset: object, mode: str, label: str) -> list[object]:
    """Return a mode's coverage and mean tokens at each budget. Raises SystemExit if the index lacks the mode."""
    found = collect(index, dataset, [mode], BUDGETS)
    if found.skipped:
        raise SystemExit(f"{mode}: {found.skipped[mode]}")
    coverage = METRICS["coverage"]
    cells: list[object] = [label]
    for budget in BUDGETS:
        results = found.of(mode, budget)
        cells.append(share([value for r in results if (value := coverage(r)) is not None]))
    first = found.of(mode, BUDGETS[0])
    cells.append(round(sum(r.tokens for r in first) / len(first)))
    print(label, cells, file=sys.stderr, flush=True)
    return cells


def main() -> None:
    """Measure a set."""
    parser = arguments(__doc__)
    parser.add_argument("set")
    parser.add_argument("--plain", action="store_true", help=f"fit vectors on the corpus instead of {MODEL}")
    parser.add_argument("--modes", default=",".join(BASE), help="the other modes")
    args = parser.parse_args()
    folder = require_data(args.set)
    dataset = load_dataset(folder)
    if args.smoke:
        dataset = replace(dataset, questions=dataset.questions[:5])
    llm = "heuristic"
    if args.set == RECORDED:
        llm = f"replay:{folder / RECORDING}"
    common: dict[str, object] = {"llm": llm}
    if not args.plain:
        common["embedder"] = f"native:{require_model()}"
    modes = [mode for mode in args.modes.split(",") if mode]
    out = []
    vectors = "fitted" if args.plain else "minilm"
    # One folder for both builds, so that no text is embedded twice.
    place = WORK / f"systems-{args.set}-{vectors}"
    if not args.plain:
        reuse_vectors(place, args.set)
    if modes:
        settings = Settings(modes=",".join(modes), **common)
        with Index.build(folder, place, settings=settings, rebuild=True) as index:
            out += [rows(index, dataset, mode, mode) for mode in modes]
    for system in NODES:
        nodes = Settings(system=system, modes="noderag", **common)
        with Index.build(folder, place, settings=nodes, rebuild=True) as index:  # the vectors are kept
            out.append(rows(index, dataset, "noderag", system))
            passages = index.stats()["counts"]["documents"]
    heads = [f"answer at {budget:,}" for budget in BUDGETS]
    columns = ["set", "vectors", "mode", *heads, f"tokens of {BUDGETS[0]:,}"]
    label = "none" if args.plain else "MiniLM"
    about = f"{args.set}: {len(dataset.questions):,} questions, {passages:,} passages."
    publish([table("Answers in the context", columns, [[args.set, label, *row] for row in out])], about)


if __name__ == "__main__":
    main()
