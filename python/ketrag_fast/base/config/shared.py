"""The settings that no single system owns: documents, units, vectors, reading, questions, how work runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ketrag_fast.base.config.fields import LONGEST_SECONDS, setting


@dataclass(frozen=True, kw_only=True)
class SharedSettings:
    """Each with its one default. What a system adds stands in a class of its own, beside the system."""

    system: str = setting("default", "the preset that the build follows")
    modes: str = setting(
        "auto",
        "modes that the index is to answer, with commas between: only what these need is built; auto is bm25,"
        " text, fused, walk, keyword, hyde, the system's own, and those of the skeleton where something reads"
        " the chunks",
    )
    embedder: str = setting(
        "builtin",
        "what makes vectors: builtin, local:NAME_OR_PATH (native: or sentence-transformers: by force), "
        "openai:MODEL@URL or vectors:FOLDER",
        rebuild=True,
    )
    chunk_tokens: int = setting(200, "tokens of a unit, at most", low=8, high=1_000_000, rebuild=True)
    overlap: int = setting(0, "tokens that neighbouring chunks share", low=0, rebuild=True)
    split_level: int = setting(0, "each chunk is cut into about 2**N units", low=0, high=16, rebuild=True)
    cut: Literal["sentences", "windows"] = setting(
        "sentences", "units end at sentence ends, or are plain windows of tokens", rebuild=True
    )
    encoding: Literal["cl100k_base", "o200k_base"] = setting(
        "cl100k_base", "the tokens that sizes and budgets are counted in", rebuild=True
    )
    language: str = setting("english", "whose stop words are dropped; none keeps all words")
    builtin_dim: int = setting(256, "dimensions of the built-in vectors", low=1, high=4096)
    core_ratio: float = setting(0.8, "share of chunks that are core", low=0.0, high=1.0)
    ann: Literal["auto", "exact", "hnsw"] = setting(
        "auto",
        "how nearest vectors are found: exact scan or hnswlib (extra ann); auto goes by their number",
    )
    ann_from: int = setting(
        300_000, "vectors of a model from which auto searches with hnswlib", low=1, high=2**32 - 1
    )
    words: Literal["own", "published"] = setting(
        "own",
        "words and sentences: our own, or as the published KET-RAG code has them (needs NLTK's data)",
    )
    core_unit: Literal["chunk", "subchunk"] = setting(
        "chunk", "what the KNN graph joins and the core is chosen from"
    )
    llm: str = setting(
        "none",
        "what reads the core chunks: none, heuristic, llama-cpp:PATH.gguf, openai:MODEL@URL"
        " or replay:FILE.jsonl",
        topic="reading",
    )
    entity_types: str = setting(
        "person,organization,place,event,work,date,concept",
        "types of entities that are asked for, with commas between; any leaves them to the model",
        topic="reading",
    )
    gleanings: int = setting(
        0, "how often a model is asked for what it missed", low=0, high=8, topic="reading"
    )
    terse_replies: bool = setting(
        True, "a model replies in arrays, which cost fewer tokens than objects", topic="reading"
    )
    summaries: Literal["joined", "model"] = setting(
        "joined",
        "descriptions that several chunks give: their lines joined by a fixed rule, or condensed by the model"
        " that reads",
        topic="reading",
    )
    llm_tokens: int = setting(2048, "tokens of one reply, at most", low=16, high=1_000_000, topic="reading")
    seed: int = setting(42, "of everything that is drawn by chance", low=0, high=2**64 - 1)
    nltk_data: str | None = setting(
        None, "folder of NLTK's data; none looks in its usual places", concerns="run", topic="build"
    )
    fallback_encoding: str = setting("cp1252", "for files that are not UTF-8", concerns="read")
    shard: str | None = setting(
        None,
        "I/N: only the documents whose ids fall to part I of N, for `ketrag merge`; none is all of them",
        concerns="read",
    )
    keep_generations: int = setting(
        2,
        "generations that stay in the folder, with the new one; what a reader has open it keeps anyway",
        concerns="read",
        low=1,
        high=1_000_000,
        topic="running",
    )
    keep_days: float | None = setting(
        None,
        "older generations also stay for so many days",
        concerns="read",
        low=0,
        high=1_000_000,
        topic="running",
    )
    read_seconds: float | None = setting(
        300.0,
        "seconds that reading one PDF, page, archive ... may take; none is no limit",
        concerns="run",
        low=0.1,
        high=LONGEST_SECONDS,
        topic="build",
    )
    read_memory: int = setting(
        1500, "MB that reading one of them may take", concerns="run", low=200, high=1_000_000, topic="build"
    )
    read_text: int = setting(
        200,
        "million characters that one file may give; a large file may give 4 for each of its bytes",
        concerns="run",
        low=1,
        high=1_000_000,
        topic="build",
    )
    follow_links: bool = setting(
        False, "follow links that lead out of a source folder", concerns="run", topic="build"
    )
    mode: str = setting(
        "auto",
        "how passages are ranked; auto is the best that the index allows",
        concerns="query",
        choices=("auto",),
    )
    writer: str | None = setting(
        None,
        "the language model that writes answers, and passages for mode hyde: llama-cpp:PATH.gguf"
        " or openai:MODEL@URL",
        concerns="query",
        topic="writing",
    )
    budget: int = setting(4000, "tokens of a context, at most", concerns="query", low=0)
    kg_share: float = setting(
        0.4,
        "the skeleton's share of the budget in modes ket and hybrid; the texts have the rest",
        concerns="query",
        low=0.0,
        high=1.0,
    )
    top: int | None = setting(None, "passages of a context, at most", concerns="query", low=0)
    fill_policy: Literal["first_overflow_stops", "skip_and_continue"] = setting(
        "first_overflow_stops", "what happens at the first passage that does not fit", concerns="query"
    )
    oversize_policy: Literal["truncate", "drop"] = setting(
        "truncate", "what happens when not even the first passage fits", concerns="query"
    )
    row_count: Literal["parts", "whole"] = setting(
        "parts",
        "a row costs the sum of its parts, or is counted again and printed as the published code does",
        concerns="query",
    )
    rerank: str | None = setting(
        None,
        "a cross-encoder that reads the first 30 passages with the question and puts them in its order:"
        " native:FOLDER",
        concerns="query",
    )
    filter: str | None = setting(
        None,
        "only passages of documents whose metadata fits: 'year>=1990 and lang=en'; the others may still lead"
        " to them",
        concerns="query",
    )
    allow: str | None = setting(
        None,
        "only documents whose metadata fits are there at all: 'group=sales'; answers are those of an index of"
        " these alone, which is made when it is first asked",
        concerns="query",
        protects=True,
    )
    deadline: float | None = setting(
        None, "seconds that one question may take", concerns="query", low=0, high=LONGEST_SECONDS
    )
    threads: int = setting(
        0, "cores to use; 0 is all of them", concerns="run", low=0, high=4096, topic="common"
    )
    verify: Literal["full", "blocks", "sizes"] = setting(
        "blocks",
        "checksums: all on opening, of each block when first read, or none",
        concerns="run",
        topic="common",
    )
    on_error: Literal["skip", "stop"] = setting(
        "skip", "whether a document that cannot be read ends the build", concerns="run"
    )
    limit_seconds: float | None = setting(
        None,
        "a build stops after so long; the next one goes on. Chunks read by then are published",
        concerns="run",
        low=0,
        high=LONGEST_SECONDS,
    )
    llm_seconds: float | None = setting(
        120.0,
        "seconds that one reply may take; none is no limit",
        concerns="run",
        low=0.1,
        high=LONGEST_SECONDS,
        topic="reading",
    )
    llm_slots: int = setting(
        0,
        "chunks that a model reads at once; 0 leaves it to the backend",
        concerns="run",
        low=0,
        high=1024,
        topic="reading",
    )
    llm_context: int | None = setting(
        None,
        "tokens of prompt and reply that memory is taken for; none is as many as needed",
        concerns="run",
        low=64,
        topic="reading",
    )
    on_barren: Literal["stop", "continue"] = setting(
        "stop",
        "whether ten chunks in a row with no entity at the start end the build",
        concerns="run",
        topic="reading",
    )
    retry_failed: bool = setting(
        False, "chunks whose replies could not be used are asked for again", concerns="run", topic="reading"
    )
    record: str | None = setting(
        None, "a file that the replies are written to, for replay:FILE.jsonl", concerns="run", topic="reading"
    )
    offline: bool = setting(False, "forbid the network", concerns="run", topic="common")
    precision: Literal["auto", "fp32", "bf16", "int8"] = setting(
        "auto",
        "how a model computes; auto takes what is fastest and verified; int8: native: alone",
        concerns="run",
        topic="embedding",
    )
    device: str = setting(
        "auto", "where a model computes: auto, cpu, cuda, cuda:N, mps", concerns="run", topic="embedding"
    )
    allow_download: bool = setting(
        False, "a model that is not here may be downloaded", concerns="run", topic="embedding"
    )
    limit_usd: float | None = setting(
        None, "what an endpoint may cost; needs usd_per_million", concerns="run", low=0, topic="embedding"
    )
    usd_per_million: float | None = setting(
        None, "price of a million tokens at the endpoint", concerns="run", low=0, topic="embedding"
    )
    llm_usd_per_million: float | None = setting(
        None,
        "the same for the language model; none takes usd_per_million",
        concerns="run",
        low=0,
        topic="reading",
    )
    llm_usd_per_million_out: float | None = setting(
        None,
        "the same for its replies; none takes the price of the prompts",
        concerns="run",
        low=0,
        topic="reading",
    )
