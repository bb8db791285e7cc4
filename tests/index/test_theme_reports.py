"""Themes as communities of GraphRAG, their summaries as reports, and reports of an import in answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Theme, export_graph, import_index
from ketrag_fast.interchange.communities import NO_MODEL
from tests.index.test_theme_summaries import (
    THEMES,
    Writer,
    asked,
    folder,
    said_about,
    shown,
    summarised,
    writer,
)
from tests.support.parts import part

__all__ = ["folder", "writer"]  # the fixtures
pytestmark = pytest.mark.usefixtures("loopback")

Row = dict[str, Any]


def tables(place: Path) -> dict[str, list[Row]]:
    parquet = part("pyarrow.parquet", "checks")
    return {path.stem: parquet.read_table(path).to_pylist() for path in sorted(place.glob("*.parquet"))}


def exported(index: Path, target: Path, **options: Any) -> dict[str, list[Row]]:
    with Index.open(index) as opened:
        export_graph(opened, "graphrag", target, **options)
    return tables(target)


def test_themes_without_summaries_are_not_written(folder: Path, tmp_path: Path) -> None:
    assert "communities" not in exported(folder, tmp_path / "out")


def test_themes_are_written_as_communities(folder: Path, tmp_path: Path, writer: Writer) -> None:
    summarised(folder, writer)
    found = exported(folder, tmp_path / "out")
    with Index.open(folder) as index:
        themes = index.inspect.summarised_themes()
    assert themes is not None
    by_title = {theme.summary.text: theme for theme in themes.themes.walk() if theme.summary is not None}
    reports = {row["community"]: row for row in found["community_reports"]}
    communities = {row["community"]: row for row in found["communities"]}
    units = {row["id"]: row["human_readable_id"] for row in found["text_units"]}
    assert len(by_title) == len(reports) == len(communities) == THEMES
    of_community: dict[int, Theme] = {}
    for number, row in communities.items():
        report = reports[number]
        theme = of_community[number] = by_title[report["summary"]]
        assert {units[one] for one in row["text_unit_ids"]} == set(themes.units[theme.id].tolist())
        assert row["level"] == theme.id.count(".") == report["level"]
        assert theme.summary is not None and report["title"] == theme.summary.title
        assert [one["explanation"] for one in report["findings"]] == [one.text for one in theme.quotes]
        assert report["rating_explanation"].startswith("a language model has written") and report["rank"] > 0
    for number, row in communities.items():
        parent = communities.get(row["parent"])
        assert (parent is None) == (row["level"] == 0)
        if parent is not None:
            assert number in parent["children"] and set(row["entity_ids"]) <= set(parent["entity_ids"])
            assert of_community[number] in of_community[row["parent"]].themes
    # A plain vote of the units of each node, from the widest theme on.
    numbers = {theme.id: number for number, theme in of_community.items()}
    members = {number: set(row["entity_ids"]) for number, row in communities.items()}
    for node in found["entities"]:
        own = {units[one] for one in node["text_unit_ids"]}
        level = themes.themes.themes
        while level:
            votes = Counter({one.id: len(own & set(themes.units[one.id].tolist())) for one in level})
            best = next((one for one in level if votes[one.id] == max(votes.values()) > 0), None)
            for one in level:
                assert (node["id"] in members[numbers[one.id]]) == (one is best)
            level = () if best is None else best.themes


def test_a_theme_without_a_summary_is_written_with_its_quotes(
    folder: Path, tmp_path: Path, writer: Writer
) -> None:
    writer.answer = lambda text: "broken" if "narrower theme 1" in text else said_about(text)
    assert summarised(folder, writer).failed == 3
    found = exported(folder, tmp_path / "out")
    plain = [row for row in found["community_reports"] if row["rating_explanation"] in NO_MODEL]
    assert [row["level"] for row in plain] == [0, 0, 0]
    assert {row["title"] for row in plain} == {theme.label for theme in shown(folder) if theme.themes}
    report = import_index("graphrag", tmp_path / "out", tmp_path / "again")
    assert (report.reports, [row["count"] for row in report.notes]) == (6, [3])


def test_themes_of_others_are_not_written(folder: Path, tmp_path: Path, writer: Writer) -> None:
    summarised(folder, writer)
    found = exported(folder, tmp_path / "out", allow="subject=ships")
    text = str([found.get("communities"), found.get("community_reports")])
    assert "qbread" not in text and "qstars" not in text


def test_a_part_has_its_own_passages_alone(folder: Path, tmp_path: Path, writer: Writer) -> None:
    summarised(folder, writer)
    found = exported(folder, tmp_path / "out", query="Which breads were repaired?")
    units = {row["id"] for row in found["text_units"]}
    assert found["communities"]
    assert all(set(row["text_unit_ids"]) <= units for row in found["communities"])


@pytest.fixture
def again(folder: Path, tmp_path: Path, writer: Writer) -> Path:
    """The index of an import with reports."""
    summarised(folder, writer)
    exported(folder, tmp_path / "out")
    report = import_index("graphrag", tmp_path / "out", tmp_path / "again")
    assert report.reports == THEMES and not any("report" in row["what"] for row in report.skipped)
    writer.calls()
    return tmp_path / "again"


def test_summaries_come_back(folder: Path, again: Path) -> None:
    before, after = ([(one.id, one.summary) for one in shown(path)] for path in (folder, again))
    assert after == before
    assert all(one.summary is None for one in shown(again, allow="subject=ships"))


def test_an_answer_reads_the_reports_of_its_passages(folder: Path, again: Path, writer: Writer) -> None:
    writer.answer = lambda text: "NOTE bread." if "marks\nq" in text else "Bread was repaired. [1]"
    sent = []
    for index in (folder, again):
        writer.chat.requests.clear()
        asked(index, writer, "Which breads were praised or repaired?")
        prompts = [body["messages"][-1]["content"] for body in writer.chat.requests]
        assert 2 < len(prompts) <= 9 and prompts[-1].count("NOTE") == len(prompts) - 1
        sent.append(sorted(prompts[:-1]))
    assert sent[0] == sent[1]


def test_a_question_without_a_subject_reads_the_widest_reports(again: Path, writer: Writer) -> None:
    writer.answer = lambda text: "NOTE here." if "marks\nq" in text else "They are about ships. [1]"
    asked(again, writer, "What are these documents about?")
    assert writer.calls() == 4


def test_reports_with_hidden_passages_are_not_read(again: Path, writer: Writer) -> None:
    asked(again, writer, "Which things were praised or repaired?", allow="subject=ships")
    sent = "\n".join(body["messages"][-1]["content"] for body in writer.chat.requests)
    assert "qships" in sent and "qbread" not in sent and "qstars" not in sent


def test_summaries_of_a_model_take_the_place_of_reports(again: Path, writer: Writer) -> None:
    assert summarised(again, writer).written == THEMES
    writer.calls()
    asked(again, writer, "What are these documents about?")
    assert writer.calls() == 4
