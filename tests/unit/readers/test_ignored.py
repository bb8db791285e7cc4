"""Files that `exclude` and `.gitignore` leave out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import Cancelled, ConfigError, DocumentError, KetragError
from ketrag_fast.readers import find
from ketrag_fast.readers.ignored import leaves_out

FILES = ("a.md", "b.log", "sub/a.md", "sub/keep.log", "sub/deep/c.txt", "build/x.md", "build/y/z.md")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    base = tmp_path / "in"
    for name in FILES:
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"The text of {name} is about ships.")
    return base


def names(folder: Path, **options: object) -> list[str]:
    return [name for name, _ in find(str(folder), **options).files]  # type: ignore[arg-type]


def test_exclude(folder: Path) -> None:
    assert names(folder) == sorted(FILES)
    assert names(folder, exclude="*.log, build/") == ["a.md", "sub/a.md", "sub/deep/c.txt"]
    assert names(folder, exclude="/a.md,!x,sub/**/c.txt") == [
        *("b.log", "build/x.md", "build/y/z.md", "sub/a.md", "sub/keep.log")
    ]
    assert [one.document for one in find(str(folder), exclude="build").left_out] == ["build"]
    assert names(folder / "**", exclude="*.md") == ["b.log", "sub/deep/c.txt", "sub/keep.log"]


def test_gitignore_files_in_folders(folder: Path) -> None:
    (folder / ".gitignore").write_bytes(b"# comment\n*.log\n/build\n\xff\n!\n")
    (folder / "sub" / ".gitignore").write_text("!keep.log\ndeep/\n")
    assert names(folder) == ["a.md", "sub/a.md", "sub/keep.log"]
    assert names(folder, gitignore=False) == sorted(FILES)


def test_everything_is_ignored(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "ix"
    Index.build(folder, place).close()
    (folder / ".gitignore").write_text("*\n")
    with pytest.raises(DocumentError, match="every file is left out by") as caught:
        Index.build(folder, place)
    assert "gitignore=false" in (caught.value.hint or "")
    with Index.open(place) as index:
        assert index.stats()["counts"]["documents"] == len(FILES)  # nothing was changed
    with Index.build(folder, place, settings=Settings(gitignore=False)) as index:
        assert index.stats()["counts"]["documents"] == len(FILES)
    assert main(["index", str(folder), "-i", str(place), "-o", "gitignore=false", "--exclude", "*.log"]) == 0
    with Index.open(place) as index:
        assert index.stats()["counts"]["documents"] == len(FILES) - 2
    assert main(["index", "-i", str(place)]) == 0  # the index remembers both settings
    with Index.open(place) as index:
        assert index.stats()["counts"]["documents"] == len(FILES) - 2


def test_a_first_build_of_nothing_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    """The error names what was left out, and by what; the next command finds the disk as it was."""
    (folder / ".gitignore").write_text("*\n")
    place = tmp_path / "new" / "ix"
    with pytest.raises(
        DocumentError, match=r"left out by a \.gitignore: a\.md, b\.log, build/x\.md and 4 more$"
    ):
        Index.build(folder, place)
    assert not (tmp_path / "new").exists()
    place.mkdir(parents=True)
    with pytest.raises(DocumentError, match=r"left out by exclude or a \.gitignore: ") as caught:
        Index.build(folder, place, settings=Settings(exclude="*.log"))
    assert "--exclude" in (caught.value.hint or "") and "gitignore=false" in (caught.value.hint or "")
    with pytest.raises(DocumentError, match=r"left out by exclude: a\.md, build/x\.md, sub/a\.md$") as caught:
        Index.build(str(folder / "**" / "[ax].md"), place, settings=Settings(exclude="*.md"))
    assert "gitignore" not in (caught.value.hint or "")
    with pytest.raises(DocumentError, match="no such file or folder"):
        Index.build(tmp_path / "absent", place)
    assert list(place.iterdir()) == []


def test_a_build_that_stored_documents_keeps_its_folder(folder: Path, tmp_path: Path) -> None:
    """A build that goes on need not read again. With a missing model nothing is read or stored."""
    with pytest.raises(KetragError):
        Index.build(folder, tmp_path / "ix", settings=Settings(embedder="native:/nowhere", modes="knn"))
    assert not (tmp_path / "ix").exists()

    def stop(_: object) -> bool:
        return False

    with pytest.raises(Cancelled):
        Index.build(folder, tmp_path / "stopped", progress=stop)
    assert (tmp_path / "stopped" / "index.sqlite").is_file()


def test_a_bad_pattern(folder: Path) -> None:
    with pytest.raises(ConfigError, match="exclude: '!' is not a pattern"):
        find(str(folder), exclude="a.md,!")


@pytest.mark.parametrize("exclude", [None, "*.md", "build/,sub/deep"])
def test_a_path_is_left_out_as_in_a_walk(folder: Path, exclude: str | None) -> None:
    (folder / ".gitignore").write_text("*.log\nbuild/y/\n")
    (folder / "sub" / ".gitignore").write_text("!keep.log\n")
    for gitignore in (True, False):
        kept = names(folder, exclude=exclude, gitignore=gitignore)
        left = [one for one in FILES if not leaves_out(folder, folder / one, exclude, gitignore=gitignore)]
        assert sorted(left) == sorted(kept)


def test_what_decides_about_others_is_not_left_out(folder: Path) -> None:
    assert not leaves_out(folder, folder / "sub" / ".gitignore", None, gitignore=True)
    assert leaves_out(folder, folder / "sub" / ".gitignore", None, gitignore=False)
    assert leaves_out(folder, folder / ".git" / "index", None, gitignore=True)
    assert not leaves_out(folder, folder.parent / "x.md", "*.md", gitignore=True)
    assert not leaves_out(folder, folder / "gone" / "x.md", None, gitignore=True)


def test_read_leaves_files_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".gitignore").write_text("*.log\n")
    assert main(["read", str(folder), "--exclude", "build/,deep"]) == 0
    shown = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("== ")]
    assert shown == ["a.md", "sub/a.md"]
    assert main(["read", str(folder), "--gitignore", "false", "--exclude", "*.md"]) == 0
    shown = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("== ")]
    assert shown == ["b.log", "sub/deep/c.txt", "sub/keep.log"]
