"""Twenty tasks in three repositories: is the right place in the first reply of `search`, and for how many tokens?

    python benches/tasks.py FLASK REQUESTS [--transcript FILE]

`FLASK` and `REQUESTS` are unpacked source archives (`pip download --no-deps --no-binary :all: flask==3.1.2
requests==2.32.5`); the third repository is this one. The tasks and their places were written before the first run.

A place is named if the reply has a passage of its definition: one with its first line, or with its name as the last
heading, as later parts of a long definition have; or its name with its line. The line and the file alone are counted, too.
`rg` stands for an assistant with a shell: it searches for the three longest words of the task, reads at most 100
lines of output, then 80 lines around the first match of each file, the file with the most matches first.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from common import ROOT, WORK, arguments, publish
from common import result_table as table
from ketrag_fast import Index, Settings
from ketrag_fast.apps.server.mcp_text import TOKENS, Paths, read_reply, search_reply
from ketrag_fast.kernels import count_tokens

OWN = ("benches/tasks.py", "docs/reference/tasks.md", "docs/how-to/assistants.md")
"""Files of this repository with the tasks themselves, which are left out."""
LIMIT = 8
"""Passages of a reply, the default of the tool `search`."""
MATCHES, AROUND, FILES = 100, 80, 5
THIS, FLASK, REQUESTS = "this repository", "flask", "requests"
TASKS = (
    (THIS, "where is a hit of a search laid out for the terminal", "apps/cli/search.py", "def lines_of"),
    (THIS, "which ignore files hold for a path", "readers/ignored.py", ""),
    (THIS, "which files count as tests, examples or declarations", "text/src/code.rs", "pub fn is_aside"),
    (THIS, "write the settings file of an assistant atomically", "apps/cli/assistants.py", "def write"),
    (THIS, "search lines by a pattern in parallel blocks", "query/search.py", "def matching_lines"),
    (THIS, "suggest similar paths for a misspelt file", "query/excerpts.py", "def near_paths"),
    (THIS, "BM25 over whole files of code", "rank/walk/code.rs", "fn compare_bodies"),
    (THIS, "scope of a path: code, docs, config or tests", "base/scopes.py", "def scope_mask"),
    (FLASK, "turn the return value of a view into a response", "flask/app.py", "def make_response"),
    (FLASK, "load configuration from prefixed environment variables", "config.py", "def from_prefixed_env"),
    (FLASK, "sign the session cookie with the secret key", "sessions.py", "def get_signing_serializer"),
    (FLASK, "find the application in a module for the command line", "flask/cli.py", "def find_best_app"),
    (FLASK, "flash a message for the next request", "flask/helpers.py", "def flash"),
    (FLASK, "register a function to run after each request", "sansio/scaffold.py", "def after_request"),
    (FLASK, "register a nested blueprint with a url prefix", "sansio/blueprints.py", "def register"),
    (REQUESTS, "strip authorization when a redirect leaves the host", "sessions.py", "def should_strip_auth"),
    (REQUESTS, "guess the encoding of JSON bytes", "requests/utils.py", "def guess_json_utf"),
    (REQUESTS, "build the header of digest authentication", "requests/auth.py", "def build_digest_header"),
    (REQUESTS, "hosts that bypass the proxy", "requests/utils.py", "def should_bypass_proxies"),
    (REQUESTS, "merge cookies into a jar", "requests/cookies.py", "def merge_cookies"),
)
"""Repository, task, end of the path, and the definition; any line of the file if it is empty."""


@dataclass
class Trial:
    """The result of one task: what the first reply contains, its tokens, and the calls until the place was shown."""

    is_named: bool
    has_line: bool
    has_file: bool
    tokens: int
    calls: int | None
    transcript: list[str] = field(default_factory=list)
    is_listed: bool = False
    """Whether a line below the passages of the reply names the definition and its line number."""


def tokens_of(text: str) -> int:
    """Return the number of tokens of a reply."""
    return int(count_tokens([text])[0])


def place_of(folder: Path, end: str, definition: str) -> tuple[Path, int]:
    """Return the file of a place and its line."""
    (path,) = (path for path in listed(folder) if path.as_posix().endswith(f"/{end}"))
    lines = path.read_text("utf-8").split("\n")
    pattern = re.compile(rf"{re.escape(definition)}\b") if definition else re.compile("")
    return path, next(number for number, line in enumerate(lines, 1) if pattern.search(line))


def listed(folder: Path) -> list[Path]:
    """Return the files of a repository that are not ignored, by `rg`."""
    done = subprocess.run(["rg", "--files", "--sort", "path", str(folder)], capture_output=True, text=True)
    return [Path(line) for line in done.stdout.splitlines()]


def by_search(index: Index, task: str, name: str, path: Path, line: int) -> Trial:
    """Search, then read each named passage until the place is shown."""
    hits = index.search(task, LIMIT)
    reply = search_reply(
        hits, LIMIT, TOKENS, Paths(local=True), lambda hit: index.inspect.definitions(hit.document, task)
    )
    others = [row for row in reply.text.splitlines() if row.startswith("also in ")]
    is_listed = any(path.name in row and re.search(rf"\b{re.escape(name)}:{line}\b", row) for row in others)
    in_file = [hit.path == str(path) for hit in hits]
    has_line = [bool(hit.lines and hit.lines[0] <= line <= hit.lines[1]) for hit in hits]
    is_part = [not name or (bool(hit.headings) and hit.headings[-1] == name) for hit in hits]
    has = [own and (a or b) for own, a, b in zip(in_file, has_line, is_part, strict=True)]
    rank = has.index(True) if any(has) else None
    calls = None if rank is None else rank + 1
    for hit in list(hits)[1 : calls or 0]:
        read_reply(index.text(hit.path or hit.document, hit.lines), TOKENS, Paths(local=True))
    is_line = any(own and a for own, a in zip(in_file, has_line, strict=True))
    calls = 1 if is_listed else calls
    return Trial(
        calls is not None, is_line, any(in_file), tokens_of(reply.text), calls, [reply.text], is_listed
    )


def by_shell(folder: Path, task: str, path: Path, line: int) -> Trial:
    """Search for words with `rg`, then read around the first match of each file."""
    words = sorted(set(re.findall(r"\w{4,}", task.lower())), key=lambda word: (-len(word), word))[:3]
    done = subprocess.run(
        ["rg", "-n", "-i", "--no-heading", "--sort", "path", "|".join(words), "."],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
    )
    rows = done.stdout.splitlines()
    shown = "\n".join(row[:300] for row in rows[:MATCHES])
    places = [(name, int(number)) for name, number in (row.split(":", 2)[:2] for row in rows)]
    is_named = any(folder / name == path and number == line for name, number in places[:MATCHES])
    calls = 1 if is_named else None
    for step, (name, _) in enumerate(Counter(name for name, _ in places).most_common(FILES), 2):
        first = next(number for one, number in places if one == name)
        if calls is None and folder / name == path and abs(first - line) <= AROUND // 2:
            calls = step
    has_file = any(folder / name == path for name, _ in places[:MATCHES])
    return Trial(is_named, is_named, has_file, tokens_of(shown), calls)


def trials(folders: dict[str, Path]) -> Iterator[tuple[tuple[str, str, str, str], Trial, Trial]]:
    """Yield each task with what `search` and the shell gave."""
    indexes = {}
    for name, folder in folders.items():
        place = WORK / "tasks" / re.sub(r"\W", "-", name)
        indexes[name] = Index.build(
            str(folder), place, settings=Settings(modes="walk", exclude=",".join(OWN))
        )
    for task in TASKS:
        name, question, end, definition = task
        path, line = place_of(folders[name], end, definition)
        search = by_search(indexes[name], question, definition.rpartition(" ")[2], path, line)
        yield task, search, by_shell(folders[name], question, path, line)


def main() -> None:
    """Run the tasks and print a table, and with --transcript the replies."""
    parser = arguments(__doc__)
    parser.add_argument("flask", type=Path)
    parser.add_argument("requests", type=Path)
    parser.add_argument("--transcript", type=Path, metavar="FILE")
    args = parser.parse_args()
    if shutil.which("rg") is None:
        parser.error("rg is not installed")
    (WORK / "tasks").mkdir(parents=True, exist_ok=True)
    folders = {THIS: ROOT, FLASK: args.flask.resolve(), REQUESTS: args.requests.resolve()}
    both: list[tuple[Trial, Trial]] = []
    rows, lines = [], ["# Replies of `search` to twenty tasks", ""]
    for (name, question, end, definition), search, shell in trials(folders):
        both.append((search, shell))
        rows.append(
            [
                name,
                question,
                search.is_named,
                search.tokens,
                search.calls,
                shell.is_named,
                shell.tokens,
                shell.calls,
            ]
        )
        lines += [
            f"## {question}",
            "",
            f"{name}, `{end}`, `{definition or 'any line'}`",
            "",
            "````",
            search.transcript[0],
            "````",
            "",
        ]
    every = [
        ["the definition is in the first reply", sum(row[2] for row in rows), sum(row[5] for row in rows)],
        ["its name and line are, below the passages", sum(one.is_listed for one, _ in both), 0],
        ["its first line is", *(sum(one.has_line for one in ways) for ways in zip(*both, strict=True))],
        ["its file is", *(sum(one.has_file for one in ways) for ways in zip(*both, strict=True))],
        ["the definition after all calls", *(sum(row[at] is not None for row in rows) for at in (4, 7))],
        ["tokens of the first reply, median", *(statistics.median(row[at] for row in rows) for at in (3, 6))],
        [
            "calls until it is shown, median of those that show it",
            *(statistics.median(row[at] for row in rows if row[at] is not None) for at in (4, 7)),
        ],
    ]
    columns = [
        "repository",
        "task",
        "in the first reply",
        "tokens",
        "calls",
        "rg: first",
        "rg: tokens",
        "rg: calls",
    ]
    shown = [
        ["yes" if x is True else "no" if x is False else "-" if x is None else x for x in row] for row in rows
    ]
    publish(
        [table("Twenty tasks", ["", "search", "rg and sed"], every), table("Each task", columns, shown)],
        "This repository, Flask 3.1.2 and Requests 2.32.5; no model.",
    )
    if args.transcript:
        args.transcript.write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    main()
