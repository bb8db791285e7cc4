"""The native encoder: tokens a second, share of the machine's peak, latency, and how close its vectors are.

Usage: python benches/encoder.py MODEL_FOLDER [--texts 400] [--repeat 3] [--set musique-train100] [--all] [--wheel]

Compared with `SentenceTransformer.encode` (its defaults) in the same run if it is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from common import ROOT, header, require_data, table
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.encoder import Encoder, kernels


def texts_of(folder: Path) -> tuple[list[str], list[str]]:
    """Passages with their titles, and their sentences, cut roughly: the lengths are what matters."""
    lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    passages = [f"{row.get('title', '')}\n{row['text']}" for row in rows]
    pieces = [part.strip() for row in rows for part in row["text"].replace("? ", ". ").split(". ")]
    return passages, [part for part in pieces if part]


_PEAK = """
import time, numpy as np
a = np.ones((768, 768), np.float32)
best, end = 0.0, time.perf_counter() + 0.5
while time.perf_counter() < end:
    start = time.process_time()
    a @ a
    best = max(best, 2 * 768**3 / (time.process_time() - start))
print(best)
"""


def peak() -> float:
    """FLOP/s of one core in NumPy's f32 product: a lower estimate of the peak.

    In a separate process, because the number of its threads is settled when NumPy is imported.
    """
    one = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", _PEAK], env=one, check=True, capture_output=True, text=True)
    return float(done.stdout)


def work_per_token(folder: Path, tokens: int, squares: int) -> float:
    """Floating-point operations a token: the linear layers, and attention at the mean of L^2 / L."""
    size = json.loads((folder / "config.json").read_text())
    h, inner, layers = size["hidden_size"], size["intermediate_size"], size["num_hidden_layers"]
    return float(layers * (2 * (4 * h * h + 2 * h * inner) + 4 * h * squares / tokens))


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def spent(work: Callable[[], Any]) -> float:
    """Seconds on processors: on one thread the time that other work on the machine does not change."""
    start = time.process_time()
    work()
    return time.process_time() - start


def top(vectors: np.ndarray[Any, Any], k: int = 10) -> list[set[int]]:
    """The k nearest other rows of the first 500 rows."""
    scores = vectors[:500] @ vectors.T
    scores[np.arange(len(scores)), np.arange(len(scores))] = -2
    return [set(row) for row in np.argpartition(-scores, k, axis=1)[:, :k].tolist()]


def compare(got: np.ndarray[Any, Any], exact: np.ndarray[Any, Any]) -> tuple[float, float]:
    """(lowest cosine, share of the ten nearest that are the same)."""
    lengths = np.linalg.norm(got, axis=1) * np.linalg.norm(exact, axis=1)
    shared = [len(a & b) / 10 for a, b in zip(top(got), top(exact), strict=True)]
    return float(((got * exact).sum(1) / lengths).min()), float(np.mean(shared))


QUESTION = "Who was the father of the architect that designed the railway station of the town on the lake?"


def latency(encoder: Encoder, runs: int = 50) -> float:
    """Median milliseconds of one question of about 20 tokens on one core."""
    encoder.encode([QUESTION], threads=1)
    times = [spent(lambda: encoder.encode([QUESTION], threads=1)) for _ in range(runs)]
    return 1000 * statistics.median(times)


def start(folder: Path, repeat: int) -> float:
    """Seconds of a whole process that loads the model as an index does, and encodes one question."""
    code = (
        "from ketrag_fast.models.embedders.registry import load;"
        f"load({f'native:{folder}'!r}).embed(['Where was she born?'], 'query')"
    )
    runs = [timed(lambda: subprocess.run([sys.executable, "-c", code], check=True)) for _ in range(repeat)]
    return statistics.median(runs)


def library(folder: Path) -> Any:
    """sentence-transformers as it comes, on the processor, or None."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        return None
    return SentenceTransformer(str(folder), device="cpu")


def theirs_on(model: Any, threads: int) -> Callable[[list[str]], Any]:
    """Return its `encode` on that many threads."""
    import torch

    def encode(texts: list[str]) -> Any:
        torch.set_num_threads(threads)
        return model.encode(texts)

    return encode


def speed(encoder: Encoder, folder: Path, model: Any, texts: list[str], repeat: int) -> list[str]:
    """A row: tokens a second on one core and on two, interleaved with sentence-transformers' own."""
    lengths = encoder.lengths(texts).astype(float)
    tokens, squares = float(lengths.sum()), float((lengths**2).sum())
    work = work_per_token(folder, int(tokens), int(squares))
    one, two, other, both, peaks = [], [], [], [], []
    for _ in range(repeat):
        peaks.append(peak())
        one.append(tokens / spent(lambda: encoder.encode(texts, threads=1)))
        two.append(tokens / timed(lambda: encoder.encode(texts, threads=2)))
        if model is not None:
            other.append(tokens / spent(lambda: theirs_on(model, 1)(texts)))
            both.append(tokens / timed(lambda: theirs_on(model, 2)(texts)))
    rate, pair = statistics.median(one), statistics.median(two)
    return [
        f"{rate:.0f}",
        f"{pair:.0f}",
        f"{pair / rate:.2f}",
        f"{rate * work / max(peaks):.2f}",
        f"{rate / statistics.median(other):.2f}" if other else "-",
        f"{pair / statistics.median(both):.2f}" if both else "-",
    ]


FORMS = {
    "portable": ("f32", "int8"),
    "avx2": ("f32", "int8"),
    "avx-vnni": ("int8",),
    "avx512": ("f32", "int8"),
    "avx512-vnni": ("int8",),
    "avx512-bf16": ("bf16",),
    "amx": ("bf16", "int8"),
}
"""What each kernel has hardware for."""

HELD = {
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
    | {"OPENBLAS_CORETYPE": "Haswell"}
}
"""What makes torch, oneDNN, MKL and NumPy's BLAS as slow as they are on a processor with less."""


def forced(folder: Path, texts: list[str], repeat: int) -> list[list[str]]:
    """Rows: each kernel in each precision that it has hardware for, interleaved with what auto takes.

    By processor time, since other work on the machine does not count there; medians.
    """
    auto = Encoder.open(folder)
    tokens = float(auto.lengths(texts).sum())
    all_ = {"auto": auto}
    for name in kernels():
        for precision in FORMS[name]:
            if name == "portable" and len(kernels()) > 1:
                continue
            try:
                all_[f"{name} {precision}"] = Encoder.open(folder, precision=precision, kernel=name)
            except InputError as error:  # tiles that do not multiply bytes
                print(f"{error.message}\n")
    exact = next(encoder for encoder in all_.values() if encoder.precision == "f32").encode(texts)
    rates: dict[str, list[float]] = {name: [] for name in all_}
    for _ in range(repeat):
        for name, encoder in all_.items():
            rates[name].append(tokens / spent(lambda e=encoder: e.encode(texts, threads=1)))
    middle = {name: statistics.median(values) for name, values in rates.items()}
    rows = []
    for name, encoder in all_.items():
        cosine, same = compare(encoder.encode(texts), exact)
        label = f"auto: {encoder.kernel} {encoder.precision}" if name == "auto" else name
        cells = [label, f"{middle[name]:.0f}", f"{middle['auto'] / middle[name]:.2f}"]
        rows.append([*cells, f"{latency(encoder):.2f}", f"{cosine:.6f}", f"{same:.4f}"])
    return rows


def parts(encoder: Encoder) -> list[str]:
    """Milliseconds of one question, and of its tokeniser alone."""
    times = []
    for work in (
        lambda: encoder.encode([QUESTION], threads=1),
        lambda: encoder.lengths([QUESTION], threads=1),
    ):
        work()
        times.append(1000 * statistics.median(spent(work) for _ in range(200)))
    return [f"{took:.3f}" for took in times]


def alone(encoder: Encoder) -> list[list[str]]:
    """Rows: one text at a time by the clock, on one core and on all; the least of many, since other work only adds."""
    long = " ".join([QUESTION] * 13)
    rows = []
    for name, text in (("question of 20 tokens", QUESTION), ("text of 250 tokens", long)):
        least = []
        for threads in (1, 0):
            encoder.encode([text], threads=threads)
            least.append(
                min(timed(lambda t=text, n=threads: encoder.encode([t], threads=n)) for _ in range(200))
            )
        tokens = int(encoder.lengths([text])[0])
        rows.append(
            [name, str(tokens), *(f"{1000 * took:.2f}" for took in least), f"{least[0] / least[1]:.2f}"]
        )
    return rows


def wheel() -> str:
    """Return the size of the rebuilt wheel."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = str(ROOT / "rust" / "py" / "Cargo.toml")
        command = ["maturin", "build", "--release", "-q", "-m", manifest, "-o", folder]
        subprocess.run(command, check=True)
        (made,) = Path(folder).glob("*.whl")
        return f"{made.stat().st_size / 1e6:.1f} MB"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", default="musique-train100")
    parser.add_argument("--texts", type=int, default=400, help="passages; three times as many sentences")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--kernel", default="auto")
    parser.add_argument(
        "--isa", choices=tuple(HELD), help="hold their libraries to the instructions of others"
    )
    parser.add_argument("--all", action="store_true", help="compare the vectors of all texts")
    parser.add_argument("--wheel", action="store_true", help="build the wheel (needs maturin)")
    args = parser.parse_args()
    os.environ |= HELD.get(args.isa, {})
    encoder = Encoder.open(args.folder, precision=args.precision, kernel=args.kernel)
    model = library(args.folder)
    header(
        "Native encoder",
        [
            f"{encoder.kernel} in {encoder.precision}; medians of {args.repeat} runs, interleaved.",
            "One core, and questions: by processor time; two cores: by the clock, which other work on the machine lengthens.",
            *([f"Theirs and NumPy were held to {args.isa} by their environment."] if args.isa else []),
            "The peak is the best of NumPy's f32 product on one core in the same run: bf16 may pass it.",
            "Vectors are compared where a text fits the model's longest input: theirs cuts, ours makes windows.",
            "Theirs: `SentenceTransformer.encode` with its defaults, in fp32."
            if model
            else "sentence-transformers is not installed: vectors are compared with the f32 path.",
        ],
    )
    passages, sentences = texts_of(require_data(args.set))
    speeds, vectors = [], []
    for name, every, most in (("passages", passages, args.texts), ("sentences", sentences, 3 * args.texts)):
        texts = every[:most]
        speeds.append([name, len(texts), *speed(encoder, args.folder, model, texts, args.repeat)])
        if args.all:
            texts = every
        exact = Encoder.open(args.folder, precision="f32")
        lengths = encoder.lengths(texts)
        texts = [text for text, n in zip(texts, lengths, strict=True) if n <= encoder.longest]
        want = model.encode(texts) if model is not None else exact.encode(texts)
        cosine, same = compare(encoder.encode(texts), want)
        vectors.append([name, len(texts), f"{cosine:.7f}", f"{same:.4f}"])
    columns = ["tokens/s, 1 core", "2 cores", "2 / 1", "share of peak", "x theirs, 1 core", "2 cores"]
    table(["texts", "n", *columns], speeds)
    table(["vectors of", "n", "lowest cosine to theirs", "same top 10 (of 500)"], vectors)
    names = [
        "kernel",
        "tokens/s, 1 core",
        "auto / it",
        "question, ms",
        "lowest cosine",
        "same top 10",
    ]
    table(names, forced(args.folder, passages[: args.texts // 2], args.repeat))
    table(["one text", "tokens", "one core, ms", "all cores, ms", "times faster"], alone(encoder))
    row = [*parts(encoder), f"{1000 * start(args.folder, 5):.0f} ms"]
    names = [
        "one question of 20 tokens, 1 core, ms",
        "its tokens alone, ms",
        "process start to first vector",
    ]
    if args.wheel:
        row.append(wheel())
        names.append("wheel")
    table(names, [row])


if __name__ == "__main__":
    main()
