"""Every text is embedded once, whatever happens in between."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast.errors import BackendError, Cancelled, InputError
from ketrag_fast.models.embedders.cache import (
    EncodedRows,
    VectorCache,
    embed_stream,
    text_hash,
)
from ketrag_fast.storage.vector_cache import CodeJournal, scratch_rows
from ketrag_fast.storage.vector_codes import Packing
from tests.process import python
from tests.unit.models.test_windows_tokens import Plain

CODES = Packing("4bit", 5)
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


def embed(cache: VectorCache, embedder: Any, texts: Any, role: Any = "document", **options: Any) -> Any:
    store = cache.vectors_of(embedder, role)
    chars = sum(map(len, texts))
    return np.concatenate(list(embed_stream(lambda: embedder, store, texts, role, chars=chars, **options)))


def test_the_second_time_nothing_is_embedded_and_the_vectors_are_equal_to_the_bit(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "v.sqlite") as cache:
        one = Counting()
        first = embed(cache, one, TEXTS + TEXTS[:10] + [""])
        assert one.embedded == TEXTS  # equal texts once, empty ones not at all
        assert not first[-1].any()
    with VectorCache(tmp_path / "v.sqlite") as cache:
        two = Counting()
        again = embed(cache, two, TEXTS[::-1])
        assert two.embedded == []
        assert np.array_equal(again, first[:50][::-1])
        assert cache.count(two.fingerprint) == 50


def test_only_what_is_new_is_embedded_and_roles_are_apart(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "v.sqlite") as cache:
        embed(cache, Counting(), TEXTS[:30])
        more = Counting()
        embed(cache, more, TEXTS)
        assert more.embedded == TEXTS[30:]
        queries = Counting()
        embed(cache, queries, TEXTS[:5], "query")
        assert queries.embedded == TEXTS[:5]


def test_another_model_has_vectors_of_its_own(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "v.sqlite") as cache:
        embed(cache, Counting(), TEXTS[:3])
        other = Counting()
        other.fingerprint = "another"
        embed(cache, other, TEXTS[:3])
        assert other.embedded == TEXTS[:3]
        assert cache.forget("another") == 3 and cache.count("another") == 0
        assert cache.count("f" * 32) == 3
        wrong = Counting()
        wrong.dimension = 6
        with pytest.raises(BackendError, match="6 dimensions"):
            embed(cache, wrong, TEXTS[:3])


def test_what_was_finished_before_a_stop_is_kept(tmp_path: Path) -> None:
    texts = [text * 150 for text in TEXTS]  # about 5,000 characters each: several windows
    with VectorCache(tmp_path / "v.sqlite") as cache:
        broken = Counting(fail_at=20)
        with pytest.raises(Cancelled):
            embed(cache, broken, texts)
        done = len(broken.embedded)
        assert 20 <= done < 50
        rest = Counting()
        embed(cache, rest, texts)
        assert len(rest.embedded) == 50 - done


def test_a_blob_of_the_wrong_size_is_not_trusted(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "v.sqlite") as cache:
        first = embed(cache, Counting(), TEXTS[:2])
        cache._db.execute("UPDATE vectors SET vector = x'00' WHERE text = ?", (text_hash(TEXTS[0]),))
        again = Counting()
        assert np.array_equal(embed(cache, again, TEXTS[:2]), first)
        assert again.embedded == TEXTS[:1]


def test_in_the_connection_of_another_its_transaction_is_respected(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)
    cache = VectorCache(db)
    db.execute("BEGIN")
    embed(cache, Counting(), TEXTS[:4])
    db.execute("ROLLBACK")
    assert cache.count("f" * 32) == 0
    embed(cache, Counting(), TEXTS[:4])
    cache.close()
    assert db.execute("SELECT count(*) FROM vectors").fetchone()[0] == 4
    db.close()


def test_progress_is_about_what_is_computed(tmp_path: Path) -> None:
    texts = [text * 150 for text in TEXTS]
    with VectorCache(tmp_path / "v.sqlite") as cache:
        embed(cache, Counting(), texts[:25])
        seen: list[tuple[int, int | None]] = []
        worker = Counting()
        embed(cache, worker, texts, report=lambda done, total: seen.append((done, total)))
        assert seen[-1][0] == worker.tally.tokens
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        assert seen[-1][1] is None or seen[-1][1] >= seen[-1][0]


def test_rows_without_room_are_an_error(tmp_path: Path) -> None:
    """A file that is mapped before its blocks are taken ends the process when the disk is full."""
    rows = scratch_rows(3, np.dtype((np.float32, (4,))), tmp_path)
    assert (rows.shape, rows.sum(), list(tmp_path.iterdir())) == ((3, 4), 0, [])
    rows[1] = 1
    assert rows.sum() == 4
    done = python(
        "import resource\n"
        "from pathlib import Path\n"
        "import numpy as np\n"
        "from ketrag_fast.storage.vector_cache import scratch_rows\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, -1))\n"
        "try:\n    scratch_rows(1000, np.dtype('f8'), Path())\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n",
        cwd=tmp_path,
    )
    assert done.out.startswith("StorageFull no space left"), done.err


def encoded(path: Path, embedder: Any, texts: Any, packing: Packing = CODES) -> Any:
    journal = CodeJournal(path)
    store = EncodedRows(packing, embedder.fingerprint, "text", journal, None)
    try:
        return np.concatenate(list(embed_stream(lambda: embedder, store, texts)))
    finally:
        journal.close()


@pytest.mark.parametrize("name", ["4bit", "int8", "f32", "signs"])
def test_codes_of_an_unfinished_build_are_not_computed_again(tmp_path: Path, name: str) -> None:
    packing = Packing(name, 5)
    texts = [text * 150 for text in TEXTS]
    whole = encoded(tmp_path / "whole", Counting(), texts, packing)
    assert whole.nbytes == 50 * packing.row_bytes
    broken = Counting(fail_at=20)
    with pytest.raises(Cancelled):
        encoded(tmp_path / "j", broken, texts, packing)
    rest = Counting()
    assert encoded(tmp_path / "j", rest, texts, packing).tobytes() == whole.tobytes()
    assert 20 <= len(broken.embedded) < 50 and len(rest.embedded) == 50 - len(broken.embedded)
    other = Counting()
    other.fingerprint = "another"
    encoded(tmp_path / "j", other, texts[:3], packing)
    assert other.embedded == texts[:3]


def test_codes_that_were_altered_are_computed_again(tmp_path: Path) -> None:
    first = encoded(tmp_path / "j", Counting(), TEXTS[:3])
    with sqlite3.connect(tmp_path / "j") as db:
        key = text_hash(TEXTS[1])
        db.execute("UPDATE codes SET row = zeroblob(length(row)) WHERE text = ?", (key,))
        db.execute("UPDATE codes SET row = x'00' WHERE text = ?", (text_hash(TEXTS[2]),))
    again = Counting()
    assert encoded(tmp_path / "j", again, TEXTS[:3]).tobytes() == first.tobytes()
    assert again.embedded == TEXTS[1:3]


def test_a_full_disk_while_codes_are_written_is_an_error_and_nothing_is_half_written(tmp_path: Path) -> None:
    done = python(
        "import resource, sys\n"
        "from pathlib import Path\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from tests.unit.models.test_cache import Counting, TEXTS, encoded\n"
        "encoded(Path('j'), Counting(), TEXTS[:2])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, -1))\n"
        "try:\n    encoded(Path('j'), Counting(), [f'{n} {text}' for n in range(60) for text in TEXTS])\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n",
        str(Path(__file__).parents[3]),
        cwd=tmp_path,
    )
    assert done.out.startswith("StorageFull"), done.err
    rest = Counting()
    encoded(tmp_path / "j", rest, TEXTS[:3])
    assert rest.embedded == TEXTS[2:3]


def test_a_value_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    class Broken(Counting):
        def _encode(self, texts: Any, role: Any, tick: Any) -> Any:
            vectors = np.array(super()._encode(texts, role, tick))
            vectors[0, 0] = np.nan
            return vectors

    with pytest.raises((BackendError, InputError), match=r"NaN|finite"):
        encoded(tmp_path / "j", Broken(), TEXTS[:3])
    rest = Counting()
    encoded(tmp_path / "j", rest, TEXTS[:3])
    assert rest.embedded == TEXTS[:3]
