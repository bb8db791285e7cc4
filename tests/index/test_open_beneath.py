"""Files of a source are opened without following links out of it, also while somebody swaps them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Index
from ketrag_fast.base import open_beneath
from ketrag_fast.base.open_beneath import open_regular
from ketrag_fast.readers import SourceFile, find
from ketrag_fast.readers.pdf.pages import open_document
from ketrag_fast.storage.known_files import NO_DIGEST, digests_of

SECRET = b"the password of the vault is swordfish"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_bytes(SECRET)
    folder = tmp_path / "source"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.md").write_text("public")
    return folder


def read(path: Path, root: Path | None) -> bytes:
    with open_regular(path, root) as file:
        return file.read()


@pytest.fixture(params=[True, False])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without files that are opened relative to their folder, as on Windows."""
    monkeypatch.setattr(open_beneath, "HAS_OPENAT", request.param)


@pytest.mark.usefixtures("either_way")
def test_links_inside_are_followed_and_links_outside_are_not(source: Path, tmp_path: Path) -> None:
    (source / "inner").symlink_to("sub")
    (source / "far.md").symlink_to(source / "sub" / "a.md")
    (source / "out.md").symlink_to(tmp_path / "outside" / "a.md")
    (source / "outer").symlink_to("../outside")
    (source / "round").symlink_to("round")
    for inside in ("sub/a.md", "inner/a.md", "far.md"):
        assert read(source / inside, source) == b"public"
    for outside in ("out.md", "outer/a.md", "sub/../outer/a.md", "round", "../outside/a.md"):
        with pytest.raises(OSError, match=r"link|Too many levels"):
            read(source / outside, source)
    assert read(source / "out.md", None) == SECRET, "without a folder, links are followed"
    (tmp_path / "alias").symlink_to(source)
    assert read(tmp_path / "alias" / "sub" / "a.md", tmp_path / "alias") == b"public"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.usefixtures("either_way")
def test_pipes_and_folders_are_refused_at_once(source: Path) -> None:
    os.mkfifo(source / "pipe")
    for name in ("pipe", "sub"):
        for root in (None, source):
            with pytest.raises(OSError, match=r"regular|directory"):
                read(source / name, root)
    os.mkfifo(source / ".gitignore")
    assert [name for name, _ in find(str(source)).files] == ["sub/a.md"]


@pytest.mark.parametrize("root", [True, False])
def test_hashes_are_taken_of_files_inside_only(source: Path, tmp_path: Path, root: bool) -> None:
    (source / "far.md").symlink_to("sub/a.md")
    (source / "out.md").symlink_to(tmp_path / "outside" / "a.md")
    paths = [str(source / name) for name in ("sub/a.md", "far.md", "out.md", "sub", "gone.md")]
    one, far, out, *others = digests_of(paths, source if root else None)
    assert one == far != NO_DIGEST and others == [NO_DIGEST, NO_DIGEST]
    assert (out == NO_DIGEST) == root


@pytest.mark.parametrize("follow", [False, True])
def test_ignore_files_are_read_if_they_are_inside(source: Path, tmp_path: Path, follow: bool) -> None:
    (tmp_path / "outside" / "patterns").write_text("b.md\n")
    (source / "patterns").write_text("c.md\n")
    for name in ("b.md", "c.md"):
        (source / "sub" / name).write_text("public")
    (source / ".gitignore").symlink_to(tmp_path / "outside" / "patterns")
    (source / "sub" / ".gitignore").symlink_to("../patterns")
    names = {name for name, _ in find(str(source), follow=follow).files}
    assert names == {"patterns", "sub/a.md"} | (set() if follow else {"sub/b.md"})


def test_a_pdf_is_the_file_that_was_checked(source: Path, tmp_path: Path) -> None:
    pdf = pytest.importorskip("pypdfium2")
    document = pdf.PdfDocument.new()
    document.new_page(100, 100)
    document.save(source / "sub" / "a.pdf")
    document.close()
    (source / "far.pdf").symlink_to("sub/a.pdf")
    (tmp_path / "outside" / "a.pdf").write_bytes((source / "sub" / "a.pdf").read_bytes())
    (source / "out.pdf").symlink_to(tmp_path / "outside" / "a.pdf")
    for name in ("sub/a.pdf", "far.pdf"):
        opened = open_document(SourceFile(source / name, name, root=source), pdf.raw, pdf)
        assert len(opened) == 1
        opened.close()
    with pytest.raises(OSError, match=r"link"):
        open_document(SourceFile(source / "out.pdf", "out.pdf", root=source), pdf.raw, pdf)


SWAPPING = """
import os, sys, time
source, outside = sys.argv[1:]
file, folder = os.path.join(source, "sub", "a.md"), os.path.join(source, "sub")
os.symlink(os.path.join(outside, "a.md"), os.path.join(source, "link"))
os.symlink(outside, os.path.join(source, "away"))
print(flush=True)
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def exchange(one, other):  # RENAME_EXCHANGE
    libc.renameat2(-100, one.encode(), -100, other.encode(), 2)
while True:
    for _ in range(2):  # and back: through a swapped folder, the next exchange would move what is outside
        exchange(file, os.path.join(source, "link"))
    for _ in range(2):
        exchange(folder, os.path.join(source, "away"))
"""


@pytest.fixture
def swapper(source: Path, tmp_path: Path) -> Iterator[None]:
    """A process that exchanges a file and a folder with links to the outside as fast as it can."""
    if sys.platform != "linux":
        pytest.skip("names are exchanged at once on Linux only")
    command = [sys.executable, "-c", SWAPPING, str(source), str(tmp_path / "outside")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield
        finally:
            child.kill()


@pytest.mark.usefixtures("swapper")
def test_a_link_swapped_between_check_and_open_is_never_read(source: Path) -> None:
    read_public = refused = 0
    for _ in range(4000):
        try:
            assert read(source / "sub" / "a.md", source) == b"public"
            read_public += 1
        except OSError:
            refused += 1
    assert read_public and refused, "both happened, so that links were swapped in between"


@pytest.mark.usefixtures("swapper")
def test_files_are_listed_while_links_are_swapped(source: Path) -> None:
    (source / ".git").mkdir()
    (source / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for name in ("a.md", "b.md"):
        (source / name).write_text("public")
    for spec in (str(source), f"{source}/**/*.md"):
        for _ in range(1000):
            found = find(spec)
            assert not found.missing and {"a.md", "b.md"} <= {name for name, _ in found.files}


@pytest.mark.usefixtures("swapper")
def test_builds_never_index_what_is_outside(source: Path, tmp_path: Path) -> None:
    for number in range(40):
        (source / f"{number}.html").write_text("<html><body><p>harbour</p></body></html>")
    with Index.build(source, tmp_path / "index") as index:
        assert not index.grep("swordfish")
        for _ in range(12):
            Index.build((), tmp_path / "index").close()
            index.refresh()
            assert not index.grep("swordfish")
