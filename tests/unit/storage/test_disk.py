"""What generations take on the disk, and which of them stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import ConfigError
from ketrag_fast.storage.layout import Layout


@pytest.mark.parametrize("kept", [1, 2, 4])
def test_as_many_generations_stay_as_are_to(tmp_path: Path, kept: int) -> None:
    settings = Settings(keep_generations=kept)
    with Index.build(Document("a", "The Fram sailed."), tmp_path / "i", settings=settings) as index:
        first = index.retrieve("Fram").text
        with Index.open(tmp_path / "i") as reader:
            for number in range(5):
                index.update(add=Document(f"n{number}", f"The Ship{number} sailed."))
            assert Layout(index.path).generations() == list(range(7 - kept, 7))
            assert reader.retrieve("Fram").text == first  # though its generation is gone
    with pytest.raises(ConfigError, match="keep_generations"):
        Settings(keep_generations=0)


def test_what_generations_take(tmp_path: Path) -> None:
    path = tmp_path / "i"
    Index.build(Document("a", "The Fram sailed north."), path).close()
    with Index.build([], path, settings=Settings(knn_k=3, modes="knng")) as index:  # some stages are shared
        use = index.stats()["disk"]
    old, new = use["generations"]
    assert (old["name"], new["name"]) == ("gen-000001", "gen-000002")
    for entry in (old, new):
        files = [p.stat() for p in (path / entry["name"]).rglob("*") if p.is_file()]
        assert entry["bytes"] == sum(about.st_size for about in files)
        assert entry["alone"] == sum(about.st_size for about in files if about.st_nlink == 1)
        assert 0 < entry["alone"] < entry["bytes"]
    every = {
        (p.stat().st_ino): p.stat().st_size for p in path.rglob("*") if p.is_file() and "index." not in p.name
    }
    del every[(path / "CURRENT").stat().st_ino]
    assert use["work"] == 0
    assert use["tables"] >= (path / "index.sqlite").stat().st_size > 0
    assert use["all"] == sum(every.values()) + use["tables"]
