"""Chunks read by llama.cpp itself, a tiny model: killed and gone on with, a small context, caps."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.process import POLAR, command, start

TOKENS = ("--llm-tokens", "120")


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for path in sorted((POLAR / "articles").iterdir())[:8]:
        shutil.copy(path, folder)
    return folder


def argv(docs: Path, model: Path, *more: str) -> list[str]:
    return ["index", str(docs), "--llm", f"llama-cpp:{model}", "--llm-slots", "1", *TOKENS, *more]


def report(docs: Path, model: Path, place: Path, *more: str) -> tuple[int, dict[str, Any], str]:
    done = command(*argv(docs, model, *more), "--json", cwd=place)
    return done.code, json.loads(done.out) if done.out else {}, done.err


def replies(place: Path) -> int:
    file = place / ".ketrag" / "index.sqlite"
    if not file.is_file():
        return 0
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as db:
        try:
            return int(db.execute("SELECT count(*) FROM replies").fetchone()[0])
        except sqlite3.OperationalError:  # not begun
            return 0


def test_killed_and_gone_on_with(docs: Path, tiny_gguf: Path, tmp_path: Path) -> None:
    """One sequence at a time: the same replies, the same digest, and no call for what is there."""
    (tmp_path / "whole").mkdir()
    code, whole, err = report(docs, tiny_gguf, tmp_path / "whole")
    assert code in (0, 3), err
    calls = replies(tmp_path / "whole")
    assert calls >= whole["extraction"]["core"] > 8
    for least in (2, 5):
        child = start(*argv(docs, tiny_gguf), cwd=tmp_path)
        limit = time.monotonic() + 300
        while replies(tmp_path) < least and time.monotonic() < limit and child.poll() is None:
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=300)
    kept = replies(tmp_path)
    code, found, err = report(docs, tiny_gguf, tmp_path)
    assert found["digest"] == whole["digest"], err
    assert found["usage"]["calls"] == calls - kept
    assert replies(tmp_path) == calls
    again = report(docs, tiny_gguf, tmp_path)[1]
    assert (again["changed"], again["usage"]["calls"]) == (False, 0)


def test_a_context_too_small_for_a_chunk(docs: Path, tiny_gguf: Path, tmp_path: Path) -> None:
    code, found, err = report(docs, tiny_gguf, tmp_path, "--llm-context", "400")
    if code == 1:
        assert "context" in err
        return
    assert code == 3
    assert found["extraction"]["failed"] > 0
    assert "does not fit the model's context" in json.dumps(found["failures"])
