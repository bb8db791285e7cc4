"""The settings shared by all systems, and those of extraction, which the systems that use it derive."""

from __future__ import annotations

from typing import Final, Literal

from ketrag_fast.base.config.fields import LONGEST_SECONDS, setting
from ketrag_fast.records import dataclass

LEAST_MEMORY: Final = 256
"""Minimum memory of a build in MB."""
LARGE: Final = 300_000
"""Number of vectors from which `ann = auto` uses a graph instead of the exact scan.

No other number was compared."""


@dataclass(frozen=True, kw_only=True)
class SharedSettings:
    """The shared settings with their defaults. Each system declares further settings in its own class."""

    system: str = setting("default", "system or preset to build", flag=True, metavar="PRESET")
    modes: str = setting(
        "auto",
        "modes to build, comma-separated; +MODE adds one; auto: bm25, walk, and with a model text and "
        "fused; all: every mode",
        flag=True,
        metavar="LIST",
    )
    embedder: str = setting(
        "builtin",
        "embedding model: builtin, native:NAME_OR_PATH, local:NAME_OR_PATH, openai:MODEL@URL, "
        "ollama:MODEL, lmstudio:MODEL or vectors:FOLDER",
        rebuild=True,
        flag=True,
        metavar="SPEC",
    )
    vector_format: Literal["4bit", "int8", "f32"] = setting(
        "4bit", "format of a model's vectors of units; those of sentences have one bit per value"
    )
    sparse_model: str | None = setting(
        None,
        "learned sparse encoder such as SPLADE, NAME_OR_PATH, whose term weights replace BM25 in bm25, fused"
        " and walk",
        metavar="NAME",
    )
    chunk_tokens: int = setting(
        200,
        "maximum chunk size in tokens of English; as much text in other languages",
        low=8,
        high=1_000_000,
        rebuild=True,
        flag=True,
    )
    overlap: int = setting(0, "tokens shared by neighbouring chunks", low=0, rebuild=True)
    split_level: int = setting(
        0, "split each chunk into about 2**N units for ranking", low=0, high=16, rebuild=True
    )
    cut: Literal["sentences", "windows"] = setting(
        "sentences", "end units at sentence ends, or cut plain windows of tokens", rebuild=True
    )
    encoding: Literal["cl100k_base", "o200k_base"] = setting(
        "cl100k_base", "tokeniser that sizes and budgets are counted with", rebuild=True
    )
    language: str = setting(
        "auto",
        "language of the documents for stems and stop words; auto detects it, none uses neither",
        flag=True,
        metavar="LANGUAGE",
    )
    ann: Literal["auto", "exact", "hnsw"] = setting(
        "auto", "nearest-neighbour search: exact scan or hnswlib (extra ann); auto chooses by size"
    )
    llm: str = setting(
        "none",
        "language model: none, heuristic (rules), llama-cpp:PATH.gguf, openai:MODEL@URL, ollama:MODEL, "
        "lmstudio:MODEL or replay:FILE.jsonl",
        topic="reading",
        flag=True,
        metavar="SPEC",
    )
    seed: int = setting(42, "random seed", low=0, high=2**64 - 1, flag=True)
    fallback_encoding: str | None = setting(
        None, "encoding of files that are not UTF-8; none: detect it", concerns="read", metavar="NAME"
    )
    ocr: str | None = setting(
        None,
        "recognise text of scanned PDF pages with Tesseract in these languages (eng+deu); none: do not",
        concerns="read",
        topic="build",
        flag=True,
        metavar="LANGUAGES",
    )
    shard: str | None = setting(
        None,
        "index only shard I of N of the documents, for `ketrag merge`; none: all",
        concerns="read",
        flag=True,
        metavar="I/N",
    )
    keep_generations: int = setting(
        2,
        "generations kept in the index folder, including the new one",
        concerns="read",
        low=1,
        high=1_000_000,
        topic="running",
        flag=True,
    )
    read_seconds: float | None = setting(
        300.0,
        "time limit for reading one PDF, web page or archive, in seconds; none: no limit",
        concerns="run",
        low=0.1,
        high=LONGEST_SECONDS,
        topic="build",
    )
    read_memory: int = setting(
        1500,
        "memory limit for reading one such file, in MB",
        concerns="run",
        low=200,
        high=1_000_000,
        topic="build",
    )
    read_text: int = setting(
        200,
        "maximum text of one file in million characters, or 4 per byte of the file if that is more",
        concerns="run",
        low=1,
        high=1_000_000,
        topic="build",
    )
    exclude: str | None = setting(
        None,
        "files of source folders to leave out: patterns as in .gitignore, comma-separated",
        concerns="read",
        topic="build",
        flag=True,
        metavar="GLOB",
        reaches="never",
    )
    gitignore: bool = setting(
        True,
        "leave out the files that .gitignore files in a source folder name",
        concerns="read",
        topic="build",
    )
    generated: Literal["skip", "read"] = setting(
        "skip",
        "minified and generated files of source folders: skip them, or read them",
        concerns="read",
        topic="build",
    )
    hidden: Literal["skip", "read"] = setting(
        "skip",
        "hidden sheets, rows, columns and slides: skip them, or read them",
        concerns="read",
        topic="build",
    )
    follow_links: bool = setting(
        False,
        "follow symbolic links that lead out of a source folder",
        concerns="run",
        topic="build",
        flag=True,
        reaches="true",
    )
    mode: str = setting(
        "auto",
        "retrieval mode; auto: the best one in the index",
        concerns="query",
        choices=("auto",),
        flag=True,
        metavar="MODE",
    )
    answer_llm: str | None = setting(
        None,
        "model for answers (default: llm); native:FOLDER quotes a span; none: no model",
        concerns="query",
        topic="writing",
        flag=True,
        metavar="SPEC",
    )
    budget: int = setting(4000, "maximum tokens of the context", concerns="query", low=0, flag=True)
    top: int | None = setting(None, "maximum number of passages", concerns="query", low=0, flag=True)
    min_score: float = setting(
        0.0, "minimum relevance of a passage, from 0 to 1", concerns="query", low=0, high=1, flag=True
    )
    refresh: Literal["auto", "always", "never"] = setting(
        "auto",
        "before a query, index files that have changed: auto unless it takes more than 2 s, always, or never",
        concerns="query",
    )
    rerank: str | None = setting(
        None,
        "reranks the first passages: cross-encoder native:FOLDER",
        concerns="query",
        flag=True,
        metavar="SPEC",
    )
    newest: bool = setting(
        False,
        "of passages of comparable relevance, print those of newer documents first",
        concerns="query",
        flag=True,
    )
    filter: str | None = setting(
        None,
        "return only passages whose metadata match, such as 'year>=1990 and lang=en'",
        concerns="query",
        flag=True,
        metavar="CONDITION",
        reaches="never",
    )
    allow: str | None = setting(
        None,
        "access control: answer as if only matching documents were indexed, such as 'group=sales'",
        concerns="query",
        protects=True,
        flag=True,
        metavar="CONDITION",
        reaches="never",
    )
    deadline: float | None = setting(
        None, "time limit per query in seconds", concerns="query", low=0, high=LONGEST_SECONDS, flag=True
    )
    threads: int = setting(
        0, "CPU threads; 0: all cores", concerns="run", low=0, high=4096, topic="common", flag=True
    )
    memory: int = setting(
        0,
        "memory of a build in MB, at least 256; 0: a quarter of the machine's",
        concerns="run",
        low=0,
        high=1 << 24,
        flag=True,
        metavar="MB",
    )
    verify: Literal["full", "blocks", "sizes"] = setting(
        "blocks",
        "checksums: verify all on opening, each block when first read, or file sizes only",
        concerns="run",
        topic="common",
        flag=True,
    )
    on_error: Literal["skip", "stop"] = setting(
        "skip", "if a document cannot be read: skip it or stop the build", concerns="run", flag=True
    )
    limit_seconds: float | None = setting(
        None,
        "time limit of a build in seconds; extracted chunks are published, the next build continues",
        concerns="run",
        low=0,
        high=LONGEST_SECONDS,
        flag=True,
    )
    llm_slots: int = setting(
        0,
        "chunks extracted in parallel; 0: the backend decides",
        concerns="run",
        low=0,
        high=1024,
        topic="reading",
        flag=True,
    )
    llm_context: int | None = setting(
        None,
        "context window of the LLM in tokens, if the endpoint does not report it; none: as reported, or as "
        "large as needed",
        concerns="run",
        low=64,
        topic="reading",
        flag=True,
    )
    retry_failed: bool = setting(
        False,
        "extract again from chunks whose replies were unusable",
        concerns="run",
        topic="reading",
        flag=True,
    )
    offline: bool = setting(False, "forbid network access", concerns="run", topic="common", flag=True)
    precision: Literal["auto", "fp32", "bf16", "int8"] = setting(
        "auto",
        "arithmetic of embedders and rerankers; auto: the fastest that is verified; int8 only with native:",
        concerns="run",
        topic="embedding",
        flag=True,
    )
    device: str = setting(
        "auto",
        "device of the embedding model: auto, cpu, cuda, cuda:N or mps",
        concerns="run",
        topic="embedding",
        flag=True,
        metavar="DEVICE",
    )
    allow_download: bool = setting(
        False,
        "download a missing embedding model",
        concerns="run",
        topic="embedding",
        flag=True,
        reaches="true",
    )
    limit_usd: float | None = setting(
        None,
        "maximum spend in USD; the build stops and stays usable; needs usd_per_million",
        concerns="run",
        low=0,
        topic="embedding",
        flag=True,
    )
    usd_per_million: str | None = setting(
        None,
        "prices in USD of a million tokens at endpoints: one for all, or of embeddings, LLM prompts and LLM "
        "replies, comma-separated",
        concerns="run",
        topic="embedding",
        metavar="PRICES",
        reaches="never",
    )


@dataclass(frozen=True, kw_only=True)
class ExtractionSettings:
    """The settings of extraction. A system whose stages read chunks derives its settings from this class."""

    core_ratio: float = setting(
        0.8, "share of chunks that an LLM extracts from (the core)", low=0.0, high=1.0, flag=True
    )
    entity_types: str = setting(
        "person,organization,place,event,work,date,concept",
        "entity types to extract, comma-separated; any: the model decides",
        topic="reading",
        flag=True,
        metavar="LIST",
        reaches="never",
    )
    gleanings: int = setting(
        0, "extra extraction rounds for entities missed", low=0, high=8, topic="reading", flag=True
    )
    summaries: Literal["joined", "model"] = setting(
        "joined",
        "descriptions of one entity from several chunks: concatenated, or condensed by the LLM",
        topic="reading",
        flag=True,
    )
    llm_tokens: int = setting(
        2048, "maximum tokens of one extraction reply", low=16, high=1_000_000, topic="reading", flag=True
    )
    llm_seconds: float | None = setting(
        120.0,
        "time limit of one extraction reply in seconds; none: no limit",
        concerns="run",
        low=0.1,
        high=LONGEST_SECONDS,
        topic="reading",
        flag=True,
    )
    record: str | None = setting(
        None,
        "write the extraction replies to a file, for --llm replay:FILE",
        concerns="run",
        topic="reading",
        flag=True,
        metavar="FILE",
    )
