"""A whole build with a model's folder: `native:` against `sentence-transformers:`, and what each finds.

Usage: python benches/encoder_build.py MODEL_FOLDER [--build 2wiki-101] [--quality musique-train100] [--short]

In addition `SentenceTransformer.encode` with its defaults embeds the same texts, which is the least that a
build on it would take. --short leaves out the builds on that library and the questions.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from common import header, require_data, table
from encoder import library
from ketrag_fast import Index, Settings
from ketrag_fast.kernels.encoder import Encoder
from ketrag_fast.lab.eval import evaluate, load_dataset
from ketrag_fast.models.embedders.build_model import VectorSource

KINDS = ("native", "sentence-transformers")
EMBEDDING = ("vectors", "chunk_vectors", "sentence_vectors")
MODES = ("bm25", "text", "fused", "knng", "keyword", "walk")


def embedded(build: Callable[[], Index]) -> tuple[Index, list[str]]:
    """An index, and the texts that its build embedded."""
    texts: list[str] = []
    real = VectorSource.embed

    def embed(self: VectorSource, stream: Iterable[str], *rest: Any) -> Any:
        own = list(stream)
        texts.extend(own)
        return real(self, own, *rest)

    VectorSource.embed = embed  # type: ignore[method-assign]
    try:
        return build(), texts
    finally:
        VectorSource.embed = real  # type: ignore[method-assign]


def builds(folder: Path, name: str, kinds: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """Seconds of each kind's build, and the different texts of the first; prints where the time went."""
    times, shares, first = {}, [], []
    for kind in kinds:
        settings = Settings(embedder=f"{kind}:{folder}", offline=True, modes=MODES)
        with tempfile.TemporaryDirectory() as temporary:
            started = time.perf_counter()
            index, texts = embedded(
                lambda s=settings, t=temporary: Index.build(require_data(name), Path(t) / "a", settings=s)
            )
            times[kind] = time.perf_counter() - started
            spent = {stage.name: stage.seconds for stage in index.report.stages}
            index.close()
        own = sum(spent.get(stage, 0.0) for stage in EMBEDDING)
        rest = times[kind] - own
        shares.append(
            [kind, f"{times[kind]:.1f}", f"{own:.1f}", f"{rest:.1f}", f"{100 * rest / times[kind]:.0f}"]
        )
        first = first or list(dict.fromkeys(texts))
    table([f"build of {name} by", "seconds", "embedding", "all else", "all else, %"], shares)
    return times, first


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--build", default="2wiki-101", help="the set whose build is timed")
    parser.add_argument("--quality", default="musique-train100", help="the set whose questions are asked")
    parser.add_argument("--budgets", default="6000,1500")
    parser.add_argument("--short", action="store_true", help="one build, and `encode` on the same texts")
    args = parser.parse_args()
    budgets = [int(x) for x in args.budgets.split(",")]
    model = library(args.folder)
    encoder = Encoder.open(args.folder)
    header(
        "Builds with the native encoder and with sentence-transformers",
        [
            f"The native encoder takes {encoder.kernel} in {encoder.precision} here.",
            "One build each from nothing, with the loading of the model; all cores; default settings.",
            "sentence-transformers: is this package's backend on that library, which sorts by tokens and is",
            "faster than the library's own `encode`; `encode` with its defaults is given the same texts, each once.",
            "Embedding: the stages that make vectors, with the cache's reading and writing in them.",
            "Coverage: % of questions with an answer in the context.",
        ],
    )
    kinds = KINDS[:1] if args.short or model is None else KINDS
    times, texts = builds(args.folder, args.build, kinds)
    if model is not None:
        started = time.perf_counter()
        model.encode(texts)
        times["encode, defaults"] = time.perf_counter() - started
    rows = [[name, f"{took:.1f}", f"{took / times['native']:.2f}"] for name, took in times.items()]
    table([f"{args.build}, {len(texts):,} texts", "seconds", "x the native build"], rows)
    if args.short:
        return
    scores = {}
    for kind in kinds:
        settings = Settings(embedder=f"{kind}:{args.folder}", offline=True, modes=MODES)
        folder = require_data(args.quality)
        with (
            tempfile.TemporaryDirectory() as temporary,
            Index.build(folder, Path(temporary) / "b", settings=settings) as index,
        ):
            found = evaluate(index, load_dataset(folder), MODES, budgets)
            scores[kind] = {(row.mode, row.budget): 100 * (row.coverage or 0) for row in found}
    cells = [
        [f"{mode} at {budget}", *(f"{scores[kind][mode, budget]:.1f}" for kind in kinds)]
        for mode in MODES
        for budget in budgets
    ]
    table([f"coverage, {args.quality}", *kinds], cells)


if __name__ == "__main__":
    main()
