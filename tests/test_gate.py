"""The gate on quality: it passes, it fails in both directions, and it accepts new values."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.process import ROOT


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module, with one set and its expected values in a temporary file."""
    monkeypatch.syspath_prepend(str(ROOT / "benches"))
    import gate  # type: ignore[import-not-found]

    expected = {"tolerance": 0.5, "recall@5": {"musique": {"bm25": 58.0, "walk": 77.0}}}
    (tmp_path / "gate.json").write_text(json.dumps(expected), "utf-8")
    monkeypatch.setattr(gate, "EXPECTED", tmp_path / "gate.json")
    monkeypatch.setattr(gate, "SETS", ("musique",))
    return gate


def test_bm25_and_walk_find_what_they_found() -> None:
    command = [sys.executable, str(ROOT / "benches" / "gate.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 14


@pytest.mark.parametrize(("walk", "code"), [(77.5, 0), (77.6, 1), (76.5, 0), (76.4, 1)])
def test_a_loss_and_a_gain_fail_outside_the_tolerance(
    gate: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    walk: float,
    code: int,
) -> None:
    monkeypatch.setattr(gate, "measure", lambda name: {"bm25": 58.0, "walk": walk})
    assert gate.main([]) == code
    shown = capsys.readouterr()
    assert f"{walk - 77:+.2f}" in shown.out
    if code:
        assert f"walk on musique: expected 77.00 ± 0.5, got {walk:.2f}" in shown.err
        assert "benches/gate.py --accept" in shown.err
    else:
        assert shown.err == ""


def test_accepted_values_are_expected_from_then_on(gate: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "measure", lambda name: {"bm25": 58.0, "walk": 80.0})
    assert gate.main([]) == 1
    assert gate.main(["--accept"]) == 0
    assert gate.main([]) == 0
    assert json.loads(gate.EXPECTED.read_text("utf-8"))["tolerance"] == 0.5


def test_a_mode_without_an_expected_value_fails(gate: ModuleType) -> None:
    rows, faults = gate.compare({"new": {"walk": 50.0}}, {}, 0.5)
    assert len(rows) == 2
    assert faults == ["walk on new: nothing is expected, got 50.00"]
