"""A test of a real part is never left out unseen: on a desk it is skipped with a word, in CI it fails."""

from __future__ import annotations

import json

import pytest

from tests.support.parts import part


def test_what_is_there_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "true"):
        monkeypatch.setenv("CI", value)
        assert part("json", "checks") is json


def test_what_is_missing_is_skipped_on_a_desk_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"no_such_part is not installed.*ketrag-fast\[ann\]"):
        part("no_such_part", "ann")
    with pytest.raises(pytest.fail.Exception, match=r"pip install --group checks"):
        part("no_such_part", "checks")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match=r"ketrag-fast\[ann\]"):
        part("no_such_part", "ann")
