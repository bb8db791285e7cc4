"""`ketrag models`: what is found, and a close look at one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ketrag_fast.apps.cli.main import main
from tests.support.endpoint import Endpoint, words_encoder
from tests.unit.models.test_registry import model


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


def test_a_list_with_sizes_and_with_how_to_bring_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model(tmp_path / "mine")
    assert main(["models", "list", str(folder)]) == 0
    text = capsys.readouterr().out
    assert f"sentence-transformers:{folder}  (folder, 0 MB, 8 dimensions, reads 32 tokens)" in text
    assert text.startswith("builtin") and "without network" in text
    assert main(["models", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "ketrag/models/1" and data["models"][0]["spec"] == "builtin"


@pytest.mark.usefixtures("loopback")
def test_check(capsys: pytest.CaptureFixture[str]) -> None:
    with Endpoint(words_encoder()) as server:
        assert main(["models", "check", f"openai:mini@{server.url}", "--offline", "--json"]) == 0
        data = json.loads(capsys.readouterr().out)
        assert (data["schema"], data["dimension"], data["engine"]["name"]) == (
            "ketrag/model-check/1",
            16,
            "openai",
        )
        assert data["batching"] > 0.99999 and data["tokens_per_second"] > 0
        assert main(["models", "check", f"openai:mini@{server.url}"]) == 0
        assert "fingerprint: " + data["fingerprint"] in capsys.readouterr().out


def test_what_fails_has_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "check", "openai:m@https://example.org/v1", "--offline"]) == 5
    assert main(["models", "check", "sentence-transformers:acme/nothing"]) == 5
    assert "--allow-download" in capsys.readouterr().err
    assert main(["models", "check"]) in (1, 2)
