"""Tokens a second against `SentenceTransformer.encode` with its defaults, and how equal the vectors are.

python benches/embedding.py [--model SPEC] [--texts N] [--runs R] [--precision auto|fp32|bf16]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common import header, require_data, table
from ketrag_fast.models.embedders.discovery import resolve
from ketrag_fast.models.embedders.registry import EmbedderOptions, load


def texts_of(folder: Any, sentences: bool) -> list[str]:
    """Passages as they are indexed, or their sentences."""
    out = []
    for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines():
        passage = json.loads(line)
        if sentences:
            out += sentences_of(passage["text"])
        else:
            out.append(f"{passage['title']}\n{passage['text']}")
    return out


def sentences_of(text: str) -> list[str]:
    """By full stops: what is timed does not depend on how well."""
    parts = text.replace("! ", ". ").replace("? ", ". ").split(". ")
    return [part.strip() for part in parts if part.strip()]


def same_top(one: np.ndarray, other: np.ndarray, k: int = 10) -> float:
    """Share of each text's k nearest that both sets of vectors agree on."""

    def nearest(vectors: np.ndarray) -> np.ndarray:
        scores = vectors @ vectors.T
        np.fill_diagonal(scores, -np.inf)
        return np.argpartition(scores, -k, axis=1)[:, -k:]

    pairs = zip(nearest(one), nearest(other), strict=True)
    return float(np.mean([len(np.intersect1d(a, b)) / k for a, b in pairs]))


def interleaved(work: dict[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """Median seconds of each, taken in turn so that a busy moment hits all alike."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for number in range(runs + 1):
        for name, call in work.items():
            started = time.perf_counter()
            call()
            if number:  # the first round warms up
                taken[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in taken.items()}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--precision", default="auto", choices=["auto", "fp32", "bf16"])
    args = parser.parse_args(argv)
    os.environ["HF_HUB_OFFLINE"] = "1"
    from sentence_transformers import SentenceTransformer

    folder = require_data("musique-train100")
    path = resolve(args.model)
    if path is None:
        parser.error(f"{args.model} is not on this machine")
    theirs = SentenceTransformer(str(path), device="cpu", local_files_only=True)
    ours = load(
        f"sentence-transformers:{args.model}", EmbedderOptions(args.precision, device="cpu", offline=True)
    )
    header(
        "Embedding",
        [
            f"{args.model}, {ours.engine.version}, precision {ours.engine.precision} "
            f"(asked: {args.precision}), lowest cosine on the built-in sample {ours.engine.closeness}.",
            f"{args.texts} texts of musique-train100 at even distances; medians of {args.runs} runs.",
            "Both are timed in turn in one process; on a busy machine the ratio holds better than the rates.",
        ],
    )
    rows = []
    for kind in ("passages", "sentences"):
        every = texts_of(folder, kind == "sentences")
        texts = every[:: max(1, len(every) // args.texts)][: args.texts]
        tokens = sum(ours.count(texts))
        exact = theirs.encode(texts, normalize_embeddings=True)
        fast = ours.embed(texts)
        seconds = interleaved(
            {
                "theirs": lambda texts=texts: theirs.encode(texts),
                "ours": lambda texts=texts: ours.embed(texts),
            },
            args.runs,
        )
        short = [
            row for row, text in enumerate(texts) if ours.count([text])[0] <= (ours.longest or 10**9) - 2
        ]
        cosines = (exact[short] * fast[short]).sum(1)
        rows.append(
            [
                kind,
                len(texts),
                tokens,
                round(tokens / seconds["theirs"]),
                round(tokens / seconds["ours"]),
                seconds["theirs"] / seconds["ours"],
                f"{cosines.min():.6f}",
                f"{same_top(exact[short], fast[short]):.4f}",
            ]
        )
    table(
        [
            "texts",
            "n",
            "tokens",
            "default tokens/s",
            "ours tokens/s",
            "ratio",
            "lowest cosine to fp32",
            "same top 10",
        ],
        rows,
    )


if __name__ == "__main__":
    main()
