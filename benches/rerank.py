"""Time that reranking adds to a question: a cross-encoder of MiniLM's size that reads 30 passages.

    python benches/rerank.py

The cross-encoder is all-MiniLM-L6-v2 with random outputs, because its time does not depend on its weights; `auto` would choose f32 for
such scores, so each precision is measured. All are measured on one thread, without an embedding model, over the passages of musique-dev.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common import WORK, arguments, median, publish, require_data, require_model, seconds, target
from common import result_table as table
from ketrag_fast import Index, Settings, _core
from ketrag_fast.lab.eval import load_dataset

SET = "musique-dev"
PASSAGES = 30
PRECISIONS = ("fp32", "bf16", "int8")
TILES_MS, MOST_MS = 30, 120
"""Milliseconds that reranking may add on a core with matrix tiles, and on others."""


def cross_encoder(folder: Path) -> Path:
    """Write all-MiniLM-L6-v2 with one random output, as transformers saves it, and return the folder."""
    import transformers

    if not (folder / "model.safetensors").exists():
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            str(require_model()), num_labels=1, local_files_only=True, use_safetensors=True
        )
        model.save_pretrained(str(folder))
        (folder / "tokenizer.json").write_bytes((require_model() / "tokenizer.json").read_bytes())
    return folder


def times(place: Path, questions: Sequence[str], rerank: str | None, precision: str = "auto") -> list[float]:
    """Return the milliseconds of each question in mode walk."""
    with Index.open(place, settings=Settings(rerank=rerank, precision=precision, threads=1)) as index:
        index.retrieve(questions[0], mode="walk", budget=4_000)  # opens the model and chooses its kernel
        return [
            1e3 * value
            for question in questions
            for value in seconds(lambda q=question: index.retrieve(q, mode="walk", budget=4_000), 1, 0)
        ]


def main() -> None:
    """Measure and print."""
    args = arguments(__doc__).parse_args()
    folder = require_data(SET)
    questions = [q.text for q in load_dataset(folder).questions[: 2 if args.smoke else 20]]
    place = WORK / "rerank-index"
    Index.build(folder, place, settings=Settings(modes="walk")).close()
    read = f"cross-encoder of MiniLM's size, {PASSAGES} passages"
    cross = f"native:{cross_encoder(WORK / 'rerank-cross')}"
    found = {
        "none": times(place, questions, None),
        **{f"{read}, {precision}": times(place, questions, cross, precision) for precision in PRECISIONS},
    }
    most = TILES_MS if "amx" in _core.encoder_kernels() else MOST_MS
    plain = median(found["none"])
    rows = [
        [
            name,
            median(own),
            median(own) - plain,
            "" if name == "none" else target(median(own) - plain, most=most),
        ]
        for name, own in found.items()
    ]
    about = f"{SET}, {len(questions)} questions, one thread, contexts of 4,000 tokens."
    publish([table("", ["reranker", "ms a question", "added ms", "target"], rows)], about)


if __name__ == "__main__":
    main()
