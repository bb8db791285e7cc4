"""Derives `corpus.jsonl` from the articles of an example, so that both hold the same text.

    python examples/make_dataset.py            writes examples/*/corpus.jsonl
    python examples/make_dataset.py --check    writes nothing; exit code 1 if a file is stale

An entry's id is the article's path below `articles/`, its title the first heading, its text what follows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def article(path: Path) -> tuple[str, str]:
    """Title and text of a file that begins with a line `# Title`."""
    heading, _, text = path.read_text(encoding="utf-8").partition("\n")
    if not heading.startswith("# ") or not text.strip():
        raise ValueError(f"{path}: expected a first line '# Title' and a text below it")
    return heading.removeprefix("# ").strip(), text.strip()


def corpus(articles: Path) -> str:
    """The lines of `corpus.jsonl`, in the order of the ids' bytes."""
    paths = {path.relative_to(articles).as_posix(): path for path in articles.rglob("*.md")}
    lines = []
    for identity in sorted(paths, key=lambda name: name.encode()):
        title, text = article(paths[identity])
        lines.append(json.dumps({"_id": identity, "title": title, "text": text}, ensure_ascii=False))
    return "".join(line + "\n" for line in lines)


def main(arguments: list[str]) -> int:
    """Write or check each example's corpus."""
    stale = []
    for articles in sorted(HERE.glob("*/articles")):
        target = articles.parent / "corpus.jsonl"
        wanted = corpus(articles)
        if "--check" not in arguments:
            target.write_text(wanted, encoding="utf-8", newline="\n")
        elif not target.exists() or target.read_text(encoding="utf-8") != wanted:
            stale.append(target)
    for path in stale:
        sys.stderr.write(f"{path} is stale; run python examples/make_dataset.py\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
