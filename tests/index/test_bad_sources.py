"""Bad sources through the command: what is said, what is kept, and the exit code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import DocumentError
from ketrag_fast.types import Document
from tests.process import Done, command, ketrag
from tests.support.effort import processor_seconds
from tests.support.ordinary_user import ordinary_user

GOOD = "The Fram was built by Colin Archer in Larvik."


def indexed(cwd: Path, *argv: str) -> Done:
    """Indexes `docs`, then asks for what the good document says: it must have survived."""
    done = command("index", "docs", *argv, cwd=cwd)
    found = command("retrieve", "Who built the Fram?", "--json", cwd=cwd)
    assert found.code == 0, found.err
    assert "Colin Archer" in json.loads(found.out)["context"]
    return done


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "good.txt").write_text(GOOD)
    return folder


def test_missing_path(tmp_path: Path) -> None:
    done = ketrag("index", "nowhere", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "no such file or folder: nowhere" in done.err
    assert "hint: check the path" in done.err
    with pytest.raises(DocumentError, match="nowhere") as caught:
        Index.build(tmp_path / "nowhere", tmp_path / "index")
    assert caught.value.code == "document"
    assert caught.value.hint


def test_missing_path_leaves_the_index_as_it_was(docs: Path) -> None:
    assert indexed(docs.parent).code == 0

    def held() -> dict[str, object]:
        found: dict[str, object] = json.loads(command("stats", "--json", cwd=docs.parent).out)
        return {name: value for name, value in found.items() if name != "disk"}  # SQLite's files may grow

    before = held()
    assert command("index", "nowhere", cwd=docs.parent).code == 1
    assert held() == before


def test_folder_without_documents(tmp_path: Path) -> None:
    """Whoever typed the wrong folder must notice, and has nothing to clean up."""
    (tmp_path / "docs").mkdir()
    done = command("index", "docs", "--quiet", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "no document found in docs" in done.err
    assert "nothing was changed" in done.err
    (tmp_path / "docs" / "a.xyz").write_bytes(b"\0\1\2")
    done = command("index", "docs", cwd=tmp_path)
    assert done.code == 1
    assert "no document found in docs (skipped 1 file of an unknown format: .xyz (1))" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["docs"]


def test_folder_without_documents_replaces_nothing(docs: Path) -> None:
    assert indexed(docs.parent).code == 0
    (docs.parent / "empty").mkdir()
    done = command("index", "empty", "--replace", cwd=docs.parent)
    assert done.code == 1
    assert "no document found in empty" in done.err
    done = indexed(docs.parent)
    assert (done.code, "is up to date: 1 document" in done.out) == (0, True)
    done = command("index", "empty", cwd=docs.parent)
    assert done.code == 0
    assert "warning: the source empty has no files" in done.err


def test_an_index_whose_files_are_gone_keeps_its_documents_until_they_are_removed(docs: Path) -> None:
    """The folder may be the place of a drive that is not connected."""
    assert indexed(docs.parent).code == 0
    (docs / "good.txt").unlink()
    for _ in range(2):
        done = command("index", cwd=docs.parent)
        assert done.code == 1
        assert "no document is left in docs; nothing was changed: the index keeps its document" in done.err
        assert "ketrag remove '*'" in done.err
    assert json.loads(command("stats", "--json", cwd=docs.parent).out)["counts"]["documents"] == 1
    assert command("remove", "*", cwd=docs.parent).code == 0
    found = command("retrieve", "Who?", "--json", cwd=docs.parent)
    assert found.code == 0
    assert json.loads(found.out)["reason"] == "empty_index"
    done = command("index", cwd=docs.parent)
    assert done.code == 0
    assert command("stats", cwd=docs.parent).code == 0


def test_a_folder_that_is_gone_keeps_its_documents(docs: Path) -> None:
    """Deleted files are removed; a folder that is gone may be on a drive that is not connected."""
    (docs.parent / "more").mkdir()
    for name in ("a.txt", "b.txt"):
        (docs.parent / "more" / name).write_text(f"The Fram sailed in {name}.")
    (docs.parent / "one.txt").write_text("The Gjøa sailed alone.")
    assert command("index", "docs", "more", "one.txt", cwd=docs.parent).code == 0
    (docs.parent / "more").rename(docs.parent / "away")
    (docs.parent / "one.txt").unlink()
    for _ in range(2):
        done = command("index", cwd=docs.parent)
        assert done.code == 3
        assert "more: the folder is missing; its 2 documents stay in the index" in done.err
        assert ": 3 documents" in done.out, done.out
    assert "the source one.txt is missing; its documents were removed" not in done.err  # said once
    stopped = command("index", "--on-error", "stop", cwd=docs.parent)
    assert stopped.code == 1
    assert "more: the folder is missing" in stopped.err
    (docs.parent / "away").rename(docs.parent / "more")
    (docs.parent / "more" / "b.txt").unlink()
    done = command("index", cwd=docs.parent)
    assert (done.code, "(0 added, 0 changed, 1 removed)" in done.out) == (0, True)


MISSING_MODELS = {
    "--embedder=native:nope": (5, "the model nope is not on this machine"),
    "--embedder=native:./nope": (1, "no such folder: ./nope"),
    "--embedder=local:docs": (1, "docs is not a sentence-transformers model"),
    "--embedder=vectors:nope": (1, "no such file: nope/vectors.npy"),
    "--llm=llama-cpp:nope.gguf": (1, "no such file: nope.gguf"),
    "--llm=llama-cpp:nope.gguf#plain": (1, "no such file: nope.gguf"),
    "--llm=replay:nope.jsonl": (1, "no such file: nope.jsonl"),
}


@pytest.mark.parametrize("option", MISSING_MODELS)
def test_a_model_that_is_missing_is_noticed_before_anything_is_read(
    docs: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("a source was read")

    monkeypatch.setenv("HF_HUB_CACHE", str(docs.parent / "hub"))
    monkeypatch.setattr("ketrag_fast.building.runner.apply_change", read)
    done = command("index", "docs", option, cwd=docs.parent)
    code, why = MISSING_MODELS[option]
    assert done.code == code
    assert why in done.err
    assert [path.name for path in docs.parent.iterdir()] == ["docs"]


def test_a_rebuild_with_a_missing_model_reads_nothing(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert indexed(docs.parent).code == 0
    monkeypatch.setattr("ketrag_fast.building.runner.apply_change", lambda *_, **__: pytest.fail("read"))
    done = command("index", "--rebuild", "--embedder=vectors:nope", cwd=docs.parent)
    assert (done.code, "no such file: nope/vectors.npy" in done.err) == (1, True)


def test_no_documents_in_every_mode(tmp_path: Path) -> None:
    with Index.build([], tmp_path / "index") as index:
        assert index.report is not None
        assert any("empty" in warning for warning in index.report.warnings)
        for mode in ("auto", *index.modes):
            context = index.retrieve("Who built the Fram?", mode=mode)
            assert (context.reason, context.tokens, list(context.passages)) == ("empty_index", 0, []), mode
        assert "walk" in index.modes


BAD_FILES = {
    "zeros": ("bad.txt", b"\0" * 10_000, "byte 0 is zero"),
    "broken line": (
        "bad.jsonl",
        b'{"_id":"x","text":"One."}\n{"_id": "y", "text"\n{"_id":"z","text":"Three."}\n',
        "line 2 is not JSON",
    ),
    "no object": ("bad.jsonl", b"[1, 2]\n", "line 1 is not a JSON object"),
    "duplicate ids": (
        "bad.jsonl",
        b'{"_id":"x","text":"First."}\n{"_id":"x","text":"Second."}\n',
        "the id 'x' is already in use",
    ),
}
"""What the readers say of all kinds of bad files is tested in tests/unit/readers."""


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_file_is_listed_and_the_rest_is_indexed(docs: Path, case: str) -> None:
    name, data, message = BAD_FILES[case]
    (docs / name).write_bytes(data)
    done = indexed(docs.parent)
    assert done.code == 3, done.err
    assert "could not be read" in done.err
    assert name in done.err or "x: " in done.err
    assert message in done.err
    failures = json.loads(command("stats", "--json", cwd=docs.parent).out)["failures"]
    assert len(failures) == 1
    assert message in failures[0]["message"]
    (docs / name).unlink()
    assert indexed(docs.parent).code == 0


def test_bad_file_ends_the_build_where_that_is_asked_for(docs: Path) -> None:
    (docs / "bad.txt").write_bytes(b"\0")
    done = command("index", "docs", "--on-error", "stop", cwd=docs.parent)
    assert (done.code, done.out) == (1, "")
    assert "bad.txt" in done.err
    assert "hint: --on-error skip" in done.err


def test_fallback_encoding_is_named_where_it_does_not_exist(docs: Path) -> None:
    (docs / "latin.txt").write_bytes("Orléans liegt an der Loire.".encode("cp1252"))
    done = indexed(docs.parent, "-o", "fallback_encoding=klingon")
    assert done.code == 3
    assert "'klingon' is not a known encoding" in done.err
    assert indexed(docs.parent, "-o", "fallback_encoding=cp1252").code == 0
    found = json.loads(command("retrieve", "Orléans?", "--json", cwd=docs.parent).out)
    assert found["passages"][0]["text"] == "Orléans liegt an der Loire."


def test_file_that_may_not_be_read(docs: Path) -> None:
    secret = docs / "secret.txt"
    secret.write_text("Not for you.")
    secret.chmod(0)
    with ordinary_user():
        done = indexed(docs.parent)
    assert done.code == 3
    assert "secret.txt: cannot be read" in done.err


@pytest.mark.parametrize(
    "name", ["with space.txt", "ünïcödé 北京.txt", "-flag.txt", "q?[a]*.txt", "a'b\"c.txt"]
)
def test_odd_names(docs: Path, name: str) -> None:
    (docs / name).write_text("Nansen drifted towards the pole.")
    assert indexed(docs.parent).code == 0
    found = json.loads(command("retrieve", "Who drifted?", "--json", cwd=docs.parent).out)
    assert found["passages"][0]["document"] == name
    folder = docs.parent / f"index of {name.removesuffix('.txt')}"
    assert command("index", f"docs/{name}", "-i", str(folder), cwd=docs.parent).code == 0
    alone = json.loads(command("retrieve", "Who drifted?", "-i", str(folder), "--json", cwd=docs.parent).out)
    assert [passage["document"] for passage in alone["passages"]] == [name]


def test_name_that_is_no_text(docs: Path) -> None:
    raw = os.fsencode(docs) + b"/caf\xe9.txt"
    try:
        with open(raw, "wb") as file:  # noqa: PTH123 - a name in bytes
            file.write(b"Mawson walked alone.")
    except OSError:
        pytest.skip("this file system takes UTF-8 names alone")
    assert indexed(docs.parent).code == 0
    found = json.loads(command("retrieve", "Who walked alone?", "--json", cwd=docs.parent).out)
    assert found["passages"][0]["document"] == "caf\\xe9.txt"


@pytest.mark.parametrize("text", ["12 34 5678, 90!", "the of and to is", "\u200b\u200b"])
def test_texts_without_a_keyword(docs: Path, text: str) -> None:
    (docs / "odd.txt").write_text(text, "utf-8")
    assert indexed(docs.parent).code == 0
    alone = docs.parent / "alone"
    with Index.build([Document("odd", text)], alone) as index:
        for mode in index.modes:
            context = index.retrieve("Who built the Fram?", mode=mode)
            assert (context.reason, context.text) == ("no_match", ""), mode
            assert index.retrieve(text, mode=mode).tokens <= 4000


def one_line(megabytes: int) -> str:
    words = " ".join(f"harbour{n % 977} Captain{n % 89}" for n in range(1000))
    return (words * (megabytes * 1_000_000 // len(words) + 1))[: megabytes * 1_000_000]


def test_one_long_line(docs: Path) -> None:
    (docs / "long.txt").write_text(one_line(10) + " The last word is Spitsbergen.")
    with processor_seconds(60), Index.build(docs, docs.parent / "index") as index:
        found = index.retrieve("Spitsbergen").passages[0]
        assert found.document == "long.txt"
        assert found.text.endswith("Spitsbergen.")


@pytest.mark.soak
def test_one_line_of_300_megabytes(docs: Path) -> None:
    (docs / "long.txt").write_text(one_line(300) + " The last word is Spitsbergen.")
    done = ketrag("index", "docs", cwd=docs.parent, timeout=3600)
    assert done.code == 3 and "long.txt" in done.err and "read_memory" in done.err
    done = ketrag("index", "docs", "-o", "read_memory=4000", cwd=docs.parent, timeout=3600)
    assert done.code == 0, done.err
    found = json.loads(command("retrieve", "Spitsbergen", "--json", cwd=docs.parent).out)
    assert found["passages"][0]["text"].endswith("Spitsbergen.")


@pytest.mark.parametrize("filler", ["x", "7", "\u0301", "\u200d", ".", "你"])
def test_one_endless_run_of_one_character(docs: Path, filler: str) -> None:
    """Nothing may grow with the square of a run without a word end."""
    (docs / "run.txt").write_text("start " + filler * 50_000 + " end", "utf-8")
    settings = Settings(threads=2)
    with processor_seconds(20), Index.build(docs, docs.parent / "index", settings=settings) as index:
        assert index.report is not None
        assert index.report.documents == 2
        assert index.retrieve("Who built the Fram?").passages[0].document == "good.txt"


def test_a_million_empty_lines(docs: Path) -> None:
    (docs / "lines.txt").write_text("\n" * 1_000_000 + "Shackleton came back." + "\r\n" * 1_000_000)
    (docs / "lines.md").write_text("\n" * 1_000_000)
    (docs / "rows.jsonl").write_text("\n" * 1_000_000 + '{"_id": "row", "text": "Wild waited."}\n')
    (docs / "rows.csv").write_text("_id,text\n" + "\n" * 1_000_000 + "cell,Crean sailed.\n")
    done = indexed(docs.parent)
    assert done.code == 3  # lines.md has nothing else
    for question, document in [
        ("Who came back?", "lines.txt"),
        ("Who waited?", "row"),
        ("Who sailed?", "cell"),
    ]:
        found = json.loads(command("retrieve", question, "--json", cwd=docs.parent).out)
        assert found["passages"][0]["document"] == document
        assert found["tokens"] <= found["budget"]


SCRIPTS = {
    "japanese": ("東京は日本の首都です。富士山は高い山です。", "東京"),
    "korean": ("서울은 대한민국의 수도이다.", "서울은"),
    "hebrew": ("ירושלים היא עיר בישראל.", "ירושלים"),
    "thai": ("กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย", "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย"),
    "emoji": ("👩‍👩‍👧‍👦 The family 🇳🇴 lives in Tromsø 😀.", "Tromsø"),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_is_found_in_every_mode(tmp_path: Path, script: str) -> None:
    text, question = SCRIPTS[script]
    others = [Document(f"d{n}", f"Captain Number{n} sailed from Harbour{n}.") for n in range(8)]
    with Index.build([*others, Document("it", text)], tmp_path / "index") as index:
        for mode in index.modes:
            context = index.retrieve(question, mode=mode)
            assert context.reason is None, mode
            first = context.passages[0]
            assert first.document == "it", mode
            assert text[first.start : first.end] == first.text
            cut = index.retrieve(question, mode=mode, budget=12)
            assert cut.tokens <= 12
            assert "\ufffd" not in cut.text


def test_one_document(tmp_path: Path) -> None:
    for system in ("default", "ket-rag", "g2cons"):
        settings = Settings(system=system)
        with Index.build([Document("only", GOOD)], tmp_path / system, settings=settings) as index:
            for mode in index.modes:
                assert "Colin Archer" in index.retrieve("Who built the Fram?", mode=mode).text, (system, mode)
