"""Scores of retrieval and of answers, shared by tests, benchmarks and the command line."""

from __future__ import annotations

from ketrag_fast.eval.answers import Answers, read_answers
from ketrag_fast.eval.compare import (
    ComparedRun,
    Comparison,
    PairedDifference,
    compare,
    compare_paired,
    render_comparison,
)
from ketrag_fast.eval.datasets import DataSet, Question, load_dataset
from ketrag_fast.eval.results import METRICS, Result, ResultRow, render
from ketrag_fast.eval.run import Collected, collect
from ketrag_fast.eval.saved import Run, describe, load, save

__all__ = [
    "METRICS",
    "Answers",
    "Collected",
    "ComparedRun",
    "Comparison",
    "DataSet",
    "PairedDifference",
    "Question",
    "Result",
    "ResultRow",
    "Run",
    "collect",
    "compare",
    "compare_paired",
    "describe",
    "load",
    "load_dataset",
    "read_answers",
    "render",
    "render_comparison",
    "save",
]
