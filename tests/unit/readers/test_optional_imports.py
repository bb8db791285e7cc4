"""Errors of optional packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast.base.installed import install_command
from ketrag_fast.errors import BackendMissing
from ketrag_fast.readers.protocol import import_optional


def test_a_package_that_is_not_installed_is_named_once() -> None:
    with pytest.raises(BackendMissing) as caught:
        import_optional("no_such_package.part", "a PDF")
    message = "a PDF cannot be read without the package no_such_package, which is not installed"
    assert (caught.value.message, caught.value.hint) == (message, install_command("documents"))


def test_a_package_that_cannot_be_imported_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_installed.py").write_text("import no_such_package", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BackendMissing, match=r"cannot be imported .*No module named 'no_such_package'"):
        import_optional("half_installed", "a PDF")
