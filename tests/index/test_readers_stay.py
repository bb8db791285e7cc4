"""A reader in a process of its own keeps all that it opened, whatever another process publishes meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from tests import small_model
from tests.process import POLAR, environment
from tests.support.parts import part

# It opens, says so, waits for the word, and only then asks what it never asked before.
_READER = """
import sys, zlib
from ketrag_fast import Index, Settings
with Index.open(sys.argv[1], settings=Settings(verify=sys.argv[2])) as index:
    print("opened", flush=True)
    sys.stdin.readline()
    print(index.generation)
    for mode in index.modes:
        print(mode, repr(index.retrieve("Who led the Fram to the north?", mode=mode, budget=500).text))
    print(index.inspect.entity("Fridtjof Nansen"))
    for stage, arrays in index.inspect.arrays().items():
        for name in arrays:
            if arrays.path(name).suffix in (".npy", ".pack"):
                print(stage, name, arrays[name].shape, zlib.crc32(arrays[name].tobytes()))
    print(index.stats()["generation"])
"""


def reader(index: Path, verify: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _READER, str(index), verify],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def said(child: subprocess.Popen[str]) -> str:
    out, err = child.communicate("go on\n", timeout=300)
    assert child.returncode == 0, err
    return out


@pytest.mark.parametrize("graphs", [False, True], ids=["scans", "hnswlib"])
def test_a_reader_of_another_process_outlives_publications(tmp_path: Path, graphs: bool) -> None:
    more: dict[str, Any] = {}
    if graphs:
        part("hnswlib", "ann")
        folder = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
        more = {"embedder": f"native:{folder}", "ann": "hnsw"}
    path = tmp_path / "index"
    settings = Settings(threads=1, llm="heuristic", modes="all", **more)
    articles = [
        POLAR / "articles" / f"{name}.md"
        for name in ("fram", "fridtjof-nansen", "hjalmar-johansen", "tom-crean")
    ]
    with Index.build(articles, path, settings=settings) as index:
        assert "ket" in index.modes
    calm = said(reader(path, "blocks"))
    waiting = [reader(path, verify) for verify in ("blocks", "sizes")]
    for child in waiting:
        assert child.stdout is not None
        assert child.stdout.readline() == "opened\n"
    for n in range(3):
        Index.build([Document(f"new{n}", f"Captain New{n} led the Ship{n} north.")], path).close()
    assert not (path / "gen-000001").exists()
    for child in waiting:
        assert "opened\n" + said(child) == calm
    assert calm.startswith("opened\n1\n")
