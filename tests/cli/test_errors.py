"""Errors of the command: what they say, what their hints lead to, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.process import POLAR, command

from ketrag_fast.apps.cli.interchange import list_rows
from ketrag_fast.apps.cli.options import complete_hint


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index `my notes` of a custom list of modes, and none at the default path."""
    folder = tmp_path_factory.mktemp("errors")
    (folder / "docs").mkdir()
    (folder / "docs" / "ship.md").write_text("The Fram sailed. Colin Archer built the Fram.\n", "utf-8")
    done = command("index", "docs", "-i", "my notes", "--modes", "bm25,walk", cwd=folder)
    assert done.code == 0, done.err
    return folder


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (("graph", "Fram", "--graph", "keyword", "--html", "z.html"), "--modes +keyword`"),
        (("graph", "--graph", "skeleton", "--html", "z.html"), "--llm heuristic`"),
        (("graph", "ship.md", "--kind", "document"), "--modes +cg-rag`"),
        (("export", "graphml", "z.graphml", "--graph", "knn"), "--modes +knn`"),
        (("retrieve", "Fram", "-o", "seed=1"), "-o seed=VALUE"),
        (("index", "--publish-partial", "-i", "none"), "SOURCE... --llm SPEC"),
    ],
)
def test_a_hint_names_the_index_of_the_command(place: Path, argv: tuple[str, ...], hint: str) -> None:
    named = () if "-i" in argv else ("-i", "my notes")
    done = command(*argv, *named, cwd=place)
    assert done.code in (2, 4)
    index = "none" if "-i" in argv else "'my notes'"
    assert f"ketrag index -i {index} {hint}" in done.err
    said = json.loads(command(*argv, *named, "--json", cwd=place).err)
    assert f"ketrag index -i {index} {hint}" in said["hint"]


NO_NODE = "has no node 'Frmm', and no name contains it\nhint: `ketrag graph -i 'my notes' Frmm`"
DATA_SET = "hint: a data set is a folder with queries.jsonl, qrels.tsv"
STREAM = "is not supported here"
MY_NOTES = ("-i", "my notes")
MESSAGES: list[tuple[tuple[str, ...], int, str]] = [
    (
        ("index", *MY_NOTES, "--embedder", "native:all-MiniLM-L6-v2"),
        4,
        "reembed -i 'my notes' --embedder ...",
    ),
    (
        ("retrieve", "Fram", "--rerank", "my-reranker", *MY_NOTES),
        2,
        "must be native:FOLDER or none, got 'my-",
    ),
    (("retrieve", "Fram", *MY_NOTES, "--filter", ""), 2, "filter is empty: is a variable unset?"),
    (("retrieve", "Fram", *MY_NOTES, "-o", "filter="), 2, "filter is empty: is a variable unset?"),
    (("retrieve", "", *MY_NOTES), 2, "hint: "),
    (("retrieve", *MY_NOTES), 2, "hint: "),
    (("ask", " ", *MY_NOTES), 2, "hint: "),
    (("read", "-"), 2, f"standard input {STREAM}"),
    (("export", "graphml", "-", *MY_NOTES), 2, f"standard output {STREAM}"),
    (("bundle", "-", *MY_NOTES), 2, f"standard output {STREAM}"),
    (("export", "graphml", "z.graphml", "--neighbourhood", "Frmm", *MY_NOTES), 2, NO_NODE),
    (("eval", str(POLAR / "corpus.jsonl")), 1, DATA_SET),
    (("bench", "systems", str(POLAR / "queries.jsonl")), 1, DATA_SET),
    (("retrieve", "Who", "built", "the", "Fram"), 2, 'in quotes: ketrag retrieve "QUERY"'),
    (("ask", "Who", "built", "the", "Fram"), 2, 'in quotes: ketrag ask "QUESTION"'),
    (("grep", "Fram", "-i", "ix"), 2, "--ignore-case is -i in this command; --index names the index"),
    (("graph", "Colin", "Archer"), 2, 'in quotes: ketrag graph "NAME"'),
    (("stats", "here"), 2, "ketrag stats -h"),
    (("purge", "ship.md"), 2, "ketrag remove --purge"),
]


@pytest.mark.parametrize(("argv", "code", "said"), MESSAGES)
def test_what_is_said(place: Path, argv: tuple[str, ...], code: int, said: str) -> None:
    done = command(*argv, cwd=place)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert not (place / "-").exists()


def test_the_mode_that_a_hint_adds_replaces_no_other(place: Path) -> None:
    done = command("export", "graphml", "z.graphml", "--graph", "knn", "-i", "my notes", cwd=place)
    assert "`ketrag index -i 'my notes' --modes +knn`" in done.err
    assert command("index", "-i", "my notes", "--modes", "+knn", cwd=place).code == 0
    stats = json.loads(command("stats", "-i", "my notes", "--json", cwd=place).out)
    assert stats["settings"]["modes"] == "bm25,walk,knn"


@pytest.mark.parametrize(
    ("hint", "index", "completed"),
    [
        ("run `ketrag index` again", None, "run `ketrag index` again"),
        ("run `ketrag index` again", "ix", "run `ketrag index -i ix` again"),
        (
            "finish it: ketrag index -i b; or name another",
            "a",
            "finish it: ketrag index -i b; or name another",
        ),
        ("`ketrag index -i b` or `ketrag doctor`", "a", "`ketrag index -i b` or `ketrag doctor -i a`"),
        ("`ketrag index-all` and `ketrag retrieve`", "a", "`ketrag index-all` and `ketrag retrieve`"),
        ("index them alone (`ketrag index SOURCE...`)", "a", "index them alone (`ketrag index SOURCE...`)"),
        ("ketrag graph NAME, or ketrag graph ID", "a", "ketrag graph -i a NAME, or ketrag graph -i a ID"),
        ("`ketrag index --modes auto`", None, "`ketrag index --modes +auto`"),
        ("`ketrag index --modes auto,ket,knn`", None, "`ketrag index --modes auto,ket,knn`"),
    ],
)
def test_which_hints_are_completed(hint: str, index: str | None, completed: str) -> None:
    assert complete_hint(hint, index) == completed


def test_several_indexes_and_the_default_one_are_not_named(place: Path, tmp_path: Path) -> None:
    done = command("retrieve", "Fram", "-i", "a,b", cwd=tmp_path)
    assert done.code == 4 and "index -i" not in done.err
    done = command("stats", "-i", ".ketrag", cwd=tmp_path)
    assert done.code == 4 and "`ketrag index SOURCE...`" in done.err


@pytest.mark.parametrize("modes", ["auto,ket", "+ket"])
def test_a_named_mode_that_the_index_does_not_serve_is_a_warning(tmp_path: Path, modes: str) -> None:
    (tmp_path / "a.md").write_text("The Fram sailed.\n", "utf-8")
    done = command("index", "a.md", "-i", "ix", "--modes", modes, cwd=tmp_path)
    assert done.code == 0
    assert "warning: mode ket needs an entity skeleton" in done.err
    assert "`ketrag index -i ix --llm SPEC` extracts entities" in done.err
    assert command("index", "-i", "ix", "--modes", modes, "-q", cwd=tmp_path).err == ""
    assert command("index", "-i", "ix", "--modes", "auto,bm25", cwd=tmp_path).err.count("warning") == 0


def test_lines_that_are_not_queries_and_a_file_without_any(place: Path) -> None:
    (place / "plain.txt").write_text("Who built the Fram?\n[1]\n", "utf-8")
    done = command("retrieve", "--queries", "plain.txt", "-i", "my notes", cwd=place)
    assert done.code == 3
    for line in done.out.splitlines():
        assert "one JSON object per line" in json.loads(line)["hint"]
        assert '"_id"' in json.loads(line)["hint"] and '"text"' in json.loads(line)["hint"]
    (place / "empty.jsonl").write_text("\n", "utf-8")
    done = command("retrieve", "--queries", "empty.jsonl", "-i", "my notes", cwd=place)
    assert (done.code, done.out) == (0, "")
    assert "--queries empty.jsonl: there are no queries" in done.err


@pytest.mark.parametrize("argv", [("--kind", "yes-no"), ("--option", "A", "--option", "B")])
def test_a_form_of_answer_needs_a_model(place: Path, argv: tuple[str, ...]) -> None:
    done = command("ask", "Who built the Fram?", "-i", "my notes", *argv, cwd=place)
    assert (done.code, done.out) == (2, "")
    assert f"{' '.join(argv[:2]) if argv[0] == '--kind' else '--option'} needs a language model" in done.err
    assert "--answer-llm SPEC" in done.err
    assert command("ask", "Who built the Fram?", "-i", "my notes", "--kind", "free", cwd=place).code == 0


def test_the_origin_of_a_filter(place: Path) -> None:
    argv = ("retrieve", "Fram", "-i", "my notes")
    wrong = "filter: no document has a field 'lang'"
    done = command(*argv, "--filter", "lang=en", cwd=place)
    assert (done.code, f"error: {wrong}" in done.err) == (2, True)
    done = command(*argv, cwd=place, KETRAG_FILTER="lang=en")
    assert f"error: environment variable KETRAG_FILTER: {wrong}" in done.err
    (place / "ketrag.toml").write_text("filter = 'lang=en'\n", "utf-8")
    try:
        assert f"error: ketrag.toml: {wrong}" in command(*argv, cwd=place).err
        assert f"error: {wrong}" in command(*argv, "--filter", "lang=xx", cwd=place).err
    finally:
        (place / "ketrag.toml").unlink()
    (place / "my.toml").write_text("budget = -1\n", "utf-8")
    assert "error: my.toml: budget: -1 is not" in command(*argv, "--config", "my.toml", cwd=place).err


def test_a_note_of_an_import_does_not_repeat_itself(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"what": "the table communities is not read", "count": 1, "examples": ["communities"]},
        {"what": "documents without a text", "count": 1, "examples": ["a.md"]},
        {"what": "entities without a name", "count": 1200, "examples": []},
    ]
    list_rows("note", rows)
    assert capsys.readouterr().err.splitlines() == [
        "  note: the table communities is not read",
        "  note: 1 x documents without a text (a.md)",
        "  note: 1,200 x entities without a name",
    ]


def test_what_the_doctor_and_a_build_advise_names_the_index(place: Path) -> None:
    current = place / "my notes" / "CURRENT"
    name = current.read_text()
    current.write_text("garbled")
    done = command("doctor", "-i", "my notes", cwd=place)
    said = json.loads(command("doctor", "-i", "my notes", "--json", cwd=place).out)
    current.write_text(name)
    assert done.code == 4
    assert "run `ketrag index -i 'my notes'` again" in done.out
    assert any("-i 'my notes'" in row["error"]["hint"] for row in said["checks"] if row["error"])
    assert command("remove", "ship.md", "-i", "my notes", cwd=place).code == 0
    done = command("index", "-i", "my notes", cwd=place)
    assert "`ketrag add -i 'my notes'` with its source restores it" in done.err
    assert command("add", "docs/ship.md", "-i", "my notes", cwd=place).code == 0


def test_a_folder_after_a_query_leads_to_an_index(place: Path) -> None:
    done = command("search", "who led the Fram", "my notes", cwd=place)
    assert (done.code, "--index 'my notes' names an index" in done.err) == (2, True)
    (place / "drafts").mkdir(exist_ok=True)
    done = command("search", "who led the Fram", "drafts", cwd=place)
    assert (done.code, "`ketrag index drafts` builds one from files" in done.err) == (2, True)
    done = command("search", "who", "led", cwd=place)
    assert (done.code, 'ketrag search "QUERY"' in done.err) == (2, True)
