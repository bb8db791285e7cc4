"""The real programs, each in its own environment (`make peers`), read an export and write what is imported.

Their dependencies conflict with those of this package. `GRAPHRAG_PYTHON` and `LIGHTRAG_PYTHON` name
interpreters that have them. Without these variables the tests are skipped, or fail in CI. Recorded files
and lists of columns are tested in any case.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ketrag_fast import Index
from ketrag_fast.interchange.exporting import export_graph
from ketrag_fast.interchange.importing import import_index
from tests.process import ROOT
from tests.support.parts import missing


def run_peer(variable: str, *argv: str) -> str:
    """The output of a script in the environment of another program."""
    python = os.environ.get(variable)
    if not python:
        missing(f"{variable} names no interpreter: `make peers` creates one")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, *argv], capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_graphrag_reads_an_export(index: Index, tmp_path: Path) -> None:
    report = export_graph(index, "graphrag", tmp_path / "tables", graph="skeleton", communities=True)
    script = str(ROOT / "benches" / "interchange.py")
    said = run_peer("GRAPHRAG_PYTHON", script, "--check", str(tmp_path / "tables"))
    assert f"graphrag reads {report.nodes} entities, {report.edges} relationships," in said


def test_what_lightrag_writes_becomes_an_index(tmp_path: Path) -> None:
    maker = str(ROOT / "tests" / "data" / "lightrag" / "make_lightrag.py")
    assert "equal, apart from times and order" in run_peer("LIGHTRAG_PYTHON", maker, "--check")
    run_peer("LIGHTRAG_PYTHON", maker, "--keep", str(tmp_path / "storage"))
    assert len(list((tmp_path / "storage").iterdir())) > 3
    report = import_index("lightrag", tmp_path / "storage", tmp_path / "index")
    assert (report.entities_taken, report.relations_taken, report.skipped) == (6, 5, ())
    with Index.open(tmp_path / "index") as opened:
        assert sum(build.calls for build in opened.inspect.builds()) == 0
        assert opened.inspect.entity("Fram").type == "ARTIFACT"
