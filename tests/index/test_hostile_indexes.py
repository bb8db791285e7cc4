"""Indexes whose JSON was altered by somebody who knows the format: a typed error, or an index that answers.

The manifest is sealed again after each change, so that the seal is not what stops it.
"""

from __future__ import annotations

import copy
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import KetragError
from ketrag_fast.storage.manifest import SEAL, seal_of
from tests.support.hostile_bundles import WRONG

DOCUMENTS = [
    Document(f"d{i}", f"The harbour of number {i} froze in winter.", f"Port {i}", {"n": i}) for i in range(9)
]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile-index")
    settings = Settings(threads=1, record=str(root / "said.jsonl"), llm="heuristic", modes="all")
    Index.build(DOCUMENTS, root / "ix", settings=settings).close()
    return root


def spots(value: Any, name: str = "") -> Iterator[tuple[str, Callable[[Any], Any], Any]]:
    """The entries of a tree of JSON: a name, how to reach what holds the entry, and its key; of lists and of
    objects with many alike the first alone.
    """
    keys = list(value)[:40] if isinstance(value, dict) else range(min(len(value), 1))
    for key in keys:
        yield f"{name}/{key}", lambda tree: tree, key
        if isinstance(value[key], (dict, list)):
            for deeper, holder, inner in spots(value[key], f"{name}/{key}"):
                yield deeper, lambda tree, h=holder, k=key: h(tree[k]), inner  # type: ignore[misc]


def changed(value: Any, every: int) -> Iterator[tuple[str, Any]]:
    """The tree with one entry missing, or another; one in `every` of all ways, the same at each run."""
    number = 0
    for name, holder, key in spots(value):
        for what in ("missing", *WRONG):
            number += 1
            if number % every:
                continue
            tree = copy.deepcopy(value)
            if what == "missing":
                del holder(tree)[key]
            else:
                holder(tree)[key] = WRONG[what]
            yield f"{name} is {what}", tree


def used(place: Path) -> None:
    with Index.open(place) as index:
        for mode in index.modes:
            index.retrieve("Which harbour froze?", mode=mode, budget=300, filter="n>=0")
        index.stats()


def wrong_with(call: Callable[[], object]) -> str | None:
    try:
        call()
    except KetragError as error:
        return None if error.message and error.code != "internal" else repr(error)
    except Exception as error:  # noqa: BLE001 - of any kind, it is the finding
        return repr(error)
    return None


def test_manifests(good: Path, tmp_path: Path) -> None:
    shutil.copytree(good / "ix", tmp_path / "ix")
    path = next((tmp_path / "ix").glob("gen-*/manifest.json"))
    about = json.loads(path.read_text())
    wrong, count = {}, 0
    for name, tree in changed(about, every=61):
        if name.startswith(f"/{SEAL}"):
            continue
        if isinstance(tree, dict):
            with suppress(ValueError, TypeError):
                tree[SEAL] = seal_of(tree)
        path.write_text(json.dumps(tree), "utf-8", "surrogatepass")
        count += 1
        found = wrong_with(lambda: used(tmp_path / "ix"))
        if found is not None:
            wrong[name] = found
    assert count > 50
    assert wrong == {}


@pytest.mark.parametrize("text", ["", "null", "[" * 100_000, '{"a":' * 100_000, "9" * 9000, "\x00", "NaN"])
def test_manifests_that_are_none(
    good: Path, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(good / "ix", tmp_path / "ix")
    next((tmp_path / "ix").glob("gen-*/manifest.json")).write_text(text)
    assert wrong_with(lambda: Index.open(tmp_path / "ix")) is None
    assert main(["stats", "-i", str(tmp_path / "ix")]) in (1, 3, 4)
    assert "Traceback" not in capsys.readouterr().err


ROWS = {
    "settings": ("value", "name = 'chunk_tokens'"),
    "documents": ("metadata", "id = 'd1'"),
    "runs": ("report", "number = 1"),
    "sources": ("spec", "number = 1"),
}
TEXTS = ["", "[" * 9_999, "NaN", "null", "7", '"\\ud800"']


@pytest.mark.parametrize("table", ROWS)
def test_rows_of_tables(good: Path, tmp_path: Path, table: str) -> None:
    """Read by a build, by a merge, and by what looks at the tables."""
    column, which = ROWS[table]
    wrong = {}
    for number, text in enumerate(TEXTS):
        place = tmp_path / f"ix{number}"
        shutil.copytree(good / "ix", place)
        with closing(sqlite3.connect(place / "index.sqlite")) as db, db:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {which}", (text,))
        calls: dict[str, Callable[[], object]] = {
            "merge": lambda p=place: Index.merge([p], p.with_name(f"{p.name}-merged")),  # type: ignore[misc]
            "build": lambda p=place: Index.build(DOCUMENTS[:3], p),  # type: ignore[misc]
        }
        for name, call in calls.items():
            found = wrong_with(call)
            if found is not None:
                wrong[f"{name} with {text[:20]!r}"] = found
        shutil.rmtree(place)
    assert wrong == {}


def test_recordings(good: Path, tmp_path: Path) -> None:
    """A recording is a file that somebody else may have made."""
    lines = (good / "said.jsonl").read_text().splitlines()
    wrong, count = {}, 0
    said = tmp_path / "said.jsonl"
    for at in (0, 1):
        for name, tree in changed(json.loads(lines[at]), every=19):
            said.write_text(
                "\n".join([*lines[:at], json.dumps(tree), *lines[at + 1 :]]), "utf-8", "surrogatepass"
            )
            count += 1
            settings = Settings(threads=1, llm=f"replay:{said}", modes="ket")
            found = wrong_with(
                lambda s=settings, n=count: Index.build(DOCUMENTS, tmp_path / f"r{n}", settings=s)
            )  # type: ignore[misc]
            shutil.rmtree(tmp_path / f"r{count}", ignore_errors=True)
            if found is not None:
                wrong[f"line {at}: {name}"] = found
    for text in ("", "null", "[" * 100_000, "\x00", "9" * 9000, "NaN", "{}"):
        said.write_text(text)
        settings = Settings(threads=1, llm=f"replay:{said}", modes="ket")
        found = wrong_with(lambda s=settings: Index.build(DOCUMENTS, tmp_path / "r", settings=s))  # type: ignore[misc]
        shutil.rmtree(tmp_path / "r", ignore_errors=True)
        if found is not None:
            wrong[text[:10]] = found
    assert count > 3
    assert wrong == {}
