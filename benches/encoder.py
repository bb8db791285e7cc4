"""The built-in encoder and `SentenceTransformer.encode` with its defaults: tokens a second, and equality of vectors.

python benches/encoder.py --peers venv/bin/python    # instead, next to onnxruntime and OpenVINO, which that Python has
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from common import arguments, median, publish, require_data, require_model, target
from common import result_table as table
from encoder_peers import AVX2, THREADS, Peers, is_limited, peers
from encoder_peers import clock as peers_clock
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.encoder import Encoder, kernels

QUESTION = "Who was the father of the architect that designed the railway station of the town on the lake?"
FORMS = {
    "portable": ("f32", "int8"),
    "avx2": ("f32", "int8"),
    "avx-vnni": ("int8",),
    "avx512": ("f32", "int8"),
    "avx512-vnni": ("int8",),
    "avx512-bf16": ("bf16",),
    "amx": ("bf16", "int8"),
}
"""The precisions that each kernel has instructions for."""


def texts_of(count: int) -> dict[str, list[str]]:
    """Return passages of musique-train100, and three times as many of its sentences."""
    lines = (require_data("musique-train100") / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    passages = [f"{row.get('title', '')}\n{row['text']}" for row in rows]
    pieces = [part.strip() for row in rows for part in row["text"].replace("? ", ". ").split(". ")]
    return {"passages": passages[:count], "sentences": [part for part in pieces if part][: 3 * count]}


def clock(work: Callable[[], Any], now: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of a call."""
    started = now()
    work()
    return now() - started


def nearest(vectors: np.ndarray[Any, Any], k: int = 10) -> list[set[int]]:
    """Return the k nearest other rows of each of the first 500 rows."""
    scores = vectors[:500] @ vectors.T
    scores[np.arange(len(scores)), np.arange(len(scores))] = -2
    return [set(row) for row in np.argpartition(-scores, k, axis=1)[:, :k].tolist()]


def compared(got: np.ndarray[Any, Any], exact: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return the lowest cosine, and the percentage of the ten nearest that are the same."""
    cosine = (got * exact).sum(1) / (np.linalg.norm(got, axis=1) * np.linalg.norm(exact, axis=1))
    same = [len(a & b) / 10 for a, b in zip(nearest(got), nearest(exact), strict=True)]
    return float(cosine.min()), 100 * float(np.mean(same))


def against_library(encoder: Encoder, folder: str, texts: dict[str, list[str]], runs: int) -> list[list[Any]]:
    """Return a row for each kind of text and number of threads; empty without sentence-transformers."""
    if importlib.util.find_spec("sentence_transformers") is None:
        return []
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder, device="cpu")
    rows: list[list[Any]] = []
    for kind, own in texts.items():
        lengths = encoder.lengths(own).tolist()
        # The library cuts longer texts; the encoder takes windows of them.
        own = [text for text, n in zip(own, lengths, strict=True) if n <= encoder.longest]
        tokens = float(encoder.lengths(own).sum())
        lowest, same = compared(encoder.encode(own), model.encode(own))
        for threads in (1, 2):
            torch.set_num_threads(threads)
            pairs = [
                (
                    clock(lambda n=threads, t=own: encoder.encode(t, threads=n)),
                    clock(lambda t=own: model.encode(t)),
                )
                for _ in range(runs)
            ]
            ours, theirs = (tokens / median(times) for times in zip(*pairs, strict=True))
            row = [kind, len(own), threads, ours, theirs, ours / theirs, f"{lowest:.6f}", same]
            rows.append([*row, target(ours / theirs, least=1.7)])
    return rows


def by_kernel(folder: str, texts: list[str], runs: int) -> list[list[Any]]:
    """Return a row for each kernel of this processor in each precision that it has instructions for."""
    every = {"auto": Encoder.open(folder)}
    for name in kernels():
        for precision in FORMS[name] if name != "portable" or len(kernels()) == 1 else ():
            try:
                every[f"{name}, {precision}"] = Encoder.open(folder, precision=precision, kernel=name)
            except InputError:  # tiles that do not multiply bytes
                continue
    exact = next(encoder for encoder in every.values() if encoder.precision == "f32").encode(texts)
    tokens = float(every["auto"].lengths(texts).sum())
    rows: list[list[Any]] = []
    for name, encoder in every.items():
        took = [clock(lambda e=encoder: e.encode(texts, threads=1)) for _ in range(runs)]
        short = [clock(lambda e=encoder: e.encode([QUESTION], threads=1)) for _ in range(30)]
        label = f"auto: {encoder.kernel}, {encoder.precision}" if name == "auto" else name
        lowest, same = compared(encoder.encode(texts), exact)
        rows.append([label, tokens / median(took), 1000 * median(short), f"{lowest:.6f}", same])
    return rows


def against_peers(python: str, folder: str, texts: list[str], runs: int) -> list[list[Any]]:
    """Return a row for each library and for each form of the encoder, in turns on one core and on two.

    First with all instructions of this processor, then, if these are more than AVX2, with AVX2 alone where a library can
    be limited to it.
    """
    exact = Encoder.open(folder, precision="f32").encode(texts)
    tokens = float(Encoder.open(folder).lengths(texts).sum())
    wide = [name for name in kernels() if name not in ("portable", "avx2", "avx-vnni")]
    narrow = [name for name in kernels() if name == "avx2"]
    forms = {"all": wide, "AVX2": narrow} if wide else {"all": narrow}
    rows: list[list[Any]] = []
    for instructions, names in forms.items():
        own = {
            f"this encoder, {precision} ({name})": Encoder.open(folder, precision=precision, kernel=name)
            for name in names
            for precision in FORMS[name]
        }
        with peers(python, folder, texts, AVX2 if instructions == "AVX2" else {}) as process:
            others = [name for name in process.names if instructions == "all" or is_limited(name)]
            for threads in THREADS:
                took = in_turns(own, process, others, texts, runs, threads)
                base = took.get("sentence-transformers, f32")
                library = tokens / median(base) if base else float("nan")
                for name, seconds in took.items():
                    vectors = own[name].encode(texts) if name in own else process.vectors[name]
                    lowest, same = compared(vectors, exact)
                    rate = tokens / median(seconds)
                    rows.append([instructions, name, threads, rate, rate / library, f"{lowest:.6f}", same])
    return rows


def in_turns(
    own: dict[str, Encoder], process: Peers, others: list[str], texts: list[str], runs: int, threads: int
) -> dict[str, list[float]]:
    """Return the seconds of each run of the encoder's forms and of the other libraries."""
    took: dict[str, list[float]] = {name: [] for name in (*own, *others)}
    for _ in range(runs):
        for name, encoder in own.items():
            took[name].append(clock(lambda e=encoder: e.encode(texts, threads=threads), peers_clock(threads)))
        for name in others:
            took[name].append(process.seconds(name, threads))
    return took


def peers_table(python: str, folder: str, texts: list[str], runs: int) -> dict[str, Any]:
    """Return the table of the other libraries that a Python has."""
    columns = [
        "instructions",
        "library, precision",
        "cores",
        "tokens/s (one core: of its time)",
        "of sentence-transformers",
        "lowest cosine to f32",
        "same top 10, %",
    ]
    head = f"Next to other libraries, in turns: {len(texts)} passages"
    return table(head, columns, against_peers(python, folder, texts, runs))


def main() -> None:
    """Measure the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--peers", metavar="PYTHON", help="compare with the libraries of this Python alone")
    args = parser.parse_args()
    folder = str(require_model())
    texts = texts_of(20 if args.smoke else 200)
    runs = 1 if args.smoke else 3
    if args.peers:
        few = texts["passages"][: 12 if args.smoke else 48]
        publish([peers_table(args.peers, folder, few, runs)], "Texts of musique-train100.", [])
        return
    encoder = Encoder.open(folder)
    library = against_library(encoder, folder, texts, runs)
    columns = ["texts", "number", "threads", "encoder, tokens/s", "sentence-transformers, tokens/s"]
    tables = [table("", [*columns, "times as fast", "lowest cosine", "same top 10, %", "target"], library)]
    columns = [
        "kernel and precision",
        "tokens/s, 1 core",
        "question of 20 tokens, ms",
        "lowest cosine to f32",
    ]
    rows = by_kernel(folder, texts["passages"][: 20 if args.smoke else 100], runs)
    tables.append(table("Kernels", [*columns, "same top 10, %"], rows))
    notes = [f"auto takes {encoder.kernel} in {encoder.precision}; sentence-transformers computes in f32."]
    if not library:
        notes.append("sentence-transformers is not installed.")
    publish([each for each in tables if each["rows"]], "Texts of musique-train100.", notes)


if __name__ == "__main__":
    main()
