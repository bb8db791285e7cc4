"""What a release promises: checked wheels and tested versions."""

from __future__ import annotations

import io
import json
import runpy
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.process import ROOT

WHEEL = runpy.run_path(str(ROOT / ".ci" / "check_wheel.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NAME = "ketrag_fast-0.1.0-cp311-abi3-manylinux2014_x86_64.whl"
INFO = "ketrag_fast-0.1.0.dist-info"


def contents() -> dict[str, bytes]:
    """The files of a small wheel that has everything."""
    bill = {
        "bomFormat": "CycloneDX",
        "components": [{"name": name} for name in WHEEL["third_party_crates"]()],
    }
    return {
        "ketrag_fast/__init__.py": b"",
        "ketrag_fast/_core.abi3.so": b"",
        f"{INFO}/METADATA": b"",
        f"{INFO}/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
        f"{INFO}/licenses/THIRD-PARTY.md": (ROOT / "THIRD-PARTY.md").read_bytes(),
        f"{INFO}/sboms/ketrag-py.cyclonedx.json": json.dumps(bill).encode(),
    }


def faults(folder: Path, files: dict[str, bytes], name: str = NAME) -> list[str]:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for inner, data in files.items():
            archive.writestr(inner, data)
    return list(WHEEL["wheel_faults"](path))


def test_a_complete_wheel_has_no_faults(tmp_path: Path) -> None:
    assert faults(tmp_path, contents()) == []


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (f"{INFO}/licenses/LICENSE", "LICENSE is missing"),
        (f"{INFO}/licenses/THIRD-PARTY.md", "THIRD-PARTY.md is missing"),
        (f"{INFO}/sboms/ketrag-py.cyclonedx.json", "0 bills of materials"),
        ("ketrag_fast/_core.abi3.so", "exactly one compiled core"),
    ],
)
def test_what_a_wheel_lacks_is_reported(tmp_path: Path, missing: str, message: str) -> None:
    files = contents()
    del files[missing]
    assert [message in fault for fault in faults(tmp_path, files)] == [True]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (f"{INFO}/licenses/THIRD-PARTY.md", b"older", "differs from the repository's"),
        (f"{INFO}/sboms/ketrag-py.cyclonedx.json", b'{"bomFormat": "SPDX"}', "'SPDX'"),
        ("tests/test_release.py", b"", "it contains tests/test_release.py"),
    ],
)
def test_what_a_wheel_has_wrong_is_reported(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    assert message in "\n".join(faults(tmp_path, {**contents(), name: data}))


def test_a_wheel_for_one_python_or_too_large_is_reported(tmp_path: Path) -> None:
    found = faults(tmp_path, contents(), "ketrag_fast-0.1.0-cp311-cp311-linux_x86_64.whl")
    assert "cp311-abi3" in found[0]
    large = {**contents(), "ketrag_fast/data": bytes(WHEEL["LARGEST"])}
    assert f"maximum {WHEEL['LARGEST']:,}" in "\n".join(faults(tmp_path, large))


def test_a_wheel_for_free_threaded_python_has_its_own_name(tmp_path: Path) -> None:
    name = "ketrag_fast-0.1.0-cp314-cp314t-manylinux2014_x86_64.whl"
    assert faults(tmp_path, contents(), name) == []
    assert "cp314-cp314t" in faults(tmp_path, contents(), name.replace("314t", "314"))[0]


def test_a_source_distribution_needs_its_notices_and_no_tests(tmp_path: Path) -> None:
    path = tmp_path / "ketrag_fast-0.1.0.tar.gz"
    names = [*WHEEL["SOURCES"], "LICENSE", "tests/conftest.py"]
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"ketrag_fast-0.1.0/{name}"), io.BytesIO())
    expected = ["THIRD-PARTY.md is missing", "it contains tests/conftest.py"]
    assert list(WHEEL["sdist_faults"](path)) == expected


def test_the_tested_versions_are_those_that_the_extras_accept() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    versions = dict(line.split("==") for line in lines if not line.startswith("#"))
    for text in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["all"]):
        needed = Requirement(text)
        name = canonicalize_name(needed.name)
        assert name in versions, f"{name}: run make constraints"
        assert needed.specifier.contains(versions[name]), f"{text}, tested with {versions[name]}"
