"""The extras of the package: what their names promise, and no name of the package itself."""

from __future__ import annotations

import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {name: set(needs) for name, needs in PROJECT["optional-dependencies"].items()}


def test_local_is_all_that_runs_models_on_this_machine() -> None:
    named = EXTRAS["embed"] | EXTRAS["ann"] | EXTRAS["llm"]
    assert named < EXTRAS["local"]
    assert {need.split(">")[0] for need in EXTRAS["local"] - named} == {"tiktoken", "nltk"}


def test_all_is_every_extra_of_a_user() -> None:
    """Not what tests and benchmarks need, and not what brings a program under the GPL."""
    others = ("all", "dev", "bench", "docs", "real", "ray-serve")
    users = [needs for name, needs in EXTRAS.items() if name not in others]
    assert set().union(*users) == EXTRAS["all"]


def test_no_extra_brings_the_model_s_package_with_its_dependencies() -> None:
    """It would bring torch; `ketrag models install` leaves that out."""
    assert "minilm" not in EXTRAS
    assert not [need for needs in EXTRAS.values() for need in needs if "minilm" in need]


def test_no_extra_names_the_package_itself() -> None:
    assert not [need for needs in EXTRAS.values() for need in needs if need.startswith(PROJECT["name"])]
