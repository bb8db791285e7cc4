"""The default and every mode print what is recorded of them (tests/golden/make_contexts.py)."""

from __future__ import annotations

import json

from ketrag_fast.systems.registry import registry
from tests.golden.make_contexts import ASKED, BUDGETS, BUILDS, FILE, MODES, OF_A_MODEL, ROOT, digests


def test_every_mode_prints_what_it_did() -> None:
    known = json.loads(FILE.read_text("ascii"))
    found = digests()
    assert known.keys() == found.keys()
    changed = [name for name in known if found[name] != known[name]]
    assert not changed, f"{len(changed)} of {len(known)} contexts changed: {changed[:5]}"


def test_every_mode_is_recorded_or_compared_with_a_slow_form() -> None:
    """A mode that is added is recorded too, or says here which test compares it."""
    recorded = {name.split(" / ")[2] for name in json.loads(FILE.read_text("ascii"))}
    assert recorded == {"auto", *MODES}
    assert {*MODES, *OF_A_MODEL} == set(registry().recipes)
    assert not set(MODES) & OF_A_MODEL.keys()
    for test in OF_A_MODEL.values():
        assert (ROOT / test).is_file()


def test_auto_is_the_walk_with_the_product_s_settings() -> None:
    """What is shipped is recorded under both names; the digests differ in nothing, since both say `walk`."""
    known = json.loads(FILE.read_text("ascii"))
    pairs = [(name, name.replace(" / auto / ", " / walk / ")) for name in known if " / auto / " in name]
    assert len(pairs) == len(BUILDS) * len(ASKED) * len(BUDGETS)
    assert all(known[first] == known[second] for first, second in pairs)
