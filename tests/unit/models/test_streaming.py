"""Memory is bounded by the batch, not by the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.models.embedders.cache import VectorCache, embed_stream
from ketrag_fast.models.embedders.protocol import WINDOW_CHARS, WINDOW_TEXTS
from tests.process import python


class Counted:
    """Sentences, made as they are asked for: many characters, which fill a window, and few tokens."""

    def __init__(self, count: int) -> None:
        self.count, self.asked = count, 0

    def __iter__(self) -> Iterator[str]:
        for number in range(self.count):
            self.asked += 1
            yield f"Sentence {number} of a long book: " + "x" * 600


def test_texts_are_taken_from_a_stream_one_window_at_a_time(embedder: Any, tmp_path: Path) -> None:
    """No text is asked for before the window before it is done."""
    most = WINDOW_CHARS // len(next(iter(Counted(1)))) + 2
    assert most < WINDOW_TEXTS
    with VectorCache(tmp_path / "cache.sqlite") as cache:
        texts, done = Counted(most + 40), 0
        for vectors in embed_stream(lambda: embedder, cache.vectors_of(embedder), texts):
            done += len(vectors)
            assert texts.asked - done <= 1 and len(vectors) <= most
        assert done == texts.count


_MEASURE = """
import resource, sys
from pathlib import Path
from ketrag_fast.models.embedders.registry import EmbedderOptions
from ketrag_fast.models.embedders.build_model import VectorSource
folder, spec, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
texts = (f"Sentence {n} is about {n % 97} ships and {n % 89} harbours." for n in range(count))
options = EmbedderOptions("fp32", "cpu")
with VectorSource(spec, options, folder / "v.sqlite", folder) as source:
    source.embed(["warm up"] * 10, 10, 100, None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = source.embed(texts, count, 50 * count, None)
    rows[:] = rows  # pages of the scratch file are the system's to drop
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "slack"), [("native", 30), ("sentence-transformers", 80)])
def test_ten_times_the_sentences_take_no_more_memory(
    minilm: Path, tmp_path: Path, kind: str, slack: int
) -> None:
    """The second run has 54,000 vectors more: 83 MB as arrays, which lie in a file, and as much of texts.

    torch keeps something of every shape of batch that it meets, beside: `slack` is in MB.
    """
    grown = []
    for count in (6_000, 60_000):
        (tmp_path / str(count)).mkdir()
        done = python(
            _MEASURE, str(tmp_path / str(count)), f"{kind}:{minilm}", str(count), cwd=tmp_path, timeout=1200
        )
        assert done.code == 0, done.err
        grown.append(int(done.out) / 1024)
    vectors = 54_000 * 384 * 4 / 2**20
    assert grown[1] - grown[0] < vectors + slack, grown
