"""Large and hostile web pages: work in proportion to the page, and text that is kept when a limit strikes.

Work is counted in calls of Python functions, which do not depend on the machine. What the extraction library
does is bounded by the depth of the elements that it gets, and by generous ratios of times.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ketrag_fast.readers import html, sandbox
from ketrag_fast.readers.html import page_of
from ketrag_fast.readers.protocol import SourceFile
from ketrag_fast.readers.sandbox import Apart
from ketrag_fast.types import Document, Failure
from tests.support.parts import part


def list_of_links(n: int) -> str:
    return "<ul>" + "".join(f'<li><a href="p{i}.html">Page number {i}</a></li>' for i in range(n)) + "</ul>"


def list_of_texts(n: int) -> str:
    return "<ul>" + "".join(f"<li>The text of entry {i} is no link.</li>" for i in range(n)) + "</ul>"


def anchors(n: int) -> str:
    return "<p>text" + "".join(f'<a name="a{i}"></a>word{i} ' for i in range(n))


def table(n: int) -> str:
    rows = "".join(f"<tr><td>n{i}</td><td>remark {i}</td></tr>" for i in range(n))
    return f"<table><tr><th>Name</th><th>Remark</th></tr>{rows}</table>"


def nested_lists(n: int) -> str:
    return "<ul><li>level" * n


def nested_blocks(n: int) -> str:
    return "<div>level" * n


def one_line(n: int) -> str:
    return "<p>" + "<b>bold</b> plain " * n


SHAPES = [list_of_links, list_of_texts, anchors, table, nested_lists, nested_blocks, one_line]


def page(body: str) -> str:
    return f"<html><head><title>Contents</title></head><body>{body}</body></html>"


def calls_of(work: Callable[[], object]) -> int:
    """Return how many functions, in Python or C, `work` calls."""
    count = 0

    def profile(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def grows_slowly(small: Callable[[], object], large: Callable[[], object], most: float) -> bool:
    """Return whether `large` takes at most `most` times as long as `small`, by the best of several tries."""
    best = [float("inf"), float("inf")]
    for _ in range(8):
        for number, work in enumerate((small, large)):
            begin = time.process_time()
            work()
            best[number] = min(best[number], time.process_time() - begin)
        if best[1] <= most * best[0]:
            return True
    return False


@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_with_the_page(shape: Callable[[int], str]) -> None:
    """Four times the page is about four times the calls; quadratic work would be sixteen times."""
    part("resiliparse", "documents")
    small, large = page(shape(2_000)), page(shape(8_000))
    page_of(small)
    assert calls_of(lambda: page_of(large)) < 6 * calls_of(lambda: page_of(small))
    assert grows_slowly(lambda: page_of(small), lambda: page_of(large), 12)


def test_work_grows_with_the_head() -> None:
    """Two thousand `<meta>` took seven seconds, and four times as many two minutes."""
    part("resiliparse", "documents")
    small, large = ('<head><meta name="author" content="Ann">' * n + "<p>Text." for n in (200, 800))
    assert page_of(small).metadata == page_of(large).metadata == {"author": "Ann"}
    assert calls_of(lambda: page_of(large)) < 6 * calls_of(lambda: page_of(small))


@pytest.mark.parametrize(("shape", "n"), [(list_of_links, 100_000), (table, 100_000), (anchors, 1_000_000)])
def test_very_large_pages_keep_their_text(shape: Callable[[int], str], n: int) -> None:
    part("resiliparse", "documents")
    text = page_of(page(shape(n))).text
    assert str(n - 1) in text
    assert str(n // 2) in text


def test_deep_pages_keep_their_text() -> None:
    part("resiliparse", "documents")
    for shape in (nested_lists, nested_blocks):
        text = page_of(page(shape(50_000))).text
        assert text.count("level") == 50_000


def test_menus_are_lists_mostly_of_links() -> None:
    part("resiliparse", "documents")
    menu = '<ul><li><a href="a">Home</a> </li></ul>'
    text = page_of(
        page(f"<p>{'Some text. ' * 40}</p>{menu}<ul><li>Kept<template>{menu}</template></li></ul>")
    ).text
    assert text.endswith("Kept")
    assert "Home" not in text
    text = page_of(
        page(f"<script>'<ul>'</script><p>{'Some text. ' * 40}</p><!-- <ul> --><ul><li>Kept</ul>")
    ).text
    assert text.endswith("Kept")


def test_plain_text_of_a_page() -> None:
    markup = (
        "<title>A &amp; B</title><SCRIPT>no('</style>')</SCRIPT><style>no</style><!-- no -->"
        "<h1>One\nline</h1>"
        "<p>Two<br>lines</p><ul><li>a<li>b &lt;</ul><table><tr><td>1<td>2</table>x < y<script>no"
    )
    assert html.title_of(markup) == "A & B"
    expected = "A & B\n\nOne line\n\nTwo\nlines\n\na\nb <\n\n1\t2\n\nx < y"
    assert html.plain_text(markup) == expected
    assert html.plain_text("<script>x") == html.title_of("<p>x") == ""


def read(path: Path, seconds: float, kind: str = "html") -> list[object]:
    with Apart(1, seconds, 2_000, 1_000_000_000) as apart:
        return [item for _, items in apart.read([(SourceFile(path, path.name), kind)]) for item in items]


def kill_readers(monkeypatch: pytest.MonkeyPatch, slow: str) -> None:
    """Kill each process that reads a file of a kind, as at the time limit."""
    started = sandbox.Worker.read

    def late(self: sandbox.Worker, request: dict[str, object], *rest: object, **named: object) -> str | None:
        if request["kind"] == slow:
            self._late = True
            self._child.kill()
        return started(self, request, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(sandbox.Worker, "read", late)


def test_the_text_is_kept_when_the_process_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process that reads the page is killed, as at the time limit; the next reads it plainly."""
    part("resiliparse", "documents")
    path = tmp_path / "a.html"
    path.write_text(page(f"<h1>Head</h1>{'<p>Some text.</p>' * 40}"))
    kill_readers(monkeypatch, "html")
    document, note = read(path, 60)
    assert isinstance(document, Document)
    assert (document.id, document.title) == ("a.html", "Contents")
    assert document.text.startswith("Contents\n\nHead\n\nSome text.")
    assert isinstance(note, Failure)
    assert note.code == "part"
    assert "longer than 60 s" in note.message
    assert "its text is kept" in note.message


def test_the_text_of_code_is_kept_when_the_process_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tree-sitter takes quadratic time for errors: 100 kB of `\\\\\\n` in Python take it minutes."""
    part("tree_sitter", "code")
    path = tmp_path / "a.py"
    path.write_text("def one():\n    return 1\n" + "\\\n" * 50)
    kill_readers(monkeypatch, "python")
    document, note = read(path, 60, "python")
    assert isinstance(document, Document)
    assert (document.text, document.metadata) == (path.read_text(), {"language": "python"})
    assert {one.kind for one in document.locators} == {"code", "lines"}
    assert isinstance(note, Failure)
    assert note.code == "part"
    assert "its text is kept without functions and classes" in note.message


def test_a_page_without_text_that_ends_the_process_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.html"
    path.write_text("<html><body><img src=x></body></html>")
    monkeypatch.setattr(sandbox.Worker, "read", lambda self, *_, **__: self._child.kill() or "it crashed")
    (failure,) = read(path, 60)
    assert isinstance(failure, Failure)
    assert (failure.code, failure.message) == ("document", "it crashed")
