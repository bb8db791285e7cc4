"""The examples in the docstrings of the public modules run, and every public name has one."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import ketrag_fast
from ketrag_fast import Document, Index, Settings, errors, extending, kernels, types
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.spec.documents import Documents
from tests import small_model
from tests.process import ROOT

MODULES = [
    "ketrag_fast.errors",
    "ketrag_fast.extending",
    "ketrag_fast.base.progress",
    "ketrag_fast.base.config.fields",
    "ketrag_fast.base.config.settings",
    "ketrag_fast.index.index",
    "ketrag_fast.index.indexes",
    "ketrag_fast.interchange.exporting",
    "ketrag_fast.interchange.importing",
    "ketrag_fast.query.excerpts",
    "ketrag_fast.query.source_paths",
    "ketrag_fast.query.narrowing",
    "ketrag_fast.query.query",
    "ketrag_fast.systems.papers.kernels",
    *(f"ketrag_fast.systems.spec.{name}" for name in ("arrays", "documents", "drawing", "stage", "system")),
    *(
        f"{package.__name__}.{info.name}"
        for package in (kernels, types)
        for info in pkgutil.iter_modules(package.__path__)
    ),
]
INTERNAL = {"arrays"}
"""Kernels that only built-in systems call; they have no examples."""

NO_EXAMPLE = {
    # They need a full or failing disk, too little memory, or a defect.
    "InternalError", "OutOfMemory", "StorageFailed", "StorageFull", "TooManyFiles",
    # They need a second process, an index of another version, an endpoint, or a missing package.
    "BackendError", "BackendMissing", "EndpointNotConfirmed", "ExtensionError", "ExtractionError",
    "IndexIncompatible", "IndexLocked", "ModelMismatch",
}  # fmt: skip
"""Errors that no example of some milliseconds can raise."""

LIBRARY = [
    Document("fram", "Nansen sailed the Fram into the ice in 1893.", "Fram", {"year": 1893}),
    Document("maud", "Amundsen sailed the Maud along the coast in 1918.", "Maud", {"year": 1918}),
    Document("nansen", "Nansen was born near Oslo. He led the men.", "Fridtjof Nansen", {"year": 1861}),
]
SETTINGS = Settings(llm="heuristic", modes="auto,skeleton")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.build(LIBRARY, tmp_path_factory.mktemp("ships") / "index", settings=SETTINGS) as built:
        yield built


@pytest.fixture
def namespace(index: Index, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The names that examples may use: an index, its documents, and folders."""
    model = small_model.save(tmp_path / "model", small_model.config())
    with Tables(Layout(index.path).tables, read_only=True) as tables:
        yield {
            "index": index,
            "index_settings": SETTINGS,
            "library": LIBRARY,
            "documents": Documents(tables),
            "folder": model,
        }


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, namespace: dict[str, Any], tmp_path: Path) -> None:
    """Each docstring runs with a folder of its own, `scratch`."""
    module = import_module(name)
    runner = doctest.DocTestRunner()
    attempted, failed = 0, []
    for number, test in enumerate(doctest.DocTestFinder().find(module, extraglobs=namespace)):
        test.globs["scratch"] = tmp_path / str(number)
        test.globs["scratch"].mkdir()
        test.globs["lightrag_folder"] = ROOT / "tests" / "data" / "lightrag"
        result = runner.run(test)
        attempted += result.attempted
        failed += [test.name] * bool(result.failed)
    assert not failed
    assert bool(attempted) == (name.rpartition(".")[2] not in INTERNAL or "kernels" not in name)


def _public() -> Iterator[tuple[str, Any]]:
    """Yield the public classes, functions and methods. Constants and aliases have no docstring."""
    for module in (ketrag_fast, errors, extending, kernels, types):
        names = getattr(module, "__all__", None) or [
            name for name, value in vars(module).items() if isinstance(value, type) and name[0] != "_"
        ]
        for name in names:
            value = getattr(module, name, None)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield name, value
    for name, value in vars(Index).items():
        if not name.startswith("_"):
            yield f"Index.{name}", getattr(value, "__func__", value)


def test_every_public_name_has_an_example() -> None:
    public = dict(_public())
    assert len(public) > 100
    without = {name for name, value in public.items() if ">>>" not in (inspect.getdoc(value) or "")}
    assert without == NO_EXAMPLE


def test_every_example_of_a_public_name_is_collected() -> None:
    homes = {value.__module__ for name, value in _public() if "." not in name}
    assert homes <= set(MODULES), homes - set(MODULES)
