"""Tokens to evidence: what an assistant has read when the first passage with the answer is complete.

    python benches/agents.py                    # hotpotqa-dev and technical documentation, without a model
    python benches/agents.py technical          # one of them; `benches/technical.py --fetch` gets its pages
    python benches/agents.py --questions 100

| way | what is read |
|---|---|
| search | the reply of the tool `search`, then the passages that it does not show whole, by the tool `read` |
| passages | the reply with all passages whole, as many as fit 2,000 tokens |
| BM25 | eight results of the mode `bm25` with two lines each, then the passages by `read` |
| files | whole files, those with most of the question's rarer words first, as after a `grep` for each word |

A reply is read whole, and passages are read in the order of the ranking: an assistant that chooses by what it sees
needs less. Without the answer the next reply has twice the results, up to 32; then the question counts as not
answered. `shared` are the questions that both search and BM25 answer. The files that `grep` names are free here. On
hotpotqa-dev a file is a paragraph.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import WORK, arguments, publish, require_data
from common import result_table as table
from ketrag_fast import Hit, Index, Settings
from ketrag_fast.apps.server.mcp_text import TOKENS, WHOLE, Paths, read_reply, search_reply
from ketrag_fast.eval import load_dataset
from ketrag_fast.kernels import count_tokens
from technical import DOCS, TRUTH

SETS = ("hotpotqa-dev", "technical")
WAYS = ("search", "passages", "BM25", "files")
LIMIT, MOST = 8, 32
WITHIN = 2_000
COMMON = 0.2
"""Share of the files from which on a word is not searched for."""
_WORD = re.compile(r"\w+")
PATHS = Paths(local=False)


@dataclass(frozen=True)
class Question:
    """A question, and the documents with the words that a passage needs to hold its answer."""

    text: str
    evidence: tuple[tuple[str, str], ...]

    def is_in(self, document: str, text: str) -> bool:
        """Return whether a text of a document holds the answer."""
        flat = " ".join(text.split()).casefold()
        return any(document == own and words.casefold() in flat for own, words in self.evidence)


def questions_of(name: str) -> tuple[list[Question], Path, dict[str, str]]:
    """Return the questions of a set, what is indexed, and its documents if they are not files."""
    if name == "technical":
        if not DOCS.is_dir():
            sys.exit("python benches/technical.py --fetch downloads the pages first")
        rows = json.loads(TRUTH.read_text("utf-8"))["questions"]
        found = [
            Question(row["question"], tuple((one["file"], one["words"]) for one in row["passages"]))
            for row in rows
        ]
        return found, DOCS, {}
    folder = require_data(name)
    dataset = load_dataset(folder)
    texts = {
        row["_id"]: row["text"] for row in map(json.loads, (folder / "corpus.jsonl").open(encoding="utf-8"))
    }
    found = []
    for one in dataset.questions:
        pairs = [
            (document, answer)
            for document in one.gold
            for answer in one.answers
            if answer.casefold() in texts[document].casefold()
        ]
        if pairs:  # not those that are answered with yes or no
            found.append(Question(one.text, tuple(pairs)))
    return found, folder / "corpus.jsonl", texts


def size(text: str) -> int:
    """Return the tokens of a text."""
    return int(count_tokens([text])[0])


def read(index: Index, hit: Hit) -> int:
    """Return the tokens of the reply of `read` to the passage of a hit."""
    lines = hit.lines or hit.text_lines
    excerpt = index.text(
        f"{hit.document}:{hit.position}" if lines is None and hit.position else hit.document, lines
    )
    return size(read_reply(excerpt, TOKENS, PATHS).text)


def by_search(index: Index, question: Question, way: str) -> float:
    """Return the tokens that are read; infinite without the answer."""
    total, limit = 0, LIMIT
    seen: set[int] = set()
    while limit <= MOST:
        hits = index.search(question.text, limit, mode="bm25" if way == "BM25" else "auto")
        if way == "search":
            reply = search_reply(hits, limit, TOKENS, PATHS)
            total += size(reply.text)
            shown, whole = len(reply.data["hits"]), WHOLE
        else:
            blocks = [
                "\n".join(
                    [
                        PATHS.head(hit),
                        *([hit.text.strip()] if way == "passages" else [line.text for line in hit.snippet]),
                    ]
                )
                for hit in hits
            ]
            shown = len(hits)
            if way == "passages":
                ends = count_tokens(blocks).cumsum()
                shown = int((ends <= TOKENS).sum())
            total += size("\n\n".join(blocks[:shown]))
            whole = shown if way == "passages" else 0
        if any(question.is_in(hit.document, hit.text) for hit in hits[:whole]):
            return total
        for hit in hits[whole:shown]:
            if hit.unit not in seen:
                seen.add(hit.unit)
                total += read(index, hit)
                if question.is_in(hit.document, hit.text):
                    return total
        if len(hits) < limit:
            break
        limit *= 2
    return math.inf


class Files:
    """Whole files by their words."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._words = {name: {*_WORD.findall(text.casefold())} for name, text in self._texts.items()}
        self._counts = Counter(word for words in self._words.values() for word in words)

    def tokens(self, question: Question) -> float:
        """Return the tokens that are read; infinite without the answer."""
        words = {
            word
            for word in _WORD.findall(question.text.casefold())
            if 0 < self._counts[word] < COMMON * len(self._texts)
        }
        matches = {name: len(words & own) for name, own in self._words.items()}
        total = 0
        for name in sorted(
            (name for name in matches if matches[name]), key=lambda name: (-matches[name], name)
        ):
            total += size(self._texts[name])
            if question.is_in(name, self._texts[name]):
                return total
        return math.inf


def measure(name: str, most: int) -> Iterator[list[object]]:
    """Yield a row for each way."""
    questions, source, texts = questions_of(name)
    questions = questions[:: max(1, len(questions) // most)][:most]
    with Index.build(source, WORK / f"agents-{name}", settings=Settings(modes="bm25,walk")) as index:
        costs = {way: [by_search(index, one, way) for one in questions] for way in WAYS[:-1]}
        texts = texts or {place.document: index.text(place.document).text for place in index.files()}
        files = Files(texts)
        costs["files"] = [files.tokens(one) for one in questions]
    shared = [at for at in range(len(questions)) if max(costs["search"][at], costs["BM25"][at]) < math.inf]
    base = quantile([costs["BM25"][at] for at in shared], 0.5)
    for way in WAYS:
        own = costs[way]
        middle = quantile([own[at] for at in shared], 0.5)
        less = "" if math.isinf(middle) else f"{100 * (middle / base - 1):+.0f} %"
        answered = sum(cost < math.inf for cost in own) / len(own)
        within = sum(cost <= WITHIN for cost in own) / len(own)
        yield [
            name,
            len(own),
            way,
            f"{100 * answered:.1f}",
            f"{100 * within:.1f}",
            shown(quantile(own, 0.5)),
            shown(quantile(own, 0.9)),
            shown(middle),
            less,
        ]


def quantile(costs: Sequence[float], share: float) -> float:
    """Return the cost that a share of the questions do not exceed."""
    return sorted(costs)[math.ceil(share * len(costs)) - 1]


def shown(cost: float) -> str:
    """Return a number of tokens as text."""
    return "not answered" if math.isinf(cost) else f"{cost:,.0f}"


def main() -> None:
    """Measure and publish."""
    parser = arguments(__doc__)
    parser.add_argument("set", nargs="*", choices=[[], *SETS], help="default: both")
    parser.add_argument("--questions", type=int, default=200, metavar="N", help="at most N of each set")
    args = parser.parse_args()
    most = 5 if args.smoke else args.questions
    rows = [row for name in args.set or SETS for row in measure(name, most)]
    head = ["set", "questions", "way", "answered %", f"within {WITHIN:,} %"]
    head += ["median", "90th percentile", "median of shared", "to BM25"]
    publish([table("Tokens to evidence", head, rows)], "HotpotQA (dev), documentation of Debian packages")


if __name__ == "__main__":
    main()
