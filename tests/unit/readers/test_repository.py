"""Repositories: text files are source as it is written, and Git decides what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast.readers import SourceFile, find, items_of, known_kind
from ketrag_fast.readers.ignored import leaves_out
from ketrag_fast.types import Document
from tests.support.reading import read_all

PAGE = "<!doctype html>\n<html><body>\n<p class='lead'>Larvik</p>\n</body></html>\n"
FILES = {
    "page.html": PAGE,
    "style.css": ".save-row { gap: 1rem; }\n",
    "data.json": '{"a": {"b": 14.30}}\n',
    "table.csv": "ship;year\nFram;1892\n",
    "notes.xml": "<a><b>c</b></a>\n",
    "Makefile": "all:\n\tcc main.c\n",
    "deploy": "#!/bin/sh\necho deploy\n",
    "settings.yml": "a:\n  - b\n",
    "guide.md": "---\ntitle: Guide\n---\n\n# Guide\n",
    "icon.svg": "<svg><path d='M0 0'/></svg>\n",
}


def repository(folder: Path, *, git: bool = True) -> Path:
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    if git:
        (folder / ".git").mkdir()
    return folder


def texts(folder: Path) -> dict[str, str]:
    found = {}
    for name, path in find(str(folder)).files:
        file = SourceFile(path, name)
        kind = known_kind(file)
        if kind is not None:
            found |= {item.id: item.text for item in items_of(file, kind) if isinstance(item, Document)}
    return found


def test_every_text_file_of_a_repository_is_read_as_it_is_written(tmp_path: Path) -> None:
    assert texts(repository(tmp_path)) == FILES


def test_elsewhere_pages_and_tables_are_read_by_their_readers(tmp_path: Path) -> None:
    found = texts(repository(tmp_path, git=False))
    assert found["page.html"] != PAGE and "style.css" not in found and "table.csv#2" in found


@pytest.mark.parametrize("mark", ["{% extends 'base.html' %}", "<?php echo 1 ?>", "<%= name %>"])
def test_a_template_is_source_everywhere(tmp_path: Path, mark: str) -> None:
    page = PAGE.replace("Larvik", mark)
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    assert texts(tmp_path) == {"page.html": page}


def test_a_file_that_is_the_source_itself_has_its_own_format(tmp_path: Path) -> None:
    path = repository(tmp_path) / "page.html"
    assert known_kind(SourceFile(path, "page.html", alone=True)) == "html"
    assert known_kind(SourceFile(path, "page.html")) == "source"


def test_a_worktree_and_its_folders_are_a_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n", encoding="utf-8")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "page.html").write_text(PAGE, encoding="utf-8")
    assert texts(tmp_path / "a") == {"page.html": PAGE}


@pytest.mark.parametrize("name", ["key.pem", "bundle.js.map", "poetry.lock", "a.min.css"])
def test_keys_and_generated_files_are_left_out(tmp_path: Path, name: str) -> None:
    from ketrag_fast.readers.ignored import reason

    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text("text\n", encoding="utf-8")
    file = SourceFile(tmp_path / name, name)
    kind = known_kind(file)
    assert kind is None or reason(file, kind) is not None


def test_a_pointer_of_large_file_storage_is_reported() -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    assert read_all("big.pdf", pointer)[1] == [
        "a Git LFS pointer, not the file itself; `git lfs pull` fetches the file"
    ]


def make(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def names(folder: Path) -> list[str]:
    return [name for name, _ in find(str(folder)).files]


def test_ignore_files_above_the_source_hold(tmp_path: Path) -> None:
    make(tmp_path, a__b__keep="x", a__b__out="x", a__b__local="x", a__b__deep__out="x", out="x")
    git = tmp_path / ".git" / "info"
    git.mkdir(parents=True)
    (git / "exclude").write_text("local\n", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("/a/b/out\n", encoding="utf-8")
    (tmp_path / "a" / ".gitignore").write_text("deep/\n", encoding="utf-8")
    assert names(tmp_path / "a" / "b") == ["keep"]
    assert names(tmp_path) == ["a/b/keep", "out"]
    assert find(str(tmp_path / "a" / "b"), gitignore=False).files[0][0] == "deep/out"
    assert leaves_out(tmp_path / "a" / "b", tmp_path / "a" / "b" / "out", None, gitignore=True)
    assert not leaves_out(tmp_path / "a" / "b", tmp_path / "a" / "b" / "keep", None, gitignore=True)
    (tmp_path / "a" / "b" / ".gitignore").write_text("!out\n", encoding="utf-8")
    assert names(tmp_path / "a" / "b") == ["keep", "out"]


def test_an_ignored_folder_that_is_the_source_is_read(tmp_path: Path) -> None:
    make(tmp_path, build__page="x", build__log__b="x")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n", encoding="utf-8")
    assert names(tmp_path) == []
    assert names(tmp_path / "build") == ["log/b", "page"]
    assert names(tmp_path / "build" / "log") == ["b"]


def test_the_excluded_files_of_a_worktree_are_those_of_its_repository(tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    make(main / ".git", worktrees__t__commondir="../..\n", info__exclude="secret\n")
    make(tree, secret="x", other="x")
    (tree / ".git").write_text(f"gitdir: {main / '.git' / 'worktrees' / 't'}\n", encoding="utf-8")
    assert names(tree) == ["other"]


def test_encoded_mail_and_rtf_of_a_repository_are_read_as_mail_and_rtf(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    head = "From: a@b.example\nTo: c@d.example\nSubject: Seals\nMIME-Version: 1.0\n"
    plain = f"{head}Content-Type: text/plain\n\nTen, please.\n"
    encoded = f"{head}Content-Transfer-Encoding: quoted-printable\n\nZehn St=C3=BCck, bitte.\n"
    (tmp_path / "plain.eml").write_text(plain)
    (tmp_path / "encoded.eml").write_text(encoded)
    (tmp_path / "page.rtf").write_text(r"{\rtf1 Ten \b seals\b0 .}")
    assert texts(tmp_path) == {
        "encoded.eml": "Zehn Stück, bitte.",
        "page.rtf": "Ten seals.",
        "plain.eml": plain,
    }
