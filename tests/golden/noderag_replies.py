"""Replies about our own articles as a language model might give them: by rules, with the faults models make.

Only what `make_noderag.py` records is compared; these rules need to be deterministic, not good.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

ARTICLES = Path(__file__).parents[2] / "examples" / "polar" / "articles"
CHUNKS = 30
NOT_NAMES = """
A After All Among An And As At Before But By During Each Every For From He Her Here His However If In It Its
Later Many Men No Not Of On One Only Others Over She Since So Some That The Their Then There These They This
Those Though To Today Twenty Two Under Until What When Where Which While Who With Without
"""
NAME = r"[A-ZÀ-Þ][\w’'-]*(?: [A-ZÀ-Þ][\w’'-]*)*"
# A place and the country after it are one name: names with commas are what splits wrongly.
WITH_COMMA = re.compile(
    rf"{NAME}(?:, (?:Ireland|Norway|Scotland|England|Alaska|California|Virginia|Greenland))?"
)

Output = list[dict[str, Any]]


def chunks() -> list[str]:
    """The texts of articles without their headings, and one chunk twice."""
    paths = sorted(ARTICLES.glob("*.md"))[: CHUNKS - 3]
    texts = [path.read_text(encoding="utf-8").split("\n", 2)[2].strip() for path in paths]
    texts.append(texts[3])
    texts.append("The Fram lay rotting for years.")  # its one unit is the whole chunk
    texts.append("A chunk of which nothing was extracted.")
    return texts


def sentences(text: str) -> list[str]:
    """A sentence ends before a capital."""
    flat = " ".join(text.split())
    return re.split(r"(?<=[.!?]) (?=[A-ZÀ-Þ])", flat)


def names(sentence: str) -> list[tuple[int, int, str]]:
    """Start, end and name of each capitalised run, articles and pronouns at the front taken off."""
    found = []
    for match in WITH_COMMA.finditer(sentence):
        start, parts = match.start(), match.group().split(" ")
        while parts and parts[0] in NOT_NAMES.split():
            start += len(parts[0]) + 1
            parts = parts[1:]
        if parts:
            found.append((start, match.end(), " ".join(parts).upper()))
    return found


def decomposition(text: str) -> Output:
    """A unit for each sentence; a relation between neighbours in it, whose words may hold commas."""
    output = []
    for sentence in sentences(text):
        found = names(sentence)
        relations = []
        for (_, end, one), (start, _, other) in pairwise(found):
            between = " ".join(sentence[end:start].split(" ")[:6]).strip(" .;:") or "and"
            relations.append(f"{one}, {between}, {other}")
        output.append(
            {"semantic_unit": sentence, "entities": [name for *_, name in found], "relationships": relations}
        )
    return output


def decompositions(texts: list[str]) -> list[Output]:
    """By the rules, then the faults."""
    replies: list[Output] = [decomposition(text) for text in texts]
    replies[-1] = []
    replies[5].append(dict(replies[2][0]))  # a unit of another chunk
    replies[7].append(dict(replies[7][1]))  # a unit twice in one chunk
    replies[8][0]["relationships"] += [
        "FRAM",
        "FRAM, drifted with",
        "FRAM, was built, so they say, by, COLIN ARCHER",
        "NANSEN, SVERDRUP, AMUNDSEN, and, WISTING, went, in, the, FRAM",
        "FRAM, is, FRAM",
        "MAUD, , GJØA",
        "SOUTH POLE, was reached from, BAY OF WHALES",
    ]
    replies[8][0]["entities"] += ["FRAM", "COLIN ARCHER"]
    replies[9].append(
        {  # names that no unit lists, and one relation in both directions
            "semantic_unit": "What the whalers told was not believed.",
            "entities": [],
            "relationships": [
                "WHALERS OF GRYTVIKEN, warned, CREW OF THE ENDURANCE",
                "CREW OF THE ENDURANCE, did not believe, WHALERS OF GRYTVIKEN",
                "WHALERS OF GRYTVIKEN, warned, CREW OF THE ENDURANCE",
            ],
        }
    )
    replies[11].append(
        {  # a unit with nothing but a known relation
            "semantic_unit": "The crew had been warned.",
            "entities": [],
            "relationships": ["WHALERS OF GRYTVIKEN, warned, CREW OF THE ENDURANCE"],
        }
    )
    replies[10].append(
        {  # one name in three spellings, an empty one, one twice
            "semantic_unit": "The Fram was built to be frozen in.",
            "entities": ["Fram", " FRAM ", "", "FRAM", "FRAM"],
            "relationships": ["Fram, was built by, Colin Archer"],
        }
    )
    replies[12].append(  # a unit whose text is a name
        {"semantic_unit": "ANTARCTIC", "entities": ["SOUTH POLE"], "relationships": []}
    )
    return replies


def reconstructed(parts: list[str]) -> dict[str, str]:
    """What a model replies that is given a malformed relationship."""
    if len(parts) == 1:
        return {"source": parts[0], "relationship": "is", "target": "SHIP"}
    if len(parts) == 2:
        return {"source": parts[0], "relationship": parts[1], "target": "POLAR ICE"}
    return {"source": parts[0], "relationship": " ".join(parts[1:-1]), "target": parts[-1]}


def attribute(entity: str, units: list[str], relations: list[str]) -> str:
    """What a model replies that is asked for a summary of an entity."""
    return (
        f"{entity} is named in {len(units)} units and {len(relations)} relations. {units[0] if units else ''}"
    )


def elements(number: int, content: str) -> list[dict[str, str]]:
    """What a model replies that is given community `number`: some titles and descriptions come again."""
    lines = content.strip().split("\n")
    if not content.strip():
        return [{"title": "NOTHING", "description": "Nothing is known of this community."}]
    first = {"title": f"THEME {number}", "description": f"Theme {number}: {lines[0][:90]}"}
    more = {
        1: [{"title": "THEME 0", "description": "A new description under a known title."}],
        2: [{"title": "THEME 1", "description": "A new description under a known title."}],
        3: [{"title": "A TITLE THAT IS LOST", "description": "A new description under a known title."}],
        4: [{"title": "FRAM", "description": "The title of this one is a name."}],
        5: [{"title": "FRAM", "description": "A new description under a known title."}],
    }
    return [first, *more.get(number, [])]


# A question and what a model makes of it; one term is empty, one is inside longer names, one matches nothing.
QUESTIONS: list[tuple[str, list[str]]] = [
    (
        "In which town did the man die who led those left behind on Elephant Island?",
        ["ELEPHANT ISLAND", "TOWN"],
    ),
    (
        "Who built the ship in which Roald Amundsen reached the Antarctic?",
        ["ROALD AMUNDSEN", "SHIP", "ANTARCTIC"],
    ),
    ("What did the crew of the Fram do at the pole?", ["Fram", "pole"]),
    ("Which themes are there?", ["theme", "NOTHING"]),
    ("Who was the captain of the Endurance?", ["CAPTAIN", "ENDURANCE", "SHACKLETON"]),
    ("", [""]),
    ("Nothing of this is in the articles: quarks, leptons, gluons?", ["QUARKS", "LEPTONS", "of the"]),
]
