"""Second questions with a pronoun: how often their passage is retrieved, next to the same question written out.

python benches/conversation.py                  # pairs from three sets of multi-hop questions, then questions that stand alone
python benches/conversation.py --show           # prints the pairs

A pair is made from a question with two hops. "Where was the director of film X born?" becomes "Who is the director of
film X?" and "Where was he born?"; written out, the second is "Where was NAME born?". Recall is the share of second
questions for which the passage about NAME is among the first five. The first question is answered with quotes, without a
model, and this answer is the history of the second, right or wrong. "Alone" asks the second question without history.

Questions that stand alone are all questions of the sets, each with the answer to the question before it as its history:
recall@5 of their passages must be the same as without one.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from common import WORK, arguments, publish, require_data
from common import result_table as table
from ketrag_fast import Index
from ketrag_fast.eval import load_dataset
from ketrag_fast.eval.datasets import Question
from ketrag_fast.types import Answer

PAIRS = {"2wiki-dev": 130, "musique-dev": 60, "hotpotqa-dev": 30}
ALONE = ("2wiki-dev", "musique-dev", "hotpotqa-dev", "xquad-en", "lihua-world", "ottqa-dev")
SECOND = ("set", "pairs", "alone", "with history", "written out", "with history, % of written out")
STANDING = ("set", "questions", "that took names", "recall@5 alone", "recall@5 with history")
_SEED = 11
_TOP = 5
_PERSON = re.compile(
    r"\b(?:director|performer|composer|author|writer|singer|actor|actress|person|man|woman|artist|creator|founder"
    r"|father|mother|husband|wife|spouse|brother|sister|son|daughter|child|king|queen|president|player|musician"
    r"|producer|screenwriter|scientist|politician|star|painter|designer|architect|driver|inventor)$"
)
_MALE = re.compile(r"\b(?:he|his|him|actor|father|husband|brother|son|king|man)\b", re.IGNORECASE)
_FEMALE = re.compile(r"\b(?:she|her|hers|actress|mother|wife|sister|daughter|queen|woman)\b", re.IGNORECASE)
_FOLLOWS = re.compile(
    r"$|['’]s (?!birthday)[a-z]|,? (?:born|die|died|from|is from|received?|work at|graduate from|educated|located|a part of|part of"
    r"|a proponent for|serve|signed|headquartered|based|end|play|live|study|found|marry|best known)\b"
)
"""Words that may follow a phrase of a question if a pronoun can replace the phrase."""
_AUXILIARY = re.compile(r"(?:^|\b(?:did|does|do|was|were|is|are|one of|in|who) )$", re.IGNORECASE)
_ASKING = re.compile(r"(?:\w+ ){0,3}?(?:who|what|when|where|which|why|how)\b", re.IGNORECASE)
_LEFT_OUT = (
    "Bourne Betrayal",
    "Mr. Peabody",
    "Roberto Andorno",
    "Cosmic Boy",
    "established?",
    "Avery Brundage",
    "Four Falls",
    "Qs World",
    "Complex",
)
"""In first questions of pairs that no person would ask, which were read one by one."""
_FORMS = {"he": "his", "she": "her", "it": "its"}


@dataclass(frozen=True)
class Pair:
    """A first question, the second with a pronoun and written out, and the document that answers the second."""

    first: str
    second: str
    written_out: str
    document: str


def main() -> None:
    """Print recall of the second questions, then of questions that stand alone."""
    parser = arguments(__doc__)
    parser.add_argument("--show", action="store_true", help="print the pairs and end")
    args = parser.parse_args()
    folders = {name: require_data(name) for name in dict.fromkeys((*PAIRS, *ALONE))}
    if args.show:
        for name, most in PAIRS.items():
            for pair in pairs_of(folders[name], most):
                print(f"{name}: {pair.first} | {pair.second} | {pair.written_out}")
        return
    rows, standing = [], []
    for name, folder in folders.items():
        with Index.build([folder / "corpus.jsonl"], WORK / f"quotes-{name}") as index:
            if name in PAIRS:
                rows.append(second_row(name, index, pairs_of(folder, 5 if args.smoke else PAIRS[name])))
            if name in ALONE:
                questions = [one for one in load_dataset(folder).questions if one.gold]
                standing.append(standing_row(name, index, questions[: 5 if args.smoke else None]))
    rows.append(_together(rows))
    publish(
        [
            table("Second questions: recall@5, %", SECOND, rows),
            table("Questions that stand alone, with the history of another one, %", STANDING, standing),
        ],
        "",
    )


def second_row(name: str, index: Index, pairs: Sequence[Pair]) -> list:
    """Return the row of the pairs of a set."""
    found = [0, 0, 0]
    for pair in pairs:
        first = index.ask(pair.first, llm="none")
        contexts = (
            index.retrieve(pair.second, top=_TOP),
            index.retrieve(pair.second, top=_TOP, history=[first]),
            index.retrieve(pair.written_out, top=_TOP),
        )
        for at, context in enumerate(contexts):
            found[at] += pair.document in {passage.document for passage in context.passages}
    return [name, len(pairs), *(_share(count, len(pairs)) for count in found), _share(found[1], found[2])]


def _together(rows: Sequence[list]) -> list:
    total = sum(row[1] for row in rows)
    alone, with_history, written = (sum(row[at] * row[1] for row in rows) / total for at in (2, 3, 4))
    shares = (round(alone, 1), round(with_history, 1), round(written, 1))
    return ["together", total, *shares, _share(with_history, written)]


def standing_row(name: str, index: Index, questions: Sequence[Question]) -> list:
    """Return the row of questions that stand alone."""
    before: Answer | None = None
    taken, recalls = 0, [0.0, 0.0]
    for question in questions:
        history = [] if before is None else [before]
        alone = index.ask(question.text, llm="none")
        recalls[0] += _recall(alone, question)
        after = index.ask(question.text, llm="none", history=history)
        recalls[1] += _recall(after, question)
        taken += bool(after.taken)
        before = alone
    count = len(questions)
    return [name, count, _share(taken, count), *(round(100 * recall / count, 2) for recall in recalls)]


def _recall(answer: Answer, question: Question) -> float:
    found = {passage.document for passage in answer.context.passages[:_TOP]}
    return len(found & set(question.gold)) / len(question.gold)


def _share(part: float, whole: float) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


# ---------------------------------------------------------------- pairs


def pairs_of(folder: Path, most: int) -> list[Pair]:
    """Return at most `most` pairs made from the questions of a set, drawn with a fixed seed."""
    data = load_dataset(folder)
    documents = {one["_id"]: one for one in map(json.loads, (folder / "corpus.jsonl").open())}
    made = [pair for one in data.questions for pair in _pairs(one, documents)]
    random.Random(_SEED).shuffle(made)
    by_first = {pair.first: pair for pair in reversed(made)}
    return list(by_first.values())[:most]


def _pairs(question: Question, documents: dict[str, dict]) -> Iterator[Pair]:
    """Yield the pair of a question with two hops, if its first hop can be cut out of it."""
    if len(question.gold) != 2:
        return
    text = question.text.strip().rstrip("?").strip()
    for first_id, second_id in permutations(sorted(question.gold)):
        first, second = documents[first_id], documents[second_id]
        name = _plain(second["title"])
        if name.lower() in text.lower() or name.lower() not in first["text"].lower():
            continue
        phrase = _phrase(text, _plain(first["title"]))
        if phrase is None:
            continue
        start, end, asked, noun = phrase
        pronoun = _pronoun(noun, second["text"])
        if not _is_natural(text[:start], text[end:], pronoun):
            continue
        second_text = _with_pronoun(text[:start], text[end:], pronoun)
        if any(words in asked for words in _LEFT_OUT):
            continue
        yield Pair(asked, f"{second_text}?", f"{text[:start]}{name}{text[end:]}?", second["_id"])
        return


def _plain(title: str) -> str:
    """Return a title without what follows in brackets."""
    return title.split(" (")[0]


def _phrase(text: str, title: str) -> tuple[int, int, str, str] | None:
    """Return start and end of the phrase that names the answer of the first hop, the first question, and its noun."""
    subject = re.escape(title) + r"(?: ?\([^)]*\))?"
    kinds = r"(?:the )?(?:film |song |album |movie )?"
    found = re.search(
        rf"\bthe ((?:\w+ ){{0,2}}\w+) (of|for|in) ({kinds}[\"']?{subject}[\"']?)(?!['’])", text, re.I
    )
    if found is not None and len(found[1]) > 3:
        noun = found[1].split(" of ")[-1]
        if noun != found[1]:  # "the place of birth of the director of ..." has two
            at = found.start(1) + len(found[1]) - len(noun)
            return (
                None
                if not text[:at].endswith("the ")
                else (at - 4, found.end(), _asked(noun, f"{found[2]} {found[3]}"), noun)
            )
        return found.start(), found.end(), _asked(noun, f"{found[2]} {found[3]}"), noun
    found = re.search(rf"({subject})(?:'s|’s|s') (\w+)", text, re.I)
    if found is not None:
        return found.start(), found.end(), _asked(found[2], f"of {found[1]}"), found[2]
    found = re.search(r"\bthe ((?:[a-z]+ ){0,1}[a-z]+) (that|who|which) ([^,?]+)$", text)
    if found is not None and "where" not in found[3]:
        return found.start(), found.end(), _asked(found[1], f"{found[2]} {found[3]}"), found[1]
    return None


def _asked(noun: str, rest: str) -> str:
    return f"{'Who' if _PERSON.search(noun) else 'What'} is the {noun} {rest}?"


def _pronoun(noun: str, text: str) -> str:
    """Return the pronoun for the answer of the first hop, by its noun and the passage about it."""
    if not _PERSON.search(noun):
        return "it"
    for source in (noun, text):
        male, female = len(_MALE.findall(source)), len(_FEMALE.findall(source))
        if male != female:
            return "he" if male > female else "she"
    return "they"


def _is_natural(before: str, after: str, pronoun: str) -> bool:
    """Return whether a person would ask the question with a pronoun between `before` and `after`."""
    if pronoun == "they" or not _FOLLOWS.match(after) or not _ASKING.match(before):
        return False
    return bool(after) or before.startswith("What nationality") or not _AUXILIARY.search(before)


def _with_pronoun(before: str, after: str, pronoun: str) -> str:
    """Return a question with a pronoun between `before` and `after`."""
    if after.startswith(("'s ", "’s ")):
        return f"{before}{_FORMS[pronoun]}{after[2:]}"
    owned = re.search(r"\bthe ((?:\w+ ){0,3}\w+) of $", before)
    if owned is not None:
        return f"{before[: owned.start()]}{_FORMS[pronoun]} {owned[1]}{after}"
    is_object = not (after.strip() or before.startswith("What nationality"))
    form = {"he": "him", "she": "her"}.get(pronoun, pronoun) if is_object else pronoun
    return f"{before}{form}{after}"


if __name__ == "__main__":
    main()
