"""Scores of retrieval and of answers: the same code for tests, benches and the command line."""

from __future__ import annotations

from ketrag_fast.lab.eval.answers import Answers, read_answers
from ketrag_fast.lab.eval.compare import Comparison, Side, compare, render_comparison
from ketrag_fast.lab.eval.concatenate import concatenated
from ketrag_fast.lab.eval.datasets import DataSet, Question, load_dataset
from ketrag_fast.lab.eval.paired import Difference, holm, paired
from ketrag_fast.lab.eval.provenance import describe
from ketrag_fast.lab.eval.results import METRICS, Result
from ketrag_fast.lab.eval.rows import Row
from ketrag_fast.lab.eval.run import Collected, collect, evaluate
from ketrag_fast.lab.eval.saved import Run, load, save
from ketrag_fast.lab.eval.table import render

__all__ = [
    "METRICS",
    "Answers",
    "Collected",
    "Comparison",
    "DataSet",
    "Difference",
    "Question",
    "Result",
    "Row",
    "Run",
    "Side",
    "collect",
    "compare",
    "concatenated",
    "describe",
    "evaluate",
    "holm",
    "load",
    "load_dataset",
    "paired",
    "read_answers",
    "render",
    "render_comparison",
    "save",
]
