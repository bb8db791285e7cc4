"""The examples in the docstrings of the public modules run and print what they show."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

from ketrag_fast import kernels, types
from tests import small_model

MODULES = [
    "ketrag_fast.errors",
    "ketrag_fast.extending",
    *(
        f"{package.__name__}.{info.name}"
        for package in (kernels, types)
        for info in pkgutil.iter_modules(package.__path__)
    ),
]
WITHOUT_EXAMPLES = {"arrays", "centrality", "citations", "published", "answers", "entities", "reports"}


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, tmp_path: Path) -> None:
    folder = small_model.save(tmp_path / "model", small_model.config())
    results = doctest.testmod(import_module(name), extraglobs={"folder": folder}, report=True)
    assert results.failed == 0
    assert bool(results.attempted) == (name.rpartition(".")[2] not in WITHOUT_EXAMPLES)
