"""A merge that is stopped or killed continues, and gives the same bytes."""

from __future__ import annotations

import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.base.progress import Event
from ketrag_fast.errors import (
    Cancelled,
    ReadOnly,
)
from ketrag_fast.storage.layout import Layout
from tests.process import command, start
from tests.support.merging import build, document


def test_stopped_anywhere_it_goes_on(tmp_path: Path) -> None:
    documents = [document(f"d{number}") for number in range(10)]
    build(tmp_path / "a", documents[:4], Settings(llm="heuristic"))
    build(tmp_path / "b", documents[4:], Settings(llm="heuristic"))
    build(tmp_path / "c", [document("c")], Settings(llm="heuristic"))
    parts = [tmp_path / "a", tmp_path / "b"]
    wanted = Index.merge(parts, tmp_path / "whole").digest
    for step in range(0, 40, 3):
        calls = 0

        def stop(_: object, step: int = step) -> bool:
            nonlocal calls
            calls += 1
            return calls <= step

        place = tmp_path / f"m{step}"
        try:
            Index.merge(parts, place, progress=stop).close()
        except Cancelled:
            if step == 9:
                with pytest.raises(ReadOnly, match="unfinished merge of other indexes"):
                    Index.merge([tmp_path / "a", tmp_path / "c"], place)
            with Index.merge(list(reversed(parts)), place) as merged:
                assert merged.digest == wanted
            assert not list((place / "work").iterdir())
        else:
            break
    assert step > 5


@pytest.mark.parametrize("kills", [2, pytest.param(40, marks=pytest.mark.soak)])
def test_killed_anywhere_it_goes_on(tmp_path: Path, kills: int) -> None:
    documents = [document(f"d{number}") for number in range(300)]
    for number in range(3):
        build(tmp_path / f"p{number}", documents[number::3], Settings(llm="heuristic"))
    wanted = build(tmp_path / "whole", sorted(documents, key=lambda one: one.id), Settings(llm="heuristic"))
    dice = random.Random(11)
    argv = ["merge", "p0", "p1", "p2", "-i"]
    for number in range(kills):
        place = tmp_path / f"m{number}"
        child = start(*argv, str(place), cwd=tmp_path)
        limit = time.monotonic() + 60
        while not (place / "work").exists() and child.poll() is None and time.monotonic() < limit:
            time.sleep(0.005)
        time.sleep(dice.random() * 0.4)
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=60)
        done = command(*argv, str(place), cwd=tmp_path)
        assert done.code == 0 or "already exists" in done.err, done.err
        assert Layout(place).generations() == [1] and not list((place / "work").iterdir())
        with Index.build([], place) as merged:
            assert merged.digest == wanted
        shutil.rmtree(place)


def test_killed_before_it_began_and_after_it_ended(tmp_path: Path) -> None:
    documents = [document(f"d{number}") for number in range(4)]
    parts = [tmp_path / "a", tmp_path / "b"]
    for place, own in zip(parts, (documents[:2], documents[2:]), strict=True):
        build(place, own)
    target = Layout(tmp_path / "m")
    target.create()
    (target.work / "merge.json.tmp").write_bytes(b"{")
    wanted = Index.merge(parts, target.root).digest
    with pytest.raises(ReadOnly, match="already exists"):
        Index.merge(parts, target.root)

    def stop(event: Event) -> bool:
        if event.stage == "links":
            record.append((Layout(tmp_path / "n").work / "merge.json").read_bytes())
        return True

    record: list[bytes] = []
    Index.merge(parts, tmp_path / "n", progress=stop).close()
    last = Layout(tmp_path / "n")
    (last.work / "merge.json").write_bytes(record[0])
    last.current.unlink()
    with Index.merge(parts, last.root) as merged:
        assert merged.digest == wanted and last.generations() == [1]
    assert not list(last.work.iterdir())
    other = tmp_path / "strange"
    (other / "work").mkdir(parents=True)
    (other / "letter.txt").write_text("mine")
    with pytest.raises(ReadOnly, match="already exists"):
        Index.merge(parts, other)
