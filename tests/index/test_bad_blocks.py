"""Blocks that no author writes: passages have their size, whole rows and lines, and no text is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Index, Settings

GERMAN, CHINESE = "Die Straße führt über die Brücke.\n" * 300, "北京大学的图书馆建于一九零二年。\n" * 300
INPUTS = {
    "rows.md": "| Name | Number |\n|---|---|\n" + "".join(f"| item-{n} | {n} |\n" for n in range(3_000)),
    "code.md": "```py\n" + "".join(f"def f_{n}(x):\n    return x + {n}\n\n" for n in range(2_000)) + "```\n",
    "lines.md": "```\n" + "".join(f"call_{n}(1)\n" for n in range(5_000)) + "```\n",
    "nested.md": "".join("  " * n + f"- item number {n}\n" for n in range(150)),
    "nested.txt": "".join("  " * n + f"- item number {n}\n" for n in range(150)),
    "line.txt": " ".join(f"Nansen met bear {n} on the ice." for n in range(5_000)),
    "word.txt": "abcde12345-_xyz" * 10_000,
    "cell.md": "| a |\n|---|\n| " + "word and more " * 10_000 + "|\n",
    "marks.rst": "".join(f"Text {n}.\n\n.. code-block:: python\n\n   x_{n} = {n}\n\n" for n in range(1_000)),
    "encodings.txt": GERMAN + CHINESE,
}


@pytest.mark.parametrize("name", INPUTS)
def test_passages_have_their_size_and_lose_nothing(tmp_path: Path, name: str) -> None:
    text = INPUTS[name]
    data = GERMAN.encode() + CHINESE.encode("gbk") if name == "encodings.txt" else text.encode()
    (tmp_path / name).write_bytes(data)
    settings = Settings(modes="bm25", threads=1, language="english")
    with Index.build([tmp_path / name], tmp_path / "ix", settings=settings) as index:
        assert index.report is not None and not index.report.failures
        units = index.inspect.arrays()["units"]
        assert units["unit_tokens"][:].max() <= 250 + 16  # and the title
        spans, last = units["unit_span"][:].tolist(), 0
        for start, end in spans:
            assert not text[last:start].strip() and start < end
            last = end
        assert not text[last:].strip()
        lines = units["unit_lines"][:].tolist()
        for (start, end), own in zip(spans, lines, strict=True):
            first = text.count("\n", 0, start) + 1
            assert own == [first, first + text.count("\n", start, end)]
        if name in ("rows.md", "lines.md"):
            assert all(text[end] == "\n" for _, end in spans)
