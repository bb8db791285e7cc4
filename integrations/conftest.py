"""Shared by the tests of all integrations: an index of the demo articles, closed sockets, async tests."""

from __future__ import annotations

import asyncio
import inspect
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
for distribution in ("langchain-ketrag", "llama-index-ketrag"):
    sys.path.insert(0, str(HERE / distribution))
sys.path.insert(0, str(HERE.parent))

from tests.conftest import no_network  # noqa: E402, F401 - a fixture for every test here, too


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run the async tests of third-party suites, which leave that to the project."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def polar_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the demo index once, with vectors."""
    from ketrag_fast import Index, Settings

    path = tmp_path_factory.mktemp("polar") / "index"
    Index.build(
        HERE.parent / "examples" / "polar" / "articles",
        path,
        settings=Settings(threads=1, modes=("auto", "text")),
    ).close()
    return path


@pytest.fixture(scope="session")
def dated_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build an index of 40 documents with metadata once: years 1900 to 1939, every fourth in German."""
    from ketrag_fast import Document, Index, Settings

    documents = [
        Document(
            f"d{number}",
            f"The ship {number} sailed to the polar basin.",
            f"Ship {number}",
            {
                "year": 1900 + number,
                "lang": "en" if number % 4 else "de",
                "crew": [{"name": f"sailor {number}"}],
                "page": "a page of the document",
            },
        )
        for number in range(40)
    ]
    path = tmp_path_factory.mktemp("dated") / "index"
    Index.build(documents, path, settings=Settings(threads=1)).close()
    return path
