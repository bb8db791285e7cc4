"""Build an index of the example articles and print its digest and every context as JSON.

    python .ci/platform_digest.py > digest.json

The modes need no model, so the output must be equal to the byte on every platform: `.ci/aarch64 compare`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from ketrag_fast import Index, Settings

POLAR: Final = Path(__file__).resolve().parents[1] / "examples" / "polar"
MODES: Final = ("bm25", "text", "fused", "knn", "keyword", "walk", "skeleton", "ket")


def main() -> int:
    """Build, retrieve and print."""
    lines = (POLAR / "queries.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line)["text"] for line in lines]
    settings = Settings(llm="heuristic", modes=",".join(MODES))
    with (
        tempfile.TemporaryDirectory() as folder,
        Index.build(POLAR / "articles", Path(folder) / "index", settings=settings) as index,
    ):
        contexts = {mode: [index.retrieve(text, mode=mode).text for text in questions] for mode in MODES}
        json.dump({"digest": index.digest, "contexts": contexts}, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
