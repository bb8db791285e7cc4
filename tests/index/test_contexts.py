"""Every mode prints what it printed before the code was cut anew (tests/golden/make_contexts.py)."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from ketrag_fast import Index
from tests.golden.make_contexts import FILE, digests
from tests.golden.make_format_1 import ANSWERS, answers
from tests.golden.make_format_1 import FILE as SAMPLE


def test_every_mode_prints_what_it_did() -> None:
    known = json.loads(FILE.read_text("ascii"))
    found = digests()
    changed = [name for name in known if found.get(name) != known[name]]
    assert not changed, f"{len(changed)} of {len(known)} contexts changed: {changed[:5]}"


def test_an_index_of_the_first_house_answers_as_it_did(tmp_path: Path) -> None:
    with zipfile.ZipFile(SAMPLE) as kept:
        kept.extractall(tmp_path / "index")
    told = json.loads((tmp_path / "index" / ANSWERS).read_text("utf-8"))
    told.pop("walk")  # recorded with the walk's first form, which is gone
    with Index.open(tmp_path / "index") as index:
        now = answers(index)
    assert {mode: now[mode] for mode in told} == told
