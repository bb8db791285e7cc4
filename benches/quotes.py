"""How often the quotes of an answer without a model contain the answer, at one quote and at three.

python benches/quotes.py                  # the five sets that the weights of quotes.py are fitted on
python benches/quotes.py xquad-de 2wiki-dev

"Passages" is the share of questions whose first five passages contain it: a bound for the quotes. Answers are
compared as in coverage: in lower case without punctuation and articles, whole words (characters in Chinese).
Questions that are answered by yes or no are left out, as every text contains these by chance. "Length" is the mean
number of characters of the three quotes together: longer quotes contain more by chance.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from common import WORK, arguments, publish, require_data
from common import result_table as table
from ketrag_fast import Index
from ketrag_fast.eval import load_dataset
from ketrag_fast.eval.datasets import Question
from ketrag_fast.eval.metrics import bootstrap_interval, is_covered, is_yes_no, normalise
from ketrag_fast.types import Context

SETS = ("xquad-en", "hotpotqa-dev", "musique-dev", "lihua-world", "ottqa-dev")
COLUMNS = ("set", "questions", "one quote", "three quotes", "passages", "length")

Interval = tuple[float, float, float]


def main() -> None:
    """Print a row for each set and the mean."""
    parser = arguments(__doc__)
    parser.add_argument("sets", nargs="*", default=SETS, help="names of question sets (default: %(default)s)")
    args = parser.parse_args()
    rows = [row(name, args) for name in args.sets]
    mean = [round(sum(value_of(row[at]) for row in rows) / len(rows), 1) for at in range(2, len(COLUMNS))]
    if len(rows) > 1:
        rows.append(["mean", sum(row[1] for row in rows), *mean])
    publish([table("Questions whose quotes contain the answer, %", COLUMNS, rows)], "")


def row(name: str, args: argparse.Namespace) -> list:
    """Return the row of a set."""
    folder = require_data(name)
    questions = [one for one in load_dataset(folder).questions if one.answers and not is_yes_no(one.answers)]
    if args.smoke:
        questions = questions[:5]
    scores: list[list[float]] = [[], [], []]
    length = 0
    with open_set(folder, name) as index:
        for question in questions:
            answer = index.ask(question.text, llm="none")
            quotes = [quote.text for quote in answer.quotes]
            length += sum(map(len, quotes))
            first = passages(answer.context)
            for at, texts in enumerate((quotes[:1], quotes[:3], first)):
                scores[at].append(float(contains(texts, question, name)))
    return [name, len(questions), *map(interval, scores), round(length / len(questions))]


def open_set(folder: Path, name: str) -> Index:
    """Return the index of a set with the default settings; one of an earlier run is updated."""
    return Index.build([folder / "corpus.jsonl"], WORK / f"quotes-{name}")


def passages(context: Context) -> list[str]:
    """Return the texts of the first five passages."""
    return [passage.text for passage in context.passages[:5]]


def contains(texts: list[str], question: Question, name: str) -> bool:
    """Return whether one of the texts contains an answer."""
    answers = [normalise(answer) for answer in question.answers]
    is_unspaced = name.endswith("-zh")
    return any(is_covered(normalise(text), answers, substring=is_unspaced) for text in texts)


def interval(values: list[float]) -> Interval:
    """Return the mean in percent with the ends of its 95 % interval."""
    low, high = bootstrap_interval(values) or (0.0, 0.0)
    mean = sum(values) / max(len(values), 1)
    return round(100 * mean, 1), round(100 * low, 1), round(100 * high, 1)


def value_of(cell: float | Interval) -> float:
    """Return the mean of a cell."""
    return cell[0] if isinstance(cell, tuple) else cell


if __name__ == "__main__":
    main()
