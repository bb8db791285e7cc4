"""Fixtures of tests that look at pages, for the conftest.py of their folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser, browser


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def page(window: Browser) -> Browser:
    window.go("about:blank")
    window.problems.clear()
    window.requests.clear()
    window.look(1280, 900)
    return window


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: `KETRAG_PICTURES` keeps them for people to look at."""
    kept = os.environ.get("KETRAG_PICTURES")
    return Path(kept) if kept else tmp_path_factory.mktemp("pictures")


def texts(page: Browser, selector: str) -> list[str]:
    return list(page.value(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)"))


def fits(page: Browser) -> bool:
    return bool(page.value("document.documentElement.scrollWidth <= window.innerWidth"))


def problems(page: Browser) -> list[str]:
    """What the console complains of, without the driver's word that WebGL runs in software."""
    return [text for text in page.problems if "software WebGL" not in text and "GPU stall" not in text]
