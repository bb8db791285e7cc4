"""Scores of retrieval and of answers: the same code for tests, benches and the command line."""

from __future__ import annotations

from ketrag_fast.eval.datasets import DataSet, Question, load_dataset
from ketrag_fast.eval.run import Row, evaluate
from ketrag_fast.eval.table import render

__all__ = ["DataSet", "Question", "Row", "evaluate", "load_dataset", "render"]
