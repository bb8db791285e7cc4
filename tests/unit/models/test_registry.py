"""Specs, what is found on this machine, and refusals that need no model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.base.installed import install_command
from ketrag_fast.errors import BackendError, BackendMissing, ConfigError, NetworkForbidden
from ketrag_fast.models.embedders import discovery as find
from ketrag_fast.models.embedders import sentence_transformers
from ketrag_fast.models.embedders.model_folder import look
from ketrag_fast.models.embedders.registry import EmbedderOptions, load, parse


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def model(folder: Path, *, kind: str = "sentence_transformers.models.Transformer", **config: Any) -> Path:
    """A folder with everything but meaning: one tensor of four bytes."""
    folder.mkdir(parents=True)
    modules = [{"idx": 0, "name": "0", "path": "", "type": kind}]
    modules.append(
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
    )
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "config.json").write_text(
        json.dumps({"hidden_size": 8, "max_position_embeddings": 40, **config})
    )
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 8}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 32}))
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 4)
    return folder


def test_specs() -> None:
    assert parse("builtin") == ("builtin", "")
    assert parse("openai:m@http://h:1/v1") == ("openai", "m@http://h:1/v1")
    assert parse(r"vectors:C:\data") == ("vectors", r"C:\data")
    for bad in ("", "bert", "sentence-transformers:", "torch:x", "builtin:x"):
        with pytest.raises(ConfigError, match="must be one of"):
            parse(bad)
    with pytest.raises(ConfigError, match="fitted by the build"):
        load("builtin")


def test_a_name_that_is_not_here_is_never_downloaded_unasked() -> None:
    for options in (
        EmbedderOptions(),
        EmbedderOptions(offline=True),
        EmbedderOptions(offline=True, allow_download=True),
    ):
        with pytest.raises(NetworkForbidden, match="not on this machine") as caught:
            load("sentence-transformers:acme/nothing", options)
        assert "--allow-download" in str(caught.value.hint)
    with pytest.raises(BackendError, match="no such folder"):
        load("sentence-transformers:./nowhere/at/all")


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BackendMissing, match="torch") as caught:
        load(f"sentence-transformers:{model(tmp_path / 'm')}")
    assert install_command("embed") in str(caught.value.hint)


def test_models_of_the_cache_are_found_by_name(tmp_path: Path, empty_cache: Path) -> None:
    repository = empty_cache / "models--acme--tiny"
    snapshot = model(repository / "snapshots" / "abc")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    (empty_cache / "models--acme--broken").mkdir()
    listed = [entry for entry in find.find_models() if entry.source == "hub cache"]
    assert [(e.spec, e.dimension, e.longest, e.problem) for e in listed] == [
        ("sentence-transformers:acme/tiny", 8, 32, None)
    ]
    assert listed[0].bytes > 0
    assert find.resolve("acme/tiny") == snapshot and find.resolve("acme/other") is None


def test_folders_are_found_with_what_is_wrong_with_them(tmp_path: Path) -> None:
    model(tmp_path / "models" / "good")
    bad = model(tmp_path / "models" / "bad", auto_map={"AutoModel": "evil.Model"})
    listed = {e.path: e for e in find.find_models([tmp_path / "models"]) if e.source == "folder"}
    assert len(listed) == 2
    assert "custom code" in str(listed[str(bad)].problem)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f / "modules.json").unlink(), "no modules.json"),
        (lambda f: (f / "modules.json").write_text("[]"), "lists no module"),
        (lambda f: (f / "modules.json").write_text("[{"), "damaged"),
        (lambda f: (f / "modules.json").write_text('[{"type": "os.system", "path": ""}]'), "custom code"),
        (
            lambda f: (f / "modules.json").write_text(
                '[{"type": "sentence_transformers.models.Transformer", "path": "../.."}]'
            ),
            "outside",
        ),
        (lambda f: (f / "model.safetensors").write_bytes(b"\x40\0\0\0\0\0\0\0{"), "truncated"),
        (
            lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-1]),
            "is damaged: it has",
        ),
        (lambda f: (f / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{]"), "damaged"),
        (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), "can run code"),
        (lambda f: (f / "model.safetensors").unlink(), "no weights"),
    ],
)
def test_bad_folders(tmp_path: Path, change: Any, message: str) -> None:
    folder = model(tmp_path / "m")
    change(folder)
    with pytest.raises(BackendError, match=message):
        look(folder)


def test_the_hub_is_shut_while_loading_and_open_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import types

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    constants = types.SimpleNamespace(HF_HUB_OFFLINE=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", constants)
    with sentence_transformers._no_hub():
        assert os.environ["HF_HUB_OFFLINE"] == "1" and constants.HF_HUB_OFFLINE is True
    assert "HF_HUB_OFFLINE" not in os.environ and constants.HF_HUB_OFFLINE is False
