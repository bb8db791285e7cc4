"""Whatever a model writes: no exception, and no name that the passage does not hold."""

from __future__ import annotations

import math
import random
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.broken_replies import SOURCE, a_reply

from ketrag_fast.models.extraction.cleaning import MAX_DESCRIPTION, MAX_NAME, MAX_TYPE
from ketrag_fast.models.extraction.parse import Parsed, parse_reply


def plain(text: str) -> str:
    """Letters and digits alone, without case and accents: rougher than the parser's own folding."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in parts if unicodedata.category(c)[0] in "LN")


def check(parsed: Parsed, source: str) -> None:
    held = plain(source)
    found = parsed.extraction
    names = [entity.name for entity in found.entities]
    names += [name for relation in found.relations for name in (relation.source, relation.target)]
    for name in names:
        assert 0 < len(name) <= MAX_NAME
        assert name == name.strip()
        assert all(plain(word).removesuffix("s") in held for word in re.findall(r"\w+", name)), name
    for entity in found.entities:
        assert len(entity.type) <= MAX_TYPE
        assert len(entity.description) <= MAX_DESCRIPTION
    for relation in found.relations:
        assert relation.source.upper() != relation.target.upper()
        assert math.isfinite(relation.strength)
        assert relation.strength > 0
    texts = [
        *names,
        *(e.type + e.description for e in found.entities),
        *(r.description for r in found.relations),
    ]
    joined = "".join(texts)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", joined)
    joined.encode("utf-8")
    assert parsed.how in ("clean", "repaired", "unusable")
    if parsed.how == "unusable":
        assert parsed.why
        assert not names


def run(count: int, seed: int) -> None:
    rng = random.Random(seed)
    seen = {"clean": 0, "repaired": 0, "unusable": 0}
    kept = dropped = 0
    for _ in range(count):
        parsed = parse_reply(a_reply(rng), SOURCE)
        check(parsed, SOURCE)
        seen[parsed.how] += 1
        kept += len(parsed.extraction.entities)
        dropped += parsed.extraction.dropped
    # The generator must reach every way out, or the test says nothing.
    assert min(seen.values()) > count / 20, seen
    assert min(kept, dropped) > count / 2


def test_a_thousand_malformed_replies() -> None:
    run(1_000, 1)


@pytest.mark.soak
def test_a_hundred_thousand_malformed_replies() -> None:
    run(100_000, 2)


@given(st.text(max_size=200), st.text(max_size=100))
def test_any_text_is_a_reply(reply: str, source: str) -> None:
    check(parse_reply(reply, source), source)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=12),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ern"), inner, max_size=3)
        ),
    )
)
def test_any_json_is_a_reply(value: object) -> None:
    import json

    check(parse_reply(json.dumps(value), "a text"), "a text")
