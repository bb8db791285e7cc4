"""The rules of `heuristic` against a model's recorded extraction: precision and recall, and speed.

    python benches/heuristic.py [--half tune|report|all]

Matching. Names are folded as everywhere (case, accents, possessives) and lose a leading article; "exact" is
equality of that, "near" also counts names whose sets of words share at least half of all their words.
Entities of the recorded extraction are the declared names and the endpoints of the triples. A pair of
endpoints is found where a relation, in either direction, joins names that match both, one by one.
Precision counts the names and pairs of the heuristic, recall the recorded ones; both over the passages together. Passages
with an even place in the corpus were looked at while the rules were made ("tune"), the others were not.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

from common import header, require_data, table
from ketrag_fast.models.extraction.grounding import Source, fold
from ketrag_fast.models.extraction.heuristic import extract
from ketrag_fast.models.extraction.recording import read_line
from ketrag_fast.models.extraction.records import Extraction
from ketrag_fast.models.extraction.replay import Recording

_ARTICLE = re.compile(r"^(the|a|an) ")
RECORDED = "openie.gpt-3.5-turbo-1106.jsonl"


def key(name: str) -> str:
    return _ARTICLE.sub("", " ".join(re.findall(r"\w+", fold(name))))


def exact(first: str, second: str) -> bool:
    return first == second


def near(first: str, second: str) -> bool:
    if first == second:
        return True
    a, b = set(first.split()), set(second.split())
    return 2 * len(a & b) >= len(a | b)


def declared(found: Extraction) -> set[str]:
    return {key(e.name) for e in found.entities} - {""}


def pairs(found: Extraction) -> set[tuple[str, str]]:
    both = {tuple(sorted((key(r.source), key(r.target)))) for r in found.relations}
    return {(a, b) for a, b in both if a and b and a != b}


def everything(found: Extraction) -> set[str]:
    return declared(found) | {name for pair in pairs(found) for name in pair}


Match = Callable[[str, str], bool]


def hits(mine: Iterable[str], other: set[str], same: Match) -> int:
    if same is exact:
        return sum(name in other for name in mine)
    return sum(any(same(name, each) for each in other) for name in mine)


def pair_hits(mine: set[tuple[str, str]], other: set[tuple[str, str]], same: Match) -> int:
    if same is exact:
        return len(mine & other)
    return sum(
        any((same(a, c) and same(b, d)) or (same(a, d) and same(b, c)) for c, d in other) for a, b in mine
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("tune", "report", "all"), default="report")
    parser.add_argument("--show", type=int, default=0, help="print what differs in so many passages")
    args = parser.parse_args()
    folder = require_data("musique-train100")
    recording = Recording.open(folder / RECORDED)
    passages = [json.loads(line) for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines()]
    started = time.process_time()
    found = [extract(p["title"], p["text"]) for p in passages]
    spent = time.process_time() - started
    half = {"tune": slice(0, None, 2), "report": slice(1, None, 2), "all": slice(None)}[args.half]
    lines = [read_line(line) for line in (folder / RECORDED).read_bytes().splitlines()]
    raw = {line.document: line.extraction.entities for line in lines if line is not None}
    both = []
    kept_names = recorded_names = 0
    for passage, mine in list(zip(passages, found, strict=True))[half]:
        told = passage["title"], passage["text"]
        theirs = recording.extraction_for(passage["_id"], 0, len(passage["text"]), *told)
        assert theirs is not None
        both.append((mine, theirs))
        kept_names += sum(Source("\n".join(told)).holds(e.name) for e in raw[passage["_id"]])
        recorded_names += len(raw[passage["_id"]])
        if len(both) <= args.show:
            show(passage, mine, theirs)
    header(
        "The heuristic extractor against a recorded model",
        [
            f"{len(both)} passages ({args.half}); the recording is GPT-3.5's, which is no gold standard.",
            f"{len(passages) / spent:,.0f} passages/s on one core (all {len(passages)}, title and text).",
        ],
    )
    rows = []
    for name, same in (("exact", exact), ("near", near)):
        mine_all = [everything(mine) for mine, _ in both]
        theirs_all = [everything(theirs) for _, theirs in both]
        listed = [declared(theirs) for _, theirs in both]
        mine_pairs = [pairs(mine) for mine, _ in both]
        theirs_pairs = [pairs(theirs) for _, theirs in both]
        rows.append(
            [
                name,
                share(mine_all, theirs_all, same, hits),
                share(theirs_all, mine_all, same, hits),
                share(listed, mine_all, same, hits),
                share(mine_pairs, theirs_pairs, same, pair_hits),
                share(theirs_pairs, mine_pairs, same, pair_hits),
            ]
        )
    table(
        ["match", "entities: precision", "recall", "recall of declared names", "pairs: precision", "recall"],
        rows,
    )
    print(
        f"\nOf {recorded_names:,} names that the model declared, {kept_names:,} occur in their passage (`grounding`)."
    )


def share(of: list[Any], among: list[Any], same: Match, count: Callable[..., int]) -> str:
    """Percent of all `of` that are found, over the passages together."""
    part = sum(count(a, b, same) for a, b in zip(of, among, strict=True))
    return f"{100 * part / max(1, sum(map(len, of))):.1f} ({part:,} of {sum(map(len, of)):,})"


def show(passage: dict[str, Any], mine: Extraction, theirs: Extraction) -> None:
    """What differs in one passage."""
    print("##", passage["title"], "|", passage["text"])
    print("  only mine:", sorted(everything(mine) - everything(theirs)))
    print("  only declared:", sorted(declared(theirs) - everything(mine)))
    print("  only ends:", sorted(everything(theirs) - declared(theirs) - everything(mine)))


if __name__ == "__main__":
    main()
