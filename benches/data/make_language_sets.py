"""Make question sets in other languages from public material: SQuAD files, and the help of LibreOffice.

    python benches/data/make_language_sets.py squad xquad.th.json DATA/xquad-th
    python benches/data/make_language_sets.py help HELP DATA/help- --languages km,ko,pl,tr

`squad` converts questions over paragraphs, for instance those of XQuAD (github.com/google-deepmind/xquad) and JSQuAD
(github.com/yahoojapan/JGLUE), both CC BY-SA 4.0, and files with one question a line like those of the Thai
iapp-wiki-qa-dataset (MIT). Passages with equal texts are one.

`help` reads the folder `/usr/share/libreoffice/help` of the Debian packages libreoffice-help-* (MPL 2.0). A question is
the paragraph that introduces a page, as the translators wrote it; the passage to find is the rest of that page, without its
title. Nobody asked these questions: they are sentences of a manual, and the manual repeats its terms. They compare
systems within a language, and say nothing about the questions of users. Pages that are not translated are left out, so the
sets of two languages differ.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

# A page of the help with less text than this, in English, does not stand alone.
LEAST_BODY = 300
LEAST_QUESTION = 40
# Share of the paragraphs of a page that are translated.
TRANSLATED = 0.9
BLOCK = re.compile(r'<(h[1-6]|p)\b[^>]*\bid="([^"]+)"[^>]*>(.*?)</\1>', re.DOTALL)
TAG = re.compile(r"<[^>]*>")

Question = tuple[str, str, list[str]]
"""Text, identifier of the passage, answers."""


def write(folder: Path, passages: dict[str, str], questions: list[Question]) -> None:
    """Write a set in the layout of `ketrag eval`."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for name, text in passages.items():
            file.write(json.dumps({"_id": name, "title": "", "text": text}, ensure_ascii=False) + "\n")
    with (
        (folder / "queries.jsonl").open("w", encoding="utf-8") as file,
        (folder / "qrels.tsv").open("w", encoding="utf-8") as judged,
    ):
        judged.write("query-id\tcorpus-id\tscore\n")
        for at, (text, passage, answers) in enumerate(questions, 1):
            record = {"_id": f"q{at}", "text": text, "metadata": {"answers": answers}}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            judged.write(f"q{at}\t{passage}\t1\n")
    print(f"{folder}: {len(passages):,} passages, {len(questions):,} questions")


def squad_rows(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Yield context, question and answers of a file in SQuAD's format, or with a question in each line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        for line in text.splitlines():
            row = json.loads(line)
            yield row["context"], row["question"], row["answers"]["text"]
        return
    for article in json.loads(text)["data"]:
        for paragraph in article["paragraphs"]:
            for one in paragraph["qas"]:
                if not one.get("is_impossible"):
                    answers = list(dict.fromkeys(answer["text"] for answer in one["answers"]))
                    yield paragraph["context"].split(" [SEP] ")[-1], one["question"], answers


def convert_squad(path: Path, folder: Path, most: int) -> None:
    """Convert a file; with more than `most` questions, every k-th is taken."""
    rows = list(squad_rows(path))
    ids: dict[str, str] = {}
    for context, _, _ in rows:
        ids.setdefault(context, f"p{len(ids) + 1}")
    step = -(-len(rows) // most)
    questions = [(question, ids[context], answers) for context, question, answers in rows[::step]]
    write(folder, {name: context for context, name in ids.items()}, questions)


def read_page(path: Path) -> dict[str, tuple[str, str]]:
    """Return the tag and text of each paragraph and heading of a page, by its id."""
    source = path.read_text(encoding="utf-8")
    start, end = source.find('<div id="DisplayArea"'), source.find('<div id="SearchFrame"')
    blocks = {}
    for tag, name, inner in BLOCK.findall(source[start:end]):
        text = " ".join(html.unescape(TAG.sub("", inner)).split())
        if text:
            blocks.setdefault(name, (tag, text))
    return blocks


def lead_of(page: dict[str, tuple[str, str]]) -> str | None:
    """Return the id of the paragraph that introduces a page: it follows the title."""
    names = list(page)
    titles = [at for at, name in enumerate(names) if page[name][0] == "h1"]
    after = names[titles[0] + 1 :][:1] if titles else []
    return after[0] if after and page[after[0]][0] == "p" else None


def convert_help(root: Path, prefix: str, languages: list[str], most: int) -> None:
    """Write a set for each language."""
    english_root = root / "en-US" / "text"
    english = {path.relative_to(english_root): read_page(path) for path in english_root.rglob("*.html")}
    leads = {path: lead for path, page in sorted(english.items()) if (lead := lead_of(page))}
    texts = Counter(english[path][lead][1] for path, lead in leads.items())
    asked = set(leads.values())

    def body(page: dict[str, tuple[str, str]]) -> dict[str, str]:
        return {name: text for name, (tag, text) in page.items() if tag != "h1" and name not in asked}

    chosen = {}
    for path, lead in leads.items():
        question = english[path][lead][1]
        whole = sum(map(len, body(english[path]).values()))
        if texts[question] == 1 and len(question) >= LEAST_QUESTION and whole >= LEAST_BODY:
            chosen[path] = lead
    for language in languages:
        passages, questions = {}, []
        for path, lead in chosen.items():
            file = root / language / "text" / path
            page = read_page(file) if file.exists() else {}
            blocks, source = body(page), body(english[path])
            worded = [name for name in blocks if sum(map(str.isalpha, source.get(name, ""))) > 10]
            translated = sum(blocks[name] != source[name] for name in worded)
            if lead not in page or page[lead][1] == english[path][lead][1]:
                continue
            if language != "en-US" and (not worded or translated < TRANSLATED * len(worded)):
                continue
            passages[str(path)] = "\n".join(blocks.values())
            questions.append((page[lead][1], str(path), []))
        step = max(1, -(-len(questions) // most))
        write(Path(f"{prefix}{language}"), passages, questions[::step])


def main() -> None:
    """Make the sets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kind", choices=("squad", "help"))
    parser.add_argument("source", type=Path)
    parser.add_argument("target", help="folder of the set; for help the folder before the language")
    parser.add_argument("--languages", default="", help="languages of the help, as its folders name them")
    parser.add_argument("--most", type=int, default=1200, help="number of questions")
    args = parser.parse_args()
    if args.kind == "squad":
        convert_squad(args.source, Path(args.target), args.most)
    elif args.languages:
        convert_help(args.source, args.target, args.languages.split(","), args.most)
    else:
        sys.exit("name the languages with --languages")


if __name__ == "__main__":
    main()
