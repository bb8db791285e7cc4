"""Sentences of the command: what they count, name and leave out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast.apps.cli.main import main


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "ship.md").write_text("# Ship\n\nThe Fram sailed.\n", "utf-8")
    return folder


def test_chunks_that_are_read_by_two_systems_are_counted_once(
    notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["index", str(notes), "--llm", "heuristic", "--modes"]
    assert main([*argv, "ket", "-i", "one"]) == 0
    assert "  extraction: 1 of 1 core chunks read, 1 reply in" in capsys.readouterr().out
    assert main([*argv, "ket,noderag,cg-rag", "-i", "two"]) == 0
    assert "  extraction: 2 of 2 core chunks read (1 in 2 passes), 2 replies in" in capsys.readouterr().out
    assert main(["stats", "-i", "two"]) == 0
    assert "cg-rag:\n" not in capsys.readouterr().out


def test_a_failure_in_the_statistics_is_a_sentence(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (notes / "empty.txt").write_text("", "utf-8")
    assert main(["index", str(notes)]) == 3
    capsys.readouterr()
    assert main(["stats"]) == 0
    assert "failures: 1\n  empty.txt: the file is empty\n" in capsys.readouterr().out


def test_settings_in_the_statistics_are_written_as_options_take_them(
    notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", str(notes)]) == 0
    assert main(["stats", "--verbose"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  even_chunks: true" in lines
    assert not [line for line in lines if line.endswith((": None", ": True", ": False"))]


def test_an_index_without_citations_names_the_command_that_adds_them(
    notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", str(notes)]) == 0
    assert main(["graph", "--document", "ship.md"]) == 4
    found = capsys.readouterr().err
    assert "no citation graph" in found and "`ketrag index --modes +cg-rag` adds it" in found


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("documents", "--first", "x"), "argument --first: 'x' is not a whole number"),
        (("export", "grafml", "x"), "argument format: 'grafml' is not one of graphrag, graphml, gexf, neo4j"),
        (("export", "grafml", "x"), "hint: did you mean graphml?"),
        (("bench", "zzz"), "hint: ketrag bench -h"),
    ],
)
def test_wrong_values_are_named_in_plain_words(
    argv: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(list(argv))
    assert words in capsys.readouterr().err


def test_ctrl_c_while_the_command_is_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ketrag_fast.apps.cli.main.parse", stop)
    assert main(["stats"]) == 130
    assert "run the same command again" in capsys.readouterr().err


def test_a_bundle_that_does_not_exist_is_not_a_damaged_index(
    notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["unbundle", str(notes / "none.bundle"), "-i", "copy"]) == 4
    found = capsys.readouterr().err
    assert "no such file" in found and "`ketrag bundle FILE -i DIR` writes one" in found
    assert not Path("copy").exists()
