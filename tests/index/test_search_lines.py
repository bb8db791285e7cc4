"""A thousand hits over all text formats: `path:line` shows the first words of the passage in that file."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

from ketrag_fast import Index
from tests.process import ROOT

WANTED = 1000


def write_files(folder: Path) -> None:
    """Text files of every format that the readers keep line by line, with front matter and odd line ends."""
    folder.mkdir()
    pages = sorted((ROOT / "docs").rglob("*.md"))
    for page in pages[:40]:
        name = "-".join(page.relative_to(ROOT / "docs").parts)
        shutil.copy(page, folder / name)
        text = page.read_text("utf-8")
        (folder / f"{name}.txt").write_bytes(text.replace("\n", "\r\n").encode())
    for page in pages[:8]:
        text = page.read_text("utf-8")
        head = f"---\ntitle: {page.stem}\nyear: 1990\n---\n\n\n"
        (folder / f"front-{page.stem}.md").write_text(head + text, encoding="utf-8")
        plain = re.sub(r"^#+ (.*)$", lambda found: f"{found[1]}\n{'=' * len(found[1])}", text, flags=re.M)
        (folder / f"{page.stem}.rst").write_text(plain, encoding="utf-8")
        (folder / f"{page.stem}.adoc").write_text(re.sub(r"^#", "=", text, flags=re.M), encoding="utf-8")
        (folder / f"{page.stem}.org").write_text(re.sub(r"^#", "*", text, flags=re.M), encoding="utf-8")
        (folder / f"{page.stem}.tex").write_text(
            re.sub(r"^#+ (.*)$", r"\\section{\1}", text, flags=re.M), encoding="utf-8"
        )
        lines = [json.dumps({"text": part}) for part in text.split("\n\n") if part.strip()]
        (folder / f"{page.stem}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for source in sorted((ROOT / "python" / "ketrag_fast" / "query").glob("*.py"))[:20]:
        shutil.copy(source, folder / source.name)
    for source in sorted((ROOT / "rust" / "text" / "src").glob("*.rs"))[:10]:
        shutil.copy(source, folder / source.name)


def test_lines_show_the_first_words_of_the_passage(tmp_path: Path) -> None:
    write_files(tmp_path / "files")
    random_ = random.Random(7)
    texts = {path: path.read_bytes().decode().split("\n") for path in (tmp_path / "files").iterdir()}
    every = "\n".join(line for lines in texts.values() for line in lines)
    words = sorted(set(re.findall(r"[a-z]{5,}", every)))
    checked: set[tuple[str, int]] = set()
    suffixes: set[str] = set()
    with Index.build(tmp_path / "files", tmp_path / "index") as index:
        while len(checked) < WANTED:
            for hit in index.search(" ".join(random_.sample(words, 3)), limit=30, mode="bm25"):
                assert hit.path is not None and hit.lines is not None, hit.document
                path = Path(hit.path)
                line = texts[path][hit.lines[0] - 1]
                if path.suffix == ".jsonl":
                    line = json.loads(line)["text"]
                first = hit.text.split("\n")[0].split()
                assert first == line.split()[: len(first)] or " ".join(first) in " ".join(line.split()), hit
                checked.add((hit.path, hit.unit))
                suffixes.add(path.suffix)
                for shown in hit.snippet:
                    if path.suffix != ".jsonl":
                        assert shown.number is not None
                        assert shown.text in texts[path][shown.number - 1]
    assert suffixes == {".md", ".txt", ".rst", ".adoc", ".org", ".tex", ".jsonl", ".py", ".rs"}
