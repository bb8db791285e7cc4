"""Every setting once: its default, its range, and whom it concerns.

`concerns`: "build" settings decide what the index holds and enter the fingerprints of the stages
that name them; "read" settings decide how documents are read (their effect shows in the documents'
own hashes); "query" settings are used per question; "run" settings change nothing in any result.
`rebuild` marks a build setting whose change throws all earlier work away, so it must be asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from ketrag_fast.errors import ConfigError

Concern = Literal["build", "read", "query", "run"]


def _setting(
    default: Any,
    text: str,
    *,
    concerns: Concern = "build",
    low: float | None = None,
    high: float | None = None,
    rebuild: bool = False,
) -> Any:
    meta = {"help": text, "concerns": concerns, "low": low, "high": high, "rebuild": rebuild}
    return field(default=default, metadata=meta)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings. Only what is passed counts as *given*; the rest may come from elsewhere."""

    system: str = _setting("default", "the preset that the build follows")
    embedder: str = _setting(
        "builtin",
        "what makes vectors: builtin, local:NAME_OR_PATH (native: or sentence-transformers: by force), "
        "openai:MODEL@URL or vectors:FOLDER",
        rebuild=True,
    )
    chunk_tokens: int = _setting(200, "tokens of a unit, at most", low=8, high=1_000_000, rebuild=True)
    overlap: int = _setting(0, "tokens that neighbouring chunks share", low=0, rebuild=True)
    split_level: int = _setting(0, "each chunk is cut into about 2**N units", low=0, high=16, rebuild=True)
    cut: Literal["sentences", "windows"] = _setting(
        "sentences", "units end at sentence ends, or are plain windows of tokens", rebuild=True
    )
    encoding: Literal["cl100k_base", "o200k_base"] = _setting(
        "cl100k_base", "the tokens that sizes and budgets are counted in", rebuild=True
    )
    language: str = _setting("english", "whose stop words are dropped; none keeps all words")
    builtin_dim: int = _setting(256, "dimensions of the built-in vectors", low=1, high=4096)
    knn_k: int = _setting(2, "neighbours of a unit in the KNN graph", low=0, high=10_000)
    max_df_ratio: float | None = _setting(
        None, "words in more than this share of units are not counted as shared", low=0.0, high=1.0
    )
    core_ratio: float = _setting(0.8, "share of chunks that are core", low=0.0, high=1.0)
    core_selection: Literal["pagerank", "uniform"] = _setting("pagerank", "how core chunks are picked")
    keyword_norm: Literal["none", "unit"] = _setting("none", "whether keyword vectors are normalised")
    ann: Literal["auto", "exact", "hnsw"] = _setting(
        "auto",
        "how nearest vectors are found: exact scan or hnswlib (extra ann); auto goes by their number",
    )
    ann_from: int = _setting(
        300_000, "vectors of a model from which auto searches with hnswlib", low=1, high=2**32 - 1
    )
    knn_ann_from: int = _setting(
        500_000, "chunks from which auto makes the KNN graph with hnswlib", low=1, high=2**32 - 1
    )
    words: Literal["own", "published"] = _setting(
        "own",
        "words and sentences: our own, or as the published KET-RAG code has them (needs NLTK's data)",
    )
    keyword_mean: Literal["sentences", "occurrences"] = _setting(
        "sentences", "what a keyword's vector is the mean of; occurrences needs words = published"
    )
    core_unit: Literal["chunk", "subchunk"] = _setting(
        "chunk", "what the KNN graph joins and the core is chosen from"
    )
    core_rounding: Literal["up", "down"] = _setting("up", "how the number of core chunks is made whole")
    core_rank: Literal["converged", "networkx"] = _setting(
        "converged", "when PageRank stops: at its limit, or as early as networkx"
    )
    knn_repeats: bool = _setting(False, "a semantic neighbour may repeat a lexical one")
    knn_zero: bool = _setting(False, "a lexical neighbour need not share a word")
    llm: str = _setting(
        "none",
        "what reads the core chunks: none, heuristic, llama-cpp:PATH.gguf, openai:MODEL@URL"
        " or replay:FILE.jsonl",
    )
    entity_types: str = _setting(
        "person,organization,place,event,work,date,concept",
        "types of entities that are asked for, with commas between; any leaves them to the model",
    )
    gleanings: int = _setting(0, "how often a model is asked for what it missed", low=0, high=8)
    terse_replies: bool = _setting(True, "a model replies in arrays, which cost fewer tokens than objects")
    rewire: Literal["all", "mention"] = _setting(
        "all", "an entity leads to all units of its chunks, or to those that name it where one does"
    )
    summaries: Literal["joined", "model"] = _setting(
        "joined",
        "descriptions that several chunks give: their lines joined by a fixed rule, or condensed by the model"
        " that reads",
    )
    llm_tokens: int = _setting(2048, "tokens of one reply, at most", low=16, high=1_000_000)
    seed: int = _setting(42, "of everything that is drawn by chance", low=0, high=2**64 - 1)
    nltk_data: str | None = _setting(
        None, "folder of NLTK's data; none looks in its usual places", concerns="run"
    )
    fallback_encoding: str = _setting("cp1252", "for files that are not UTF-8", concerns="read")
    mode: Literal[
        "auto",
        "bm25",
        "text",
        "fused",
        "knng",
        "keyword",
        "walk",
        "skeleton",
        "ket",
        "ms-graph",
        "hybrid",
        "hyde",
    ] = _setting("auto", "how passages are ranked; auto is the best that the index allows", concerns="query")
    writer: str | None = _setting(
        None,
        "the language model that writes answers, and passages for mode hyde: llama-cpp:PATH.gguf"
        " or openai:MODEL@URL",
        concerns="query",
    )
    budget: int = _setting(4000, "tokens of a context, at most", concerns="query", low=0)
    kg_share: float = _setting(
        0.4,
        "the skeleton's share of the budget in modes ket and hybrid; the texts have the rest",
        concerns="query",
        low=0.0,
        high=1.0,
    )
    rollover: Literal["texts", "none", "graph"] = _setting(
        "texts",
        "who gets what the other half of ket or hybrid leaves of the budget: the texts, which then repeat no"
        " source; nobody, as in the paper; or the graph, as in the published code",
        concerns="query",
    )
    seed_entities: int = _setting(
        10,
        "entities nearest to the question that the tables begin with",
        concerns="query",
        low=1,
        high=10_000,
    )
    tables: Literal["own", "published"] = _setting(
        "own",
        "the skeleton's tables: fixed columns and each source once, or as the published code prints them",
        concerns="query",
    )
    top: int | None = _setting(None, "passages of a context, at most", concerns="query", low=0)
    fill_policy: Literal["first_overflow_stops", "skip_and_continue"] = _setting(
        "first_overflow_stops", "what happens at the first passage that does not fit", concerns="query"
    )
    oversize_policy: Literal["truncate", "drop"] = _setting(
        "truncate", "what happens when not even the first passage fits", concerns="query"
    )
    seed_keywords: int | None = _setting(
        None,
        "keywords that may bring in units, at most (the published code asks for 1,000)",
        concerns="query",
        low=0,
    )
    row_count: Literal["parts", "whole"] = _setting(
        "parts",
        "a row costs the sum of its parts, or is counted again and printed as the published code does",
        concerns="query",
    )
    deadline: float | None = _setting(None, "seconds that one question may take", concerns="query", low=0)
    threads: int = _setting(0, "cores to use; 0 is all of them", concerns="run", low=0, high=4096)
    verify: Literal["full", "blocks", "sizes"] = _setting(
        "blocks", "checksums: all on opening, of each block when first read, or none", concerns="run"
    )
    on_error: Literal["skip", "stop"] = _setting(
        "skip", "whether a document that cannot be read ends the build", concerns="run"
    )
    limit_seconds: float | None = _setting(
        None,
        "a build stops after so long; the next one goes on. Chunks read by then are published",
        concerns="run",
        low=0,
    )
    llm_seconds: float | None = _setting(
        120.0, "seconds that one reply may take; none is no limit", concerns="run", low=0.1
    )
    llm_slots: int = _setting(
        0, "chunks that a model reads at once; 0 leaves it to the backend", concerns="run", low=0, high=1024
    )
    llm_context: int | None = _setting(
        None,
        "tokens of prompt and reply that memory is taken for; none is as many as needed",
        concerns="run",
        low=64,
    )
    on_barren: Literal["stop", "continue"] = _setting(
        "stop", "whether ten chunks in a row with no entity at the start end the build", concerns="run"
    )
    retry_failed: bool = _setting(
        False, "chunks whose replies could not be used are asked for again", concerns="run"
    )
    record: str | None = _setting(
        None, "a file that the replies are written to, for replay:FILE.jsonl", concerns="run"
    )
    offline: bool = _setting(False, "forbid the network", concerns="run")
    precision: Literal["auto", "fp32", "bf16"] = _setting(
        "auto", "how a model computes; auto takes bf16 where it is fast and verified", concerns="run"
    )
    device: str = _setting("auto", "where a model computes: auto, cpu, cuda, cuda:N, mps", concerns="run")
    allow_download: bool = _setting(False, "a model that is not here may be downloaded", concerns="run")
    limit_usd: float | None = _setting(
        None, "what an endpoint may cost; needs usd_per_million", concerns="run", low=0
    )
    usd_per_million: float | None = _setting(
        None, "price of a million tokens at the endpoint", concerns="run", low=0
    )
    llm_usd_per_million: float | None = _setting(
        None, "the same for the language model; none takes usd_per_million", concerns="run", low=0
    )
    llm_usd_per_million_out: float | None = _setting(
        None, "the same for its replies; none takes the price of the prompts", concerns="run", low=0
    )

    def __new__(cls, **values: Any) -> Self:
        """Remembers which settings were passed, before they are filled up with the defaults."""
        self = object.__new__(cls)
        object.__setattr__(self, "_given", frozenset(values))
        return self

    def __post_init__(self) -> None:
        for spec in fields(self):
            _check(spec, _TYPES[spec.name], getattr(self, spec.name))
        if self.overlap >= self.chunk_tokens:
            raise ConfigError(
                f"overlap ({self.overlap}) must be below chunk_tokens ({self.chunk_tokens})",
                hint="a window must move on by at least one token",
            )
        if self.keyword_mean == "occurrences" and self.words == "own" and "words" in self.given:
            raise ConfigError(
                "keyword_mean = occurrences needs words = published",
                hint="our own words are known once for each sentence",
            )

    @property
    def given(self) -> dict[str, Any]:
        """The settings that were passed, in the order of the class."""
        names: frozenset[str] = self.__dict__["_given"]
        return {spec.name: getattr(self, spec.name) for spec in fields(self) if spec.name in names}

    def having(self, **changes: Any) -> Settings:
        """A copy with some settings given anew; what was not given stays so."""
        return Settings(**{**self.given, **changes})

    def only(self, names: Iterable[str]) -> dict[str, Any]:
        """These settings by name, as a fingerprint wants them."""
        return {name: getattr(self, name) for name in names}


_TYPES = get_type_hints(Settings)
FIELDS: Mapping[str, Field[Any]] = {spec.name: spec for spec in fields(Settings)}


def names(*concerns: Concern) -> tuple[str, ...]:
    """The settings that concern these, in the order of the class; all with no argument."""
    return tuple(n for n, spec in FIELDS.items() if not concerns or spec.metadata["concerns"] in concerns)


def known(name: str, where: str = "") -> str:
    """The setting of that name (`-` and `_` alike), or a ConfigError with the nearest one."""
    plain = name.strip().lower().replace("-", "_")
    if plain in FIELDS:
        return plain
    from difflib import get_close_matches  # here, so that `--help` does not wait for it

    near = get_close_matches(plain, FIELDS, 1)
    raise ConfigError(
        f"there is no setting {name!r}{where}",
        hint=f"did you mean {near[0]}?" if near else "`ketrag config show` lists all settings",
    )


def parse(name: str, text: str) -> Any:
    """The value that a setting gets from text (an environment variable)."""
    kind = _TYPES[name]
    options = get_args(kind) if get_origin(kind) is not Literal else ()
    plain = text.strip()
    if type(None) in options and plain.lower() in ("", "none"):
        return None
    if not plain:
        raise ConfigError(f"{name} is empty", hint=f"unset it or give a value: {_expected(name)}")
    wanted = next((t for t in options if t is not type(None)), kind)
    try:
        if wanted is bool:
            return _BOOLEANS[plain.lower()]
        if wanted in (int, float):
            return wanted(plain)
    except (KeyError, ValueError):
        raise ConfigError(f"{name}: {text!r} is not {_expected(name)}") from None
    return plain


_BOOLEANS = dict.fromkeys(("1", "true", "yes", "on"), True)
_BOOLEANS |= dict.fromkeys(("0", "false", "no", "off"), False)
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", type(None): "none"}


def _expected(name: str) -> str:
    kind, meta = _TYPES[name], FIELDS[name].metadata
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    options = get_args(kind) or (kind,)
    text = " or ".join(_WORDS[option] for option in options)
    low, high = meta["low"], meta["high"]
    if low is not None and high is not None:
        text += f" from {low} to {high}"
    elif low is not None:
        text += f" from {low} up"
    return text


def _check(spec: Field[Any], kind: Any, value: Any) -> None:
    if value == "" and isinstance(value, str):
        raise ConfigError(f"{spec.name} is empty", hint=f"give {_expected(spec.name)}")
    if not (_fits(kind, value) and _in_range(spec, value)):
        raise ConfigError(f"{spec.name}: {value!r} is not {_expected(spec.name)}")


def _in_range(spec: Field[Any], value: Any) -> bool:
    if value is None or isinstance(value, (str, bool)):
        return True
    low, high = spec.metadata["low"], spec.metadata["high"]
    return math.isfinite(value) and (low is None or value >= low) and (high is None or value <= high)


def _fits(kind: Any, value: Any) -> bool:
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    options = get_args(kind) or (kind,)
    if value is None:
        return type(None) in options
    if isinstance(value, bool):
        return bool in options
    if float in options:
        return isinstance(value, (int, float))
    return any(isinstance(value, option) for option in options)
