"""A browser, and helpers to look at pages in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.browser_fixtures import page as page
from tests.support.browser_fixtures import window as window


@pytest.fixture(scope="package")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: `KETRAG_PICTURES` keeps them for people to look at."""
    kept = os.environ.get("KETRAG_PICTURES")
    return Path(kept) if kept else tmp_path_factory.mktemp("pictures")
