"""Fixtures of tests that look at pages, for the conftest.py of their folder."""

from __future__ import annotations

from collections.abc import Iterator

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
