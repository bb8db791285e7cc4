"""Calls of every public kernel with wrong arguments, made from a seed.

Run as a program it makes as many calls as it is told to, under a limit of memory: it prints what came of
them, and ends with 1 where one raised anything but this package's errors, or took longer than `SECONDS`.
"""

from __future__ import annotations

import inspect
import resource
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from ketrag_fast.errors import InternalError, KetragError
from tests.support import all_kernels as kernels

SECONDS = 2.0
MEMORY = 4 << 30
Call = tuple[Callable[..., Any], dict[str, Any]]

INDPTR, INDICES = np.array([0, 2, 3, 3], np.uint64), np.array([0, 2, 1], np.uint32)
BOTH_WAYS = np.array([0, 1, 3, 4], np.uint64), np.array([1, 0, 2, 1], np.uint32)
VECTORS = np.eye(3, 4, dtype=np.float32)
TEXTS = ["Oslo lies in Norway.", "Bergen too. It rains.", ""]
TOKENS = np.array([5, 4, 0], np.uint32)
REPEATS = np.ones(3, np.uint32)
PATH = (*BOTH_WAYS, np.array([1.0, 1.0, 2.0, 2.0]))
LINKS = kernels.build_links(["a", "b", "c"], TEXTS, [[TEXTS[0]], ["Bergen too.", "It rains."], []])

GOOD: dict[str, dict[str, Any]] = {
    "tokenise": {"text": TEXTS[0]},
    "tokenise_many": {"texts": TEXTS},
    "stop_words": {},
    "count_tokens": {"texts": TEXTS},
    "sentence_spans": {"text": TEXTS[1]},
    "code_points": {"text": TEXTS[0], "offsets": np.array([0, 3], np.uint64)},
    "pack": {"texts": TEXTS},
    "unpack": dict(zip(("blob", "offsets"), kernels.pack(TEXTS), strict=True)),
    "corpus": {"titles": ["a", "b", "c"], "texts": TEXTS, "tokens": 20},
    "vocabulary": {
        "titles": ["a", "b", "c"],
        "texts": TEXTS,
        "corpus": kernels.corpus(["a", "b", "c"], TEXTS, tokens=20),
    },
    "concepts": {
        "chunk_words": (INDPTR, INDICES),
        "counts": REPEATS,
        "vocabulary": ["Bergen", "Norway", "Oslo"],
    },
    "concept_graph": {"chunk_concepts": (INDPTR, INDICES), "vectors": VECTORS, "theta_co": 1},
    "select_by_concepts": {"chunk_concepts": (INDPTR, INDICES), "ranks": np.ones(3), "count": 2},
    "citation_links": {
        "first_text": np.array([0, 1, 3], np.uint64),
        "vectors": VECTORS,
        "words": (INDPTR, INDICES),
        "word_count": 3,
        "word_weights": np.ones(3),
        "senders": (np.array([0, 1, 1], np.uint64), np.array([1], np.uint32)),
        "most": 1,
    },
    "edge_alphas": {"edges": (INDPTR, INDICES), "vectors": VECTORS},
    "pass_messages": {
        "edges": (INDPTR, INDICES),
        "kinds": np.ones(3, np.uint8),
        "alphas": np.ones(3, np.float32),
        "weights": np.ones(3),
        "values": np.ones(3),
        "share": 0.5,
    },
    "cooccurrence_kernels": {},
    "cooccurrence_knn": {"indptr": INDPTR, "indices": INDICES, "columns": 3, "k": 2, "rows": (0, 2)},
    "knn_graph": {"lexical": np.array([[1], [0], [1]], np.uint32), "semantic": np.zeros((3, 0), np.uint32)},
    "transpose": {"indptr": INDPTR, "indices": INDICES, "columns": 3},
    "renumber": {"indptr": INDPTR, "indices": INDICES, "columns": 3, "kept": np.array([0, 2], np.uint32)},
    "pagerank": {"indptr": INDPTR, "indices": INDICES, "weights": np.ones(3), "restart": np.ones(3)},
    "core_numbers": {"indptr": BOTH_WAYS[0], "indices": BOTH_WAYS[1]},
    "betweenness": {"indptr": BOTH_WAYS[0], "indices": BOTH_WAYS[1], "pivots": np.array([0, 2], np.uint32)},
    "weighted_graph": {
        "nodes": 3,
        "sources": np.array([0, 1], np.uint32),
        "targets": np.array([1, 2], np.uint32),
        "weights": np.ones(2),
    },
    "layout": {"graph": PATH, "steps": 5, "theta": 0.5, "seed": 1},
    "communities": {"graph": PATH, "resolution": 1.0},
    "neighbourhood": {
        "graph": PATH,
        "seeds": np.array([0], np.uint32),
        "limit": 2,
        "hidden": np.array([False, True, False]),
    },
    "induced_edges": {"graph": PATH, "nodes": np.array([0, 2], np.uint32), "most": 2},
    "shortest_path": {"graph": PATH, "start": 0, "end": 2},
    "core_count": {"n": 9, "core_ratio": 0.8},
    "select_ranked": {"scores": np.arange(3.0), "count": 2},
    "select_uniform": {"n": 9, "count": 3},
    "quantise": {"vectors": VECTORS},
    "top_k": {
        "vectors": VECTORS,
        "queries": VECTORS[:2],
        "k": 2,
        "ids": np.array([0, 2], np.uint32),
        "codes": kernels.quantise(VECTORS),
    },
    "cosine_knn": {"vectors": VECTORS, "k": 2, "exclude": (INDPTR, np.array([1, 2, 0], np.uint32))},
    "kmeans": {"values": VECTORS, "centres": 2, "seed": 1, "iterations": 3},
    "keyword_means": {"word_sentences": (INDPTR, INDICES), "sentences": VECTORS},
    "fit_embedder": {"unit_words": (INDPTR, INDICES), "repeats": REPEATS, "words": 3, "dims": 2},
    "embed_rows": {"basis": VECTORS, "text_words": (INDPTR, INDICES), "repeats": REPEATS},
    "fuse_ranks": {"lists": [np.array([0, 2], np.uint32), np.array([1], np.uint32)]},
    "build_links": {"titles": ["a"], "texts": ["Oslo."], "sentences": [["Oslo."]]},
    "bm25": {"links": LINKS, "questions": ["Oslo?"], "top": 3},
    "walk": {
        "links": LINKS,
        "questions": ["Oslo?"],
        "top": 3,
        "lengths": np.ones(3),
        "wanted": np.ones(3, bool),
    },
    "fill": {"costs": TOKENS, "token_budget": 9},
}
"""Arguments that each kernel takes."""
# Its arguments are whole tables; tests/property compares it with its oracle on generated ones.
ELSEWHERE = {"fold_skeleton"}

SCALARS = (-1, 0, 1, 3, 2**20, 2**31, 2**32 - 1, 2**32, 2**43, 2**63, 2**64, -(2**32), 10**400, True, 0.9)
SCALARS += (float("nan"), float("inf"), -0.5, 1e308, None, "x", "", "\ud800", b"x", "auto", [], {}, object())
KINDS = ("u1", "i1", "u4", "i4", "u8", "i8", "f2", "f4", "f8", ">u4", "?", "c16", "O", "U3", "M8[s]")


def functions() -> list[str]:
    """Every public kernel that is a function."""
    return [name for name in kernels.__all__ if inspect.isfunction(getattr(kernels, name))]


def _wrong_array(draw: np.random.Generator, array: np.ndarray[Any, Any]) -> Any:
    how = draw.integers(9)
    if array.dtype.kind not in "iuf":  # it is wrong already
        return array
    if how == 0:
        return array.astype(KINDS[draw.integers(len(KINDS))])
    if how == 1:
        wrong = array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)
        if wrong.size:
            places = (2**32, -(2**32), 2**32 - 1, -1, 7, 2**63 - 1)
            wrong.flat[draw.integers(wrong.size)] = places[draw.integers(len(places))]
        return wrong
    if how == 2:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if how == 3:
        return array[::-1]
    if how == 4:
        return array[: draw.integers(len(array) + 1)]
    if how == 5:
        return np.concatenate([array, array])
    if how == 6:
        return array[None] if draw.integers(2) else array.T.copy("F")
    if how == 7:  # not aligned
        data = b"x" + array.tobytes()
        return np.frombuffer(data, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    return np.ma.masked_array(array, False) if draw.integers(2) else array + 0.9


def wrong(draw: np.random.Generator, value: Any) -> Any:
    """Something that stands where `value` belongs."""
    if draw.integers(4) == 0:
        return SCALARS[draw.integers(len(SCALARS))]
    if isinstance(value, np.ndarray):
        return _wrong_array(draw, value)
    if isinstance(value, dict) and value:
        name = list(value)[draw.integers(len(value))]
        return {**value, name: wrong(draw, value[name])}
    if isinstance(value, tuple | list) and value:
        parts = list(value)
        parts[draw.integers(len(parts))] = wrong(draw, parts[draw.integers(len(parts))])
        return tuple(parts) if isinstance(value, tuple) else parts
    return SCALARS[draw.integers(len(SCALARS))]


def call(seed: int) -> tuple[str, dict[str, Any]]:
    """The call of this number: a kernel's name and its arguments, of which one or two are wrong."""
    draw = np.random.default_rng(seed)
    name = list(GOOD)[seed % len(GOOD)]
    arguments = dict(GOOD[name])
    parameters = list(inspect.signature(getattr(kernels, name)).parameters)
    for _ in range(1 + draw.integers(2)):
        if parameters:
            which = parameters[draw.integers(len(parameters))]
            arguments[which] = wrong(draw, arguments.get(which))
    return name, arguments


def stopping(end: float) -> Callable[[int, int], bool]:
    """Lets a kernel work until then: a number of steps may be large, and the kernel must look at this."""
    return lambda done, total: time.monotonic() < end


def run(first: int, count: int) -> tuple[Counter[str], list[str]]:
    """What came of the calls `first` to `first + count - 1`, and what should not have."""
    outcomes: Counter[str] = Counter()
    bad = []
    for seed in range(first, first + count):
        name, arguments = call(seed)
        kernel = getattr(kernels, name)
        began = time.monotonic()
        is_observed = "report" in inspect.signature(kernel).parameters
        if is_observed and arguments.get("report") is None:  # else nobody could stop 2^32 steps
            arguments["report"] = stopping(began + SECONDS / 2)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kernel(**arguments)
            outcomes["answered"] += 1
        except KetragError as error:
            outcomes[type(error).__name__] += 1
            if isinstance(error, InternalError):
                bad.append(f"call {seed}, {name}: {error}")
        except BaseException as error:  # noqa: BLE001 - a panic is not even an Exception
            bad.append(f"call {seed}, {name}: {type(error).__name__}: {error}"[:300])
        if time.monotonic() - began > SECONDS:
            bad.append(f"call {seed}, {name}: {time.monotonic() - began:.1f} s")
    return outcomes, bad


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    found, failures = run(int(sys.argv[1]), int(sys.argv[2]))
    print(dict(found), *failures[:40], sep="\n")
    sys.exit(bool(failures))
