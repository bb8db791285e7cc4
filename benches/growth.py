"""How the graph stage grows: co-occurrence, the keyword graph and the walk's graphs on generated text."""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from common import header, table
from zipf import zipf_texts

STEPS = ("corpus", "vocabulary", "keyword graph", "walk graphs", "co-occurrence")


def texts_of(n: int) -> tuple[list[str], list[str]]:
    """Titles and texts of n units: Zipf words in sentences of eleven, every seventh word a name."""
    indptr, indices, _ = zipf_texts(n, seed=7)
    titles, texts = [], []
    for unit in range(n):
        row = indices[int(indptr[unit]) : int(indptr[unit + 1])]
        # The mix of a word's number decides its form, so that a word is a name wherever it occurs.
        words = [f"N{w:x}" if w % 7 == 0 else f"w{w:x}" for w in row.tolist()]
        sentences = [" ".join(words[i : i + 11]).capitalize() + "." for i in range(0, len(words), 11)]
        titles.append(f"Title {unit:x}")
        texts.append(" ".join(sentences))
    return titles, texts


def measure(n: int, threads: int) -> dict[str, Any]:
    """Seconds of each step in this process, and its peak memory."""
    from ketrag_fast import _core
    from ketrag_fast.kernels.text import pack
    from ketrag_fast.systems.shared.rows import offsets_of

    titles, texts = (pack(x) for x in texts_of(n))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took: dict[str, float] = {}
    started = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal started
        now = time.perf_counter()
        took[name] = now - started
        started = now

    cut = _core.corpus(titles, texts, tokens=2000, threads=threads)
    lap("corpus")
    found = _core.vocabulary(
        titles,
        texts,
        cut["chunk_doc"],
        cut["chunk_span"],
        cut["unit_chunk"],
        cut["unit_span"],
        cut["sent_chunk"],
        cut["sent_span"],
        cut["sent_title"].astype(np.uint8),
        threads=threads,
    )
    lap("vocabulary")
    words = len(found["words"][1]) - 1
    _core.transpose(*found["unit_words"], words, threads=threads)
    _core.transpose(*found["sent_words"], words, threads=threads)
    lap("keyword graph")
    own = np.flatnonzero(cut["sent_title"] == 0)
    owners = cut["unit_chunk"][cut["sent_unit"][own]]
    sentences = _core.slice_strings(texts, owners, cut["sent_span"][own])
    first = offsets_of(cut["sent_unit"][own], len(cut["unit_chunk"]))
    _core.links_build(*titles, *texts, *sentences, first, threads=threads)
    lap("walk graphs")
    _core.cooccurrence_knn(*found["unit_words"], words, 1, threads=threads)
    lap("co-occurrence")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": took, "peak_mb": peak / 1024, "input_mb": before / 1024, "words": words}


def main() -> None:
    """Print the table; each size runs in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,30000,100000,300000")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(measure(args.one, args.threads)))
        return
    header(
        "Growth of the graph stage",
        [
            "Generated text: 88 distinct words a unit, three quarters by Zipf over a growing vocabulary.",
            "One run a size, in a process of its own; the peak counts the process with the texts in it.",
            "The exponent is that of the step from the size before: log ratio of seconds to sizes.",
        ],
    )
    rows, last = [], None
    for size in [int(x) for x in args.sizes.split(",")]:
        command = [sys.executable, __file__, "--one", str(size), "--threads", str(args.threads)]
        result = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        took = result["seconds"]
        rest = sum(took[s] for s in STEPS[:-1])
        exponent = "" if last is None else f"{math.log(rest / last[1]) / math.log(size / last[0]):.2f}"
        last = (size, rest)
        row = [f"{size:,}", *(f"{took[s]:.2f}" for s in STEPS), exponent]
        rows.append([*row, f"{sum(took.values()):.1f}", f"{result['peak_mb']:,.0f}"])
    table(["units", *STEPS, "exponent without co-occurrence", "all, s", "peak MB"], rows)


if __name__ == "__main__":
    main()
