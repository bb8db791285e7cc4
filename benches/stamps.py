"""Record which code each benchmark section was measured with, and mark sections that are older than their code.

    python benches/stamps.py --check            # list stale sections without a note; exit code 1 if there is one
    python benches/stamps.py --note             # write the notes that --check misses, remove those that are outdated
    python benches/stamps.py --stamp SECTION    # record that SECTION was measured with the present code
    python benches/stamps.py --list             # print the sections

A section is `PAGE: NAME`: for BENCHMARKS.md the command, for SOLUTIONS.md the heading. `benches/stamps.json` keeps for each
section the command, date, machine, commit, the files it depends on (globs) and a digest of these files. The digest covers
tokens, not comments, docstrings, imports, test modules or file names, so that moved files and new prose do not make a
section stale. A section without a digest was measured before stamps existed and is stale.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
STAMPS: Final = ROOT / "benches" / "stamps.json"
PAGES: Final = {
    "benches/BENCHMARKS.md": re.compile(r"^<!-- (python benches/.+) -->\n", re.MULTILINE),
    "benches/SOLUTIONS.md": re.compile(r"^## (.+)\n", re.MULTILINE),
}
NO_FIGURES: Final = ("What it shows", "The walk's first form (history)")
"""Headings of SOLUTIONS.md without figures of their own, and figures of deleted code."""

NOTE: Final = re.compile(r"^> Measured before .*\(stale\)\.\n\n?", re.MULTILINE)
_TITLE: Final = re.compile(r"^## .+\n\n?", re.MULTILINE)
_PYTHON: Final = re.compile(
    r"(?P<string>[rRbBfFuU]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'))"
    r"|(?P<comment>#[^\n]*)|(?P<newline>\n)|(?P<space>[ \t\r\f]+|\\\n)|(?P<name>\w+)|(?P<other>.)",
    re.DOTALL,
)
_RUST: Final = re.compile(
    r"(?P<string>b?r(#*)\".*?\"\2|b?\"(?:\\.|[^\"\\])*\"|b?'(?:\\.[^']*|[^'\\\n])')"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<space>\s+)|(?P<name>\w+)|(?P<other>.)",
    re.DOTALL,
)
_RUST_TESTS: Final = re.compile(r"^#\[cfg\(test\)\]\s*mod \w+ \{.*", re.MULTILINE | re.DOTALL)
_RUST_IMPORTS: Final = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?(?:use [^;]+|mod \w+);", re.MULTILINE)


def python_tokens(text: str) -> Iterator[str]:
    """Yield the tokens of a Python file without comments, imports, and strings that are statements."""
    line: list[tuple[str, str]] = []
    depth = 0
    for match in _PYTHON.finditer(text + "\n"):
        kind, token = str(match.lastgroup), match.group()
        if kind in ("comment", "space") or (kind == "newline" and depth):
            continue
        if kind != "newline":
            depth += (token in "([{") - (token in ")]}") if kind == "other" else 0
            line.append((kind, token))
            continue
        is_docstring = len(line) == 1 and line[0][0] == "string"
        is_import = bool(line) and line[0][1] in ("import", "from")
        if line and not is_docstring and not is_import:
            yield from (token for _, token in line)
            yield "\n"
        line = []


def rust_tokens(text: str) -> Iterator[str]:
    """Yield the tokens of a Rust file without comments, imports, module declarations and the module of tests."""
    text = _RUST_IMPORTS.sub("", _RUST_TESTS.sub("", text))
    for match in _RUST.finditer(text):
        if match.lastgroup not in ("comment", "space"):
            yield match.group()


def digest(globs: list[str], root: Path = ROOT) -> str:
    """Return the digest of all files that match; the names and the order of files do not count."""
    files = {path for glob in globs for path in root.glob(glob) if path.suffix in (".py", ".rs")}
    if not files:
        raise SystemExit(f"no file matches {globs}")
    each = []
    for path in files:
        tokens = (python_tokens if path.suffix == ".py" else rust_tokens)(path.read_text("utf-8"))
        content = "\0".join(tokens).encode()
        if content:
            each.append(hashlib.sha256(content).hexdigest())
    return hashlib.sha256("\n".join(sorted(each)).encode()).hexdigest()[:16]


def sections(page: str, text: str) -> dict[str, str]:
    """Return the sections of a page that have figures: `PAGE: NAME` to text."""
    marks = list(PAGES[page].finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return {
        f"{page}: {mark[1]}": text[mark.start() : end]
        for mark, end in zip(marks, ends, strict=True)
        if mark[1] not in NO_FIGURES
    }


def is_stale(entry: dict[str, Any], root: Path = ROOT) -> bool:
    """Return whether the code that a section depends on has changed since it was measured."""
    return entry["digest"] is None or entry["digest"] != digest(entry["files"], root)


def note(entry: dict[str, Any]) -> str:
    """Return the note of a stale section."""
    return f"> Measured before the present code: {entry['date']}, commit {entry['commit']} (stale).\n"


def with_note(section: str, entry: dict[str, Any], *, stale: bool) -> str:
    """Return a section with its note below the title if it is stale, and without one otherwise."""
    plain = NOTE.sub("", section)
    return (
        _TITLE.sub(lambda title: f"{title[0].rstrip()}\n\n{note(entry)}\n", plain, count=1)
        if stale
        else plain
    )


def _pages() -> dict[str, str]:
    return {page: (ROOT / page).read_text("utf-8") for page in PAGES}


def _entries() -> dict[str, dict[str, Any]]:
    return dict(json.loads(STAMPS.read_text("utf-8")))


def _write(entries: dict[str, dict[str, Any]]) -> None:
    STAMPS.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", "utf-8")


def check() -> list[str]:
    """Return one line for each section whose stamp or note is wrong."""
    entries, faults = _entries(), []
    names = set()
    for page, text in _pages().items():
        for name, section in sections(page, text).items():
            names.add(name)
            if name not in entries:
                faults.append(f"{name}: has no entry in benches/stamps.json")
            elif with_note(section, entries[name], stale=is_stale(entries[name])) != section:
                faults.append(f"{name}: run python benches/stamps.py --note")
    return faults + [f"{name}: is not on the page" for name in entries if name not in names]


def write_notes() -> None:
    """Write the notes of all sections."""
    entries = _entries()
    for page, text in _pages().items():
        new = text
        for name, section in sections(page, text).items():
            new = new.replace(section, with_note(section, entries[name], stale=is_stale(entries[name])))
        (ROOT / page).write_text(new, "utf-8")


def stamp(name: str) -> None:
    """Record that a section was measured with the present code, on this machine or the one that it names."""
    entries = _entries()
    page = name.partition(": ")[0]
    section = sections(page, (ROOT / page).read_text("utf-8"))[name] if page in PAGES else ""
    if name not in entries or not section:
        raise SystemExit(f"unknown section {name!r}: --list prints them")
    measured = re.search(r"Machine: (.+?)\. (\d{4}-\d\d-\d\d)", section)
    head = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    entry = entries[name]
    if measured:
        entry["machine"], entry["date"] = measured[1], measured[2]
    else:
        import datetime as dt

        from common import machine

        entry["machine"], entry["date"] = machine(), dt.datetime.now(dt.UTC).date().isoformat()
    entry["commit"], entry["digest"] = commit or "unknown", digest(entry["files"])
    _write(entries)
    write_notes()


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--check", action="store_true", help="exit with 1 if a note is missing or outdated")
    group.add_argument("--note", action="store_true", help="write the notes")
    group.add_argument("--stamp", metavar="SECTION", help="record SECTION as measured with the present code")
    group.add_argument("--list", action="store_true", help="print the sections, stale ones marked")
    args = parser.parse_args()
    if args.stamp:
        stamp(args.stamp)
    elif args.note:
        write_notes()
    elif args.list:
        for name, entry in _entries().items():
            print(f"{'stale  ' if is_stale(entry) else 'current'}  {name}")
    else:
        faults = check()
        print("\n".join(faults) or "every stale section says so")
        return 1 if faults else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
