"""One digest for equal sources: on any number of threads, after any interruption, anywhere, any time."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import Cancelled
from ketrag_fast.systems.planning import stages_for
from ketrag_fast.types import Document
from tests.golden.make_digest import BUILDS, DIGESTS, digest_of
from tests.process import POLAR, ketrag, python, start
from tests.support.effort import ended_after
from tests.support.faults import stop_at

SPLIT = Settings(system="ket-rag", chunk_tokens=200)
READ = Settings(llm="heuristic")
STAGES = stages_for(READ, True)


def digest(sources: object, path: Path, settings: Settings | None = None) -> str:
    with Index.build(sources, path, settings=settings) as index:  # type: ignore[arg-type]
        return index.digest


@pytest.mark.parametrize("settings", [Settings(), SPLIT, READ], ids=["default", "split", "read"])
def test_threads_places_and_ways(tmp_path: Path, settings: Settings) -> None:
    first = digest(POLAR / "articles", tmp_path / "one", settings.having(threads=1))
    for threads in (2, 5):
        assert digest(POLAR / "articles", tmp_path / f"{threads}", settings.having(threads=threads)) == first
    elsewhere = shutil.copytree(POLAR / "articles", tmp_path / "élsewhere" / "deep")
    assert digest(elsewhere, tmp_path / "moved", settings) == first
    (elsewhere / "zz.md").write_text("Gone soon.")
    changed = digest(elsewhere, tmp_path / "moved", settings)
    (elsewhere / "zz.md").unlink()
    assert changed != first == digest(elsewhere, tmp_path / "moved", settings)


def test_order_of_documents_matters_through_their_order_alone(tmp_path: Path) -> None:
    """Another order is another index; the best passages, which no other equals, are the same."""
    there = [Document(p.name, p.read_text("utf-8")) for p in sorted((POLAR / "articles").iterdir())]
    mixed = there[:]
    random.Random(3).shuffle(mixed)
    with Index.build(there, tmp_path / "a") as a, Index.build(mixed, tmp_path / "b") as b:
        assert a.digest != b.digest
        for mode in ("bm25", "walk"):
            for question in ("Who built the Fram?", "Which ship was crushed in the Weddell Sea?"):
                one, two = (ix.retrieve(question, mode=mode, top=3).passages for ix in (a, b))
                assert [(p.document, p.start) for p in one] == [(p.document, p.start) for p in two]
        assert [a.stats()["counts"][k] for k in ("subchunks", "keywords", "names")] == [
            b.stats()["counts"][k] for k in ("subchunks", "keywords", "names")
        ]


def test_golden_digests(tmp_path: Path) -> None:
    """The same on every machine: kernels give the same bytes with AVX-512, AVX2 and neither.

    If an index changes on purpose (a stage's version was raised), run tests/golden/make_digest.py and
    say in the change log that indexes are built anew.
    """
    wanted = json.loads(DIGESTS.read_text())
    assert wanted.keys() == BUILDS.keys()
    for name, expected in wanted.items():
        found = digest_of(name, tmp_path / name)
        assert found == expected, f"{name}: see this test's description"


_KILLED = """
import os, signal, sys
from ketrag_fast import Index, Settings
index, source, stage, system = sys.argv[1:]
def progress(event):
    if event.stage == stage:
        os.kill(os.getpid(), signal.SIGKILL)
Index.build(source, index, settings=Settings(system=system, llm="heuristic"), progress=progress)
"""


@pytest.mark.parametrize("stage", ["read", *(stage.name for stage in STAGES)])
def test_killed_in_each_stage(tmp_path: Path, stage: str) -> None:
    """kill -9 at the stage's first sign of life: the old index answers, and the next build goes on."""
    source = shutil.copytree(POLAR / "articles", tmp_path / "docs")
    index = tmp_path / "index"
    (source / "endurance.md").rename(tmp_path / "later.md")
    old = digest(source, index, READ)
    (tmp_path / "later.md").rename(source / "endurance.md")
    done = python(_KILLED, str(index), str(source), stage, "default", cwd=tmp_path)
    assert done.code == -signal.SIGKILL, done.err
    with Index.open(index) as opened:
        assert (opened.digest, opened.generation) == (old, 1)
        assert opened.retrieve("Who built the Fram?").passages
    names = [each.name for each in STAGES]
    before = names.index(stage) if stage in names else 0
    with Index.build(source, index) as opened:
        assert opened.report is not None
        how = [report.how for report in opened.report.stages]
        assert how[:before] == ["resumed"] * before
        assert opened.digest == digest(source, tmp_path / "fresh", READ)
        assert opened.retrieve("Which ship was crushed?").passages
    assert list((index / "work").iterdir()) == []


def test_stopped_by_the_callback(tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        Index.build(POLAR / "articles", tmp_path / "index", progress=stop_at("links"))
    with Index.build(POLAR / "articles", tmp_path / "index") as index:
        assert index.report is not None
        assert [r.how for r in index.report.stages][:1] == ["resumed"]
        assert index.digest == digest(POLAR / "articles", tmp_path / "fresh")


def test_ctrl_c(tmp_path: Path) -> None:
    """SIGINT while stages run: 130 within about a second, a word on how to go on, and it does go on."""
    words = [f"word{n}" for n in range(5000)]
    chance = random.Random(1)
    rows = ({"_id": str(n), "text": " ".join(chance.choices(words, k=60))} for n in range(20_000))
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    child = start("index", "rows.jsonl", "--json", cwd=tmp_path)
    limit = time.monotonic() + 300
    work = tmp_path / ".ketrag" / "work"
    while not list(work.glob("units-*")) and time.monotonic() < limit:
        assert child.poll() is None
        time.sleep(0.01)
    (out, err), spent = ended_after(child, signal.SIGINT)
    assert (child.returncode, out) == (130, "")
    assert spent < 2.5  # of the processor: at most what two cores do in a second, and the end of Python
    assert json.loads(err)["code"] == "interrupted"
    assert "run the same command again" in json.loads(err)["hint"]
    assert ketrag("retrieve", "word7", cwd=tmp_path).code == 4
