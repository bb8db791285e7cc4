"""A task that is one declaration: with a real model it is asked, killed midway, and gone on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.models.llms.registry import ModelOptions, open_model
from ketrag_fast.models.tasks.driver import Driver
from ketrag_fast.models.tasks.task import ParsedReply, Task
from ketrag_fast.storage.journal import Journal
from tests.support.chat import Chat

WORDS = [f"ship number {n} of the polar fleet" for n in range(12)]
KINDS = ("ship", "person", "place")


def kind_of(text: str, reply: str, finish: str) -> ParsedReply[str] | None:
    """The parser: one of three words, or nothing."""
    try:
        kind = json.loads(reply)["kind"]
    except (ValueError, KeyError, TypeError):
        return None
    return ParsedReply(kind) if kind in KINDS else None


TASK: Task[str, str] = Task(
    name="kind",
    version=1,
    instructions='Say of which kind the text is. Reply with JSON alone: {"kind": ship, person or place}.',
    text=str,
    parse=kind_of,
    schema={
        "type": "object",
        "properties": {"kind": {"enum": list(KINDS)}},
        "required": ["kind"],
        "additionalProperties": False,
    },
    tokens=32,
)


def kinds(
    spec: str, place: Path, words: list[str] = WORDS, task: Task[str, str] = TASK
) -> tuple[list[Any], int]:
    """What is read of each text, and the calls that it took in this run."""
    model = open_model(spec, ModelOptions(slots=2, threads=1))
    try:
        with Journal(place) as journal:
            driver = Driver.over(model, journal)
            items = driver.items(task, words)
            driver.run(items)
            return [item.values[0] if item.values else None for item in items], driver.spent.asked
    finally:
        model.close()


def test_a_model_on_this_machine(tiny_gguf: Path, tmp_path: Path) -> None:
    """Random weights say nothing sensible, but the grammar of the schema lets them say one of three words."""
    spec = f"llama-cpp:{tiny_gguf}"
    found, calls = kinds(spec, tmp_path / "j.sqlite")
    assert calls == len(WORDS)
    assert set(found) <= set(KINDS)
    assert kinds(spec, tmp_path / "j.sqlite") == (found, 0)  # nothing is asked twice
    more, calls = kinds(spec, tmp_path / "j.sqlite", [*WORDS, WORDS[0], "a new one"])
    assert (more[:-1], calls) == ([*found, found[0]], 1)
    assert kinds(spec, tmp_path / "other.sqlite") == (found, len(WORDS))


_CHILD = """
import sys
from pathlib import Path
from tests.unit.models.tasks.test_own_task import kinds
print(kinds(sys.argv[1], Path(sys.argv[2])))
"""


@pytest.mark.usefixtures("loopback")
def test_killed_midway_it_goes_on_without_asking_again(tmp_path: Path) -> None:
    def answer(request: dict[str, Any]) -> str:
        time.sleep(0.03)
        text = request["messages"][-1]["content"]
        return json.dumps({"kind": KINDS[int(text.split()[2]) % 3]})

    root = Path(__file__).resolve().parents[4]
    with Chat(answer) as server:
        spec = f"openai:mini@{server.url}"
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, spec, str(tmp_path / "j.sqlite")],
            cwd=root,
            env={**os.environ, "PYTHONPATH": f"{root / 'python'}:{root}"},
        )
        limit = time.monotonic() + 60
        while len(server.requests) < 6 and time.monotonic() < limit:
            assert child.poll() is None
            time.sleep(0.002)
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=60)
        before = len(server.requests)
        assert before < len(WORDS)
        with Journal(tmp_path / "j.sqlite") as journal:
            number = journal.model(*_identity(spec)).number
            kept = sum(bool(rows) for _, rows in journal.rows(number, [TASK.key(word) for word in WORDS]))
        assert kept >= before - 2  # two were on their way
        found, calls = kinds(spec, tmp_path / "j.sqlite")
        assert found == [KINDS[n % 3] for n in range(len(WORDS))]
        assert calls == len(WORDS) - kept == len(server.requests) - before


def _identity(spec: str) -> tuple[str, str, dict[str, Any]]:
    about = open_model(spec).identity
    return about.fingerprint, about.spec, about.to_json()


@pytest.mark.usefixtures("loopback")
def test_a_better_parser_reads_what_is_kept_and_another_prompt_asks_anew(tmp_path: Path) -> None:
    with Chat(lambda _: "KIND=ship") as server:
        spec, place = f"openai:mini@{server.url}", tmp_path / "j.sqlite"
        assert kinds(spec, place, WORDS[:3]) == ([None] * 3, 6)  # each is worth two replies
        assert kinds(spec, place, WORDS[:3]) == ([None] * 3, 0)
        declared = {
            name: getattr(TASK, name) for name in ("name", "instructions", "text", "schema", "tokens")
        }
        better = Task(version=2, parse=lambda _, reply, finish: ParsedReply(reply.split("=")[1]), **declared)
        assert kinds(spec, place, WORDS[:3], better) == (["ship"] * 3, 0)
        declared["instructions"] = "Name the kind."
        other = Task(version=2, parse=better.parse, **declared)
        assert kinds(spec, place, WORDS[:3], other) == (["ship"] * 3, 3)
