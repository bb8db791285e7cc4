"""Records go to the chunks that a plain search finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast import Document, Index
from ketrag_fast.interchange.extracted import (
    Extracted,
    ExtractedEntity,
    ExtractedRelation,
    SourcePassage,
)
from ketrag_fast.interchange.importing import _ChunkRecords, _holders, assign_records, passage_spans
from ketrag_fast.models.extraction.grounding import Source

WORDS = ("oslo", "fram", "maud", "ice")


@st.composite
def cut(draw: st.DrawFn) -> list[_ChunkRecords]:
    """Chunks of a document in order, which may overlap or leave gaps; each ends after the one before it."""
    start, end, out = 0, 0, []
    for _ in range(draw(st.integers(1, 6))):
        end = max(start, end) + draw(st.integers(1, 10))
        text = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=3)))
        out.append(_ChunkRecords(("d", start, end), Source(text)))
        start = draw(st.integers(start + 1, end + 2))
        start = max(start, out[-1].span[1] - 3)
    return out


@given(
    cut(), st.integers(0, 60), st.integers(1, 30), st.lists(st.sampled_from(WORDS), min_size=1, max_size=2)
)
def test_the_holders_are_those_of_a_plain_search(
    chunks: list[_ChunkRecords], start: int, length: int, names: list[str]
) -> None:
    end = start + length
    found = _holders({"d": chunks}, ("d", start, end), names)
    assert len(found) >= 1
    near = [chunk for chunk in chunks if chunk.span[2] > start and chunk.span[1] < end]
    if not near:
        assert len(found) == 1
        return
    counts = [sum(chunk.source.holds(name) for name in names) for chunk in near]
    if max(counts):
        assert found == [chunk for chunk, count in zip(near, counts, strict=True) if count == max(counts)]
        return
    shares = [min(chunk.span[2], end) - max(chunk.span[1], start) for chunk in near]
    assert found == [near[shares.index(max(shares))]]


def test_a_document_without_chunks_takes_nothing(index: Index) -> None:
    assert _holders({"d": []}, ("d", 0, 5), ("oslo",)) == []
    found = Extracted(
        documents=[Document("unknown", "Oslo.")],
        passages=[SourcePassage("p", 0, "Oslo.")],
        entities=[ExtractedEntity("Oslo", "", (), (0,))],
        relations=[ExtractedRelation("Oslo", "Fram", (), 1.0, (0,))],
    )
    rows = assign_records(index, found, passage_spans(found))
    assert len(rows) == len(index.inspect.arrays()["units"]["chunk_tokens"])
    assert not any(extraction.entities or extraction.relations for _, extraction in rows)
    assert [row["what"] for row in found.skipped.rows()] == [
        "entities of documents without a chunk",
        "relations of documents without a chunk",
    ]
