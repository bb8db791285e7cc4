"""An index and its contexts are equal to the byte on processors with and without each set of instructions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.process import POLAR, environment
from tests.support.processors import PORTABLE, hidden, old_libraries

MODES = ("bm25", "text", "fused", "knn", "keyword", "walk", "skeleton", "ket")

CODE = """
import json, sys
from pathlib import Path
from ketrag_fast import Index, Settings
polar, place, modes = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(",")
questions = [json.loads(line)["text"] for line in (polar / "queries.jsonl").read_text("utf-8").splitlines()]
settings = Settings(llm="heuristic", modes=",".join(modes))
with Index.build(polar / "articles", place, settings=settings) as index:
    contexts = {mode: [index.retrieve(q, mode=mode).text for q in questions] for mode in modes}
    print(json.dumps({"digest": index.digest, "contexts": contexts}))
"""


def build_and_retrieve(place: Path, variables: dict[str, str]) -> dict[str, Any]:
    """Return the digest of an index of the articles, and every context, of a process with these variables."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(POLAR), str(place), ",".join(MODES)],
        env=environment(**variables),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found = build_and_retrieve(tmp_path_factory.mktemp("whole") / "index", hidden(""))
    assert all(len(contexts) >= 10 and all(contexts) for contexts in found["contexts"].values())
    return found


def test_hidden_instructions_change_no_byte(tmp_path: Path, expected: dict[str, Any]) -> None:
    """Kernels with each set of instructions are compared in tests/unit/test_masked_processor.py."""
    assert build_and_retrieve(tmp_path / "index", hidden(PORTABLE)) == expected


def test_libraries_without_fused_multiply_add_change_no_context(
    tmp_path: Path, expected: dict[str, Any]
) -> None:
    """A processor before AVX2: NumPy, its BLAS and the C library have other code for it too."""
    found = build_and_retrieve(tmp_path / "index", hidden(PORTABLE) | old_libraries())
    assert found["contexts"] == expected["contexts"]
    assert found["digest"] == expected["digest"]
