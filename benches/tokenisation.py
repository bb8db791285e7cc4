"""Words and the text-keyword graph against scikit-learn and scipy on real passages."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from common import header, median, require_data, table
from ketrag_fast import _core
from ketrag_fast.kernels.text import pack, stop_words

SETS = ("musique-train100", "2wiki-101")
RUNS = 5


def passages() -> tuple[list[str], list[str]]:
    """Titles and texts of all passages."""
    titles, texts = [], []
    for name in SETS:
        with (require_data(name) / "corpus.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                titles.append(row["title"])
                texts.append(row["text"])
    return titles, texts


def interleaved(*works: Callable[[], object]) -> list[float]:
    """Median seconds of each, the runs taken in turn so that a slow moment hits all."""
    times: list[list[float]] = [[] for _ in works]
    for run in range(RUNS + 1):
        for own, work in zip(times, works, strict=True):
            started = time.perf_counter()
            work()
            if run:
                own.append(time.perf_counter() - started)
    return [median(own) for own in times]


def main() -> None:
    """Print the table."""
    titles, texts = passages()
    header(
        "Words and the text-keyword graph",
        [
            f"{len(texts):,} passages of {' and '.join(SETS)}; medians of {RUNS} runs, taken in turn; one thread.",
            "The peers cut words by a plain pattern; ours follows UAX #29, folds Unicode and cuts scripts without",
            "spaces. The vocabulary includes rows of units and of sentences; CountVectorizer makes rows of units.",
        ],
    )
    packed, packed_titles = pack(texts), pack(titles)
    joined = [f"{a}\n{b}" for a, b in zip(titles, texts, strict=True)]
    stop = stop_words("english")[0]
    plain = CountVectorizer(stop_words=stop)
    analyse = plain.build_analyzer()
    cut = _core.corpus(packed_titles, packed, tokens=10_000, threads=1)

    def vocabulary() -> object:
        return _core.vocabulary(
            packed_titles,
            packed,
            cut["chunk_doc"],
            cut["chunk_span"],
            cut["unit_chunk"],
            cut["unit_span"],
            cut["sent_chunk"],
            cut["sent_span"],
            cut["sent_title"].astype(np.uint8),
            threads=1,
        )

    found = vocabulary()
    indptr, indices = found["unit_words"]  # type: ignore[index]
    words = len(found["words"][1]) - 1  # type: ignore[index]
    matrix = sp.csr_array(
        (np.ones(len(indices), np.uint32), indices.astype(np.int32), indptr.astype(np.int64)),
        shape=(len(indptr) - 1, words),
    )
    rows = []
    for name, peer, ours, theirs in [
        (
            "words of each text",
            "scikit-learn",
            lambda: _core.tokenise(packed, threads=1),
            lambda: [analyse(t) for t in texts],
        ),
        ("vocabulary and rows", "scikit-learn", vocabulary, lambda: plain.fit_transform(joined)),
        (
            "rows turned (bipartite graph)",
            "scipy",
            lambda: _core.transpose(indptr, indices, words, threads=1),
            lambda: matrix.tocsc(),
        ),
    ]:
        mine, other = interleaved(ours, theirs)
        rows.append([name, f"{1000 * mine:.1f}", peer, f"{1000 * other:.1f}", f"{other / mine:.1f}"])
    table(["operation", "ours, ms", "peer", "peer, ms", "ratio"], rows)


if __name__ == "__main__":
    main()
