from __future__ import annotations

import pytest

from ketrag_fast.errors import ConfigError
from ketrag_fast.models.llms.registry import ModelOptions, is_model, open_model, parse_spec


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("none", ("none", "")),
        ("heuristic", ("heuristic", "")),
        ("llama-cpp:/models/a:b.gguf", ("llama-cpp", "/models/a:b.gguf")),
        ("openai:m@http://127.0.0.1:1/v1", ("openai", "m@http://127.0.0.1:1/v1")),
        ("replay:r.jsonl", ("replay", "r.jsonl")),
    ],
)
def test_specs(spec: str, parts: tuple[str, str]) -> None:
    assert parse_spec(spec) == parts
    assert is_model(spec) is (parts[0] in ("llama-cpp", "openai"))


@pytest.mark.parametrize("spec", ["", "gpt", "llama-cpp", "llama-cpp:", "openai: ", "none:x", "http://x"])
def test_other_specs_are_refused_with_the_forms(spec: str) -> None:
    with pytest.raises(ConfigError, match="replay:FILE"):
        parse_spec(spec)


@pytest.mark.parametrize("spec", ["none", "heuristic", "replay:r.jsonl"])
def test_what_is_no_model_cannot_be_opened(spec: str) -> None:
    with pytest.raises(ConfigError, match="not a language model"):
        open_model(spec)


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError):
        ModelOptions(slots=-1)
