"""Writes cl100k.json: strings with their counts and first tokens, as tiktoken gives them.

Needs tiktoken and, offline, its vocabularies in TIKTOKEN_CACHE_DIR. Run: python make_cl100k.py
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import tiktoken

FIXED = [
    "",
    "hello world",
    "<|endoftext|>",
    "The quick brown fox can't jump over 12345 lazy dogs; they'll sleep.",
    "I'VE HeLLo's camelCaseWord HTTPServer x'S 'll 're",
    "  leading and trailing   blanks  \n\n\n  new paragraph\t\ttabs\r\n\r\nend  ",
    "日本語のテキストと中文文本。한국어 문장입니다.",
    "مرحبا بالعالم، هذا نص عربي",
    "👩‍👩‍👧‍👦 family 🇩🇪🇫🇷 flags e\u0301 combining",
    "\u0000\u0001\u007f\u00a0\u2003\u3000 controls",
    "Привет, мир! Это русский текст. Ελληνικά κείμενα.",
    "x" * 300,
    " " * 100 + "end",
    "!!!???...---///\\\\\\###\n\n",
    "https://example.org/path?q=1&r=%20#frag user@example.com",
    "def f(x):\n    return x ** 2  # comment\n",
    "3.14159 1,000,000 2024-01-31 12:30:45.678",
    "ſ 'ſ don’t naïve café ŒUVRE ǅ",
    "สวัสดีชาวโลก नमस्ते दुनिया",
]
ALPHABET = [
    *"abcdeXYZ019 .,'!?/\n\t-_()",
    *("é", "ß", "中", "の", "م", "👍", "\u0301", "'s", "'LL", "  ", "\r\n"),
]


def main() -> None:
    chooser = random.Random(42)
    made = ["".join(chooser.choices(ALPHABET, k=chooser.randint(1, 60))) for _ in range(60)]
    rows = []
    encodings = {name: tiktoken.get_encoding(name) for name in ("cl100k_base", "o200k_base")}
    for text in FIXED + made:
        row: dict[str, object] = {"text": text}
        for name, encoding in encodings.items():
            tokens = encoding.encode_ordinary(text)
            row[name] = {"count": len(tokens), "first": tokens[:12]}
        rows.append(row)
    path = Path(__file__).with_name("cl100k.json")
    path.write_text(json.dumps(rows, ensure_ascii=True, indent=0) + "\n")


if __name__ == "__main__":
    main()
