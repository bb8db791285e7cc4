"""Declarations of the stages that systems share; the modules of this package implement them."""

from __future__ import annotations

from ketrag_fast.base.config import Settings
from ketrag_fast.systems.spec.arrays import ANY, array, graph, strings
from ketrag_fast.systems.spec.arrays import vectors as vector_columns
from ketrag_fast.systems.spec.stage import DOCUMENTS, Made, Stage, StageContext, StageInputs

_HERE = "ketrag_fast.systems.shared"
BUILTIN = "builtin"


def has_model(settings: Settings) -> bool:
    """Return whether vectors come from a model, not from the space fitted on the corpus."""
    return settings.embedder != BUILTIN


UNITS = Stage(
    "units",
    version=9,
    needs=(DOCUMENTS,),
    settings=("cut", "chunk_tokens", "overlap", "split_level", "encoding", "language"),
    run=f"{_HERE}.units:run",
    ahead=f"{_HERE}.units_ahead:UnitsAhead",
    unit="documents",
    arrays={
        "document_count": array("u64", 1),
        "document_hashes": array("u8", ANY, 16),  # one for each document
        **strings("document_ids", "documents"),
        **strings("document_titles", "documents"),
        # Text that no unit covers; together with the units' texts, the whole documents.
        **strings("document_gaps", "documents"),
        "chunk_document": array("u32", "chunks", below="documents", rising=True),
        "chunk_bytes": array("u32", "chunks", 2),
        "chunk_tokens": array("u32", "chunks"),
        "chunk_units": array("u64", "chunks+1", rising=True),
        "unit_chunk": array("u32", "units", below="chunks", rising=True),
        "unit_document": array("u32", "units", below="documents", rising=True),
        "unit_bytes": array("u32", "units", 2),
        "unit_span": array("u32", "units", 2),
        "unit_tokens": array("u32", "units"),
        **strings("unit_texts", "units"),
        # If a unit continues a block: its context, such as a table header, and its end, printed around
        # the text.
        **strings("unit_before", "units"),
        **strings("unit_after", "units"),
        # For finding copies: a hash of numbers and names, and a SimHash.
        "unit_keys": array("u64", "units", 2),
        # The first and last line of the source, if a reader copies lines.
        "unit_lines": array("u32", "units", 2, optional=True),
        "sent_chunk": array("u32", "text_sentences", below="chunks"),
        "sent_unit": array("u32", "text_sentences", below="units"),
        "sent_bytes": array("u32", "text_sentences", 2),
        "sent_title": array("u8", "text_sentences"),
        # Locations in the sources, if the readers report any.
        "location_indptr": array("u64", "documents+1", rising=True, optional=True, over="location_span"),
        "location_span": array("u32", "locations", 2, optional=True),
        "location_label": array("u32", "locations", below="location_labels", optional=True),
        **strings("location_labels", "location_labels", optional=True),
        # JSON, if a document has metadata; in the first row of each document.
        **strings("document_metadata", "documents", optional=True),
    },
    counts={"chunks": "chunks", "subchunks": "units"},
    seconds=lambda size: 2e-5 * size.get("units", 0),
)

WORDS = Stage(
    "words",
    version=4,
    needs=(DOCUMENTS, "units"),
    settings=("language",),
    run=f"{_HERE}.words:run",
    unit="chunks",
    arrays={
        **strings("vocabulary", "vocabulary"),
        **graph("unit_words", "units", "vocabulary"),
        "unit_counts": array("u32", ANY),
        **graph("word_units", "vocabulary", "units"),
        **graph("sent_words", "own_sentences", "vocabulary"),
        **graph("chunk_words", "chunks", "vocabulary", optional=True),
        # If a chunk is not English: the numbers of all languages, and of each chunk's.
        "languages": array("u8", ANY, rising=True, optional=True),
        "chunk_language": array("u8", "chunks", optional=True),
    },
    counts={"keywords": "vocabulary"},
    edges={"keyword_unit": ("word_units_indices", 1)},
    seconds=lambda size: 2e-5 * size.get("units", 0),
)

LINKS = Stage(
    "links",
    version=13,
    needs=(DOCUMENTS, "units"),
    settings=("language",),
    run=f"{_HERE}.links:run",
    unit="units",
    arrays={
        **strings("keywords", "link_keywords"),
        **strings("names", "names"),
        **strings("subjects", "subjects"),
        **graph("unit_keywords", "units", "link_keywords"),
        "unit_keywords_tf": array("u32", ANY),
        **graph("keyword_units", "link_keywords", "units"),
        "keyword_units_tf": array("u32", ANY),
        **graph("unit_names", "units", "names"),
        **graph("name_units", "names", "units"),
        "unit_subject": array("u32", "units"),
        **graph("unit_mentions", "units", "subjects"),
        **graph("subject_units", "subjects", "units"),
        "first_sentence": array("u64", "units+1", rising=True),
        # Positions in the rows of the unit (rust/core/src/rank/sentence_rows.rs).
        **graph("sentence_keywords", "link_sentences"),
        **graph("sentence_names", "link_sentences"),
        "unit_length": array("u32", "units"),
        # If a unit is not English: the numbers of all languages, and of each unit's.
        "languages": array("u8", ANY, rising=True, optional=True),
        "unit_language": array("u8", "units", optional=True),
    },
    counts={"names": "names", "subjects": "subjects"},
    edges={"unit_name": ("unit_names_indices", 1), "unit_mention": ("unit_mentions_indices", 1)},
    seconds=lambda size: 4e-5 * size.get("units", 0),
)


TERMS = Stage(
    "terms",
    version=1,
    needs=("units",),
    settings=(),
    run=f"{_HERE}.terms:run",
    look=f"{_HERE}.terms:look",
    unit="units",
    arrays={
        **graph("term_units", "sparse_terms", "units"),
        "term_impacts": array("u8", "term_postings"),
        "model": array("u8", ANY),
    },
    counts={"terms": "term_postings"},
    seconds=lambda size: 0.02 * size.get("units", 0),
)


def lexical_stages(settings: Settings) -> tuple[str, ...]:
    """Return the stages that match units with the words of a query."""
    return ("links",) if settings.sparse_model is None else ("links", "terms")


def _vector_stages(settings: Settings) -> tuple[str, ...]:
    """Return the stages that vectors need: words for fitted vectors, texts for a model."""
    return (DOCUMENTS, "units") if has_model(settings) else (DOCUMENTS, "units", "words")


def _further_vector_stages(settings: Settings) -> tuple[str, ...]:
    return (*_vector_stages(settings), "vectors")


VECTORS = Stage(
    "vectors",
    version=3,
    needs=_vector_stages,
    settings=("embedder", "seed", "vector_format"),
    run=f"{_HERE}.vectors:run",
    variant=f"{_HERE}.vectors:completeness",
    unit="steps",
    arrays={
        "basis": array("f32", "vocabulary", "dimension", optional=True),
        "dimension": array("u32", 1, optional=True),  # from a model
        **vector_columns("unit", "units"),
    },
    seconds=lambda size: 2e-4 * size.get("units", 0),
)

CHUNK_VECTORS = Stage(
    "chunk_vectors",
    version=2,
    needs=_further_vector_stages,
    settings=("embedder", "vector_format"),
    run=f"{_HERE}.vectors:chunks",
    unit="chunks",
    arrays=vector_columns("chunk", "chunks"),
    seconds=lambda size: 2e-5 * size.get("chunks", 0),
)


SENTENCE_VECTORS = Stage(
    "sentence_vectors",
    version=3,
    needs=_further_vector_stages,
    settings=("embedder",),
    run=f"{_HERE}.vectors:sentences",
    variant=f"{_HERE}.vectors:way",
    unit="sentences",
    arrays={"signs": array("u8", ANY, ANY, optional=True)},
    seconds=lambda size: 2e-5 * size.get("units", 0),
)

TITLE_VECTORS = Stage(
    "title_vectors",
    version=1,
    needs=_further_vector_stages,
    settings=("embedder",),
    run=f"{_HERE}.vectors:titles",
    unit="titles",
    arrays={"signs": array("u8", ANY, ANY, optional=True)},
    seconds=lambda size: 1e-6 * size.get("units", 0),
)

_SEARCHED = {"units": "passages"}
PROPOSALS = ("ann", "seed")
"""The settings of a stage that makes a graph for searching vectors."""


def search_over(
    listed: str, stage: str, array_name: str, name: str, *, reads: bool = False, size: str | None = None
) -> Stage:
    """Declare a stage that builds an hnswlib graph over an array of another stage, if it is very large.

    `listed` is the name of this list of vectors in `Channel.searches`; `array_name` is the array in f32, or
    the name of vectors in any format. Its only array is the record; the graph is a file for hnswlib. With
    `size`, the number of vectors by name, a build recommends hnswlib.
    """

    def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Made:
        from ketrag_fast.systems.shared.hnsw_proposals import propose

        return propose(inputs, stage, array_name, settings, context)

    def variant(inputs: StageInputs, settings: Settings, _: StageContext) -> str:
        from ketrag_fast.systems.shared.hnsw_proposals import kind_of_search

        return kind_of_search(inputs, stage, array_name, settings)

    return Stage(
        name,
        version=1,
        needs=tuple(dict.fromkeys(("vectors", stage))),
        settings=PROPOSALS,
        run=run,
        unit="vectors",
        variant=variant,
        reads=reads,
        arrays={"record": array("u8", ANY, optional=True)},
        proposes=(listed, stage, array_name),
        large=None if size is None else (_SEARCHED.get(listed, listed), size),
    )


UNIT_SEARCH = search_over("units", "vectors", "unit", "unit_search", size="units")

SHARED = (UNITS, WORDS, LINKS, TERMS, VECTORS, CHUNK_VECTORS, SENTENCE_VECTORS, TITLE_VECTORS, UNIT_SEARCH)
"""The shared stages, in the default order of execution."""
