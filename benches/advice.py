"""Compare the recommendations of `ketrag bench advise` with the labelled results of question sets.

The set `technical` is read if its documents were fetched (`python benches/technical.py --fetch`).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import technical
from common import arguments, publish, require_data
from common import result_table as table
from ketrag_fast import Index
from ketrag_fast.lab.advice.findings import CANNOT_TELL, advise
from ketrag_fast.lab.advice.trial import FIRST, run_trial
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.lab.eval.paired import compare_paired
from retrieval import documents

SETS = ("musique-dev", "2wiki-dev", "hotpotqa-dev", "cacm", "xquad-en", "xquad-de", "xquad-ru", "xquad-zh")
TECHNICAL = "technical"


def labelled(name: str, path: Path) -> tuple[float, float, str]:
    """Return recall@5 of bm25 and walk with the labels of a set, and the mode that is better, or that none is."""
    recalls = technical_recalls(path) if name == TECHNICAL else judged_recalls(name, path)
    compared = compare_paired(recalls["bm25"], recalls["walk"])
    assert compared is not None
    low, high = compared.ci95
    return compared.a, compared.b, "walk" if low > 0 else "bm25" if high < 0 else "either"


def judged_recalls(name: str, path: Path) -> dict[str, list[float]]:
    """Return recall@5 of both modes for each judged question of a data set."""
    dataset = load_dataset(require_data(name))
    asked = [question for question in dataset.questions if question.gold]
    recalls = {}
    with Index.open(path) as index:
        for mode in ("bm25", "walk"):
            found = index.retrieve_many([q.text for q in asked], mode=mode, top=FIRST, budget=1 << 30)
            recalls[mode] = [
                len({f"{name}/{p}" for p in question.gold} & {p.document for p in context.passages})
                / len(question.gold)
                for context, question in zip(found, asked, strict=True)
            ]
    return recalls


def technical_recalls(path: Path) -> dict[str, list[float]]:
    """Return recall@5, counted in passages, of both modes for each question on technical documentation."""
    questions = json.loads(technical.TRUTH.read_text("utf-8"))["questions"]
    with Index.open(path) as index:
        return {
            mode: [technical.scores(index, mode, question)[1] for question in questions]
            for mode in ("bm25", "walk")
        }


def main() -> None:
    """Print or store the table."""
    args = arguments(__doc__).parse_args()
    rows = []
    names = SETS[4:5] if args.smoke else SETS
    if technical.DOCS.is_dir() and not args.smoke:
        names = (*names, TECHNICAL)
    for name in names:
        print(name, file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "index"
            sources = technical.DOCS if name == TECHNICAL else documents([name])
            Index.build(sources, path).close()
            advice = advise(run_trial(path))
            bm25, walk, better = labelled(name, path)
        shares = {(share.kind, share.mode): 100 * share.share for share in advice.shares}
        said = next(one.value for one in advice.findings if one.question == "Which mode?")
        rows.append(
            [
                name,
                *(shares.get((kind, mode)) for kind in ("direct", "linked") for mode in ("bm25", "walk")),
                said or CANNOT_TELL,
                100 * bm25,
                100 * walk,
                better,
                "yes" if better in (said, "either") else "no",
            ]
        )
    columns = ["set", "direct bm25", "direct walk", "linked bm25", "linked walk", "advice"]
    columns += ["recall@5 bm25", "recall@5 walk", "better", "agrees"]
    publish(
        [table("advice without labels, and recall@5 with them", columns, rows)],
        "The passages of each set, no embedding model.",
        ["better: the mode whose recall@5 is higher, if the 95 % interval of the difference leaves out 0"],
    )


if __name__ == "__main__":
    main()
