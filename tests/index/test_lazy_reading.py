"""A large index that is verified as it is read: damage counts where it is read, and what is open stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.arrays import BLOCK, BLOCKS
from tests.support.faults import flip

WORDS = 4000
DOCUMENTS = 6000


def documents(count: int) -> list[Document]:
    """Passages of 100 words; document 1500 alone says what is asked for."""
    draw = np.random.default_rng(3)
    rows = draw.zipf(1.3, (count, 100)) % WORDS
    texts = [" ".join(f"word{word}" for word in row) + "." for row in rows.tolist()]
    texts[1500] += " The aardvark of Zanzibar."
    return [Document(f"{i:05}", text) for i, text in enumerate(texts)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lazy") / "index"
    settings = Settings(knn_k=0, core_ratio=0.0, modes="auto,text,keyword")
    Index.build(documents(DOCUMENTS), path, settings=settings).close()
    return path


@pytest.fixture
def index(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "index"))


def array(index: Path, name: str) -> Path:
    """The file of an array, packed or not."""
    (file,) = (index / "gen-000001").glob(f"{name.replace('.', '/')}.*")
    return file


QUESTION = "aardvark Zanzibar"
FULL = Settings(verify="full")

READ = [
    ("units.unit_texts_blob", "bm25", False),
    ("links.keyword_units_indices", "bm25", True),
    ("links.unit_keywords_indices", "walk", True),
    ("vectors.unit_vectors", "text", False),
]
"""Array, mode, and whether all of the array is read: rows of at most 4 MiB are."""


@pytest.mark.parametrize(("name", "mode", "is_whole"), READ)
def test_only_the_blocks_that_are_read_count(index: Path, name: str, mode: str, is_whole: bool) -> None:
    """Every block is damaged in its turn: what is read must be noticed, and no answer may change."""
    with Index.open(index, settings=FULL) as opened:
        right = opened.retrieve(QUESTION, mode=mode, budget=200, top=1).text
    assert right
    file = array(index, name)
    count = -(-file.stat().st_size // BLOCK)
    assert count > 3, name
    noticed = 0
    for block in range(1, count):  # the first one holds the header, which is always read
        at = min(block * BLOCK + 99, file.stat().st_size - 1)
        flip(file, at)
        with Index.open(index) as opened:
            try:
                assert opened.retrieve(QUESTION, mode=mode, budget=200, top=1).text == right
            except IndexDamaged as error:
                noticed += 1
                assert file.name in str(error)
                with pytest.raises(IndexDamaged):  # and it stays so
                    opened.retrieve_many([QUESTION] * 9, mode=mode, budget=200, top=1, threads=2)
                stage, _, short = name.partition(".")
                with pytest.raises(IndexDamaged, match=file.name):
                    opened.inspect.arrays()[stage][short]
        with pytest.raises(IndexDamaged, match=file.name):
            Index.open(index, settings=FULL)
        flip(file, at)
    assert noticed >= 1
    assert (noticed == count - 1) == is_whole


def test_an_index_without_hashes_of_blocks_is_verified_by_whole_arrays(index: Path) -> None:
    """The files of hashes are lost."""
    for file in index.glob(f"gen-*/*/{BLOCKS}"):
        file.unlink()
    with Index.open(index) as opened:
        right = opened.retrieve(QUESTION, mode="bm25", budget=200).text
    with Index.open(index, settings=FULL) as opened:
        assert opened.retrieve(QUESTION, mode="bm25", budget=200).text == right
    flip(array(index, "links.keyword_units_indices"), -1)
    with Index.open(index) as opened, pytest.raises(IndexDamaged, match="keyword_units_indices"):
        opened.retrieve(QUESTION, mode="bm25", budget=200)
    Index.build([], index, settings=Settings()).close()  # made anew, with hashes
    assert (index / "gen-000002" / "links" / BLOCKS).exists()
    with Index.open(index) as opened:
        assert opened.retrieve(QUESTION, mode="bm25", budget=200).text == right
