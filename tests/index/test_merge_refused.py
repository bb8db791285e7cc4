"""Indexes that cannot be merged, or whose documents contradict each other."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import (
    ConfigError,
    DocumentError,
    IndexDamaged,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    KetragError,
    ModelMismatch,
    ReadOnly,
)
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from tests import small_model
from tests.support.merging import build, document


def test_one_id_for_two_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = [document(f"d{number}") for number in range(5)]
    a = [*same, document("x", "old"), document("y", "old")]
    b = [*same, document("x", "new"), document("y", "new"), document("z")]
    build(tmp_path / "a", a)
    build(tmp_path / "b", b)
    places = [str(tmp_path / "a"), str(tmp_path / "b")]
    with pytest.raises(
        DocumentError, match=r"2 ids with different documents in these indexes: 'x' .*/a, .*/b.*'y'"
    ):
        Index.merge(places, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    for prefer, own in (("first", a), ("last", b)):
        assert main(["merge", *places, "-i", str(tmp_path / prefer), "--prefer", prefer]) == 0
        ids = {one.id: one for one in (*a, *b, *own)}
        wanted = build(tmp_path / f"w{prefer}", [ids[name] for name in sorted(ids)])
        with Index.open(tmp_path / prefer) as merged:
            assert merged.digest == wanted
    capsys.readouterr()
    assert main(["merge", *places, "-i", str(tmp_path / "n")]) == 1
    assert "--prefer first" in capsys.readouterr().err


def test_the_same_document_from_two_sources_is_one(tmp_path: Path) -> None:
    for name in ("north", "south"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "both.md").write_text("Nansen met Amundsen.", "utf-8")
        (tmp_path / name / f"{name}.md").write_text(document(name).text, "utf-8")
        build(tmp_path / f"ix-{name}", tmp_path / name)
    with Index.merge([tmp_path / "ix-south", tmp_path / "ix-north"], tmp_path / "m") as merged:
        assert [one.document for one in merged.inspect.documents()] == ["both.md", "north.md", "south.md"]
        (tmp_path / "south" / "both.md").unlink()  # else a build has it under two ids
        assert merged.digest == build(tmp_path / "whole", [tmp_path / "north", tmp_path / "south"])
        assert merged.inspect.files(["both.md"]) == {"both.md": tmp_path / "north" / "both.md"}


def test_what_does_not_go_together(tmp_path: Path) -> None:
    documents = [document(f"d{number}") for number in range(6)]
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    other = small_model.save(tmp_path / "other", small_model.config(max_position_embeddings=66), seed=9)
    plain, cut = tmp_path / "plain", tmp_path / "cut"
    build(plain, documents[:3])
    build(cut, documents[3:], Settings(chunk_tokens=50, core_ratio=0.5))
    build(tmp_path / "one", documents[:3], Settings(embedder=f"native:{model}"))
    build(tmp_path / "two", documents[3:], Settings(embedder=f"native:{other}"))
    build(tmp_path / "rules", documents[3:], Settings(llm="heuristic"))
    cases: list[tuple[str, str, type[KetragError], str]] = [
        ("plain", "cut", ConfigError, "chunk_tokens is 200 in .*plain and 50 in .*cut; core_ratio is 0.8"),
        ("plain", "one", ModelMismatch, "vectors of builtin"),
        ("one", "two", ModelMismatch, "fingerprint"),
        ("plain", "rules", ConfigError, "llm is 'none' in .*plain and 'heuristic'"),
        ("plain", "plain", ConfigError, "given twice"),
        ("plain", "nothing", IndexMissing, "no index in"),
    ]
    for a, b, error, text in cases:
        with pytest.raises(error, match=text):
            Index.merge([tmp_path / a, tmp_path / b], tmp_path / "m")
        assert not (tmp_path / "m").exists()
    with pytest.raises(ReadOnly, match="already exists"):
        Index.merge([plain], cut)
    with pytest.raises(ReadOnly, match="already exists"):
        Index.merge([plain], plain)
    with pytest.raises(ConfigError, match="no index given"):
        Index.merge([], tmp_path / "m")


def test_parts_that_are_not_whole(tmp_path: Path) -> None:
    documents = [document(f"d{number}") for number in range(6)]
    whole = tmp_path / "whole"
    build(whole, documents[:3])

    def spoiled(name: str, spoil: Callable[[Path], None]) -> Path:
        place = tmp_path / name
        build(place, documents[3:])
        spoil(place)
        return place

    def sql(statement: str) -> Callable[[Path], None]:
        def run(place: Path) -> None:
            with sqlite3.connect(place / "index.sqlite") as db:
                db.execute(statement)
            db.close()

        return run

    cases: list[tuple[Path, type[KetragError], str]] = [
        (spoiled("t", lambda p: (p / "index.sqlite").unlink()), IndexDamaged, "is missing"),
        (spoiled("g", lambda p: shutil.rmtree(p / "gen-000001")), IndexMissing, "never finished"),
        (spoiled("d", sql("DELETE FROM documents WHERE id = 'd4'")), IndexMissing, "was not finished"),
        (
            spoiled("v", sql("INSERT INTO texts SELECT key, 'altered' FROM documents WHERE id = 'd4'")),
            IndexDamaged,
            "'d4'",
        ),
        (spoiled("f", sql("PRAGMA user_version = 99")), IndexIncompatible, "format 99"),
        (spoiled("s", lambda p: (p / "index.sqlite").write_bytes(b"x" * 9000)), IndexDamaged, "damaged"),
    ]
    for place, error, text in cases:
        with pytest.raises(error, match=text) as refused:
            Index.merge([whole, place], tmp_path / "m")
        assert refused.value.hint and not (tmp_path / "m").exists()


def test_a_part_that_is_being_built_is_not_read(tmp_path: Path) -> None:
    build(tmp_path / "a", [document("a")])
    build(tmp_path / "b", [document("b")])
    with builder_lock(Layout(tmp_path / "b")), pytest.raises(IndexLocked):
        Index.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "m")
    assert not (tmp_path / "m").exists()
