"""Print idioms that readers trip over, with what to write instead; exit with 1 if there are any.

    python .ci/check_idioms.py

It reads prose (README, docs, examples, benches), docstrings, comments and messages (strings with a space,
help included, prompts for models excluded) of python/ketrag_fast, and comments in rust/.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
IDIOMS: Final = {
    r"\bwhere (?:there|it|that|they|this|one|nobody|nothing) (?:is|are|has|was|have)\b": "if ..., when ...",
    r"\bwhere no \w+ (?:is|are|has|was)\b": "if no ...",
    r"(?<!\bthere )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|\w\b)\w+": "is not a ..., has no ...",
    r"\b(?:is|are) (?:not )?there\b(?! (?:a|an|any|no)\b)": "exists, is missing",
    r"\bstands?\b(?! alone| for| in for)": "is, is stored in",
    r"\blies\b": "is, is stored in",
    r"\bis said\b|\b(?:is|are) told\b": "is reported, is documented",
    r"\bwho asks\b|\bis asked\b|\basked (?:for|of)\b": "the query, the caller, requested",
    r"\banew\b": "again, rebuilt",
    r"\bbeside\b": "next to, in addition to",
    r"\bso many\b": "N",
    r", at most(?=\s*(?:[.;,:)|\]]|$))": "at most N ...",
    r"\bgo(?:es)? by\b": "uses",
    r"\btakes up\b": "switches to",
    r"\bfor want of\b": "because there is no ...",
    r"\bsuffices?\b": "is enough",
    r"\b(?:is|are) due\b": "is expected",
    r"\bmend(?:s|ed|ing)?\b": "fix, fixed",
    r"\bmakes? no sense\b": "say what is wrong: must be between 0 and 1, got 3",
    r"\bwhoever\b|\bwho (?:changes|has|does|calls|reads|gets|sees|may)\b": "callers that ...",
    r"\bof (?:its|their|one's|his) own\b|\b\w+'s own\b": "name the thing",
    r"\bpublished code\b": "reference implementation",
    r"\btaken over\b": "reused",
    r"\bas far as\b": "if, to the extent",
    r"\bmodel (?:that )?reads the chunks\b": "an LLM extracts entities and relations from the chunks",
    r"\bspecs? \d|\b\d\d-[a-z]+ \d": "cite the paper or a page in docs/",
}
"""Regular expressions, whose case is ignored, and what to write instead."""
PROSE: Final = ("*.md", "docs/**/*.md", "examples/**/*.md", "benches/*.md", "integrations/*/README.md")
NOT_PROSE: Final = ("THIRD-PARTY.md", "articles")
"""Files and folders: generated notices, and the articles of an example, which are data."""
# Prompts and probe texts are data for models: changing them changes replies that users have stored.
FOR_MODELS: Final = tuple(
    f"python/ketrag_fast/{module}.py"
    for module in (
        "models/embedders/fingerprint",
        "models/extraction/prompt",
        "models/extraction/summaries",
        "query/answer/prompt",
        "systems/papers/noderag/decompositions",
        "systems/papers/noderag/writing",
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


def main() -> int:
    """Print every match; return 1 if there are any."""
    patterns = [(re.compile(idiom, re.IGNORECASE), instead) for idiom, instead in IDIOMS.items()]
    count = 0
    for text in texts():
        for pattern, instead in patterns:
            if match := pattern.search(text.content):
                count += 1
                print(f"{text.path.relative_to(ROOT)}:{text.line}: {text.kind}: {match[0]!r}: {instead}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
