"""Count the idioms of .ci/idioms.txt and fail if a kind of text has more than .ci/idioms-limits.json allows.

    python .ci/check_idioms.py              # counts against limits; exit code 1 if a kind has more
    python .ci/check_idioms.py -v [KIND]    # every match with its line and what to write instead
    python .ci/check_idioms.py --ratchet    # lower the limits to the present counts; never raises one

Kinds: `prose` (README, docs, examples, benches), `docstring`, `comment` and `message` (strings with a space,
help included, prompts for models excluded) of python/ketrag_fast, and `rust` (comments in rust/). It counts
the texts that have a match.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LIST: Final = ROOT / ".ci" / "idioms.txt"
LIMITS: Final = ROOT / ".ci" / "idioms-limits.json"
KINDS: Final = ("prose", "docstring", "comment", "message", "rust")
PROSE: Final = ("*.md", "docs/**/*.md", "examples/**/*.md", "benches/*.md", "integrations/*/README.md")
NOT_PROSE: Final = ("THIRD-PARTY.md", "articles")
"""Files and folders: generated notices, and the articles of an example, which are data."""
# Prompts and probe texts are data for models: changing them changes replies that users have stored.
FOR_MODELS: Final = tuple(
    f"python/ketrag_fast/{module}.py"
    for module in (
        "models/embedders/probe_texts",
        "models/extraction/prompt",
        "models/extraction/summaries",
        "query/answer/prompt",
        "systems/noderag/unit_task",
        "systems/noderag/writing",
    )
)
PROMPT_CHARACTERS: Final = 150
"""Length from which a string of these modules is a prompt."""
_HOLDERS: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_FENCED: Final = re.compile(r"^(```|~~~).*?^\1|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Text:
    """One docstring, comment, message or line of prose."""

    kind: str
    path: Path
    line: int
    content: str


def idioms(text: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns of a list with what to write instead."""
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    return [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in rows]


def python_texts(path: Path) -> Iterator[Text]:
    """Yield docstrings, comments and messages of a Python file."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    docstrings = set()
    for node in ast.walk(tree):
        for statement in getattr(node, "body", []) if isinstance(node, _HOLDERS) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                value = statement.value
                if isinstance(value.value, str):
                    docstrings.add(id(value))
                    yield Text("docstring", path, value.lineno, value.value)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        is_prompt = path.as_posix().endswith(FOR_MODELS) and len(node.value) >= PROMPT_CHARACTERS
        if " " in node.value.strip() and len(node.value) > 12 and not is_prompt:
            yield Text("message", path, node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"# (?:noqa|type:|fmt:)", token.string):
            yield Text("comment", path, token.start[0], token.string)


def prose_texts(path: Path) -> Iterator[Text]:
    """Yield the lines of a Markdown page outside code."""
    plain = _FENCED.sub(lambda match: "\n" * match[0].count("\n"), path.read_text("utf-8"))
    for number, line in enumerate(plain.splitlines(), 1):
        if line.strip() and not line.startswith(("    ", "\t")):
            yield Text("prose", path, number, line)


def rust_texts(path: Path) -> Iterator[Text]:
    """Yield the comments of a Rust file."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if match := re.search(r"(?:^|\s)//[/!]? (.*)", line):
            yield Text("rust", path, number, match[1])


def texts(root: Path = ROOT) -> Iterator[Text]:
    """Yield all texts that are checked."""
    for glob in PROSE:
        for path in sorted(root.glob(glob)):
            if not {path.name, path.parent.name} & set(NOT_PROSE):
                yield from prose_texts(path)
    for path in sorted((root / "python" / "ketrag_fast").rglob("*.py")):
        yield from python_texts(path)
    for path in sorted((root / "rust").glob("*/src/**/*.rs")):
        yield from rust_texts(path)


def main(argv: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-v", "--verbose", nargs="?", const="all", choices=["all", *KINDS])
    parser.add_argument("--ratchet", action="store_true")
    args = parser.parse_args(argv)
    patterns = idioms(LIST.read_text("utf-8"))
    limits: dict[str, int] = json.loads(LIMITS.read_text("utf-8"))
    counts, totals = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    for text in texts():
        totals[text.kind] += 1
        matches = [
            (match[0], instead) for pattern, instead in patterns if (match := pattern.search(text.content))
        ]
        counts[text.kind] += bool(matches)
        if args.verbose in ("all", text.kind):
            for found, instead in matches:
                print(f"{text.path.relative_to(ROOT)}:{text.line}: {text.kind}: {found!r}: {instead}")
    for kind in KINDS:
        share = 100 * counts[kind] / max(totals[kind], 1)
        excess = "" if counts[kind] <= limits[kind] else ": too many, see -v"
        print(f"{kind}: {counts[kind]} of {totals[kind]} ({share:.1f} %), limit {limits[kind]}{excess}")
    if args.ratchet:
        lowered = {kind: min(limits[kind], counts[kind]) for kind in KINDS}
        LIMITS.write_text(json.dumps(lowered, indent=1) + "\n", "utf-8")
    return 1 if any(counts[kind] > limits[kind] for kind in KINDS) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
