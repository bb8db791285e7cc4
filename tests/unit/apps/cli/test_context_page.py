"""The page of a context: what it draws, and that nothing of a document becomes markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli.context_page import chain_of, page
from ketrag_fast.apps.cli.main import main
from ketrag_fast.types import Context

FILM = "In which region lies the town where the maker of the film Blue Engine was born?"
TOLD = [
    ("Blue Engine", "Blue Engine is a film of Ada Lorne."),
    ("Ada Lorne", "Ada Lorne was born in Milan."),
    ("Milan", "Milan lies in Lombardy <script>alert(1)</script>."),
    *((f"Filler {k}", f"Filler {k} speaks of matter{k % 7} here.") for k in range(60)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page") / "index"
    Index.build([Document(title, text, title) for title, text in TOLD], place).close()
    return place


@pytest.fixture(scope="module")
def context(folder: Path) -> Context:
    with Index.open(folder) as index:
        found = index.retrieve(FILM, mode="walk", budget=150, explain=True)
        return replace(found, passages=list(found.passages))


def test_the_chain_is_drawn_from_the_question_s_end_to_the_passage(context: Context) -> None:
    milan = next(p for p in context.passages if p.title == "Milan")
    steps = chain_of(milan, milan.why)
    assert [name for name, _, _ in steps] == ["Blue Engine", "Ada Lorne", "Milan"]
    assert [bridges[0]["text"] for _, _, bridges in steps[:2]] == ["Ada Lorne", "Milan"]
    drawn = page(context)
    figures = re.findall(r"<svg.*?</svg>", drawn, re.DOTALL)
    assert len(figures) == sum(len(chain_of(p, p.why)) > 1 for p in context.passages)
    own = next(svg for svg in figures if "Chain: Blue Engine, Ada Lorne, Milan" in svg)
    tree = ElementTree.fromstring(own)
    assert len(tree.findall(".//rect")) == 3
    assert len(tree.findall(".//line")) == 2
    words = ["".join(text.itertext()) for text in tree.iter("text")]
    assert {"Blue Engine", "Ada Lorne", "Milan", "[1]"} <= set(words)
    assert all(link.get("href", "").startswith("#p") for link in tree.iter("a"))


def test_what_documents_say_stays_text(context: Context) -> None:
    drawn = page(replace(context, question='<b>&"', warnings=("<i>w",)))
    assert "<script" not in drawn and "<b>&" not in drawn and "<i>w" not in drawn
    assert "&lt;script&gt;alert(1)" in drawn
    assert "http" not in re.sub(r"http-equiv", "", drawn)


def test_a_context_without_passages_says_why(context: Context) -> None:
    drawn = page(replace(context, passages=[], reason="no_match", text=""))
    assert "no passages: nothing in the index matches the query" in drawn
    assert "<svg" not in drawn


def test_the_command_writes_it_and_refuses_what_it_cannot_draw(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "context.html"
    asked = ["retrieve", "-i", str(folder), FILM, "--mode", "walk", "--budget", "150"]
    assert main([*asked, "--html", str(file)]) == 0
    assert "Chain: Blue Engine, Ada Lorne, Milan" in file.read_text("utf-8")
    plain = capsys.readouterr().out
    assert "linked to" not in plain
    assert main([*asked, "--explain"]) == 0
    told = capsys.readouterr().out
    assert (
        "contains " in told
        and "linked to [1] Blue Engine: *Ada Lorne*, its subject, is mentioned there (in " in told
    )
    _, _, sources = told.partition("Sources (")
    for block in sources.split("\n  [")[1:]:
        assert 1 <= len(block.splitlines()) <= 3, "a passage and at most two lines about it"
    assert main([*asked, "--explain", "--json"]) == 0
    why = [p["why"] for p in json.loads(capsys.readouterr().out)["passages"]]
    assert any("chain" in reason for reasons in why for reason in reasons)
    assert main([*asked, "--html", str(tmp_path / "none" / "x.html")]) == 2
    assert "folder that exists" in capsys.readouterr().err
    assert main(["retrieve", "-i", str(folder), "--queries", "-", "--html", str(file)]) == 2
    assert "--html takes one query" in capsys.readouterr().err


def test_quotes_are_on_the_page_and_names_are_emphasised(folder: Path, context: Context) -> None:
    with Index.open(folder) as index:
        answer = index.ask("Who is born in Milan?", mode="walk", explain=True)
    assert answer.quotes and not answer.text
    drawn = page(answer.context, answer=answer)
    assert "not an answer written by a model" in drawn
    assert f'<a href="#p{answer.quotes[0].number}">[{answer.quotes[0].number}]</a>' in drawn
    explained = page(context)
    assert "<em>Ada Lorne</em>" in explained and "*Ada Lorne*" not in explained
