from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.base.config import (
    Settings,
    build_settings,
    catalogue,
    from_environment,
    from_file,
    names,
    parse,
    resolve,
)
from ketrag_fast.errors import ConfigError
from ketrag_fast.systems.planning import chain
from ketrag_fast.systems.registry import registry


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"chunk_tokens": 0}, "chunk_tokens: 0 is not a whole number from 8 to"),
        ({"chunk_tokens": True}, "chunk_tokens: True"),
        ({"chunk_tokens": 1.5}, "chunk_tokens: 1.5"),
        ({"core_ratio": 1.1}, "core_ratio: 1.1 is not a number from 0.0 to 1.0"),
        ({"core_ratio": float("nan")}, "core_ratio: nan"),
        ({"deadline": -0.1}, "deadline: -0.1 is not a number or none"),
        ({"cut": "words"}, "cut: 'words' is not one of sentences, windows"),
        ({"cut": None}, "cut: None"),
        ({"system": ""}, "system is empty"),
        ({"mode": ["bm25"]}, "mode: "),
        ({"overlap": 200}, r"overlap \(200\) must be below chunk_tokens \(200\)"),
        ({"offline": 1}, "offline: 1 is not true or false"),
    ],
)
def test_impossible_values_name_their_setting(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Settings(**values)


def test_zero_and_empty_are_values() -> None:
    zero = Settings(core_ratio=0.0, knn_k=0, budget=0, threads=0, deadline=0, top=0)
    assert zero.given == {
        "knn_k": 0,
        "core_ratio": 0.0,
        "budget": 0,
        "top": 0,
        "deadline": 0,
        "threads": 0,
    }
    layered = resolve(
        flags={"core_ratio": 0.0}, environment={"core_ratio": 0.5}, file={"knn_k": 0}, index={"knn_k": 4}
    )
    assert (layered.settings.core_ratio, layered.settings.knn_k) == (0.0, 0)
    none = resolve(flags={"sparse_model": None}, index={"sparse_model": "x"})
    assert none.settings.sparse_model is None
    assert none.differences == (("sparse_model", "x", None),)


def test_each_source_goes_before_the_next() -> None:
    sources: list[tuple[str, dict[str, Any]]] = [
        ("flag", {"flags": {"knn_k": 1}}),
        ("environment", {"environment": {"knn_k": 3}}),
        ("file", {"file": {"knn_k": 4}}),
        ("index", {"index": {"knn_k": 5}}),
        ("default", {}),
    ]
    expected = dict(zip([origin for origin, _ in sources], [1, 3, 4, 5, 2], strict=True))
    for first in range(len(sources)):
        arguments: dict[str, Any] = {}
        for _, argument in sources[first:]:
            arguments |= argument
        found = resolve(**arguments)
        origin = sources[first][0]
        assert (found.settings.knn_k, found.origins["knn_k"]) == (expected[origin], origin)


def test_a_system_fills_what_nobody_names() -> None:
    found = resolve(flags={"system": "ket-rag"}, file={"chunk_tokens": 600}, presets=registry().table)
    assert (found.settings.chunk_tokens, found.settings.split_level, found.settings.cut) == (
        600,
        3,
        "windows",
    )
    assert found.origins["split_level"] == "system ket-rag"


def test_a_new_system_goes_before_the_index_and_the_same_one_does_not() -> None:
    index = build_settings(Settings(chunk_tokens=300, knn_k=7, seed=1))
    found = resolve(flags={"system": "ket-rag"}, index=index, presets=registry().table)
    assert (found.settings.chunk_tokens, found.settings.knn_k, found.settings.seed) == (1200, 2, 1)
    assert found.needs_rebuild == ("chunk_tokens", "split_level", "cut")
    index = build_settings(found.settings) | {"chunk_tokens": 600}
    same = resolve(flags={"system": "ket-rag"}, index=index, presets=registry().table)
    assert (same.settings.chunk_tokens, same.differences) == (600, ())
    back = resolve(flags={"system": "default"}, index=index, presets=registry().table)
    assert (back.settings.chunk_tokens, back.settings.cut, back.settings.seed) == (200, "sentences", 1)


def test_the_index_says_nothing_about_queries() -> None:
    found = resolve(index={"budget": 7, "threads": 3, "knn_k": 4})
    assert (found.settings.budget, found.settings.threads, found.settings.knn_k) == (4000, 0, 4)


def test_environment() -> None:
    environ = {
        "KETRAG_KNN_K": "0",
        "KETRAG_DEADLINE": "",
        "KETRAG_OFFLINE": "yes",
        "KETRAG_INDEX": "x",
        "KETRAG_ENCODER_KERNEL": "portable",
        "KETRAG_CPU_WITHOUT": "amx",
        "PATH": "/",
    }
    assert from_environment(environ) == {"deadline": None, "knn_k": 0, "offline": True}
    with pytest.raises(ConfigError, match="KETRAG_KNN_K: knn_k is empty"):
        from_environment({"KETRAG_KNN_K": ""})
    with pytest.raises(ConfigError, match="KETRAG_CHUNK_TOKEN") as caught:
        from_environment({"KETRAG_CHUNK_TOKEN": "3"})
    assert caught.value.hint == "did you mean chunk_tokens?"


def test_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert from_file(None) == {}
    path = tmp_path / "ketrag.toml"
    path.write_text('chunk-tokens = 150\ndeadline = "none"\n', "utf-8-sig")
    assert from_file(None) == {"chunk_tokens": 150, "deadline": None}
    for text, message in (
        ("x = ", "is not TOML"),
        ("chunk = 1", "unknown setting 'chunk'"),
        ("\udcff", "is not TOML"),
    ):
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(ConfigError, match=message):
            from_file(path)
    with pytest.raises(ConfigError, match="is missing"):
        from_file(tmp_path / "other.toml")


def test_given_survives_copies() -> None:
    settings = Settings(knn_k=3)
    assert copy.deepcopy(settings).given == {"knn_k": 3}
    assert settings.having(seed=1).given == {"knn_k": 3, "seed": 1}
    assert settings == Settings(knn_k=3, seed=42)


@pytest.mark.parametrize("name", names())
def test_every_setting_parses_its_own_default(name: str) -> None:
    default = catalogue()[name].default
    if catalogue()[name].protects:  # its default, no restriction, has no text
        with pytest.raises(ConfigError, match="restricts nothing"):
            parse(name, "")
        return
    assert parse(name, "" if default is None else str(default)) == default
    assert catalogue()[name].help


@pytest.mark.parametrize("system", sorted(registry().presets))
def test_every_preset_is_possible(system: str) -> None:
    found = resolve(flags={"system": system}, presets=registry().table)
    assert found.settings.system == system
    for name, value in registry().presets[system].items():
        assert getattr(found.settings, name) == value


def test_systems_with_a_skeleton_glean_once_as_the_paper_does() -> None:
    found = registry()
    read = {
        name
        for name, row in found.presets.items()
        if "mode" in row
        and "replies" in {stage.name for stage in chain(found, row["mode"], Settings(llm="heuristic"))}
    }
    assert {name for name, row in found.presets.items() if row.get("gleanings") == 1} == read
    assert resolve(flags={"system": "default"}, presets=found.table).settings.gleanings == 0


def test_unknown_system() -> None:
    with pytest.raises(ConfigError, match="unknown system 'x'") as caught:
        resolve(flags={"system": "x"}, presets=registry().table)
    assert "ket-rag" in (caught.value.hint or "")
