"""Long documents: what it brings that a unit stays in its section and is searched under the section's heading.

The passages of a question set are put together to volumes of twenty, in an order drawn by chance, each below its
title as a heading; the gold passages are then stretches of volumes.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from collections.abc import Callable

from common import DATA, header, table
from ketrag_fast import Document, Index, Locator, Settings
from ketrag_fast.build.ingest import read_only
from ketrag_fast.lab.eval import DataSet, load_dataset
from ketrag_fast.readers.headings import Heading, sections

BUDGETS = [6000, 3000, 1500]
MODES = ("walk", "bm25", "text")
EACH = 20


def volumes(
    passages: list[Document], name_of: Callable[[int, str], str], *, headings: bool
) -> tuple[list[Document], dict[str, tuple[str, int, int]]]:
    """Return the volumes, and the position of each passage in them."""
    made: list[Document] = []
    places: dict[str, tuple[str, int, int]] = {}
    for first in range(0, len(passages), EACH):
        text = ""
        found: list[Heading] = []
        number = first // EACH + 1
        for place, passage in enumerate(passages[first : first + EACH], 1):
            name = name_of(place, passage.title)
            found.append(Heading(len(text), 2, name))
            start = len(text)
            text += f"## {name}\n\n{passage.text}\n\n"
            places[passage.id] = f"v{number}", start, len(text)
        title = f"Volume {number}"
        marks: tuple[Locator, ...] = tuple(sections(found, len(text), title)) if headings else ()
        made.append(Document(f"v{number}", text, title, {}, marks))
    return made, places


def plain(text: str) -> str:
    return f" {re.sub(r'[^0-9a-z]+', ' ', text.lower()).strip()} "


def main() -> None:
    """Prints the table of each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="musique-train100,hotpotqa-train100")
    args = parser.parse_args()
    header(
        "Sections of long documents",
        [
            f"Volumes of {EACH} passages; 100 questions each, development sets of the walk. "
            "`locators` is what readers give; without them a heading is a line of text like any other.",
            "Gold: supporting passages of which at least half is in the first ten passages of 3,000 tokens.",
            "Real handbooks say less in their headings than these, which are titles of articles; where headings say "
            "nothing (`Section 7`) the gain is that a unit does not go on in the next section.",
        ],
    )
    for name in args.sets.split(","):
        data = load_dataset(DATA / name)
        passages = [item for item in read_only(data.sources, Settings()) if isinstance(item, Document)]
        random.Random(5).shuffle(passages)
        rows = []
        for told, name_of, headings in (
            ("titles as headings, no locators", lambda _, title: title, False),
            ("titles as headings, locators", lambda _, title: title, True),
            ("`Section 7` as headings, no locators", lambda place, _: f"Section {place}", False),
            ("`Section 7` as headings, locators", lambda place, _: f"Section {place}", True),
        ):
            documents, places = volumes(passages, name_of, headings=headings)
            with tempfile.TemporaryDirectory() as folder, Index.build(documents, folder) as index:
                units = index.stats()["counts"]["subchunks"]
                rows += [[told, mode, *scores(index, data, places, mode), f"{units:,}"] for mode in MODES]
        print(f"### {name}\n")
        covered = [f"coverage at {budget:,}" for budget in BUDGETS]
        table(["volumes", "mode", *covered, "gold in the first ten", "units"], rows)


def scores(index: Index, data: DataSet, places: dict[str, tuple[str, int, int]], mode: str) -> list[str]:
    questions = data.questions
    found = index.retrieve_budgets([question.text for question in questions], mode=mode, budgets=BUDGETS)
    covered = [0] * len(BUDGETS)
    gold = hits = 0
    for question, contexts in zip(questions, found, strict=True):
        for at, context in enumerate(contexts):
            covered[at] += any(plain(answer) in plain(context.text) for answer in question.answers)
        for name in question.gold:
            volume, start, end = places[name]
            gold += 1
            hits += any(
                passage.document == volume
                and min(passage.end, end) - max(passage.start, start) > (end - start) / 2
                for passage in contexts[1].passages[:10]
            )
    share = [f"{100 * count / len(questions):.1f}" for count in covered]
    return [*share, f"{100 * hits / max(gold, 1):.1f}"]


if __name__ == "__main__":
    main()
