"""What is compared: files, flags, presets and sweeps, and every way to write them wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError
from ketrag_fast.eval.comparison import configurations
from ketrag_fast.eval.comparison.configurations import (
    Configuration,
    check_configurations,
    from_file,
    from_flag,
    from_systems,
)
from ketrag_fast.systems.registry import registry

ROOT = Path(__file__).parents[4]
FILE = """knn_k = 4
[[build]]
name = "small"
chunk_tokens = 50
[[build]]
name = "paper"
system = "ket-rag"
knn-k = 2
"""


def test_a_file_has_common_settings_and_rows_that_win(tmp_path: Path) -> None:
    path = tmp_path / "builds.toml"
    path.write_text(FILE)
    small, paper = from_file(path)
    assert (small.name, dict(small.settings)) == ("small", {"knn_k": 4, "chunk_tokens": 50})
    assert paper.resolved(Settings()).knn_k == 2
    assert paper.resolved(Settings()).chunk_tokens == 1200  # the system's
    assert small.resolved(Settings(seed=7)).seed == 7  # common to all


def test_a_build_is_told_every_setting_so_that_nothing_comes_from_an_older_index() -> None:
    given = Configuration("x", {"knn_k": 5}).to_build(Settings(threads=1)).given
    assert given["chunk_tokens"] == 200
    assert (given["knn_k"], given["threads"]) == (5, 1)
    assert "budget" not in given


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "names no builds"),
        ("build = 3", "names no builds"),
        ("[[build]]\nsystem = 'default'", "has no name"),
        ("[[build]]\nname = 'a'\nknnk = 2", "knnk"),
        ("[[build]]\nname = 'a'\nknn_k = -2", "knn_k"),
        ("[[build]]\nname = 'a'\nknn_k = 'two'", "knn_k"),
        ("[[build]]\nname = 'a'\n[[build]]\nname = 'a'", "two configurations"),
        ("[[build]]\nname = ''", "not a valid name"),
        ("[[build]]\nname = 'a'\nthreads = 2", "threads does not change results"),
        ("[[build", "not TOML"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "builds.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=word):
        from_file(path)


def test_a_flag_is_a_row() -> None:
    row = from_flag("rules: system=ket-rag, core-ratio=0.5")
    assert (row.name, dict(row.settings)) == ("rules", {"system": "ket-rag", "core_ratio": 0.5})
    assert from_flag("api: embedder=openai:m@http://127.0.0.1:1/v1").settings == {
        "embedder": "openai:m@http://127.0.0.1:1/v1"
    }
    for bad, word in (
        ("system=x", "no name"),
        ("a: system", "is not setting=value"),
        ("a: knn_k=x", "knn_k"),
    ):
        with pytest.raises(ConfigError, match=word):
            from_flag(bad)


def test_systems_and_limits() -> None:
    assert [c.name for c in from_systems(["ket-rag", "default"])] == ["ket-rag", "default"]
    with pytest.raises(ConfigError, match="unknown system 'best-rag'"):
        from_systems(["best-rag"])
    with pytest.raises(ConfigError, match="nothing to compare"):
        check_configurations([])
    with pytest.raises(ConfigError, match="more than"):
        check_configurations([Configuration(str(n), {}) for n in range(101)])


def test_a_sweep_varies_one_at_a_time_or_all_together() -> None:
    vary = [configurations.parse_vary("core_ratio=0.5,1"), configurations.parse_vary("knn_k=2,4")]
    assert [dict(p.varied) for p in configurations.points(vary)] == [
        {"core_ratio": 0.5},
        {"core_ratio": 1.0},
        {"knn_k": 2},
        {"knn_k": 4},
    ]
    assert configurations.points(vary, grid=True)[0].name == "core_ratio=0.5, knn_k=2"
    assert len(configurations.points(vary, grid=True)) == 4


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("core_ratio", "is not SETTING"),
        ("core=1", "core"),
        ("core_ratio=2", "core_ratio"),
        ("core_ratio=a", "core_ratio"),
        ("core_ratio=1,1.0", "repeated"),
        ("core_ratio=", "empty"),
        ("threads=1,2", "threads"),
        ("mode=text,walk", "vary does not take mode"),
    ],
)
def test_a_bad_sweep_is_refused(text: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        configurations.parse_vary(text)


def test_a_sweep_without_points_or_with_a_setting_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="nothing is varied"):
        configurations.points([])
    with pytest.raises(ConfigError, match="given twice"):
        configurations.points([("knn_k", [1]), ("knn_k", [2])])
    with pytest.raises(ConfigError, match="at most"):
        configurations.points([("seed", list(range(60))), ("knn_k", list(range(60)))], grid=True)


def test_points_with_the_same_units_are_built_together_largest_core_first() -> None:
    rows = [
        {"chunk_tokens": 100, "core_ratio": 0.2},
        {"chunk_tokens": 50, "core_ratio": 0.2},
        {"chunk_tokens": 100, "core_ratio": 0.9},
        {"chunk_tokens": 50, "core_ratio": 0.9},
    ]
    places = configurations.order([Configuration(str(n), row) for n, row in enumerate(rows)], Settings())
    assert places == [2, 0, 3, 1]


@pytest.mark.parametrize("path", sorted((ROOT / "benches" / "papers").glob("*.toml")), ids=str)
def test_the_experiments_of_the_papers_can_be_built(path: Path) -> None:
    builds = from_file(path)
    assert len(builds) > 1
    for build in builds:
        settings = build.resolved(Settings())
        assert settings.mode in registry().recipes
