"""THIRD-PARTY.md names what Cargo.lock locks, gives the text of every licence, and goes into the package."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from tests.process import ROOT

PAGE = ROOT / "THIRD-PARTY.md"


def section(title: str) -> str:
    """The text below one heading, up to the next of its level."""
    return PAGE.read_text("utf-8").split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def locked() -> set[tuple[str, str]]:
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text("utf-8"))["package"]
    return {(package["name"], package["version"]) for package in packages if "source" in package}


def shipped() -> dict[tuple[str, str], str]:
    rows = re.findall(
        r"^\| ([\w-]+) \| (\d\S*) \| .+ \| (.+) \|$",
        section("Rust crates compiled into the core"),
        re.MULTILINE,
    )
    return {(name, version): licence for name, version, licence in rows}


def test_every_locked_crate_is_listed_once_and_no_other() -> None:
    tools = section("Crates that only build or test the core").strip().removesuffix(".").split(", ")
    building = {(name, version) for name, _, version in (entry.partition(" ") for entry in tools)}
    assert not building & shipped().keys()
    assert building | shipped().keys() == locked(), "run python tools/make_third_party.py"


def test_the_crates_that_the_core_names_are_shipped() -> None:
    manifests = [ROOT / "rust" / name / "Cargo.toml" for name in ("base", "text", "encode", "core", "py")]
    named = {name for path in manifests for name in tomllib.loads(path.read_text("utf-8"))["dependencies"]}
    external = {name for name in named if not name.startswith("ketrag-")}
    assert external
    assert external <= {name for name, _ in shipped()}


def test_every_licence_but_the_package_s_own_is_printed_in_full() -> None:
    texts = section("Licence texts")
    for (name, _), licences in shipped().items():
        for licence in set(licences.split(" AND ")) - {"Apache-2.0"}:
            heads = re.findall(rf"^### {licence}: (.+)$", texts, re.MULTILINE)
            assert name in ", ".join(heads).split(", "), (name, licence)
    for body in re.split(r"^### .+$", texts, flags=re.MULTILINE)[1:]:
        assert re.search(r"copyright|\(c\) \d{4}", body.lower())
        assert len(body) > 700


def test_the_wheel_and_the_source_distribution_carry_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "THIRD-PARTY.md" in project["project"]["license-files"]
    included = [
        entry["path"] for entry in project["tool"]["maturin"]["include"] if entry["format"] == "sdist"
    ]
    assert "THIRD-PARTY.md" in included


def test_data_in_the_repository_says_whose_it_is() -> None:
    page = section("Data in the repository that is not part of the package")
    golden = json.loads((Path(__file__).parents[1] / "golden" / "nltk.json").read_text("ascii"))
    names = ("abbreviations", "collocations", "starters", "contexts")
    assert f"{sum(len(golden[name]) for name in names)} entries of the English Punkt model" in page
    assert golden["licence"].startswith("MIT")
    for data in ("tests/data", "benches/data"):
        for folder in sorted(path.name for path in (ROOT / data).glob("[!_]*/")):
            assert f"{data}/{folder}" in page
