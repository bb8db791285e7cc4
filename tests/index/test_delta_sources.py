"""Files that change in a large index are published as a delta: headings, pages, metadata, languages."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.building import delta
from ketrag_fast.types.locations import Locator
from tests.support.histories import NAMES, answers, arrays_of, is_delta, text

SETTINGS = Settings(modes="bm25,walk", threads=2, chunk_tokens=40)
HEADS = ("Introduction", "Ships", "Ice", "Dogs", "Sources")
FOREIGN = (
    "Das Schiff fuhr nach Norden und kehrte im Winter nicht mehr nach Hause zurück. Die Häuser von Oslo.",
    "Корабль ушёл на север и не вернулся домой. Город Осло стоит на берегу моря.",
    "Le navire partit vers le nord et ne revint pas à la maison. La maison est à Oslo.",
)


def page(dice: random.Random, headings: bool = True) -> str:
    """Some sections of Markdown, at times with metadata, or in another language."""
    head = f"---\nyear: {dice.randint(1890, 1920)}\n---\n" if dice.random() < 0.5 else ""
    parts = []
    for _ in range(dice.randint(1, 3)):
        body = dice.choice(FOREIGN) if dice.random() < 0.25 else text(dice)
        name = dice.choice((*HEADS, f"Part {dice.randrange(50)}"))
        parts.append(f"# {name}\n\n{body}\n" if headings and dice.random() < 0.7 else f"{body}\n")
    return head + "\n".join(parts)


def compare(path: Path, fresh: Path) -> None:
    found, wanted = arrays_of(path), arrays_of(fresh)
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].tolist() == array.tolist(), name
    with Index.open(path) as one, Index.open(fresh) as other:
        assert answers(one, True) == answers(other, True)
        assert one.stats()["content_digest"] == other.stats()["content_digest"]


@pytest.mark.parametrize("seed", range(3))
def test_every_step_of_a_folder_is_a_build(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "LEAST", 0)
    monkeypatch.setattr(delta, "RECENT", 5)
    dice, folder, path = random.Random(seed), tmp_path / "pages", tmp_path / "index"
    folder.mkdir()
    for n in range(dice.randint(8, 20)):
        (folder / f"p{n:02}.md").write_text(page(dice), "utf-8")
    # The first and the last of each kind stay.
    (folder / "a.md").write_text(f"---\nyear: 1911\n---\n# First\n\n{FOREIGN[0]}\n", "utf-8")
    Index.build(folder, path, settings=SETTINGS).close()
    deltas = 0
    for step in range(7):
        files = sorted(folder.glob("p*.md"))
        changed = dice.sample(files, min(2, len(files)))
        for file in changed:
            file.write_text(page(dice), "utf-8")
        if dice.random() < 0.5:
            files[0].unlink()
        (folder / f"p{dice.randrange(99):02}.md").write_text(
            page(dice, headings=dice.random() < 0.5), "utf-8"
        )
        if dice.random() < 0.5:
            Index.build([], path).close()
        else:
            with Index.open(path) as index:
                index.update(add=[folder])
        deltas += is_delta(path)
        fresh = tmp_path / f"fresh{step}"
        Index.build(folder, fresh, settings=SETTINGS).close()
        compare(path, fresh)
        shutil.rmtree(fresh)
    assert deltas >= 3
    had_delta = is_delta(path)
    with Index.open(path) as index:
        before = index.stats()["content_digest"]
        assert index.update(fold=True).changed == had_delta
        assert index.stats()["content_digest"] == before
    Index.build(folder, tmp_path / "whole", settings=SETTINGS).close()
    with Index.open(path) as one, Index.open(tmp_path / "whole") as other:
        assert one.digest == other.digest and not is_delta(path)


def test_sections_and_pages_of_documents_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "LEAST", 0)

    def pages(name: str, count: int) -> Document:
        said = f"{name} has a page. " * 4
        marks = tuple(Locator(k * len(said), (k + 1) * len(said), "page", k + 1) for k in range(count))
        return Document(name, said * count, name.title(), {}, locators=marks)

    documents = [pages(f"d{n}", 3) for n in range(6)]
    path = tmp_path / "index"
    with Index.build(documents, path, settings=SETTINGS) as index:
        for step, changed in enumerate((pages("d3", 2), pages("d4", 3), Document("d5", "No page at all."))):
            index.update(add=[changed])
            documents = [changed if one.id == changed.id else one for one in documents]
            assert is_delta(path)
            Index.build(documents, tmp_path / f"w{step}", settings=SETTINGS).close()
            found, wanted = arrays_of(path), arrays_of(tmp_path / f"w{step}")
            assert found.keys() == wanted.keys()
            assert all(found[name].tolist() == wanted[name].tolist() for name in wanted)
        index.update(add=[pages("d2", 5)])  # two labels that no document had
        assert is_delta(path)
        # The labels are numbered by the first document: without it their order changes.
        index.update(add=[Document("d0", "Nothing.")])
    documents = [pages("d2", 5) if one.id == "d2" else one for one in documents]
    documents[0] = Document("d0", "Nothing.")
    Index.build(documents, tmp_path / "last", settings=SETTINGS).close()
    found, wanted = arrays_of(path), arrays_of(tmp_path / "last")
    assert all(found[name].tolist() == wanted[name].tolist() for name in wanted)


def test_the_commands_add_and_remove_write_deltas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "LEAST", 0)
    dice, folder, path = random.Random(7), tmp_path / "pages", tmp_path / "index"
    folder.mkdir()
    for n in range(12):
        (folder / f"p{n:02}.md").write_text(f"---\nyear: {1900 + n}\n---\n# {NAMES[n % 9]}\n\n{text(dice)}")
    at = ["-i", str(path)]
    assert main(["index", str(folder), *at, "--modes", "bm25,walk", "-o", "chunk_tokens=40"]) == 0
    (folder / "p03.md").write_text(f"---\nyear: 1903\n---\n# Maud\n\n{text(dice)}")
    assert main(["add", str(folder / "p03.md"), *at]) == 0
    assert is_delta(path)
    assert main(["remove", "p1*", *at]) == 0
    assert is_delta(path)
    assert main(["remove", "--filter", "year<1902", *at]) == 0
    assert is_delta(path)
    with Index.open(path) as index:
        index.update(fold=True)
        assert not is_delta(path)
        assert [one.document for one in index.inspect.documents()] == [f"p{n:02}.md" for n in range(2, 10)]
        assert not index.update(fold=True).changed
