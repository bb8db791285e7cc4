"""`ketrag themes`: overview, one theme, filters, and its errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from tests.support.chat import Chat
from tests.unit.query.themes.test_describe import library


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("themes") / "index"
    Index.build(library(40, date=True), path, settings=Settings(threads=1)).close()
    return path


def lines_of(capsys: pytest.CaptureFixture[str], *args: str) -> list[str]:
    assert main(["themes", *args]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_overview_lists_themes_with_a_quote(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["themes", "-i", str(folder), "--count", "2"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert [line.split()[0] for line in lines if line[:1].isdigit()] == ["1", "2"]
    with Index.open(folder) as index:
        first = index.themes().themes[0]
    assert f"({first.passages} passages of {first.document_count} documents, " in lines[0]
    assert lines[1].strip().startswith("“")
    assert lines[2].strip().startswith("1.1  ")
    assert err.startswith("2 of ")


def test_depth_one_lists_the_widest_themes_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "1.1" not in "\n".join(lines_of(capsys, "-i", str(folder), "--depth", "1"))


def test_one_theme_has_its_documents_and_periods(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(capsys, "-i", str(folder), "1")
    for heading in ("quotes:", "documents:", "over time, of all passages:"):
        assert heading in lines
    with Index.open(folder) as index:
        count = index.themes().themes[0].document_count
    assert f"   and {count - 10} more" in lines
    assert any(line.startswith("   2026-01-03") for line in lines)


def test_json_is_that_of_the_library(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines_of(capsys, "-i", str(folder), "--json")
    with Index.open(folder) as index:
        found = index.themes()
        assert json.loads(line) == json.loads(json.dumps(found.to_json()))
    (line,) = lines_of(capsys, "-i", str(folder), "1.1", "--json")
    assert json.loads(line)["schema"] == "ketrag/theme/1"
    assert json.loads(line)["label"] == found.themes[0].themes[0].label


def test_filters_and_rights_hold(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--filter", "--allow"):
        (line,) = lines_of(capsys, "-i", str(folder), option, "subject=bread", "--json")
        data = json.loads(line)
        assert data["documents"] == 40
        assert "ships/" not in line


def test_wrong_arguments_are_explained(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["themes", "-i", str(folder), "9.9"]) != 0
    assert "there is no theme '9.9'" in capsys.readouterr().err
    assert main(["themes", "-i", str(folder), "--count", "0"]) == 2
    assert "--count must be at least 1" in capsys.readouterr().err
    assert main(["themes", "-i", str(folder), "1", "--count", "3"]) == 2


def test_an_empty_index_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Index.build([Document("a", " ")], tmp_path / "index").close()
    assert main(["themes", "-i", str(tmp_path / "index")]) == 0
    assert "no passages" in capsys.readouterr().err


def test_ask_survey_prints_a_digest_by_theme(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = "Which things were repaired?"
    assert main(["ask", "-i", str(folder), "--survey", question, "--budget", "1500"]) == 0
    lines = capsys.readouterr().out.splitlines()
    with Index.open(folder) as index:
        labels = [section.name for section in index.retrieve(question, mode="survey", budget=1500).sections]
    assert len(labels) > 1
    assert [line for line in lines if line in labels] == labels


def test_survey_contradicts_another_mode(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "-i", str(folder), "--survey", "--mode", "walk", "What?"]) == 2
    assert "--survey contradicts --mode walk" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("question", "is_hinted"), [("Which problems come up again and again?", True), ("Who built it?", False)]
)
def test_ask_points_questions_about_the_whole_to_survey(
    folder: Path, capsys: pytest.CaptureFixture[str], question: str, is_hinted: bool
) -> None:
    assert main(["ask", "-i", str(folder), question]) == 0
    assert ("--survey" in capsys.readouterr().err) == is_hinted


@pytest.fixture
def written(loopback: None, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """An index of its own, and a model whose summary of bread is of no use."""

    def say(body: dict[str, Any]) -> str:
        is_bread = "bread" in body["messages"][-1]["content"]
        return "no" if is_bread else json.dumps({"title": "A title", "summary": "A sentence. " * 20})

    path = tmp_path / "index"
    Index.build(library(12), path, settings=Settings(threads=1)).close()
    with Chat(say) as chat:
        yield path, f"openai:mini@{chat.url}"


def test_summarise_says_what_it_did(written: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    path, llm = written
    argv = ["themes", "-i", str(path), "--summarise", "--llm", llm]
    assert main([*argv, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 themes: 0 summarised before, 3 missing; 3 calls of the language model, ")
    assert "time unknown; estimated, and nothing was done" in out
    assert main(argv) == 3
    out, err = capsys.readouterr()
    assert out.startswith("3 themes: 0 summarised before, 2 written; 4 calls of the language model, ")
    assert "no usable reply about 1 theme" in err and "--retry-failed" in err
    assert main([*argv, "--json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["kept"], data["failed"]) == ("ketrag/theme-summaries/1", 2, 1)


def test_themes_are_shown_with_their_summaries(
    written: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path, llm = written
    main(["themes", "-i", str(path), "--summarise", "--llm", llm])
    capsys.readouterr()
    lines = lines_of(capsys, "-i", str(path))
    assert sum(line.startswith("     A title: A sentence.") for line in lines) == 2
    assert sum(line.startswith("     “") for line in lines) == 1  # the quote of the other
    with Index.open(path) as index:
        chosen = next(theme.id for theme in index.themes().themes if theme.summary is not None)
    lines = lines_of(capsys, "-i", str(path), chosen)
    assert lines[1].startswith("     A title: A sentence.") and "quotes:" in lines


def test_options_of_summaries_that_contradict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["themes", "-i", str(folder), "--dry-run"]) == 2
    assert "--dry-run needs --summarise" in capsys.readouterr().err
    assert main(["themes", "-i", str(folder), "1", "--summarise"]) == 2
    assert "--summarise cannot be combined with ID" in capsys.readouterr().err
    assert main(["themes", "-i", str(folder), "--summarise"]) == 4
    assert "--llm" in capsys.readouterr().err
