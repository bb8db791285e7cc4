"""Several indexes opened as one answer like one index of all their documents, to the byte."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import (
    ConfigError,
    DeadlineExceeded,
    DocumentError,
    IndexDamaged,
    IndexIncompatible,
    IndexMissing,
    InputError,
)
from ketrag_fast.index import state
from ketrag_fast.query.open_generation import load
from ketrag_fast.storage.layout import Layout
from tests import small_model
from tests.support.merging import build, document, split

QUESTIONS = ("Who met Nansen by the river?", "Frank Wild and Tom Crean in winter", "harbour library D3")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ketrag-fast" / "joined"


def mentioning(name: str, dice: random.Random) -> Document:
    """A document whose text names the titles of others, which may be in other parts."""
    plain = document(name)
    others = " ".join(f"It tells of D{dice.randrange(20)} and D{dice.randrange(20)}." for _ in range(2))
    return Document(name, f"{plain.text} {others}", plain.title, plain.metadata)


def answers(index: Index, modes: Sequence[str], **more: Any) -> list[Any]:
    found = []
    for mode in modes:
        for question in QUESTIONS:
            data = index.retrieve(question, mode=mode, explain=mode == "walk", **more).to_json()
            found.append({key: data[key] for key in data if key not in ("timings_ms", "generation")})
    return found


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_random_splits_answer_like_one_index(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    documents = [mentioning(f"d{number}", dice) for number in range(dice.randint(6, 25))]
    modes = ["bm25", "walk", "text", "fused"]
    settings = Settings(chunk_tokens=40, modes=",".join(modes))
    if seed == 5:
        model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
        settings = settings.having(embedder=f"native:{model}")
    parts = split(documents, dice.randint(2, 5), dice)
    for own in parts:
        own += [one for one in dice.sample(documents, k=2) if one not in own]
    paths = [tmp_path / f"p{number}" for number in range(len(parts))]
    for path, own in zip(paths, parts, strict=True):
        build(path, own, settings)
    build(tmp_path / "whole", sorted(documents, key=lambda one: one.id), settings)
    with Index.open(dice.sample(paths, k=len(paths))) as several, Index.open(tmp_path / "whole") as whole:
        assert several.digest == whole.digest
        for more in ({}, {"filter": "year>=1920"}, {"allow": "year>=1915"}, {"budget": 90}):
            assert answers(several, modes, **more) == answers(whole, modes, **more)


def test_a_part_that_changes_is_seen_after_a_refresh(tmp_path: Path, cache: Path) -> None:
    documents = [document(f"d{number}") for number in range(9)]
    build(tmp_path / "a", documents[:5])
    build(tmp_path / "b", documents[5:])
    with Index.open([tmp_path / "a", tmp_path / "b"]) as several:
        assert len(list(cache.glob("*/CURRENT"))) == 1
        with Index.open([tmp_path / "b", tmp_path / "a"]) as again:  # the folder is shared
            assert again.path == several.path
            assert not again.refresh()
        before = several.generation
        with Index.open(tmp_path / "a") as part:
            part.update(remove="d0")
        assert list(cache.glob("*/CURRENT")) == []  # nothing of what was removed stays
        assert several.retrieve(QUESTIONS[0]).passages  # an open index stays usable
        assert several.refresh() and several.generation > before
        with Index.build(documents[1:], tmp_path / "whole") as whole:
            assert answers(several, ["bm25", "walk"]) == answers(whole, ["bm25", "walk"])
        assert several.inspect.document_count == 8
        with pytest.raises(InputError, match="several indexes"):
            several.update(remove="d1")


def test_purged_documents_leave_joined_indexes(tmp_path: Path, cache: Path) -> None:
    build(tmp_path / "a", [document("d0"), Document("secret", "Zanzibar Quibble is here.")])
    build(tmp_path / "b", [document("d1")])
    Index.open([tmp_path / "a", tmp_path / "b"]).close()
    with Index.open(tmp_path / "a") as part:
        part.update(remove="secret", purge=True)
    assert list(cache.glob("*/*")) == []
    assert not Layout(tmp_path / "a").joined.exists()


def test_a_note_never_removes_another_folder(tmp_path: Path, cache: Path) -> None:
    """A note may come with an index of somebody else."""
    build(tmp_path / "a", [document("d0")])
    victim = tmp_path / "victim"
    build(victim, [document("d1")])
    notes = Layout(tmp_path / "a").joined
    notes.mkdir()
    for name, text in (("victim", json.dumps({"folder": str(victim)})), ("x", "{"), ("y", '{"folder": 3}')):
        (notes / f"{name}.json").write_text(text)
    with Index.open(tmp_path / "a") as index:
        index.update(remove="d0", purge=True)
    with Index.open(victim) as index:
        assert index.inspect.document_count == 1
    assert not notes.exists()


def test_a_missing_part_is_an_error_or_is_named(tmp_path: Path) -> None:
    build(tmp_path / "a", [document("d0"), document("d1")])
    build(tmp_path / "b", [document("d2")])
    paths = [tmp_path / "a", tmp_path / "gone", tmp_path / "b"]
    with pytest.raises(IndexMissing, match="gone"):
        Index.open(paths)
    with Index.open(paths, settings=Settings(missing="skip")) as several:
        assert several.inspect.document_count == 3
        for mode in ("bm25", "walk"):
            warnings = several.retrieve(QUESTIONS[0], mode=mode).warnings
            assert any("gone is missing" in warning for warning in warnings), warnings
        assert any("gone" in w for w in several.retrieve(QUESTIONS[0], allow="year>=1900").warnings)
        build(tmp_path / "gone", [document("d3")])
        assert several.refresh()
        assert several.inspect.document_count == 4
        assert not several.retrieve(QUESTIONS[0], mode="bm25").warnings
    with pytest.raises(IndexMissing):
        Index.open([tmp_path / "no", tmp_path / "nor"], settings=Settings(missing="skip"))
    current = Layout(tmp_path / "b").generation(1) / "manifest.json"
    current.write_bytes(b"{" + current.read_bytes())
    with pytest.raises(IndexDamaged):
        Index.open(paths)


def test_parts_that_do_not_fit(tmp_path: Path) -> None:
    one, other = document("d0"), document("d0", "else")
    build(tmp_path / "a", [one])
    build(tmp_path / "b", [other])
    build(tmp_path / "c", [document("d1")], Settings(chunk_tokens=30))
    build(tmp_path / "d", [document("d2")])
    with pytest.raises(DocumentError, match="d0"):
        Index.open([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(ConfigError, match="chunk_tokens"):
        Index.open([tmp_path / "a", tmp_path / "c"], settings=Settings(missing="skip"))
    with pytest.raises(ConfigError, match="twice"):
        Index.open([tmp_path / "a", tmp_path / "a" / ".." / "a"])
    with pytest.raises(ConfigError, match="no index"):
        Index.open([])
    with pytest.raises(DeadlineExceeded):
        Index.open([tmp_path / "a", tmp_path / "d"], deadline=0)
    manifest = Layout(tmp_path / "d").generation(1) / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"format": 5', b'"format": 3'))
    with pytest.raises(IndexIncompatible):
        Index.open([tmp_path / "a", tmp_path / "d"], settings=Settings(missing="skip"))


def test_a_joined_index_that_is_removed_or_damaged_is_merged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removed between the look and the opening by a part that changes, or damaged on the disk."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for number, path in enumerate(paths):
        build(path, [document(f"d{number}")])
    with Index.open(paths) as several:
        wanted, folder = several.digest, several.path
    current = Layout(folder).generation(1) / "manifest.json"
    current.write_bytes(b"{" + current.read_bytes())
    with Index.open(paths) as several:
        assert several.digest == wanted
    once = iter([True])

    def removing(place: Path, *rest: Any) -> Any:
        if next(once, False):
            shutil.rmtree(folder)
        return load(place, *rest)

    monkeypatch.setattr(state, "load", removing)
    with Index.open(paths) as several:
        assert several.digest == wanted


def test_clocks_that_differ(tmp_path: Path, cache: Path) -> None:
    """The index just opened is kept, even if another machine's clock dates its folders later."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for number, path in enumerate(paths):
        build(path, [document(f"d{number}"), document(f"e{number}")])
    later = time.time() + 86_400
    for number in range(6):
        other = cache / f"{number:032}"
        other.mkdir(parents=True)
        os.utime(other, (later, later))
    with Index.open(paths) as several:
        assert several.path.is_dir() and len([one for one in cache.iterdir() if one.is_dir()]) == 4
        for stamp in (later, later - 1e6, 0.0):  # the clock of the writer jumps
            with Index.open(paths[0]) as part:
                part.update(add=[document("e0", str(stamp))])
                manifest = part.path / "CURRENT"
                os.utime(manifest, (stamp, stamp))
                with Index.build(
                    [document("d0"), document("e0", str(stamp))], tmp_path / f"w{stamp}"
                ) as wanted:
                    assert part.digest == wanted.digest
            assert several.refresh() and several.inspect.document_count == 4
            assert not several.refresh()
    whole = tmp_path / "whole"
    build(whole, [document(f"d{number}") for number in range(9)])
    with Index.open(whole) as index:
        for number in range(33):
            other = Layout(whole).allowed / f"{index.generation:06}-{number:032}"
            other.mkdir(parents=True)
            os.utime(other, (later, later))
        with index.allowed("year>=1900") as part:
            assert part.inspect.document_count == 9
            assert len([one for one in Layout(whole).allowed.iterdir() if one.is_dir()]) == 32
            part.refresh()
            assert part.retrieve(QUESTIONS[0], mode="bm25").passages


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = [document(f"d{number}") for number in range(6)]
    build(tmp_path / "a", documents[:3])
    build(tmp_path / "b", documents[3:])
    build(tmp_path / "whole", documents)
    found = []
    for name in (f"{tmp_path / 'a'},{tmp_path / 'b'}", str(tmp_path / "whole")):
        assert main(["retrieve", QUESTIONS[0], "-i", name, "--mode", "walk", "--explain"]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1]
    skipping = ["retrieve", QUESTIONS[0], "-i", f"{tmp_path / 'a'},{tmp_path / 'no'}", "-o", "missing=skip"]
    assert main([*skipping, "--json"]) == 0
    assert "is missing" in json.loads(capsys.readouterr().out)["warnings"][0]
