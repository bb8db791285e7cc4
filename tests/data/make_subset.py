"""Makes the subset of musique-train100: every fifteenth passage, and what GPT-3.5 extracted from it.

python tests/data/make_subset.py DATA     # the folder of the question sets
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

STEP = 15
HERE = Path(__file__).parent


def main() -> None:
    """Writes corpus.jsonl and openie.gpt-3.5-turbo-1106.jsonl."""
    source = Path(sys.argv[1]) / "musique-train100"
    target = HERE / "musique-train100"
    target.mkdir(exist_ok=True)
    passages = (source / "corpus.jsonl").read_text("utf-8").splitlines(keepends=True)[::STEP]
    (target / "corpus.jsonl").write_text("".join(passages), "utf-8")
    ids = {json.loads(line)["_id"] for line in passages}
    name = "openie.gpt-3.5-turbo-1106.jsonl"
    recorded = (source / name).read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in recorded if json.loads(line)["corpus-id"] in ids]
    (target / name).write_text("".join(kept), "utf-8")


if __name__ == "__main__":
    main()
