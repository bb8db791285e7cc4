"""Keys of passages against their oracle."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.copies import key

from ketrag_fast.kernels import text as kernel

WORDS = st.sampled_from(
    [
        *(
            "paid",
            "the",
            "of",
            "Anna",
            "Éire",
            "straße",
            "14",
            "-5",
            "7.5%",
            "$3",
            "don't",
            "a-b",
            "team!=hr",
        ),
        *(
            "(see",
            "end.",
            "==",
            "-",
            "|",
            "*",
            "**bold**",
            "退款",
            "第3条",
            "カナ",
            "ไทย",
            "x=1",
            "~",
            "A/b,",
            "…",
        ),
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(WORDS, st.sampled_from([" ", "\n", "  "])), min_size=1, max_size=80))
def test_keys_are_those_of_the_plain_version(words: list[tuple[str, str]]) -> None:
    text = "".join(word + space for word, space in words).strip()
    cut = kernel.corpus([""], [text], cut="windows", tokens=10_000)
    assert cut.unit_keys.tolist() == [list(key(text))]
