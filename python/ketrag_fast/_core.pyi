"""The compiled core. Faces are thin: arrays are flat and contiguous, errors are `ketrag_fast.errors`.

Strings cross as (blob: uint8, offsets: uint64): string i is blob[offsets[i]:offsets[i+1]], UTF-8.
Compressed rows cross as (indptr: uint64[rows+1], indices: uint32).
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, final

import numpy as np
from numpy.typing import NDArray

_U8 = NDArray[np.uint8]
_U32 = NDArray[np.uint32]
_U64 = NDArray[np.uint64]
_I64 = NDArray[np.int64]
_F32 = NDArray[np.float32]
_F64 = NDArray[np.float64]
_Strings = tuple[_U8, _U64]
_Packed = tuple[_Buffer, _Buffer]
_Csr = tuple[_U64, _U32]
_Buffer = NDArray[Any] | bytes | bytearray | memoryview | array[int]
_Report = Callable[[int, int], bool | None] | None

__all__ = [
    "Bundle",
    "Classifier",
    "Column",
    "CutUnits",
    "Descriptions",
    "Documents",
    "Encoder",
    "Extractor",
    "FileLock",
    "Front",
    "GraphNetwork",
    "MappedFile",
    "Mask",
    "Pattern",
    "PdfPages",
    "Plan",
    "Printed",
    "Punkt",
    "Reply",
    "Request",
    "RequestLog",
    "Searcher",
    "Shard",
    "TermEncoder",
    "Union",
    "Weighting",
    "__version__",
    "append_strings",
    "betweenness",
    "changed_files",
    "citation_candidates",
    "citation_links",
    "concept_graph",
    "concepts",
    "cooccurrence_kernels",
    "cooccurrence_knn",
    "core_count",
    "core_numbers",
    "corpus",
    "cosine_knn",
    "count_tokens",
    "cut_units",
    "decode_text",
    "delta_patches",
    "detect_language",
    "edge_alphas",
    "embed_rows",
    "encoder_kernels",
    "encoder_refusal",
    "expect_few_queries",
    "file_stats",
    "fill",
    "first_preferred",
    "fit_embedder",
    "fold_skeleton",
    "formula_part",
    "formula_text",
    "fuse_ranks",
    "graph_communities",
    "graph_layout",
    "graph_neighbourhood",
    "has_only_function_words",
    "hash_file",
    "hash_files",
    "induced_edges",
    "keyword_means",
    "keyword_means_by_words",
    "kmeans",
    "knn_graph",
    "label_titles",
    "languages",
    "lexical_keywords",
    "limit_markup",
    "links_bm25",
    "links_build",
    "links_build_runs",
    "links_weights",
    "lock_file",
    "lowered_text",
    "merge_hashes",
    "merge_strings",
    "open_beneath",
    "pack_documents",
    "pack_file",
    "pack_nibbles",
    "pack_signs",
    "pagerank",
    "pass_messages",
    "print_shards",
    "quantise_vectors",
    "query_parts",
    "question_terms",
    "raised_text",
    "read_bytes",
    "read_json_lines",
    "reads_forms",
    "renumber",
    "restore_strings",
    "row_scores",
    "select_by_concepts",
    "select_ranked",
    "select_uniform",
    "sentence_spans",
    "shortest_path",
    "simd_levels",
    "skeleton_row_tokens",
    "slice_strings",
    "smallest_hashes",
    "splice_rows",
    "splice_strings",
    "stop_words",
    "string_gaps",
    "sum_totals",
    "take_strings",
    "term_encoder_fingerprint",
    "text_blocks",
    "tokenise",
    "transpose",
    "unpack_array",
    "vector_top_k",
    "vocabulary",
    "walk_rank",
    "web_page",
    "weighted_graph",
    "windows_limit_memory",
    "windows_memory",
    "windows_peak_memory",
]

__version__: str

# One opened generation (rust/py/src/searcher.rs, request.rs).

# (name, channel, tokens, start, end) of a section; start and end are bytes of the text
_Section = tuple[str, str, int, int, int]
# (kind, text, units that have it, rarity)
_Bridge = tuple[str, str, int, float]
# (unit, worth, bridges)
_Step = tuple[int, float, list[_Bridge]]
# the partner; and of a pair the one that the unit is linked to, the other one, and what joins the two
_Reason = tuple[_Step | None, tuple[_Step, int, list[_Bridge]] | None]
# (chunk, document, title, start, end, text)
_Place = tuple[int, str, str, int, int, str, str]
# (ids, scores), best first
_Ranking = tuple[_U32, _F64]

@final
class FileLock:
    def release(self) -> None: ...

@final
class CutUnits:
    def arrays(self, *, keep: bool = False) -> dict[str, NDArray[Any]]: ...

@final
class Mask:
    def __new__(cls, units: _Buffer) -> Mask: ...
    def __len__(self) -> int: ...

@final
class Request:
    def __new__(
        cls,
        mode: str,
        shares: Sequence[tuple[str, float]],
        budgets: Sequence[int],
        *,
        join: str = "shares",
        rollover: str = "none",
        options: dict[str, bool | int | float | str | None] | None = None,
        top: int | None = None,
        truncate: bool = True,
        deadline: float | None = None,
        mask: Mask | None = None,
        once: bool = False,
        min_score: float = 0.0,
    ) -> Request: ...
    @property
    def mode(self) -> str: ...
    @property
    def budgets(self) -> list[int]: ...
    @property
    def top(self) -> int | None: ...

@final
class Printed:
    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def units(self) -> list[int]: ...
    @property
    def row_tokens(self) -> list[int]: ...
    @property
    def spans(self) -> list[tuple[int, int]]: ...
    @property
    def scores(self) -> list[float]: ...
    @property
    def relevance(self) -> list[float]: ...
    @property
    def nothing_fits(self) -> bool: ...
    @property
    def nodes(self) -> list[int]: ...
    @property
    def runs(self) -> list[tuple[int, int]]: ...
    @property
    def copies(self) -> list[tuple[int, int]]: ...
    @property
    def sections(self) -> list[_Section]: ...

@final
class Reply:
    @property
    def reason(self) -> str | None: ...
    @property
    def contexts(self) -> list[Printed]: ...
    @property
    def milliseconds(self) -> float: ...
    @property
    def empty_channels(self) -> list[str]: ...

@final
class Searcher:
    def __new__(
        cls,
        files: Mapping[str, MappedFile | str],
        encoding: str,
        language: str,
        *,
        by_blocks: bool = False,
    ) -> Searcher: ...
    def __len__(self) -> int: ...
    def missing(self) -> dict[str, str | None]: ...
    def keyword_units(self, keywords: Sequence[str]) -> list[int]: ...
    def answer(
        self,
        request: Request,
        question: str,
        *,
        vector: _F32 | None = None,
        terms: tuple[_U32, _F32] | None = None,
        near: dict[str, _U32] | None = None,
        given: dict[str, _Ranking] | None = None,
    ) -> Reply: ...
    def answer_many(
        self,
        request: Request,
        questions: Sequence[str],
        *,
        vectors: _F32 | None = None,
        terms: Sequence[tuple[_U32, _F32]] | None = None,
        near: dict[str, _U32] | None = None,
        given: dict[str, Sequence[_Ranking]] | None = None,
        threads: int = 0,
        report: _Report = None,
    ) -> list[Reply]: ...
    def explain(
        self,
        request: Request,
        channel: str,
        question: str,
        units: Sequence[int],
        *,
        vector: _F32 | None = None,
        terms: tuple[_U32, _F32] | None = None,
    ) -> list[_Reason]: ...
    def evidence(
        self, question: str, units: list[int], *, vector: _F32 | None = None
    ) -> list[list[float]]: ...
    def matching(
        self,
        text: str,
        *,
        prefix: bool = False,
        titles: bool = False,
        mask: Mask | None = None,
        threads: int = 0,
        seconds: float | None = None,
    ) -> tuple[_U32, list[str], tuple[int, int] | None] | None: ...
    def missing_words(self, query: str) -> list[str]: ...
    def correct(self, query: str) -> tuple[list[tuple[str, str | None]], str] | None: ...
    def sample(self, length: int) -> str | None: ...
    def read_ahead(self, most: int, *, report: _Report = None) -> int: ...
    def places(
        self,
        units: Sequence[int],
        lengths: Sequence[int],
        runs: Sequence[tuple[int, int]] | None = None,
    ) -> list[_Place]: ...

# Rankings over several indexes (rust/py/src/shards.rs).
_Totals = tuple[int, int, int, dict[int, int]]
_Terms = tuple[list[str], list[str], list[str]]
_Frequencies = tuple[list[tuple[str, int]], list[tuple[str, int]], list[tuple[str, int]]]
_Nodes = list[tuple[str, float, int]]
_Leads = tuple[_Nodes, _Nodes, _Nodes, list[tuple[str, float]], str, list[tuple[str, float]], Sequence[float]]

def print_shards(
    channel: str,
    shards: Sequence[tuple[Searcher, Request, Sequence[int], Sequence[float], float]],
    ranking: Sequence[tuple[int, int]],
    relevance: Sequence[float],
    question: str,
) -> tuple[list[Reply], tuple[str, int, list[tuple[int, int, int]], int | None]]: ...
def sum_totals(totals: Sequence[_Totals]) -> _Totals: ...
def question_terms(question: str, whole: _Totals) -> _Terms: ...
def first_preferred(scores: Sequence[float], flags: Sequence[bool]) -> int | None: ...
def has_only_function_words(question: str, whole: _Totals) -> bool: ...
def reads_forms(question: str, whole: _Totals) -> bool: ...

@final
class Weighting:
    def __new__(cls, keywords: Sequence[tuple[str, float]], length: int, units: int) -> Weighting: ...
    @staticmethod
    def of(question: str, whole: _Totals, known: _Frequencies) -> Weighting: ...
    @property
    def keywords(self) -> list[tuple[str, float]]: ...

@final
class Bundle:
    def __len__(self) -> int: ...
    @property
    def units(self) -> list[int]: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Bundle: ...

@final
class Union:
    def __new__(
        cls, bundles: Sequence[tuple[int, Bundle]], whole: _Totals, known: _Frequencies, is_final: bool
    ) -> Union: ...
    @staticmethod
    def complete(shards: Sequence[Shard], *, seconds: float | None = None) -> Union: ...
    def __len__(self) -> int: ...
    def rank(
        self,
        request: Request,
        question: str,
        count: int,
        *,
        preferred: Sequence[tuple[int, int]] = ...,
        depth: int = 0,
        masks: Sequence[tuple[int, Mask]] = ...,
        vector: _F32 | None = None,
    ) -> tuple[list[int], list[int], list[float], list[float], bool]: ...
    def leads(self, request: Request, question: str, *, vector: _F32 | None = None) -> _Leads: ...

@final
class Shard:
    def __new__(cls, searcher: Searcher) -> Shard: ...
    def totals(self) -> _Totals: ...
    def term_counts(self, terms: _Terms) -> tuple[list[int], list[int], list[int]]: ...
    def candidates(
        self,
        weighting: Weighting,
        count: int,
        *,
        narrow: bool = False,
        mask: Mask | None = None,
        seconds: float | None = None,
    ) -> Bundle: ...
    def look_up(
        self,
        weighting: Weighting,
        leads: _Leads,
        limits: tuple[int, int, int],
        *,
        mask: Mask | None = None,
        seconds: float | None = None,
    ) -> Bundle: ...

# Queries that the core answers alone, and the HTTP front (rust/py/src/front.rs).
@final
class Descriptions:
    def __new__(
        cls, describe: Callable[[Sequence[tuple[int, int, int]]], Sequence[bytes]]
    ) -> Descriptions: ...

@final
class Plan:
    def __new__(
        cls,
        searcher: Searcher,
        request: Request,
        *,
        mode: str,
        kind: str,
        generation: int,
        budget: int,
        cautions: Sequence[str],
        fitting: int | None = None,
        describe: Descriptions | None = None,
        embed: Callable[[Sequence[str], float], _F32] | None = None,
        model: int = 0,
        parallel: bool = False,
        literal: bool = False,
    ) -> Plan: ...
    def answer(self, question: str, vector: _F32 | None = None) -> bytes | None: ...

@final
class PdfPages:
    def __new__(cls, functions: Sequence[int]) -> PdfPages: ...
    @staticmethod
    def functions() -> list[str]: ...
    def add(
        self,
        page: int,
        text_page: int,
        width: float,
        height: float,
        rotation: int,
        texts: Sequence[tuple[float, float, float, float, str]],
    ) -> str: ...
    def add_recognised(
        self,
        width: float,
        height: float,
        lines: Sequence[tuple[float, Sequence[tuple[float, float, float, float, str]]]],
    ) -> None: ...
    def pop(self) -> None: ...
    def pack(self) -> bytes: ...
    def unpack(self, packed: bytes) -> None: ...
    def __len__(self) -> int: ...
    def states(self) -> list[str]: ...
    def unseen(self) -> list[int]: ...
    def heights(self) -> list[float]: ...
    def paragraphs(
        self, *, report: _Report = None
    ) -> list[
        list[
            tuple[
                str,
                float,
                tuple[float, float, float, float],
                tuple[float, float, float, float],
                int,
                int,
                bool,
                bool,
            ]
        ]
    ]: ...
    def join(self, text: str, more: str, soft: bool) -> str: ...

_ErrorReply = tuple[int, Sequence[tuple[str, str]], bytes]
_Holders = Sequence[tuple[bytes, str, str, bool]]
"""SHA-256 of the token, name, condition on documents or an empty text, whether the holder may query."""

@final
class RequestLog:
    def __new__(
        cls,
        file: int,
        *,
        json: bool,
        all: bool,  # noqa: A002
        questions: bool,
        slow: float,
    ) -> RequestLog: ...
    def add(
        self,
        user: str,
        method: str,
        path: str,
        status: int,
        seconds: float,
        *,
        may_be_slow: bool,
        question: str | None = None,
    ) -> None: ...
    def note(self, level: str, message: str) -> None: ...
    def close(self) -> None: ...

@final
class Front:
    def __new__(
        cls,
        socket: int,
        application: str,
        plan: Callable[[str, float], Plan | None],
        *,
        workers: int,
        connections: int,
        queue: int,
        batch: int,
        cache: int,
        body: int,
        question: int,
        deadline: float,
        read: float,
        idle: float,
        hosts: Sequence[str] | None,
        holders: _Holders | None,
        headers: Sequence[tuple[str, str]],
        busy: Sequence[_ErrorReply],
        crowded: _ErrorReply,
        broken: _ErrorReply,
        stopping: _ErrorReply,
        counts: str | None = None,
        log: RequestLog | None = None,
        call: Callable[[str, bytes, str, str], tuple[int, bool, bytes] | None] | None = None,
    ) -> Front: ...
    def set_holders(self, holders: _Holders | None) -> None: ...
    def forget(self) -> None: ...
    def counts(self) -> list[int]: ...
    def waiting(self) -> int: ...
    def stop(self) -> None: ...
    def abort(self) -> None: ...
    def join(self, seconds: float) -> bool: ...

# Files of an index (rust/py/src/files.rs).
@final
class MappedFile:
    def __new__(
        cls,
        path: str | PathLike[str],
        size: int | None = None,
        digest: str | None = None,
        tree: tuple[MappedFile, int] | None = None,
    ) -> MappedFile: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def verify(self, threads: int = 0) -> None: ...
    def patched(
        self,
        pieces: _Buffer,
        values: _Buffer,
        length: int,
        numbers: _Buffer | None,
        name: str,
    ) -> MappedFile: ...
    def shape(self) -> tuple[int, int | None]: ...

# Values of stored arrays (rust/py/src/column.rs). A row, or a range of rows, is a memoryview.
@final
class Column:
    def __new__(cls, file: MappedFile | str | PathLike[str]) -> Column: ...
    def __len__(self) -> int: ...
    def __getitem__(self, at: int | tuple[int, int] | slice, /) -> Any: ...
    def find(self, value: int, start: int = 0) -> int: ...
    def overlapping(self, first: int, last: int, start: int, end: int) -> list[int]: ...

def delta_patches(
    files: Mapping[str, MappedFile | str],
    gone: _Buffer,
    before: _Buffer,
    units: CutUnits,
    new: Mapping[str, _Buffer],
    *,
    language: str,
    behind: Sequence[Mapping[str, MappedFile | str]] = ...,
    report: Callable[[int, int], bool | None] | None = None,
) -> tuple[list[tuple[str, str, int, int, int]], list[tuple[str, int]], bytes, bytes, bytes] | None: ...
def lock_file(path: str | PathLike[str]) -> FileLock | None: ...
def cut_units(
    columns: Sequence[tuple[_Buffer, _Buffer]],
    documents: int,
    starts: _Buffer,
    locations: tuple[_Buffer, _Buffer, _Buffer, tuple[_Buffer, _Buffer]],
    *,
    cut: str,
    tokens: int,
    overlap: int,
    splits: int,
    encoding: str,
    threads: int = 0,
    language: str = "english",
    marks: _Buffer | None = None,
    metadata: bool = False,
    lines: bool = False,
    report: _Report = None,
) -> CutUnits: ...
def file_stats(paths: bytes) -> bytes: ...
def changed_files(paths: bytes, stats: bytes) -> tuple[list[int], bytes]: ...
def expect_few_queries() -> None: ...
def hash_files(paths: bytes, root: str | PathLike[str] | None = None) -> bytes: ...
def open_beneath(path: str | PathLike[str], root: str | PathLike[str]) -> int | None: ...
def hash_file(path: str | PathLike[str]) -> tuple[str, bytes]: ...
def merge_hashes(hashes: bytes, size: int) -> str | None: ...
def pack_file(
    data: _Buffer,
    dtype: str,
    shape: Sequence[int],
    path: str | PathLike[str],
    *,
    earlier: str | PathLike[str] | None = None,
    threads: int = 0,
) -> int | None: ...
def unpack_array(file: MappedFile | str | PathLike[str]) -> NDArray[Any]: ...
def read_bytes(file: MappedFile | str | PathLike[str], start: int, stop: int) -> NDArray[np.uint8]: ...

# Exact search (rust/py/src/strings.rs).
@final
class Pattern:
    def __new__(
        cls, pattern: str, *, any_case: bool = False, words: bool = False, literal: bool = False
    ) -> Pattern: ...
    # (string, line, start, end, text, code points cut before it, matches in the text)
    def lines(
        self, strings: _Packed, each: int, most: int
    ) -> list[tuple[int, int, int, int, str, int, list[tuple[int, int]]]]: ...
    def mask(self, texts: Sequence[str]) -> bytes: ...
    def counts(self, strings: _Packed, each: int) -> _U32: ...

# The documents of an opened generation (rust/py/src/documents.rs). A mask has one byte per row.
@final
class Documents:
    def __new__(cls, searcher: Searcher) -> Documents: ...
    def __len__(self) -> int: ...
    def names(self) -> list[str]: ...
    def rows(self, document: int) -> tuple[int, int]: ...
    def text(self, document: int) -> str: ...
    def first_line(self, document: int, text: str) -> int | None: ...
    def row_at(self, document: int, start: int) -> int: ...
    def blocks(self, wanted: bytes | None) -> list[tuple[int, int]]: ...
    # (document, start, end, text, code points cut before it, matches, line in the text, in the source)
    def lines(
        self, pattern: Pattern, first: int, stop: int, wanted: bytes | None, most: int
    ) -> list[tuple[int, int, int, str, int, list[tuple[int, int]], int, int | None]]: ...
    def counts(
        self, pattern: Pattern, first: int, stop: int, wanted: bytes | None
    ) -> list[tuple[int, int]]: ...
    def units_of(self, wanted: bytes) -> bytes: ...
    def documents_of(self, units: bytes) -> bytes: ...
    def units_matching(self, pattern: Pattern, first: int, stop: int, wanted: bytes | None) -> bytes: ...

# Packed strings (rust/py/src/strings.rs).
def take_strings(strings: _Strings, ids: _U32) -> _Strings: ...
def label_titles(titles: _Strings, ids: _Strings, metadata: _Strings | None = None) -> _Strings: ...
def read_json_lines(
    block: bytes, name: str, first: int
) -> tuple[
    tuple[list[str], _Strings],
    tuple[list[str], _Strings],
    tuple[list[str], _Strings],
    list[bytes],
    list[tuple[int, int, bytes, bool]],
    int,
]: ...
def pack_documents(
    ids: list[str], titles: list[str], texts: list[str], metadata: list[str], locators: list[str]
) -> tuple[tuple[_Strings, _Strings, _Strings, _Strings], list[bytes]] | None: ...
def smallest_hashes(strings: _Strings, count: int) -> _U32: ...
def append_strings(first: _Strings, second: _Strings) -> _Strings: ...
def slice_strings(strings: _Strings, owners: _U32, spans: _U32) -> _Strings: ...
def string_gaps(strings: _Strings, owners: _U32, spans: _U32) -> _Strings: ...
def restore_strings(pieces: _Strings, owners: _U32, spans: _U32, rests: _Strings) -> _Strings: ...
def splice_strings(first: _Strings, second: _Strings, ids: _U32) -> _Strings: ...
def merge_strings(first: _Strings, used: _U8, second: _Strings) -> tuple[_Strings, _U32, _U32]: ...
def splice_rows(first: _Csr, first_numbers: _U32, second: _Csr, second_numbers: _U32, rows: _U32) -> _Csr: ...

# Co-occurrence neighbours and the KNN graph.
def cooccurrence_knn(
    indptr: _U64,
    indices: _U32,
    columns: int,
    k: int,
    *,
    max_df_ratio: float | None = None,
    allow_zero: bool = False,
    rows: tuple[int, int] | None = None,
    threads: int = 0,
    kernel: str = "auto",
    report: _Report = None,
) -> tuple[_U32, _U32]: ...
def cooccurrence_kernels() -> list[str]: ...
def knn_graph(lexical: _U32, semantic: _U32) -> _Csr: ...

# Concepts, their graph, and the chunks that they choose (rust/py/src/builders.rs).
def citation_links(
    first_text: _U64,
    vectors: _F32,
    words: _Csr,
    word_count: int,
    word_weights: _F64,
    senders: _Csr,
    most: int,
    *,
    threads: int = 0,
    report: _Report = None,
) -> tuple[_Csr, _F64, _F64]: ...
def edge_alphas(edges: _Csr, vectors: _F32, *, threads: int = 0, report: _Report = None) -> _F32: ...
def citation_candidates(
    vectors: _StoredRows,
    vector: _F32,
    weights: _F64,
    edges: _Csr,
    kinds: _U8,
    *,
    best: int,
    steps: int,
    wanted: int,
    threads: int = 0,
) -> tuple[_U32, _F64, _U32, _Csr, _U64]: ...

_Weights = tuple[_F32, _F32]

@final
class GraphNetwork:
    def __new__(
        cls,
        weigh: tuple[_Weights, _Weights, _Weights],
        layers: Sequence[tuple[_Weights, _Weights, _Weights, _Weights]],
        *,
        heads: int,
    ) -> GraphNetwork: ...
    def weigh(
        self, vectors: _F32, texts: _U32, senders: _U32, *, threads: int = 0, report: _Report = None
    ) -> _F32: ...
    def scores(
        self,
        h: _F32,
        edges: _Csr,
        factors: _F32,
        weights: _F32,
        vector: _F32,
        ranked: _U32,
        *,
        threads: int = 0,
    ) -> _F64: ...

def pass_messages(
    edges: _Csr,
    kinds: _U8,
    alphas: _F32,
    weights: _F64,
    values: _F64,
    *,
    share: float,
    layers: int = 2,
    wanted: int = 255,
    report: _Report = None,
) -> _F64: ...
def concepts(
    indptr: _U64,
    indices: _U32,
    counts: _U32,
    vocabulary: _Strings,
    *,
    most: int = 50,
    threads: int = 0,
    report: _Report = None,
) -> tuple[_U32, _Csr]: ...
def concept_graph(
    indptr: _U64,
    indices: _U32,
    vectors: _F32,
    *,
    theta_co: int = 3,
    theta_sem: float = 0.65,
    threads: int = 0,
    report: _Report = None,
) -> tuple[_Csr, _U32, _F32, _F64, float]: ...
def select_by_concepts(
    indptr: _U64, indices: _U32, ranks: _F64, count: int, *, report: _Report = None
) -> _U32: ...

# Ranks, core selection and token budgets (rust/py/src/graphs.rs).
def pagerank(
    indptr: _U64,
    indices: _U32,
    weights: _F64 | None = None,
    restart: _F64 | None = None,
    *,
    teleport: float = 0.15,
    until: str = "tolerance",
    tolerance: float = 1e-9,
    steps: int = 0,
    lazy: bool = False,
    threads: int = 0,
    report: _Report = None,
) -> _F64: ...
def core_count(n: int, ratio: float) -> int: ...
def select_ranked(scores: _F64, count: int) -> _U32: ...
def select_uniform(n: int, count: int, seed: int, stage: str) -> _U32: ...
def transpose(indptr: _U64, indices: _U32, columns: int, *, report: _Report = None) -> _Csr: ...
def renumber(indptr: _U64, indices: _U32, columns: int, kept: _U32) -> _Csr: ...
def fill(costs: _U64, budget: int, *, fill_policy: str = "first_overflow_stops") -> _U64: ...

# Centrality (rust/py/src/graphs.rs).
def core_numbers(indptr: _U64, indices: _U32, *, report: _Report = None) -> _I64: ...
def betweenness(
    indptr: _U64, indices: _U32, pivots: _U32, *, threads: int = 0, report: _Report = None
) -> _F64: ...

# Text that is not UTF-8 (rust/py/src/readers.rs).
def decode_text(data: bytes, declared: str | None = None) -> tuple[str, str | None, bool, bool]: ...

# Web pages (rust/py/src/readers.rs).
def web_page(
    markup: str, *, whole: bool = False
) -> tuple[str, list[tuple[int, int, str]], list[tuple[int, int]], list[str], str]: ...
def limit_markup(markup: str) -> str: ...

# Superscripts and formulas (rust/py/src/readers.rs).
def raised_text(before: str, text: str, *, is_note: bool = False) -> str: ...
def lowered_text(before: str, text: str) -> str: ...
def formula_part(kind: str, texts: list[str]) -> str: ...
def formula_text(formula: str) -> str: ...

# Clusters of vectors (rust/py/src/vectors.rs).
def kmeans(
    vectors: _F32,
    centres: int,
    *,
    seed: int = 42,
    iterations: int = 25,
    simd: str = "auto",
    threads: int = 0,
    report: _Report = None,
) -> tuple[_I64, _F64]: ...

# Pictures of graphs (rust/py/src/graphs.rs).
_Weighted = tuple[_U64, _U32, _F64]

def weighted_graph(
    nodes: int, sources: _U32, targets: _U32, weights: _F64, *, report: _Report = None
) -> _Weighted: ...
def graph_layout(
    indptr: _U64,
    indices: _U32,
    weights: _F64,
    *,
    steps: int = 60,
    theta: float = 1.1,
    seed: int = 42,
    threads: int = 0,
    report: _Report = None,
) -> _F64: ...
def graph_communities(
    indptr: _U64, indices: _U32, weights: _F64, *, resolution: float = 1.0, report: _Report = None
) -> _U32: ...
def graph_neighbourhood(
    indptr: _U64,
    indices: _U32,
    weights: _F64,
    seeds: _U32,
    limit: int,
    hidden: _U8,
    *,
    report: _Report = None,
) -> tuple[_U32, _F64, _U32]: ...
def induced_edges(
    indptr: _U64, indices: _U32, weights: _F64, nodes: _U32, most: int, *, report: _Report = None
) -> tuple[_U32, _U32, _F64, int]: ...
def shortest_path(
    indptr: _U64, indices: _U32, weights: _F64, start: int, end: int, *, report: _Report = None
) -> _U32: ...

# The walk (rust/py/src/walk.rs): arrays by name.
_Links = dict[str, _U8 | _U32 | _U64 | _F64]

def links_build(
    titles: _U8,
    title_offsets: _U64,
    texts: _U8,
    text_offsets: _U64,
    sentences: _U8,
    sentence_offsets: _U64,
    first_sentence: _U64,
    *,
    before: tuple[list[_Links], _U32] | None = None,
    language: str = "english",
    threads: int = 0,
    report: _Report = None,
) -> _Links: ...
def links_build_runs(
    titles: tuple[_U8, _U64],
    owners: _U32,
    texts: tuple[_U8, _U64],
    spans: _U32,
    sentence_units: _U32,
    sentence_spans: _U32,
    sentence_titles: _U8,
    folder: Path,
    *,
    before: tuple[_U8, _U64],
    run: int,
    entries: int,
    language: str = "english",
    threads: int = 0,
    report: _Report = None,
) -> dict[str, _U8 | _U32 | _U64 | Path]: ...
def links_weights(links: _Links) -> dict[str, _F64]: ...
def links_bm25(
    links: _Links,
    questions: _U8,
    question_offsets: _U64,
    top: int,
    *,
    threads: int = 0,
    report: _Report = None,
) -> tuple[_U64, _U32, _F64]: ...
def walk_rank(
    links: _Links,
    questions: _U8,
    question_offsets: _U64,
    top: int,
    *,
    unit_vectors: _F32 | None = None,
    sentence_vectors: _F32 | None = None,
    question_vectors: _F32 | None = None,
    exact: bool = False,
    lengths: _F64 | None = None,
    documents: _U32 | None = None,
    numbers: list[tuple[str, float]] | None = None,
    wanted: _U8 | None = None,
    paths: tuple[_U8, _U64] | None = None,
    texts: tuple[_U8, _U64] | None = None,
    threads: int = 0,
    report: _Report = None,
) -> tuple[_U64, _U32, _F64]: ...

# The published tokenisations
@final
class Punkt:
    def __new__(cls, abbreviations: str, collocations: str, starters: str, contexts: str) -> Punkt: ...
    def sentences(self, text: str) -> list[str]: ...
    def words(self, text: str) -> list[str]: ...
    def cooccurrence(
        self, stop_words: list[str], texts: list[str], *, threads: int = 0, report: _Report = None
    ) -> list[list[str]]: ...
    def keywords(
        self, stop_words: list[str], texts: list[str], *, threads: int = 0, report: _Report = None
    ) -> list[list[tuple[str, list[str]]]]: ...

# Words, tokens, windows, sentences, the corpus and its vocabulary (rust/py/src/text.rs).
class _Corpus(TypedDict):
    chunk_doc: _U32
    chunk_span: _U32
    chunk_tokens: _U32
    unit_chunk: _U32
    unit_span: _U32
    unit_chars: _U32
    unit_tokens: _U32
    unit_before: _Strings
    unit_after: _Strings
    unit_lines: _U32
    unit_keys: _U64
    sent_chunk: _U32
    sent_unit: _U32
    sent_span: _U32
    sent_title: _U8

class _Vocabulary(TypedDict):
    words: _Strings
    unit_words: _Csr
    unit_counts: _U32
    chunk_words: _Csr
    sent_words: _Csr
    chunk_language: _U8

def tokenise(
    texts: _Strings,
    stop: str = "english",
    threads: int = 0,
    *,
    languages: Sequence[int] | None = None,
    report: _Report = None,
) -> tuple[_Strings, _U64, _U64]: ...
def lexical_keywords(
    text: str, language: str = "english", *, languages: Sequence[int] | None = None
) -> list[str]: ...
def query_parts(query: str) -> list[tuple[str, str, str, str, bool]]: ...
def detect_language(text: str) -> str: ...
def languages() -> list[tuple[str, str]]: ...
def stop_words(language: str = "english") -> tuple[list[str], str]: ...
def count_tokens(
    texts: _Strings, encoding: str = "cl100k_base", threads: int = 0, *, report: _Report = None
) -> _U32: ...
def sentence_spans(text: str, splitter: str = "standard", *, report: _Report = None) -> _U64: ...
def corpus(
    titles: _Strings,
    texts: _Strings,
    cut: str = "sentences",
    tokens: int = 200,
    overlap: int = 0,
    splits: int = 0,
    encoding: str = "cl100k_base",
    splitter: str = "standard",
    threads: int = 0,
    *,
    language: str = "english",
    marks: _U32 | None = None,
    report: _Report = None,
) -> _Corpus: ...
def text_blocks(
    text: str, marks: _U32 | None = None, *, report: _Report = None
) -> list[tuple[str, tuple[int, int], int, tuple[int, int], tuple[int, int]]]: ...
def vocabulary(
    titles: _Strings,
    texts: _Strings,
    chunk_doc: _U32,
    chunk_span: _U32,
    unit_chunk: _U32,
    unit_span: _U32,
    sent_chunk: _U32,
    sent_span: _U32,
    sent_title: _U8,
    stop: str = "english",
    threads: int = 0,
    *,
    report: _Report = None,
) -> _Vocabulary: ...

# Vectors, neighbours, the built-in embedder and its channels (rust/py/src/vectors.rs).
_Codes = tuple[NDArray[np.int8], _F32, _F32]

def vector_top_k(
    vectors: _F32,
    queries: _F32,
    k: int,
    *,
    codes: _Codes | None = None,
    ids: _U32 | None = None,
    simd: str = "auto",
    threads: int = 0,
    report: _Report = None,
) -> tuple[_U32, _F64]: ...

_StoredRows = _F32 | tuple[NDArray[np.uint8] | NDArray[np.int8], _F32, int]

def pack_nibbles(
    vectors: _F32, *, threads: int = 0, report: _Report = None
) -> tuple[NDArray[np.uint8], _F32]: ...
def pack_signs(vectors: _F32) -> NDArray[np.uint8]: ...
def row_scores(rows: _StoredRows, query: _F32) -> NDArray[np.float64]: ...
def quantise_vectors(vectors: _F32, *, threads: int = 0, report: _Report = None) -> _Codes: ...
def cosine_knn(
    vectors: _F32,
    k: int,
    *,
    exclude: _Csr | None = None,
    simd: str = "auto",
    threads: int = 0,
    report: _Report = None,
) -> tuple[_U32, _F64]: ...
def keyword_means(
    indptr: _U64,
    indices: _U32,
    sentences: _F32,
    *,
    unit: bool = False,
    threads: int = 0,
    report: _Report = None,
) -> _F32: ...
def keyword_means_by_words(
    basis: _F32,
    sent_words: _Csr,
    word_sents: _Csr,
    *,
    room: int = ...,
    threads: int = 0,
    report: _Report = None,
) -> _F32: ...
def fit_embedder(
    indptr: _U64,
    indices: _U32,
    repeats: _U32,
    words: int,
    *,
    dims: int = 128,
    idf_power: int = 2,
    rounds: int = 5,
    sample: int = 20_000,
    seed: int = 42,
    threads: int = 0,
    report: _Report = None,
) -> _F32: ...
def embed_rows(
    basis: _F32,
    indptr: _U64,
    indices: _U32,
    repeats: _U32,
    *,
    threads: int = 0,
    report: _Report = None,
) -> _F32: ...
def fuse_ranks(lists: list[_U32], *, constant: float = 60.0) -> tuple[_U32, _F64]: ...
def simd_levels() -> list[str]: ...

# Replies folded into a skeleton (rust/py/src/builders.rs): the arrays of the stage by name.
def fold_skeleton(
    chunks: _U32,
    entities: _U64,
    names: _Strings,
    types: _Strings,
    descriptions: _Strings,
    relations: _U64,
    sources: _Strings,
    targets: _Strings,
    relation_descriptions: _Strings,
    strengths: _F64,
    chunk_units: _U64,
    unit_texts: _Strings,
    unit_spans: _U32,
    encoding: str,
    *,
    description_tokens: int = 500,
    threads: int = 0,
    report: _Report = None,
) -> dict[str, NDArray[Any]]: ...
def skeleton_row_tokens(
    names: _Strings,
    descriptions: _Strings,
    ranks: _U32,
    sources: _U32,
    targets: _U32,
    relation_descriptions: _Strings,
    weights: _F64,
    relation_ranks: _U32,
    encoding: str,
    *,
    threads: int = 0,
) -> tuple[_U32, _U32]: ...

# The native sentence encoder
@final
class Encoder:
    @staticmethod
    def open(
        folder: str | PathLike[str],
        *,
        precision: str = "auto",
        kernel: str = "auto",
        threads: int = 0,
        report: _Report = None,
    ) -> Encoder: ...
    def encode(
        self, texts: _U8, offsets: _U64, *, prompt: str = "", threads: int = 0, report: _Report = None
    ) -> tuple[_F32, int, int]: ...
    def encode_spans(
        self,
        texts: _U8,
        offsets: _U64,
        indptr: _U64,
        spans: _U32,
        *,
        prompt: str = "",
        threads: int = 0,
        report: _Report = None,
    ) -> tuple[_F32, _F32, int, int]: ...
    def counts(self, texts: _U8, offsets: _U64, *, threads: int = 0, report: _Report = None) -> _U64: ...
    def closeness(self, *, threads: int = 0, report: _Report = None) -> float: ...
    def lengths(
        self, texts: _U8, offsets: _U64, *, prompt: str = "", threads: int = 0, report: _Report = None
    ) -> _U64: ...
    @property
    def dimension(self) -> int: ...
    @property
    def longest(self) -> int: ...
    @property
    def timings(self) -> list[tuple[str, str, float]]: ...
    @property
    def precision(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    @property
    def note(self) -> str | None: ...
    @property
    def prompts(self) -> list[tuple[str, str]]: ...
    @property
    def default_prompt(self) -> str | None: ...
    def fingerprint(self, *, report: _Report = None) -> str: ...

@final
class TermEncoder:
    @staticmethod
    def open(
        folder: str | PathLike[str],
        *,
        precision: str = "auto",
        kernel: str = "auto",
        threads: int = 0,
        report: _Report = None,
    ) -> TermEncoder: ...
    def rows(
        self, texts: _U8, offsets: _U64, *, threads: int = 0, report: _Report = None
    ) -> tuple[_U64, _U32, _F32]: ...
    def queries(
        self, texts: _U8, offsets: _U64, *, threads: int = 0, seconds: float | None = None
    ) -> tuple[_U64, _U32, _F32]: ...
    @property
    def terms(self) -> int: ...
    @property
    def longest(self) -> int: ...
    @property
    def precision(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    @property
    def has_table(self) -> bool: ...
    @property
    def note(self) -> str | None: ...

def term_encoder_fingerprint(folder: str | PathLike[str]) -> str: ...

@final
class Classifier:
    @staticmethod
    def open(
        folder: str | PathLike[str], *, precision: str = "auto", kernel: str = "auto", threads: int = 0
    ) -> Classifier: ...
    def scores(
        self, question: str, texts: _U8, offsets: _U64, *, threads: int = 0, seconds: float | None = None
    ) -> _F32: ...
    @property
    def precision(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    @property
    def timings(self) -> list[tuple[str, str, float]]: ...

@final
class Extractor:
    @staticmethod
    def open(
        folder: str | PathLike[str], *, precision: str = "auto", kernel: str = "auto", threads: int = 0
    ) -> Extractor: ...
    def spans(
        self, question: str, texts: _U8, offsets: _U64, *, threads: int = 0, seconds: float | None = None
    ) -> tuple[_U64, _U64, _F32, _F32, bool]: ...
    @property
    def precision(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    @property
    def timings(self) -> list[tuple[str, str, float]]: ...
    def fingerprint(self) -> str: ...

def encoder_kernels() -> list[str]: ...
def encoder_refusal(folder: str | PathLike[str]) -> str | None: ...

# Memory on Windows; nothing on other systems (rust/py/src/lib.rs).
def windows_memory() -> tuple[int, int] | None: ...
def windows_peak_memory() -> int | None: ...
def windows_limit_memory(limit: int) -> bool: ...
