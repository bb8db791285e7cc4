"""After any history of edits and kills, the answers to queries equal those of a fresh build."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.building import placeholders
from ketrag_fast.index import freshness
from tests import small_model

HISTORIES = int(os.environ.get("SOAK_HISTORIES", "6"))
"""Number of histories; `SOAK_HISTORIES=1000` for a long test."""
SEEDS = range(int(os.environ.get("SOAK_FIRST", "0")), HISTORIES)
STEPS = 8
WORDS = ("ship", "ice", "crew", "sledge", "dog", "north", "south", "wind", "captain", "map", "letter", "tent")
_FRESHEN = """
import sys
from ketrag_fast import Index
from ketrag_fast.index import freshness
freshness._PER_BYTE_EMBEDDED = 1e9  # the words first, if there is a model, and then the vectors
index = Index.open(sys.argv[1])
index.freshen()
index.freshen("always")
"""


def _text(rng: random.Random) -> str:
    sentences = (
        " ".join(rng.choices(WORDS, k=rng.randint(3, 9))).capitalize() for _ in range(rng.randint(1, 6))
    )
    return f"# {rng.choice(WORDS)} {rng.randint(0, 99)}\n\n" + ". ".join(sentences) + ".\n"


def _records(rng: random.Random) -> str:
    return "".join(
        f'{{"id": "r{rng.randint(0, 30)}", "text": "{" ".join(rng.choices(WORDS, k=6))}"}}\n'
        for _ in range(rng.randint(0, 5))
    )


def _put(rng: random.Random, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_records(rng) if path.suffix == ".jsonl" else _text(rng))


def _edit(rng: random.Random, base: Path) -> None:
    """Do one random change: of a file, of a name, of a folder, or of what is left out."""
    files = sorted(path for path in base.rglob("*") if path.is_file() and path.name != ".gitignore")
    folders = sorted(path for path in base.rglob("*") if path.is_dir())
    kind = rng.choice(
        ("write", "write", "new", "new", "delete", "rename", "touch", "swap", "folder", "away", "ignore")
    )
    name = f"{rng.choice('abc')}{rng.randint(0, 40)}{rng.choice(('.md', '.md', '.txt', '.jsonl', '.png'))}"
    if kind == "write" and files:
        _put(rng, rng.choice(files))
    elif kind == "delete" and files:
        rng.choice(files).unlink()
    elif kind == "rename" and files:
        target = rng.choice([base, *folders]) / name
        if not target.exists():
            rng.choice(files).rename(target)
    elif kind == "touch" and files:
        os.utime(rng.choice(files))
    elif kind == "swap" and files:  # another content of the same size and time
        path = rng.choice(files)
        about, data = path.stat(), path.read_text()
        path.write_text(data[::-1] if path.suffix != ".jsonl" else data)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    elif kind == "folder":
        _put(rng, base / f"d{rng.randint(0, 5)}" / rng.choice(("", "e")) / name)
    elif kind == "away" and folders:
        folder = rng.choice(folders)
        target = base / f"m{rng.randint(0, 9)}"
        if rng.random() < 0.5:
            shutil.rmtree(folder)
        elif not target.exists():
            folder.rename(target)
    elif kind == "ignore":
        rng.choice([base, *folders]).joinpath(".gitignore").write_text(
            rng.choice(("", "b*\n", "*.txt\n", "e/\n"))
        )
    else:
        _put(rng, rng.choice([base, *folders]) / name)


def _killed(index: Path, seconds: float) -> None:
    """Begin an update, and kill it after some time."""
    process = subprocess.Popen([sys.executable, "-c", _FRESHEN, str(index)], stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_equal_those_of_a_fresh_build(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _check_history(seed, tmp_path, Settings(threads=1), monkeypatch)


@pytest.mark.parametrize("seed", SEEDS)
def test_vectors_that_follow_the_words_equal_those_of_a_fresh_build(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    monkeypatch.setattr(freshness, "_PER_BYTE_EMBEDDED", 1e9)
    monkeypatch.setattr(placeholders, "PORTION", 1 + seed % 5)
    _check_history(seed, tmp_path, Settings(threads=1, embedder=f"native:{model}"), monkeypatch)


def _check_history(seed: int, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edit a folder at random, and compare the index with one that is built from it after each step."""
    monkeypatch.setattr("ketrag_fast.building.delta.LEAST", 2 if seed % 3 else 10_000)
    monkeypatch.setattr(freshness, "QUICK", 1e9)
    rng = random.Random(seed)
    base = tmp_path / "in"
    for number in range(12):
        _put(rng, base / rng.choice(("", "d1", "d2")) / f"{rng.choice('abc')}{number}.md")
    index = Index.build(base, tmp_path / "ix", settings=settings)
    has_model = settings.embedder != "builtin"
    for step in range(STEPS):
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            _edit(rng, base)
            if has_model and rng.random() < 0.5:
                index.freshen()  # the words
        if rng.random() < 0.1:
            _killed(index.path, rng.uniform(0.1, 1.0))
        if rng.random() < 0.2:
            index.close()
            index = Index.build([base] if rng.random() < 0.5 else [], tmp_path / "ix", settings=settings)
        found = index.freshen("always")
        shutil.rmtree(tmp_path / "other", ignore_errors=True)
        if found.emptied or not any(base.rglob("*.md")):
            break
        assert found.reason is None and not found.unembedded, found
        with Index.build(base, tmp_path / "other", settings=settings) as other:
            where = f"seed {seed}, step {step}"
            assert [one.id for one in index.inspect.stored()] == [one.id for one in other.inspect.stored()], (
                where
            )
            assert index.stats()["content_digest"] == other.stats()["content_digest"], where
            query = " ".join(rng.choices(WORDS, k=2))
            mine, theirs = index.search(query), other.search(query)
            assert [asdict(hit) for hit in mine] == [asdict(hit) for hit in theirs], where
        assert index.freshen("always").changes == 0
    index.close()
