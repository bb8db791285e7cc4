"""Vectors that the user brings: found by text, and refused where anything does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast.errors import BackendError
from ketrag_fast.models.embedders.registry import load
from tests.support.vector_files import write_vectors

TEXTS = ["one", "two\u2028lines", "three"]
ROWS = np.array([[3, 4], [0, 2], [1, 0]], np.float32)


def brought(folder: Path, rows: np.ndarray = ROWS, lines: list[object] | None = None) -> str:
    folder.mkdir()
    np.save(folder / "vectors.npy", rows)
    entries = [{"text": text} for text in TEXTS] if lines is None else lines
    text = "\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    (folder / "ids.jsonl").write_text(text, "utf-8")
    return f"vectors:{folder}"


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_found_by_text_and_normalised(tmp_path: Path, kind: str) -> None:
    embedder = load(brought(tmp_path / "v", ROWS.astype(kind)))
    found = embedder.embed(["three", "one", "", "two\u2028lines", "one"], "query")
    assert np.allclose(found, [[1, 0], [0.6, 0.8], [0, 0], [0, 1], [0.6, 0.8]])
    assert (embedder.dimension, embedder.longest) == (2, None)


def test_what_is_written_is_found_again(tmp_path: Path) -> None:
    write_vectors(tmp_path / "v", TEXTS, ROWS, "document")
    embedder = load(f"vectors:{tmp_path / 'v'}")
    assert np.allclose(embedder.embed(TEXTS[:1]), [[0.6, 0.8]])
    with pytest.raises(BackendError, match="no query vector for 1 of these 1"):
        embedder.embed(TEXTS[:1], "query")


def test_a_role_may_have_a_vector_of_its_own(tmp_path: Path) -> None:
    lines: list[object] = [
        {"text": "one", "role": "query"},
        {"text": "one", "role": "document"},
        {"text": "3"},
    ]
    embedder = load(brought(tmp_path / "v", lines=lines))
    assert np.allclose(embedder.embed(["one"], "query"), [[0.6, 0.8]])
    assert np.allclose(embedder.embed(["one"]), [[0, 1]])


def test_a_missing_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="2 of these 3 texts, the first is 'four'"):
        load(brought(tmp_path / "v")).embed(["one", "four", "five"])


def test_the_fingerprint_follows_the_content(tmp_path: Path) -> None:
    one = load(brought(tmp_path / "a")).fingerprint
    assert load(brought(tmp_path / "b")).fingerprint == one
    assert load(brought(tmp_path / "c", ROWS * 2)).fingerprint != one


@pytest.mark.parametrize(
    ("rows", "lines", "message"),
    [
        (np.array([[1, np.nan], [0, 1], [1, 0]], np.float32), None, "NaN or infinity in row 0"),
        (ROWS.astype(np.int64), None, "int64"),
        (ROWS[0], None, "float32"),
        (ROWS, [{"text": "one"}], "1 lines for 3"),
        (ROWS, [{"text": "one"}, {"id": 4}, {"text": "x"}], "ids.jsonl:2 is neither"),
        (ROWS, [{"text": "one"}, {"sha256": "00"}, {"text": "x"}], "invalid hash"),
        (ROWS, [{"text": "one"}, {"text": "two", "role": "x"}, {"text": "x"}], "invalid role"),
        (ROWS, [{"text": "one"}, {"text": "two"}, {"text": "one"}], "repeats the text of line 1"),
        (np.zeros((3, 2), np.float32), None, "zero vector"),
    ],
)
def test_bad_folders(tmp_path: Path, rows: np.ndarray, lines: list[object] | None, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        load(brought(tmp_path / "v", rows, lines)).embed(["one"])


def test_no_folder_and_no_pickle(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="cannot read"):
        load(f"vectors:{tmp_path / 'none'}")
    spec = brought(tmp_path / "v")
    np.save(tmp_path / "v" / "vectors.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(BackendError, match="not a valid NumPy array"):
        load(spec)
