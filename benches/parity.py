"""The preset `ket-rag:reference` next to the reference functions of KET-RAG, on one shuffled document.

    python benches/parity.py [--nltk-data FOLDER]

FOLDER holds NLTK's `punkt_tab` and `stopwords`; without the option they are read from NLTK's usual folders, or from the copy that
llama-index-core brings.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

from common import WORK, arguments, publish, require_data, require_model
from common import result_table as table
from ketrag_fast import Document, Index, Settings
from ketrag_fast.eval import DataSet, collect, load_dataset

SET: Final = "musique-train100"
BUDGETS: Final = (12_000, 6_000, 3_000)
WINDOWS: Final = {"chunk_tokens": 150, "split_level": 0, "overlap": 0}
REFERENCE: Final = (
    ("windows of 150", WINDOWS, "text", (78, 59, 49)),
    ("windows of 150", WINDOWS, "keyword", (85, 70, 63)),
    ("windows of 1,200 that share 100, cut to 150", {}, "text", (77, 66, 55)),
    ("windows of 1,200 that share 100, cut to 150", {}, "keyword", (81, 72, 63)),
)
"""Units, their settings, channel, and the questions that the reference functions covered at each budget."""


def nltk_data() -> str | None:
    """Return the folder of NLTK's data that llama-index-core brings, if it is installed."""
    spec = importlib.util.find_spec("llama_index.core") if importlib.util.find_spec("llama_index") else None
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = [Path(place) / "_static" / "nltk_cache" for place in places]
    return next((str(folder) for folder in found if folder.is_dir()), None)


def concatenate(dataset: DataSet) -> DataSet:
    """Return the questions over one document of all passages, as the reference implementation reads the set.

    Passages of one question are neighbours in the file, which flatters large chunks, so they are shuffled.
    """
    assert dataset.corpus is not None
    texts = [json.loads(line)["text"] for line in dataset.corpus.read_text("utf-8").splitlines()]
    random.Random(0).shuffle(texts)
    questions = tuple(replace(question, gold=frozenset()) for question in dataset.questions)
    return replace(
        dataset, corpus=None, documents=(Document("concatenated", "\n".join(texts)),), questions=questions
    )


def main() -> None:
    """Measure the four settings."""
    parser = arguments(__doc__)
    parser.add_argument("--nltk-data", default=nltk_data())
    args = parser.parse_args()
    if args.nltk_data:
        os.environ["NLTK_DATA"] = args.nltk_data
    dataset = concatenate(load_dataset(require_data(SET)))
    if args.smoke:
        dataset = replace(dataset, questions=dataset.questions[:3])
    rows = []
    for units, own, mode, reference in REFERENCE[-1:] if args.smoke else REFERENCE:
        settings = Settings(system="ket-rag:reference", modes="text,keyword", precision="fp32", **own)
        settings = settings.having(**{} if args.smoke else {"embedder": f"native:{require_model()}"})
        place = WORK / "parity"
        with Index.build(dataset.sources, place, settings=settings, replace=True, rebuild=True) as index:
            results = collect(index, dataset, [mode], BUDGETS)
        for budget, theirs in zip(BUDGETS, reference, strict=True):
            ours = sum(bool(result.covered) for result in results.of(mode, budget))
            rows.append([units, mode, budget, ours, theirs])
        shutil.rmtree(place)
    publish(
        [table("Preset `ket-rag:reference`", ["units", "channel", "tokens", "parity", "reference"], rows)],
        f"{SET} as one document, shuffled with seed 0.",
        [
            "The order of the document alone moves a cell by up to nine questions; with given units and vectors every context"
            " equals the reference to the letter (tests/parity)."
        ],
    )


if __name__ == "__main__":
    main()
