"""Mark sections of the benchmarks' page that are older than the code they depend on.

    python benches/stamps.py --check    # exit code 1 if the page is not what the results and the present code give
    python benches/stamps.py --note     # render the page again, with the notes of stale sections
    python benches/stamps.py --list     # print every run with its date and whether it is current

Each result in benches/results has a digest of the files that its run depends on (`sections.py`). The digest covers tokens, not
comments, docstrings, imports, test modules, texts of errors, `help` and `hint`, or file names, so that moved files and new prose
do not make a section stale.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "benches" / "BENCHMARKS.md"
RESULTS: Final = ROOT / "benches" / "results"
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
_PROSE: Final = ("help", "hint")
"""Arguments whose texts only people read."""
_RUST_ERROR: Final = re.compile(r"\bError::\w+\((?:format!\()?$")
_RUST_IMPORTS: Final = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?(?:use [^;]+|mod \w+);", re.MULTILINE)


def python_tokens(text: str) -> Iterator[str]:
    """Yield the tokens of a Python file without comments, imports, strings that are statements, and texts for people."""
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
            yield from _without_prose(line)
            yield "\n"
        line = []


def _without_prose(line: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the tokens of a logical line without the strings of `raise` and of arguments such as `help=`."""
    is_raise, last = line[0][1] == "raise", ("", "")
    for kind, token in line:
        if kind == "string" and (is_raise or (last[0] in _PROSE and last[1] == "=")):
            continue
        yield token
        last = (last[1], token)


def rust_tokens(text: str) -> Iterator[str]:
    """Yield the tokens of a Rust file without comments, imports, module declarations, texts of errors and the module of tests."""
    text = _RUST_IMPORTS.sub("", _RUST_TESTS.sub("", text))
    before = ""
    for match in _RUST.finditer(text):
        if match.lastgroup in ("comment", "space"):
            continue
        token = match.group()
        if match.lastgroup != "string" or _RUST_ERROR.search(before) is None:
            yield token
        before = (before + token)[-60:]


def digest(globs: Iterable[str], root: Path = ROOT) -> str:
    """Return the digest of all files that match and of none that matches a glob after `!`.

    The names and the order of files do not count, nor do files of tests.
    """
    files: set[Path] = set()
    excluded: set[Path] = set()
    for glob in globs:
        matching = [path for path in root.glob(glob.removeprefix("!")) if path.suffix in (".py", ".rs")]
        if not matching:
            raise SystemExit(f"no file matches {glob}")
        (excluded if glob.startswith("!") else files).update(matching)
    files -= excluded | {path for path in files if path.name.endswith("tests.rs")}
    each = []
    for path in files:
        own = _digest_of(path.suffix, path.read_text("utf-8"))
        if own:
            each.append(own)
    return hashlib.sha256("\n".join(sorted(each)).encode()).hexdigest()[:16]


@cache
def _digest_of(suffix: str, text: str) -> str:
    """Return the digest of a file's tokens, empty if it has none; most files are in many runs."""
    content = "\0".join((python_tokens if suffix == ".py" else rust_tokens)(text)).encode()
    return hashlib.sha256(content).hexdigest() if content else ""


def read_results(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Return the stored results by the name of their run."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


def stale_runs(results: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the runs whose code has changed since they were measured."""
    from sections import runs

    return {
        name
        for name, (_, run) in runs().items()
        if name in results and results[name]["digest"] != digest(run.globs)
    }


def check() -> list[str]:
    """Return one line for each fault: results of no run, or a page that differs from what they give."""
    from page import page
    from sections import runs

    results = read_results()
    faults = [
        f"benches/results/{name}.json: no section has this run" for name in results.keys() - runs().keys()
    ]
    if PAGE.read_text("utf-8") != page(results, stale_runs(results)):
        faults.append("benches/BENCHMARKS.md: run python benches/stamps.py --note")
    return faults


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--check", action="store_true", help="exit with 1 if the page is outdated")
    group.add_argument("--note", action="store_true", help="render the page")
    group.add_argument("--list", action="store_true", help="print the runs")
    args = parser.parse_args()
    results = read_results()
    stale = stale_runs(results)
    if args.note:
        from page import page

        PAGE.write_text(page(results, stale), "utf-8")
    elif args.list:
        for name, result in results.items():
            print(f"{'stale  ' if name in stale else 'current'}  {result['date']}  {result['code']}  {name}")
    else:
        faults = check()
        print("\n".join(faults) or "the page is what the results and the present code give")
        return 1 if faults else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
