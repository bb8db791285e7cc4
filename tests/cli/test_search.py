"""`ketrag search`, `get` and `grep` as a user and a program see them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process import command, environment, ketrag, start

from ketrag_fast.apps.terminal import Terminal, columns, cut, display_path

LONG = "The zeppelin flew over the whole of the long coast and was never seen again by anyone at all."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("search")
    (path / "notes").mkdir()
    (path / "notes" / "air.md").write_text(f"# Air\n\n## Ships\n\n{LONG}\n\tIts crew had 12 men.\n")
    (path / "notes" / "sea.md").write_text("# Sea\n\nThe Fram was a ship. No zeppelin was near.\n")
    (path / "notes" / "odd.txt").write_text("An odd \x1b[31m zeppelin \x1b[0m line.\n-dash is a word.\n")
    done = command("index", "notes", cwd=path)
    assert done.code == 0, done.err
    yield path


def test_plain_results_in_a_pipe(folder: Path) -> None:
    done = command("search", "zeppelin coast", cwd=folder)
    assert done.code == 0, done.err
    first, *rest = done.out.split("\n\n")
    head, *snippet = first.split("\n")
    assert head.startswith(f"notes{os.sep}air.md:3  Air › Ships  ")
    assert snippet == [f"    {LONG}"]
    assert len(rest) == 2 and "\x1b" not in done.out and "␛[31m" in done.out
    listed = command("search", "zeppelin", "--files", "-n", "2", cwd=folder)
    assert len(listed.out.splitlines()) == 2 and "notes" in listed.out


def test_json_has_the_text_once_and_absolute_paths(folder: Path) -> None:
    done = command("search", "zeppelin coast", "--json", "-n", "1", cwd=folder)
    data = json.loads(done.out)
    hit = data["hits"][0]
    assert hit["path"] == str(folder / "notes" / "air.md") and hit["source"] == str(folder / "notes")
    assert hit["lines"] == [3, 6] and done.out.count("The zeppelin flew") == 1
    assert {"page", "cell", "time", "score", "title", "text"} <= hit.keys()


def test_results_on_terminals_of_any_width(folder: Path) -> None:
    pty = pytest.importorskip("pty")
    for width, no_colour in ((80, ""), (20, ""), (60, "1")):
        lines = _in_terminal(pty, folder, width, no_colour, "search", "zeppelin coast", "-n", "1")
        shown = [_without_codes(line) for line in lines]
        assert all(len(line) <= max(width, 30) for line in shown), shown
        text = "\n".join(lines)
        assert ("\x1b[1;31mzeppelin\x1b[0m" in text) is not bool(no_colour)
        assert "\x1b]8;;file://" in text
        if width > 20:
            assert shown[0].startswith("notes/air.md:3  Air › Ships") and len(shown[0]) == width
            assert " ".join(line.strip() for line in shown[1:]).startswith(LONG[:80])


def _in_terminal(pty: object, folder: Path, width: int, no_colour: str, *argv: str) -> list[str]:
    """The lines that a command prints to a terminal of this width."""
    ours, theirs = os.openpty()
    variables = environment(TERM="xterm", COLUMNS=str(width), NO_COLOR=no_colour)
    with subprocess.Popen(
        [sys.executable, "-m", "ketrag_fast", *argv], cwd=folder, env=variables, stdout=theirs
    ) as child:
        os.close(theirs)
        data = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end was closed
                break
            if not part:
                break
            data += part
        assert child.wait() == 0
    os.close(ours)
    return data.decode().replace("\r\n", "\n").rstrip("\n").split("\n")


def _without_codes(line: str) -> str:
    import re

    return re.sub(r"\x1b\[[\d;]*m|\x1b\]8;;[^\x1b]*\x1b\\", "", line)


def test_nothing_found_is_exit_code_1(folder: Path) -> None:
    for argv in (("search", "xylophone"), ("grep", "xylophone"), ("grep", "-l", "xylophone")):
        done = command(*argv, cwd=folder)
        assert (done.code, done.out) == (1, ""), argv
    done = command("search", "zeppelin", "--min-score", "1", cwd=folder)
    assert done.code == 1 and "--min-score" in done.err
    assert command("search", " ", cwd=folder).code == 2


def test_a_query_that_begins_with_a_dash(folder: Path) -> None:
    done = ketrag("search", "-dash", cwd=folder)
    assert done.code == 2 and "ketrag search -- -dash" in done.err
    done = ketrag("search", "--", "-dash", cwd=folder)
    assert done.code == 0 and "-dash is a word" in done.out
    assert "grep -- -dash" in ketrag("grep", "-dash", cwd=folder).err
    assert ketrag("grep", "--", "-dash", cwd=folder).out == f"notes{os.sep}odd.txt:2:-dash is a word.\n"


def test_exact_search(folder: Path) -> None:
    notes = f"notes{os.sep}"
    done = command("grep", "-i", "THE F", cwd=folder)
    assert done.out == f"{notes}sea.md:3:The Fram was a ship. No zeppelin was near.\n"
    assert command("grep", "12", cwd=folder).out == f"{notes}air.md:6:\tIts crew had 12 men.\n"
    assert command("grep", "-c", "zeppelin", cwd=folder).out.splitlines() == [
        f"{notes}air.md:1",
        f"{notes}odd.txt:1",
        f"{notes}sea.md:1",
    ]
    assert command("grep", "-l", "-w", "ship", cwd=folder).out == f"{notes}sea.md\n"
    assert command("grep", "ship", "--glob", "air*", cwd=folder).code == 1
    rows = command("grep", "zeppelin", "--json", cwd=folder).out.splitlines()
    assert [json.loads(row)["lines"] for row in rows] == [[5, 5], [1, 1], [3, 3]]
    bad = command("grep", "a(", cwd=folder)
    assert bad.code == 2 and "unclosed group" in bad.err


def test_excerpts(folder: Path) -> None:
    done = command("get", f"notes{os.sep}air.md:5-6", cwd=folder)
    assert done.out == f"5  {LONG}\n6  \tIts crew had 12 men.\n"
    assert "lines" not in done.err
    assert "lines 3-3 of 6" in command("get", "air.md:3:1", cwd=folder).err
    data = json.loads(command("get", "sea.md:3", "--json", cwd=folder).out)
    assert data["text"].startswith("The Fram") and data["lines"] == [3, 3]
    one, two = (command("get", name, cwd=folder) for name in ("/etc/hostname", "nothing.md"))
    assert one.err.replace("/etc/hostname", "X") == two.err.replace("nothing.md", "X")
    assert (one.code, one.out) == (1, "")


def test_a_closed_pipe_is_not_an_error(folder: Path) -> None:
    child = start("grep", ".", cwd=folder)
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    assert child.wait() in (0, 1) and "Traceback" not in child.stderr.read()
    child.stderr.close()


def test_paths_are_short_where_they_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, here = tmp_path / "home", tmp_path / "home" / "work"
    here.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(here)
    assert display_path(str(here / "a.md")) == "a.md"
    assert display_path(str(home / "a.md")) == f"~{os.sep}a.md"
    assert display_path(str(tmp_path / "a.md")) == str(tmp_path / "a.md")


def test_marked_lines_are_cut_around_the_marks() -> None:
    terminal = Terminal(40, colour=False)
    assert terminal.marked("short", [(0, 5)], 40) == "short"
    text = "a" * 50 + " needle " + "b" * 50
    shown = terminal.marked(text, [(51, 57)], 30)
    assert "needle" in shown and shown[0] == shown[-1] == "…" and columns(shown) <= 30
    for width in (20, 30, 70):
        rows = terminal.wrapped(f"one two three {text} four", [(65, 71)], width)
        assert "needle" in "".join(rows) and all(columns(row) <= width for row in rows), rows
    assert terminal.wrapped("one two three four five six", [], 16) == ["one two three", "four five six"]
    wide = "雪" * 40
    assert columns(terminal.marked(wide, [], 21)) <= 21
    assert cut("abcdef", 4) == "abc…" and columns(cut(wide, 5)) <= 5


def test_hops(folder: Path) -> None:
    for command_name in ("search", "retrieve"):
        plain = command(command_name, "was it near?", "--json", cwd=folder)
        hops = ("--hop", "odd", "--hop", "dash line")
        led = command(command_name, "was it near?", *hops, "--json", cwd=folder)
        rows = [json.loads(done.out) for done in (plain, led)]
        key = "hits" if command_name == "search" else "passages"
        assert rows[0][key][0]["document"] == "sea.md", rows[0]
        assert rows[1][key][0]["document"] == "odd.txt"
    refused = command("retrieve", "--queries", "x.jsonl", "--hop", "a", cwd=folder)
    assert refused.code == 2 and "--hop" in refused.err


def test_how_a_query_was_read_is_printed(folder: Path) -> None:
    done = command("search", "zepelin coast", "--files", "-n", "1", cwd=folder)
    assert done.code == 0 and done.err == 'no "zepelin": searched for zeppelin\n'
    done = command("search", "--files", "--", 'zeppelin -fram type:md "the long coast"', cwd=folder)
    assert (done.code, done.out.strip()) == (0, str(Path("notes") / "air.md"))
    done = command("search", "xyzzy", cwd=folder)
    assert done.code == 1 and done.err.endswith(
        'nothing in the index matches the query; no document has "xyzzy"\n'
    )
    done = command("search", "zepelin", "--literal", cwd=folder)
    assert done.code == 1 and "searched for" not in done.err
    done = command("retrieve", "zepelin coast", cwd=folder)
    assert done.err == 'no "zepelin": searched for zeppelin\n' and "zeppelin" in done.out
    done = command("ask", "zepelin coast", cwd=folder)
    assert 'no "zepelin": searched for zeppelin\n' in done.err and "coast" in done.out


def test_an_option_after_two_dashes(folder: Path) -> None:
    for given in (["--json"], ["-n", "3"]):
        done = command("search", "--", "zeppelin", *given, cwd=folder)
        assert done.code == 2 and f"{given[0]} follows --" in done.err
        assert f"hint: options come before --: ketrag search {' '.join(given)} -- zeppelin\n" in done.err
