"""Data sets by their path: a folder in BEIR layout, or a file of MuSiQue, HotpotQA or 2WikiMultihopQA."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast.errors import DocumentError
from ketrag_fast.lab.eval.beir import load_folder
from ketrag_fast.lab.eval.multihop import load_file
from ketrag_fast.lab.eval.question import DataSet, Question

__all__ = ["DataSet", "Question", "load_dataset"]


def load_dataset(path: str | Path) -> DataSet:
    """Read the data set at `path`.

    Raises `DocumentError` naming file and line (or entry) of an invalid entry or repeated id, or naming the
    path if the set or its `queries.jsonl` is missing.
    """
    path = Path(path)
    if path.is_dir():
        return load_folder(path)
    if path.is_file():
        return load_file(path)
    raise DocumentError(
        f"{path} does not exist",
        hint="a data set is a folder with queries.jsonl, or a file of MuSiQue, HotpotQA or 2WikiMultihopQA",
    )
