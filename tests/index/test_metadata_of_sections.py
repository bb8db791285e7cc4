"""A document with sections has a row for each of them, and its metadata once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ketrag_fast import Document, Index, Settings
from ketrag_fast.query.passage_sources import DocumentMetadata
from ketrag_fast.types.locations import Locator

WORDS = ("ice", "snow", "sledge", "coal", "camp", "depot", "seal", "whale", "storm", "tent")
TOPICS = ("Provisions", "Weather", "Dogs", "Return")


def long_document(name: str, year: int) -> Document:
    """Return a document with four sections and a long list of links."""
    text, locators = "", []
    for number, topic in enumerate(TOPICS):
        start = len(text)
        text += f"{topic} of {name}\n\n" + " ".join(WORDS[(number + n) % 10] for n in range(160)) + ".\n\n"
        locators.append(Locator(start, len(text), "heading", [topic]))
    links = [f"{name}-{n}.html" for n in range(200)]
    return Document(name, text, name, {"year": year, "links": links}, tuple(locators))


DOCUMENTS = [
    long_document("first", 1911),
    Document("plain", "A short note on tents and storms."),
    long_document("second", 1914),
    Document("short", "A dated note on whales.", "", {"year": 1915}),
]
SETTINGS = Settings(modes="auto", threads=1)


def test_it_is_stored_once(tmp_path: Path) -> None:
    with Index.build(DOCUMENTS, tmp_path / "index", settings=SETTINGS) as index:
        stages = index._opened.generation.stages
        units = stages["units"]
        assert len(units["document_ids_offsets"]) - 1 == 2 * len(TOPICS) + 2
        blob = bytes(units["document_metadata_blob"])
        metadata = DocumentMetadata(stages)
        years = [metadata.of_row(row).get("year") for row in range(10)]
        assert blob.count(b'"links"') == 2
        assert years == [*[1911] * 4, None, *[1914] * 4, 1915]


@pytest.mark.parametrize(
    ("condition", "expected"), [("year=1911", {"first"}), ("year>1911", {"second", "short"})]
)
def test_filters_and_passages_see_it_in_every_section(
    tmp_path: Path, condition: str, expected: set[str]
) -> None:
    with Index.build(DOCUMENTS, tmp_path / "index", settings=SETTINGS) as index:
        found = index.retrieve("Return dogs weather whale", budget=4000, filter=condition)
        assert {one.document for one in found.passages} == expected
        assert len(found.passages) > (3 if "first" in expected else 4)
        for one in found.passages:
            assert one.metadata["year"] == {"first": 1911, "second": 1914, "short": 1915}[one.document]


def test_a_change_gives_the_bytes_of_a_new_build(tmp_path: Path) -> None:
    changed = [long_document("first", 1912), *DOCUMENTS[1:], Document("last", "Seals.", "", {"year": 1916})]
    Index.build(DOCUMENTS, tmp_path / "a", settings=SETTINGS).close()
    with Index.build(changed, tmp_path / "a", settings=SETTINGS) as index:
        first = _arrays(index)
    with Index.build(changed, tmp_path / "b", settings=SETTINGS) as index:
        second = _arrays(index)
    assert first.keys() == second.keys()
    for name, values in first.items():
        assert np.array_equal(values, second[name]), name


def _arrays(index: Index) -> dict[str, NDArray[Any]]:
    return {name: np.array(values) for name, values in index._opened.generation.stages["units"].items()}
