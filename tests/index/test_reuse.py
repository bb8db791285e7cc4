"""A change takes over what the index has of documents that stay: the bytes are those of a build anew."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings, _core
from ketrag_fast.types.locations import Locator
from tests import small_model
from tests.support import histories

NAMES = (*histories.NAMES, "Of The", "Mount Erebus", "A. Born", "日本")
WORDS = (*histories.WORDS, *(f"w{n}" for n in range(9)))


def sentence(dice: random.Random) -> str:
    words = [dice.choice(NAMES if dice.random() < 0.3 else WORDS) for _ in range(dice.randint(2, 12))]
    return " ".join(words) + dice.choice((".", "!", ". ", ";\n", ".\n\n"))


def document(dice: random.Random, name: str) -> Document:
    """With a title or without, with metadata or without; a long one may have headings and pages."""
    parts = [
        " ".join(sentence(dice) for _ in range(dice.randint(1, 6))) for _ in range(dice.choice((1, 1, 4, 9)))
    ]
    text = "\n\n".join(parts)
    title = dice.choice(("", dice.choice(NAMES), f"{dice.choice(NAMES)} ({dice.choice(WORDS)})"))
    metadata = {"year": dice.randint(1890, 1920)} if dice.random() < 0.4 else {}
    locators: list[Locator] = []
    if dice.random() < 0.4:
        starts = sorted(dice.sample(range(len(text) - 2), min(3, len(text) - 2)))
        ends = [*starts[1:], len(text)]
        kind = dice.choice(("heading", "page"))
        for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
            value = [dice.choice(NAMES)] if kind == "heading" else at + 1
            locators.append(Locator(start, end, kind, value))
    return Document(name, text, title, metadata, tuple(locators))


def anew(index: Index, place: Path) -> str:
    """The digest of the same documents and vectors with every stage run."""
    shutil.copytree(index.path, place)
    with Index.build([], place, rebuild=True) as other:
        return other.digest


MODEL = "small model"


@pytest.mark.parametrize(
    ("settings", "seed"),
    [
        (Settings(), 1),
        (Settings(modes="bm25,walk", chunk_tokens=40), 2),
        (Settings(system="ket-rag", chunk_tokens=60), 3),
        (Settings(modes="all", llm="heuristic", cut="windows", chunk_tokens=30, overlap=7), 4),
        (Settings(modes="keyword,walk,text", embedder=MODEL), 5),
        (Settings(modes="keyword", embedder=MODEL, system="ket-rag", chunk_tokens=60), 6),
    ],
    ids=["default", "walk", "split", "windows", "model", "split by a model"],
)
def test_histories(settings: Settings, seed: int, tmp_path: Path) -> None:
    if settings.embedder == MODEL:
        model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
        settings = settings.having(embedder=f"native:{model}")
    dice = random.Random(seed)
    there = {f"d{n}": document(dice, f"d{n}") for n in range(24)}
    with Index.build(there.values(), tmp_path / "ix", settings=settings) as index:
        for step in range(5):
            gone = dice.sample(sorted(there), dice.choice((0, 1, 3)))
            new = {}
            for _ in range(dice.choice((0, 1, 1, 4))):
                name = dice.choice(sorted(there)) if dice.random() < 0.5 else f"n{step}{dice.random()}"
                new[name] = document(dice, name)
            gone = [name for name in gone if name not in new]
            index.update(add=list(new.values()), remove=gone)
            there = {name: one for name, one in (there | new).items() if name not in gone}
            assert index.digest == anew(index, tmp_path / f"anew-{step}")
        if settings.embedder == Settings().embedder:
            with Index.build(there.values(), tmp_path / "fresh", settings=settings) as fresh:
                assert fresh.digest == index.digest


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """How many documents a kernel gets, at each of its calls: a number, or a pair with their texts."""
    real, seen = getattr(_core, name), []

    def call(*args: object, **options: object) -> object:
        given = args[1]
        seen.append(given if isinstance(given, int) else len(given[1]) - 1)  # type: ignore[index]
        return real(*args, **options)

    monkeypatch.setattr(_core, name, call)
    return seen


def some(count: int) -> list[Document]:
    dice = random.Random(count)
    return [document(dice, f"d{n}") for n in range(count)]


def test_only_what_is_new_is_cut_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Index.build(some(20), tmp_path / "ix", settings=Settings(modes="auto,text")) as index:
        cut, read = counted(monkeypatch, "cut_units"), counted(monkeypatch, "vocabulary")
        index.update(add=[Document("new", "Of the Fram at Oslo.")], remove="d3")
        index.update(remove="d4")
    assert cut == read == [1, 0]


def test_documents_in_another_order(tmp_path: Path) -> None:
    there = some(12)
    with Index.build(there, tmp_path / "ix") as index:
        mixed = random.Random(2).sample(there, len(there))
        with Index.build(mixed, tmp_path / "ix", replace=True) as other:
            assert other.digest == anew(other, tmp_path / "anew") != index.digest


def test_what_is_damaged_is_not_taken_over(tmp_path: Path) -> None:
    there = some(12)
    with Index.build(there, tmp_path / "ix") as index:
        wanted = index.digest
    for file in (tmp_path / "ix").glob("generations/*/units/unit_texts_blob.npy"):
        data = bytearray(file.read_bytes())
        data[-3] ^= 1
        file.chmod(0o600)
        file.write_bytes(data)
    with Index.build([Document("new", "Of the Fram at Oslo.")], tmp_path / "ix") as index:
        assert index.digest == anew(index, tmp_path / "anew")
        index.update(remove="new")
        assert index.digest == wanted


def test_other_settings_take_nothing_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = some(12)
    with Index.build(there, tmp_path / "ix", settings=Settings(modes="auto,text")) as index:
        read = counted(monkeypatch, "vocabulary")
        settings = Settings(language="none")
        with Index.build([Document("new", "Of the Fram.")], tmp_path / "ix", settings=settings) as other:
            assert other.digest == anew(other, tmp_path / "anew") != index.digest
    assert read[0] > 12
