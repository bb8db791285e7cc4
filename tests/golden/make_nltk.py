"""Makes nltk.json with NLTK itself: `NLTK_DATA=FOLDER python tests/golden/make_nltk.py`.

The texts are written or generated here. Of Punkt's parameters only the entries that these texts and those
of the KET-RAG reference (../shared/data, or KETRAG_DATA) look up are kept, so that the tests need
neither NLTK nor its data. The data (punkt_tab) can be had with `nltk.download`, or from the wheel of
llama-index-core, which carries it.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import nltk
from nltk.tokenize import punkt

WRITTEN = """\
Good muffins cost $3.88 (roughly 3,36 euros)
in New York.  Please buy me
two of them.
Thanks.
---
Dr. Smith and Mr. J. S. Bach met at 5 p.m. in St. Louis, Mo. They left at 6 a.m. "Really?" he asked.
---
(It was J. S. Bach.) "So?" he said. ‘Yes.’ “No!” «Oui.» [sic.] {ok.} e.g. this, i.e. that; etc. The end
---
I cannot, you won't; they'll've gonna 'tis 'TWAS wanna go, gimme more'n d'ye lemme gotta. Cannot! It's John's.
---
She said: "We beat them, 10:30--no, 11:00..." Then... what?! Wait. . . . No . . Yes.. OK
---
The U.S. Senate (U.S.A.) of the U.K. met on Nov. 5. No. 7 was No. 1. It cost 1.5 m. He paid -3.5. 5.
---
A sentence ends here.But not there. "Quoted text." 'Single.' (Paren.) -- dash. ``Ticks'' `one` ''two'' ''' x
---
Ünïcödé text. Ça va? Ärger! 東京です。本当？ Да. Нет. Καλά; Ναι. İstanbul ıssız ſo ½ ² Ⅷ ٣.٤ ०१
---
Prices: 1,000,000; 50%, #5 @home & co. *star* a_b x=y+z <tag> |pipe| \\slash/ ~tilde ^caret
---
He works for Acme Inc. She does not. Mt. Everest vs. K2. Gen. Lee, Lt. Col. Brown and Sgt. Jones (ret.) came.
---
New York is in the U.S. In the U.S. it is big. The co. was Sun Corp. International. 1. First 2. Second
---
'hello' 'world 's 'll 'n 'nother o'clock rock'n'roll 'cause don't can't 'em dogs' "a" "b" 5' 6" it''s
---
line one,
line two:
last one:
---
:
---
,
---
.)" ' .
---
x.)")  \t
"""

PIECES = [
    *"aAbn59.,:;?!'\"`()[]{}<>-*&@#$% \n\t",
    *["'s", "'t", "'ll", "n't", "'d", "can", "not", "gon", "na", "wanna ", "''", "``", "...", "--", ". . ."],
    *[
        "“",
        "”",
        "‘",
        "’",
        "«",
        "»",
        "„",
        "–",
        "—",
        "‑",
        "\u00a0",
        "é",
        "É",
        "日",
        "本",
        "½",
        "²",
        "٣",
        "_",
        "\u0301",
    ],
    *[
        " The ",
        " he ",
        " Dr.",
        " p.m.",
        " e.g.",
        " J.",
        " S.",
        " U.S.",
        " 5.",
        " No.",
        " Bach ",
        " was ",
        ". ",
        "? ",
        "! ",
    ],
    *[
        "\x1c",
        "\r\n",
        "\u2028",
        "\u200d",
        "İ",
        "ſ",
        "ǅ",
        "Σ",
        "ΑΣ",
        "ß",
        "\U0001f600",
        "\U0001d7ce",
        "ⅷ",
        "Ⓐ",
    ],
]


def texts() -> list[str]:
    """Written texts, then random ones."""
    source = random.Random(7)
    fuzz = ["".join(source.choices(PIECES, k=source.randint(1, 40))) for _ in range(250)]
    return [*WRITTEN.split("\n---\n"), "tail of spaces.   ", *fuzz]


class Noted(set[Any]):
    """A set that notes which of its members are asked for."""

    def __init__(self, items: set[Any]) -> None:
        super().__init__(items)
        self.asked: set[Any] = set()

    def __contains__(self, item: object) -> bool:
        found = super().__contains__(item)
        if found:
            self.asked.add(item)
        return found


class NotedMap(dict[str, int]):
    """A mapping that notes which of its keys are asked for."""

    def __init__(self, items: dict[str, int]) -> None:
        super().__init__(items)
        self.asked: dict[str, int] = {}

    def __getitem__(self, key: str) -> int:
        if key not in self:
            return 0
        self.asked[key] = super().__getitem__(key)
        return self.asked[key]


def main() -> None:
    """Writes nltk.json beside this file."""
    tokenizer = nltk.tokenize._get_punkt_tokenizer("english")
    learnt = tokenizer._params
    assert isinstance(tokenizer, punkt.PunktTokenizer)
    learnt.abbrev_types = Noted(learnt.abbrev_types)
    learnt.collocations = Noted(learnt.collocations)
    learnt.sent_starters = Noted(learnt.sent_starters)
    learnt.ortho_context = NotedMap(learnt.ortho_context)
    cases = [
        {
            "text": text,
            "sentences": nltk.sent_tokenize(text),
            "words": nltk.word_tokenize(text),
            "lower": nltk.word_tokenize(text.lower()),
        }
        for text in texts()
    ]
    # The texts of the KET-RAG reference, which tests/parity tokenises: only to note what they look up.
    data = Path(os.environ.get("KETRAG_DATA") or Path(__file__).parents[3] / "shared" / "data")
    units = data / "musique-train100" / "ketrag-reference" / "units.jsonl"
    for line in units.read_text(encoding="utf-8").splitlines():
        text = json.loads(line)["text"]
        nltk.word_tokenize(text.lower())
        for sentence in nltk.sent_tokenize(text):
            nltk.word_tokenize(sentence)
    result = {
        "nltk": nltk.__version__,
        "source": "abbreviations to contexts: from punkt_tab of nltk_data, trained by Jan Strunk",
        "licence": "MIT (as the index of nltk_data declares, packages/tokenizers/punkt_tab.xml)",
        "abbreviations": sorted(learnt.abbrev_types.asked),
        "collocations": sorted(learnt.collocations.asked),
        "starters": sorted(learnt.sent_starters.asked),
        "contexts": dict(sorted(learnt.ortho_context.asked.items())),
        "cases": cases,
    }
    target = Path(__file__).with_name("nltk.json")
    target.write_text(json.dumps(result, ensure_ascii=True, separators=(",", ":")) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
