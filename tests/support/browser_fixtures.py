"""Fixtures of tests that look at pages, for the conftest.py of their folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser, browser


class Window:
    """The browser of a module, and another one when it is stuck."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._open = contextlib.ExitStack()
        self._found: Browser | None = None

    def browser(self) -> Browser:
        if self._found is None or self._found.stuck:
            self.close()
            self._found = self._open.enter_context(browser(self._folders.mktemp("profile")))
            self._found.takes_pictures = bool(os.environ.get("KETRAG_PICTURES"))
        return self._found

    def replace(self) -> None:
        """The next test gets another browser."""
        self.close()
        self._found = None

    def close(self) -> None:
        self._open.close()


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    found = Window(tmp_path_factory)
    yield found
    found.close()


@pytest.fixture
def page(window: Window, request: pytest.FixtureRequest) -> Browser:
    if getattr(request.node, "execution_count", 1) > 1:  # it failed before: maybe because of the browser
        window.replace()
    found = window.browser()
    found.go("about:blank")
    found.problems.clear()
    found.requests.clear()
    found.look(1280, 900)
    return found


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go. They are taken only with `KETRAG_PICTURES=FOLDER`, for people to look at."""
    kept = os.environ.get("KETRAG_PICTURES")
    return Path(kept) if kept else tmp_path_factory.mktemp("pictures")


def texts(page: Browser, selector: str) -> list[str]:
    return list(page.value(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)"))


def fits(page: Browser) -> bool:
    return bool(page.value("document.documentElement.scrollWidth <= window.innerWidth"))


def problems(page: Browser) -> list[str]:
    """What the console complains of, without the driver's word that WebGL runs in software."""
    return [text for text in page.problems if "software WebGL" not in text and "GPU stall" not in text]
