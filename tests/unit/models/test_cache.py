"""Every text is embedded once, whatever happens in between."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast.errors import BackendError, Cancelled
from ketrag_fast.models.embedders.cache import VectorCache, text_hash
from ketrag_fast.storage.vector_cache import scratch_rows
from tests.process import python
from tests.unit.models.test_windows_tokens import Plain

TEXTS = [f"document number {number} about aeiou{'a' * (number % 7)}" for number in range(50)]


class Counting(Plain):
    def __init__(self, fail_at: int | None = None) -> None:
        super().__init__()
        self.embedded: list[str] = []
        self.fail_at = fail_at

    def _encode(self, texts: Any, role: Any, tick: Any) -> Any:
        if self.fail_at is not None and len(self.embedded) >= self.fail_at:
            raise Cancelled("stopped")
        self.embedded += texts
        return super()._encode(texts, role, tick)


def test_the_second_time_nothing_is_embedded_and_the_vectors_are_equal_to_the_bit(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "v.sqlite") as cache:
        one = Counting()
        first = cache.embed(one, TEXTS + TEXTS[:10] + [""])
        assert one.embedded == TEXTS  # equal texts once, empty ones not at all
        assert not first[-1].any()
    with VectorCache(tmp_path / "v.sqlite") as cache:
        two = Counting()
        again = cache.embed(two, TEXTS[::-1])
        assert two.embedded == []
        assert np.array_equal(again, first[:50][::-1])
        assert cache.count(two.fingerprint) == 50


def test_only_what_is_new_is_embedded_and_roles_are_apart(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "v.sqlite") as cache:
        cache.embed(Counting(), TEXTS[:30])
        more = Counting()
        cache.embed(more, TEXTS)
        assert more.embedded == TEXTS[30:]
        queries = Counting()
        cache.embed(queries, TEXTS[:5], "query")
        assert queries.embedded == TEXTS[:5]


def test_another_model_has_vectors_of_its_own(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "v.sqlite") as cache:
        cache.embed(Counting(), TEXTS[:3])
        other = Counting()
        other.fingerprint = "another"
        cache.embed(other, TEXTS[:3])
        assert other.embedded == TEXTS[:3]
        assert cache.forget("another") == 3 and cache.count("another") == 0
        assert cache.count("f" * 32) == 3
        wrong = Counting()
        wrong.dimension = 6
        with pytest.raises(BackendError, match="6 dimensions"):
            cache.embed(wrong, TEXTS[:3])


def test_what_was_finished_before_a_stop_is_kept(tmp_path: Path) -> None:
    texts = [text * 150 for text in TEXTS]  # about 5,000 characters each: several windows
    with VectorCache(tmp_path / "v.sqlite") as cache:
        broken = Counting(fail_at=20)
        with pytest.raises(Cancelled):
            cache.embed(broken, texts)
        done = len(broken.embedded)
        assert 20 <= done < 50
        rest = Counting()
        cache.embed(rest, texts)
        assert len(rest.embedded) == 50 - done


def test_a_blob_of_the_wrong_size_is_not_trusted(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "v.sqlite") as cache:
        first = cache.embed(Counting(), TEXTS[:2])
        cache._db.execute("UPDATE vectors SET vector = x'00' WHERE text = ?", (text_hash(TEXTS[0]),))
        again = Counting()
        assert np.array_equal(cache.embed(again, TEXTS[:2]), first)
        assert again.embedded == TEXTS[:1]


def test_in_the_connection_of_another_its_transaction_is_respected(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)
    cache = VectorCache(db)
    db.execute("BEGIN")
    cache.embed(Counting(), TEXTS[:4])
    db.execute("ROLLBACK")
    assert cache.count("f" * 32) == 0
    cache.embed(Counting(), TEXTS[:4])
    cache.close()
    assert db.execute("SELECT count(*) FROM vectors").fetchone()[0] == 4
    db.close()


def test_progress_is_about_what_is_computed(tmp_path: Path) -> None:
    texts = [text * 150 for text in TEXTS]
    with VectorCache(tmp_path / "v.sqlite") as cache:
        cache.embed(Counting(), texts[:25])
        seen: list[tuple[int, int | None]] = []
        worker = Counting()
        cache.embed(worker, texts, progress=lambda done, total: seen.append((done, total)))
        assert seen[-1][0] == worker.tally.tokens
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        assert seen[-1][1] is None or seen[-1][1] >= seen[-1][0]


def test_rows_without_room_are_an_error(tmp_path: Path) -> None:
    """A file that is mapped before its blocks are taken ends the process when the disk is full."""
    rows = scratch_rows(3, 4, tmp_path)
    assert (rows.shape, rows.sum(), list(tmp_path.iterdir())) == ((3, 4), 0, [])
    rows[1] = 1
    assert rows.sum() == 4
    done = python(
        "import resource\n"
        "from pathlib import Path\n"
        "from ketrag_fast.storage.vector_cache import scratch_rows\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, -1))\n"
        "try:\n    scratch_rows(1000, 4, Path())\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n",
        cwd=tmp_path,
    )
    assert done.out.startswith("StorageFull no space left"), done.err
