"""Compare the recommendations of `ketrag bench advise` with the labelled results of five question sets."""

from __future__ import annotations

import tempfile
from pathlib import Path

from common import arguments, publish, require_data
from common import result_table as table
from ketrag_fast import Index
from ketrag_fast.lab.advice.findings import CANNOT_TELL, advise
from ketrag_fast.lab.advice.trial import FIRST, run_trial
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.lab.eval.paired import compare_paired
from retrieval import documents

SETS = ("musique-dev", "2wiki-dev", "hotpotqa-dev", "cacm", "xquad-en")


def labelled(name: str, path: Path) -> tuple[float, float, str]:
    """Return recall@5 of bm25 and walk with the labels of a set, and the mode that is better, or that none is."""
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
    compared = compare_paired(recalls["bm25"], recalls["walk"])
    assert compared is not None
    low, high = compared.ci95
    return compared.a, compared.b, "walk" if low > 0 else "bm25" if high < 0 else "either"


def main() -> None:
    """Print or store the table."""
    args = arguments(__doc__).parse_args()
    rows = []
    for name in SETS[-1:] if args.smoke else SETS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "index"
            Index.build(documents([name]), path).close()
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
