"""The extras of the package and the groups of its developers: what their names promise."""

from __future__ import annotations

import re
import tomllib

from tests.process import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = {name: set(needs) for name, needs in PYPROJECT["project"]["optional-dependencies"].items()}
GROUPS = PYPROJECT["dependency-groups"]
_NAMED = re.compile(r"(?:ketrag-fast|'\.)\[([\w,-]+)\]")
_SEARCHED = ("python", "docs", "tests", "integrations", "examples")


def test_all_is_every_other_extra() -> None:
    assert set().union(*(needs for name, needs in EXTRAS.items() if name != "all")) == EXTRAS["all"]


def test_no_extra_brings_a_program_under_the_gpl() -> None:
    """Ray Serve brings HAProxy."""
    assert not [need for needs in EXTRAS.values() for need in needs if need.startswith("ray")]


def test_extras_and_groups_have_different_names() -> None:
    assert not EXTRAS.keys() & GROUPS.keys()


def test_every_extra_that_is_named_exists() -> None:
    """In hints, pages and tests; a name in braces is put in by the code."""
    files = [ROOT / "README.md", *(path for top in _SEARCHED for path in (ROOT / top).rglob("*"))]
    texts = [path.read_text("utf-8") for path in files if path.suffix in (".py", ".md")]
    named = {extra for text in texts for names in _NAMED.findall(text) for extra in names.split(",")}
    assert len(named) > 5
    assert named <= EXTRAS.keys()


def test_no_extra_brings_the_model_s_package_with_its_dependencies() -> None:
    """It would bring torch; `ketrag models install` leaves that out."""
    assert "minilm" not in EXTRAS
    assert not [need for needs in EXTRAS.values() for need in needs if "minilm" in need]


def test_no_extra_names_the_package_itself() -> None:
    name = PYPROJECT["project"]["name"]
    assert not [need for needs in EXTRAS.values() for need in needs if need.startswith(name)]
