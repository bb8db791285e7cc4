"""One open index answers sixteen threads at once as it answers one, in every mode that needs no model."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.base.memory import map_threads
from tests.process import POLAR

THREADS: Final = 16
MODES: Final = ("bm25", "text", "fused", "knn", "keyword", "walk")
QUESTIONS: Final = [
    json.loads(line)["text"] for line in (POLAR / "queries.jsonl").read_text("utf-8").splitlines()
][:8]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("threads") / "index"
    with Index.build(POLAR / "articles", path, settings=Settings(modes=",".join(MODES))):
        return path


def test_sixteen_threads_get_the_contexts_of_one(folder: Path) -> None:
    cases = [(mode, question) for mode in MODES for question in QUESTIONS]
    start = threading.Barrier(THREADS)

    with Index.open(folder) as index:
        # Nothing was read before, so that all threads open and verify the same arrays at once.
        def answer_all(first: int) -> dict[tuple[str, str], str]:
            start.wait()
            turned = cases[first:] + cases[:first]
            return {case: index.retrieve(case[1], mode=case[0], budget=500).text for case in turned}

        with ThreadPoolExecutor(THREADS) as pool:
            answers = list(pool.map(answer_all, range(0, 2 * THREADS, 2)))
    with Index.open(folder) as index:
        alone = {(mode, text): index.retrieve(text, mode=mode, budget=500).text for mode, text in cases}
    assert all(alone.values())
    assert answers == [alone] * THREADS


def test_threads_that_refresh_see_one_generation_or_the_next(tmp_path: Path) -> None:
    """No context mixes two generations."""
    versions = [f"Version{n} of the Fram was built in Larvik{n}." for n in range(4)]
    start = threading.Barrier(THREADS)
    seen: list[str] = []
    path = tmp_path / "index"
    with Index.build([Document("a", versions[0])], path) as index:

        def read() -> None:
            start.wait()
            for _ in range(40):
                index.refresh()
                seen.append(index.retrieve("Who built the Fram?", budget=100).passages[0].text)

        with ThreadPoolExecutor(THREADS) as pool:
            readers = [pool.submit(read) for _ in range(THREADS - 1)]
            start.wait()
            for text in versions[1:]:
                Index.build([Document("a", text)], path).close()
            for reader in readers:
                reader.result()
        index.refresh()
        assert versions[3] in index.retrieve("Who built the Fram?", budget=100).text
    assert len(seen) == 40 * (THREADS - 1)
    assert {text for text in seen if text.strip() not in versions} == set()


def test_no_two_threads_work_on_the_same_item() -> None:
    """With the GIL this cannot fail; free-threaded Python needs it for the files of a build."""
    for _ in range(200):
        taken: list[int] = []

        def work(item: int, taken: list[int] = taken) -> int:
            taken.append(item)
            return -item

        assert map_threads(work, range(500), THREADS) == [-item for item in range(500)]
        assert sorted(taken) == list(range(500))
