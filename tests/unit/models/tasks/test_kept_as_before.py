"""Prompts and kept replies are what they always were: an earlier version's index asks nothing again."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

from ketrag_fast.base.progress import Meter
from ketrag_fast.models.extraction.run import Reading
from ketrag_fast.models.extraction.summaries import Summaries, summarise_descriptions
from ketrag_fast.models.llms.protocol import Prompt
from ketrag_fast.storage.journal import Journal
from tests.support.scripted_model import Scripted, chunks, good, reader

ROWS = "b7f89b088f9fdd6075c89216b1adbf44104621d2f294c236ffaad36eff34dc0a"
PROMPTS = "51a6a1aa39815677dd08eaa78c7b1dc71aa2138a07869d819b0cb5f8a095849c"
"""Both were made by version 0.1's own drivers, before there were tasks."""


def say(prompt: Prompt) -> str:
    """Replies of every kind: clean, unusable at first, to gleanings, to several batches of lines."""
    if "Write one description" in prompt.instructions:
        return '{"summary":"All of it."}' if prompt.number != 1 else "no"
    if prompt.turns:
        return '{"e":[["Here","place","x"]],"r":[]}'
    return good(prompt) if prompt.number != 3 else "sorry"


def test_the_same_prompts_and_the_same_rows(tmp_path: Path) -> None:
    model, file = Scripted(say), tmp_path / "index.sqlite"
    who = reader(model, gleanings=1, language="english")
    long = [f"line {i} " + "word " * 300 for i in range(20)]
    with Journal(file) as journal:
        number = journal.reader(who.key, who.spec, who.identity).number
        reading = Reading(journal, who, number)
        reading.read(chunks(6), Meter("replies", None))
        summaries = Summaries(reading)
        wanted = summarise_descriptions([(("A",), ["b", "a"]), (("A", "B"), ["q", "r"]), (("C",), long)])
        summaries.write(summaries.items(wanted), Meter("skeleton", None))
    with closing(sqlite3.connect(file)) as db:
        rows = db.execute(
            "select hex(chunk), turn, attempt, cast(text as text), finish, error, tokens_in, verdict,"
            " entities, min(parser, 1), cast(records as text) from replies order by 1, 2, 3"
        ).fetchall()
    asked = sorted((p.number, p.instructions, p.text, repr(p.turns)) for p in model.asked)
    assert (len(rows), _digest(rows)) == (17, ROWS)
    assert (len(asked), _digest(asked)) == (17, PROMPTS)


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()
