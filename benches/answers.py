"""Quoted answers: exact match and F1 of a trained extractive model next to the best sentence, on questions not trained on.

    python benches/answers.py                       # trains in target/benches/answers if there is no model (a quarter of an
                                                    # hour of two cores, resumed if it was stopped), and scores it
    python benches/answers.py --answers FOLDER      # scores another model

The contexts are those of mode `walk` without an embedding model, of 2,000 tokens.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from common import WORK, arguments, publish, require_data
from common import result_table as table
from ketrag_fast import Index, Settings
from ketrag_fast.lab.answers.judging import BUDGET, judge_answers
from ketrag_fast.lab.answers.training import train_answers
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.lab.eval.paired import PairedDifference
from ketrag_fast.models.extractive import Extractor

SET = "hotpotqa-dev"
TRAINED = ("musique-dev", "2wiki-dev")
PLACE = WORK / "answers"


def gap(difference: PairedDifference) -> list[float]:
    """Return a difference with its interval, in percent."""
    return [100 * value for value in (difference.difference, *difference.ci95)]


def main() -> None:
    """Score a model."""
    parser = arguments(__doc__)
    parser.add_argument("--questions", type=int, default=0, metavar="N", help="the first N; 0: all")
    parser.add_argument("--answers", type=Path, default=PLACE, help="folder of the model")
    args = parser.parse_args()
    if not (args.answers / "model.safetensors").exists():
        paths = [str(require_data(name)) for name in TRAINED]
        train_answers(
            paths,
            args.answers,
            settings=Settings(),
            epochs=1,
            tell=lambda text: print(text, file=sys.stderr),
        )
    folder = require_data(SET)
    dataset = load_dataset(folder)
    count = 5 if args.smoke else args.questions
    if count:
        dataset = replace(dataset, questions=dataset.questions[:count])
    with Index.build(folder, WORK / f"answers-{SET}", settings=Settings(modes="walk")) as index:
        found = judge_answers(index, dataset, Extractor(f"native:{args.answers}"))
    assert found is not None
    rows: list[list[object]] = [
        [
            score.name,
            [100 * x for x in (score.exact, *score.exact_ci95)],
            [100 * x for x in (score.f1, *score.f1_ci95)],
        ]
        for score in found.scores
    ]
    rows.append(["difference", gap(found.exact), gap(found.f1)])
    about = (
        f"{SET}: {found.questions:,} questions with an answer other than yes or no; contexts of {BUDGET:,} tokens of mode walk, no"
        f" embedding model. The model was trained on {' and '.join(TRAINED)}; it left {found.questions - found.answered:,} questions open."
    )
    publish([table("Quoted answers", ["answers", "exact match", "F1"], rows)], about)


if __name__ == "__main__":
    main()
