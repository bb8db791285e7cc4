"""`ketrag bundle` writes all documents, so it does not run under `allow`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli.main import main


@pytest.mark.parametrize("allow", ["", " ", "none", "team=sales"])
def test_it_does_not_write_what_allow_hides(
    allow: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Index.build([Document("a", "Ada.", metadata={"team": "sales"})], tmp_path / "ix").close()
    words = ["bundle", str(tmp_path / "file"), "-i", str(tmp_path / "ix")]
    monkeypatch.setenv("KETRAG_ALLOW", allow)
    assert main(words) == 2
    assert "allow is" in capsys.readouterr().err
    assert not (tmp_path / "file").exists()
    monkeypatch.delenv("KETRAG_ALLOW")
    assert main(words) == 0
