"""Rights: what is allowed answers as an index of these documents alone, and nothing hints at the rest."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.building import allowed_index as module
from ketrag_fast.errors import Cancelled, ConfigError, DeadlineExceeded, IndexLocked, InputError, KetragError
from ketrag_fast.storage import lock
from ketrag_fast.storage.layout import Layout
from tests import small_model
from tests.index.test_filters import QUESTION, documents
from tests.support.array_files import array_files
from tests.support.ordinary_user import ordinary_user

ALLOW = "lang=en and not draft=true"
SETTINGS = Settings(llm="heuristic", modes="all")
QUESTIONS = (
    QUESTION,
    "What did the crew of the museum in Narvik say about the sledge?",
    "Which library has the map of Hobart?",
)


def everything() -> list[Document]:
    """Some with a field and words that no allowed one has."""
    made = []
    for one in documents():
        about, text = dict(one.metadata), one.text
        if not seen(one):
            about["clearance"] = "top"
            text += " The Zwirbelwind ledger of Oslo."
        made.append(Document(one.id, text, one.title, about))
    return made


def seen(one: Document) -> bool:
    return one.metadata["lang"] == "en" and not one.metadata.get("draft")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.build(everything(), tmp_path_factory.mktemp("whole") / "ix", settings=SETTINGS) as index:
        yield index


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    own = [one for one in everything() if seen(one)]
    with Index.build(own, tmp_path_factory.mktemp("alone") / "ix", settings=SETTINGS) as index:
        yield index


def test_it_is_the_index_of_these_documents_alone(whole: Index, alone: Index) -> None:
    part = whole.allowed(ALLOW)
    assert part.digest == alone.digest
    assert part.modes == alone.modes
    for mode in alone.modes:
        for question in QUESTIONS:
            own = alone.retrieve(question, mode=mode, budget=900, explain=True)
            for found in (
                part.retrieve(question, mode=mode, budget=900, explain=True),
                whole.retrieve(question, mode=mode, budget=900, explain=True, allow=ALLOW),
            ):
                assert (found.text, found.tokens, found.reason) == (own.text, own.tokens, own.reason)
                assert list(found.passages) == list(own.passages)
                assert (found.fitting, found.warnings) == (own.fitting, own.warnings)
    many = whole.retrieve_many(QUESTIONS, mode="walk", budget=500, allow=ALLOW)
    assert [c.text for c in many] == [c.text for c in alone.retrieve_many(QUESTIONS, mode="walk", budget=500)]


EMPTY = ("", " None ")


@pytest.mark.parametrize("value", EMPTY)
def test_an_empty_allow_is_an_error_and_shows_nothing(
    whole: Index,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """An unset variable in a command, in the environment or in a file opens no index."""
    monkeypatch.chdir(tmp_path)
    place = ["-i", str(whole.path)]
    commands = (
        ["retrieve", QUESTION],
        ["documents"],
        ["stats"],
        ["graph", "Oslo"],
        ["serve", "--port", "0"],
        ["mcp"],
    )

    def refused(*words: str) -> None:
        assert main([*words, *place]) == 2, words
        out, err = capfd.readouterr()
        assert not out and "allow is" in err and "hint" in err.lower()

    for words in commands[:2] if value.strip() else commands:
        if words[0] != "mcp":
            refused(*words, "--allow", value)
        monkeypatch.setenv("KETRAG_ALLOW", value)
        refused(*words)
        refused(*words, *(["--allow", ALLOW] if words[0] != "mcp" else []))
        monkeypatch.delenv("KETRAG_ALLOW")
        Path("ketrag.toml").write_text(f'allow = "{value}"\n', "utf-8")
        refused(*words)
        Path("ketrag.toml").unlink()
    with pytest.raises(ConfigError, match="allow is"):
        Settings(allow=value)
    with pytest.raises(InputError, match=r"^allow: "):
        whole.retrieve(QUESTION, allow=value)
    with pytest.raises(InputError, match=r"^allow: "):
        whole.ask(QUESTION, allow=value)


@pytest.mark.parametrize("value", [{}, {"$and": [{}]}, {"lang": {"$nin": []}}, {"$not": {"lang": []}}])
def test_an_allow_that_excludes_nothing_is_an_error(whole: Index, value: dict[str, object]) -> None:
    for call in (
        whole.retrieve,
        whole.ask,
        lambda question, allow: whole.retrieve_many([question], allow=allow),
    ):
        with pytest.raises(InputError, match="every document"):
            call(QUESTION, allow=value)
    with pytest.raises(InputError, match="every document"):
        whole.allowed(value)
    assert whole.retrieve(QUESTION, filter=value).passages, "a filter may be empty"


def test_an_allow_that_nothing_passes_shows_nothing(whole: Index) -> None:
    for value in ({"lang": []}, {"$not": {}}):
        assert whole.allowed(value).inspect.document_count == 0
        assert not whole.retrieve(QUESTION, allow=value).passages


def test_wrong_syntax_of_allow_and_filter_is_wrong_usage(
    whole: Index, capfd: pytest.CaptureFixture[str]
) -> None:
    for flag, text in (
        ("--allow", "lang="),
        ("--allow", "lang in ()"),
        ("--filter", "lang=="),
        ("--allow", "x=1"),
    ):
        assert main(["retrieve", QUESTION, "-i", str(whole.path), flag, text]) == 2
        assert capfd.readouterr().err
    assert main(["serve", "-i", str(whole.path), "--port", "0", "--allow", "lang=en or lang!=en"]) == 2
    assert "every document" in capfd.readouterr().err


def test_with_a_filter_as_well(whole: Index, alone: Index) -> None:
    for mode in ("walk", "bm25", "fused", "ket"):
        one = whole.retrieve(QUESTION, mode=mode, budget=600, allow=ALLOW, filter="year>1900")
        two = alone.retrieve(QUESTION, mode=mode, budget=600, filter="year>1900")
        assert (one.text, one.fitting) == (two.text, two.fitting)
        assert one.passages


def test_nothing_hints_at_the_rest(whole: Index, alone: Index, tmp_path: Path) -> None:
    part = whole.allowed(ALLOW)
    assert part.inspect.document_count == alone.inspect.document_count
    assert part.inspect.documents() == alone.inspect.documents()
    mine, theirs = part.stats(), alone.stats()
    assert {k: mine[k] for k in ("counts", "edges", "failures", "modes")} == {
        k: theirs[k] for k in ("counts", "edges", "failures", "modes")
    }
    fields = "known fields: author.name, lang, tags, year"
    with pytest.raises(InputError, match=fields):
        part.retrieve(QUESTION, filter="clearence=top")
    with pytest.raises(InputError) as error:
        part.retrieve(QUESTION, filter="clearance=top")
    assert str(error.value).endswith(fields)
    with pytest.raises(InputError) as error:
        whole.retrieve(QUESTION, allow="langauge=en")
    assert str(error.value) == "allow: no document has a field 'langauge'"
    # A word of the others is a word that there is not, and so is a name.
    for word in ("Zwirbelwind", "qqqqq"):
        found = part.retrieve(f"{word} ledger", mode="walk")
        assert (found.text, found.reason) == ("", "no_match")
        with pytest.raises(InputError) as error:
            part.inspect.node(word)
        with pytest.raises(InputError) as other:
            alone.inspect.node(word)
        assert str(error.value) == str(other.value)
    assert part.inspect.files(["d1"]) == {}
    # No byte of the others is in any of its files.
    folder = part._state.folder
    assert folder != whole.path
    held = b"".join(p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file())
    assert b"Oslo" in held
    assert b"zwirbelwind" not in held.lower() and b"clearance" not in held
    with pytest.raises(InputError, match="cannot be changed"):
        part.update(remove="d3")


def test_nobody_and_everybody(whole: Index) -> None:
    nobody = whole.allowed("lang=xx")
    assert nobody.inspect.document_count == 0
    assert nobody.retrieve(QUESTION, mode="bm25").reason == "empty_index"
    assert whole.allowed("lang exists").digest == whole.digest
    inner = whole.allowed(ALLOW).allowed("year>1900")
    assert inner.digest == whole.allowed(f"({ALLOW}) and year>1900").digest


def test_an_index_can_be_opened_so(whole: Index, alone: Index) -> None:
    with Index.open(whole.path, settings=Settings(allow=ALLOW)) as index:
        assert index.digest == alone.digest
        assert index.retrieve(QUESTION).text == alone.retrieve(QUESTION).text
        assert index.ask(QUESTION).context.text == alone.retrieve(QUESTION).text
        # What a caller allows comes on top, and never takes it back.
        assert index.allowed("lang exists").digest == alone.digest
        assert index.retrieve(QUESTION, allow="lang=de").reason == "empty_index"
        with pytest.raises(InputError, match="cannot be changed"):
            index.update(remove="d3")


def test_it_follows_the_index_and_goes_with_what_is_purged(tmp_path: Path) -> None:
    place = tmp_path / "ix"
    with Index.build(everything()[:60], place) as index, Index.open(place) as other:
        before = index.allowed("lang=en")
        assert before.inspect.document_count == 20
        index.update(add=[Document("new", "A captain of Oslo, new.", "New", {"lang": "en"})])
        assert index.allowed("lang=en").inspect.document_count == 21
        assert before.inspect.document_count == 20  # open is open
        with pytest.raises(IndexLocked, match="have changed"):
            other.retrieve(QUESTION, allow="lang=de")
        assert other.refresh()
        assert other.retrieve(QUESTION, allow="lang=de").passages
        index.update(remove="new", purge=True)
        assert not list(Layout(place).allowed.glob("*"))
        assert index.allowed("lang=en").digest == before.digest
        held = b"".join(p.read_bytes() for p in place.rglob("*") if p.is_file())
        assert b"Oslo, new" not in held


def test_what_was_not_finished_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "ix"
    with Index.build(everything()[:40], place) as index:
        with pytest.raises(DeadlineExceeded):
            index.retrieve(QUESTION, allow="lang=en", deadline=1e-9)
        wanted = index.allowed("lang=en").digest
        folder = index.allowed("lang=en")._state.folder
    (folder / module._ABOUT).unlink()  # a process that died before it was done
    (folder / "CURRENT").write_text("nonsense")
    with Index.open(place) as index:
        assert index.allowed("lang=en").digest == wanted
    whole_file = max(array_files(folder), key=lambda p: p.stat().st_size)
    whole_file.unlink()  # what is damaged is made anew, too
    with Index.open(place) as index:
        assert index.allowed("lang=en").digest == wanted
        monkeypatch.setattr(lock, "KEPT_ALLOWED", 2)
        for year in range(1880, 1886):
            index.allowed(f"year<={year}")
        assert len([p for p in Layout(place).allowed.iterdir() if p.is_dir()]) == 2


def test_many_at_once_make_it_once(tmp_path: Path) -> None:
    place = tmp_path / "ix"
    with Index.build(everything()[:40], place) as index:
        wanted = index.retrieve(QUESTION, mode="bm25", allow="lang=en").text
        found: list[str | KetragError] = []

        def ask(allow: str) -> None:
            try:
                with Index.open(place) as own:
                    found.append(own.retrieve(QUESTION, mode="bm25", allow=allow).text)
            except KetragError as error:
                found.append(error)

        # Two ways to say the same documents are one index.
        threads = [threading.Thread(target=ask, args=(a,)) for a in ("lang=en", "lang in (en)") * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [wanted] * 8
        assert len([p for p in Layout(place).allowed.iterdir() if p.is_dir()]) == 1


HOLDER = """
import sys
from ketrag_fast import _core
lock = _core.lock_file(sys.argv[1])
print("held" if lock else "not held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_elsewhere(folder: Path) -> Iterator[None]:
    """Another process makes the index in `folder`, for as long as this lasts."""
    place = folder.with_name(f"{folder.name}.lock")
    command = [sys.executable, "-c", HOLDER, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        try:
            yield
            assert process.poll() is None  # it held the folder to the end
        finally:
            process.communicate()


def test_a_wait_for_another_process_ends_at_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait alone would end with another error, and after a hundred times as long."""
    monkeypatch.setattr(lock, "_WAIT", 20.0)
    with Index.build(everything()[:12], tmp_path / "ix") as index:
        folder = index.allowed("lang=en")._state.folder
    with Index.open(tmp_path / "ix") as index, held_elsewhere(folder):
        with pytest.raises(DeadlineExceeded):
            index.retrieve(QUESTION, allow="lang=en", deadline=0.2)
        with pytest.raises(DeadlineExceeded):
            index.retrieve_many([QUESTION] * 2, allow="lang=en", deadline=0.1)
        with pytest.raises(DeadlineExceeded):
            index.ask(QUESTION, allow="lang=en", deadline=0.2)
        with pytest.raises(Cancelled, match="wait"):
            index.allowed("lang=en", progress=lambda event: event.stage != "wait")
        monkeypatch.setattr(lock, "_WAIT", 0.0)
        with pytest.raises(IndexLocked, match="still building"):
            index.allowed("lang=en")
    with Index.open(tmp_path / "ix") as index:
        assert index.retrieve(QUESTION, allow="lang=en").passages


def test_opening_and_refreshing_end_at_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process builds the index of what may be seen; waiting for it ends as IndexLocked."""
    monkeypatch.setattr(lock, "_WAIT", 20.0)
    documents = everything()[:12]
    allow = Settings(allow="lang=en")
    with Index.build(documents[:10], tmp_path / "ix") as index:
        index.allowed("lang=en")
        first = Index.open(tmp_path / "ix", settings=allow)
        before = first.generation
        index.update(add=documents[10:])
        folder = index.allowed("lang=en")._state.folder
    with held_elsewhere(folder):
        with pytest.raises(DeadlineExceeded):
            Index.open(tmp_path / "ix", settings=allow, deadline=0.2)
        with pytest.raises(DeadlineExceeded):
            first.refresh(deadline=0.2)
        assert first.generation == before
        assert first.retrieve(QUESTION).passages
    assert first.refresh(deadline=60.0)
    assert first.generation > before
    first.close()


@pytest.mark.parametrize("stage", ["filter", "copy", "read"])
def test_every_step_can_be_stopped(tmp_path: Path, stage: str) -> None:
    with Index.build(everything()[:12], tmp_path / "ix") as index:
        with pytest.raises(Cancelled):
            index.allowed("lang=en", progress=lambda event: event.stage != stage)
        assert not [path for path in (tmp_path / "ix" / "allowed").glob("*") if path.is_dir()]
        assert index.allowed("lang=en").inspect.document_count == 4


def test_vectors_of_a_model_are_not_made_again(tmp_path: Path) -> None:
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    settings = Settings(embedder=f"native:{model}", modes="all")
    own = everything()[:60]
    fresh = Index.build([d for d in own if seen(d)], tmp_path / "alone", settings=settings)
    with Index.build(own, tmp_path / "ix", settings=settings) as index, fresh:
        part = index.allowed(ALLOW)
        assert part.digest == fresh.digest
        for mode in ("text", "walk", "fused", "keyword"):
            one, two = (one.retrieve(QUESTION, mode=mode, budget=500) for one in (part, fresh))
            assert one.text == two.text and one.passages
        # Nothing but its own vectors lies in its cache, and the model of questions is that of the whole.
        assert part._opened.questions is index._opened.questions


def test_what_a_model_has_not_read_is_said(tmp_path: Path) -> None:
    """Other chunks are core among fewer documents; nobody is asked about them."""
    own, said = everything(), tmp_path / "said.jsonl"
    read = Settings(llm="heuristic", modes="all", core_ratio=0.2)
    Index.build(own, tmp_path / "rules", settings=read.having(record=str(said))).close()
    replayed = read.having(llm=f"replay:{said}")
    with Index.build(own, tmp_path / "ix", settings=replayed) as index:
        assert "ket" in index.modes
        part = index.allowed(ALLOW)
        assert "walk" in part.modes and "ket" not in part.modes
        with pytest.raises(KetragError, match="read by a language model"):
            part.retrieve(QUESTION, mode="ket")
        alone = Index.build([d for d in own if seen(d)], tmp_path / "alone", settings=Settings(modes="walk"))
        with alone:
            assert part.retrieve(QUESTION, mode="walk").text == alone.retrieve(QUESTION, mode="walk").text
        # All of it is read where all may be seen.
        assert "ket" in index.allowed("lang exists").modes


def test_where_nothing_may_be_written(tmp_path: Path) -> None:
    place = tmp_path / "ix"
    with Index.build(everything()[:9], place) as index:
        place.chmod(0o500)
        try:
            with ordinary_user(), pytest.raises(KetragError):
                index.retrieve(QUESTION, allow="lang=en")
        finally:
            place.chmod(0o700)


def test_commands(whole: Index, alone: Index, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["-i", str(whole.path)]

    def printed(*words: str) -> str:
        assert main(list(words)) == 0
        return capsys.readouterr().out

    there = ["-i", str(alone.path)]
    for words in (
        ["retrieve", QUESTION, "--budget", "400", "--mode", "walk"],
        ["documents"],
        ["graph", "Oslo", "--json"],
    ):
        mine, theirs = printed(*words, *place, "--allow", ALLOW), printed(*words, *there)
        assert mine.replace(str(whole.path), "") == theirs.replace(str(alone.path), "")
    # The graph of what fits is the graph of these documents.
    assert printed("graph", "Oslo", *place, "--filter", ALLOW) == printed("graph", "Oslo", *there)
    assert main(["graph", "Oslo", *place, "--filter", "language=en"]) == 2
    assert "clearance" in capsys.readouterr().err
