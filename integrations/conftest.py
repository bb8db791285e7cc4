"""What the tests of all integrations share: an index of the demo's articles, closed sockets, async tests."""

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
    """Other people's suites have async tests and leave their running to us."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def polar_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once."""
    from ketrag_fast import Index, Settings

    path = tmp_path_factory.mktemp("polar") / "index"
    Index.build(HERE.parent / "examples" / "polar" / "articles", path, settings=Settings(threads=1)).close()
    return path
