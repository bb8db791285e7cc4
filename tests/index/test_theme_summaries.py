"""Summaries of themes by a language model: what is asked, kept and shown, and to whom."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings, Theme, ThemeSummaries
from ketrag_fast.errors import BackendError, Cancelled, EndpointNotConfirmed, IndexLocked, ModeUnavailable
from ketrag_fast.models.http.endpoints import RetryPolicy
from ketrag_fast.query.themes import summaries
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from tests.process import start
from tests.support.chat import Chat
from tests.unit.query.themes.test_describe import SUBJECTS, library, text_about

THEMES = 9
"""Those of 40 documents of each subject: three, each with two narrower ones."""
pytestmark = pytest.mark.usefixtures("loopback")


def documents() -> list[Document]:
    """Each subject has two halves with words of their own; each document has a mark."""
    found = []
    for one in library(40):
        name, number = one.metadata["subject"], int(one.id[-6:-3])
        text = f"{half_of(name, number)} It has the mark {mark(one.id)}."
        found.append(Document(one.id, text, "", one.metadata))
    return found


def half_of(subject: str, number: int) -> str:
    words = SUBJECTS[subject]
    own = text_about(words[:9] if number % 2 else words[9:], number)
    return f"{own[:150]} {text_about(words, number + 1000)[:150]}"


def mark(name: str) -> str:
    return "q" + re.sub(r"\W", "", name)


def said_about(text: str) -> str:
    """A summary that repeats all marks of a prompt."""
    marks = list(dict.fromkeys(re.findall(r"\bq\w+md\b", text)))
    return json.dumps({"title": f"{len(marks)} marks", "summary": " ".join(marks) or "none"})


class Writer:
    """A chat server that summarises, and the calls it had."""

    def __init__(
        self, answer: Callable[[str], str] = said_about, pause: float = 0.0, name: str = "mini"
    ) -> None:
        self.answer, self.name = answer, name
        self.chat = Chat(lambda body: self.answer(body["messages"][-1]["content"]), pause=pause, listed=None)

    @property
    def llm(self) -> str:
        return f"openai:{self.name}@{self.chat.url}"

    def calls(self) -> int:
        """The calls since the last question."""
        count = len(self.chat.requests)
        self.chat.requests.clear()
        return count


@pytest.fixture
def writer() -> Iterator[Writer]:
    own = Writer()
    with own.chat:
        yield own


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Index.build(documents(), tmp_path / "index", settings=Settings(threads=1)).close()
    return tmp_path / "index"


def summarised(folder: Path, writer: Writer, **options: Any) -> ThemeSummaries:
    call = {name: options.pop(name) for name in ("filter", "allow", "progress", "dry_run") if name in options}
    with Index.open(folder, settings=Settings(answer_llm=writer.llm, threads=1, **options)) as index:
        return index.summarise_themes(**call)


def shown(folder: Path, **options: Any) -> list[Theme]:
    with Index.open(folder) as index:
        return list(index.themes(**options).walk())


def without_summary(folder: Path) -> int:
    return sum(theme.summary is None for theme in shown(folder))


def test_every_theme_is_summarised_once(folder: Path, writer: Writer) -> None:
    done = summarised(folder, writer)
    assert (done.themes, done.kept, done.written, done.calls) == (THEMES, 0, THEMES, THEMES)
    assert writer.calls() == THEMES and done.tokens_in > done.tokens_out == 5 * THEMES
    themes = {theme.id: theme for theme in shown(folder)}
    for theme in themes.values():
        assert theme.summary is not None and theme.summary.title.endswith("marks")
        assert theme.to_json()["summary"] == theme.summary.to_json()
        (subject,) = {one.document.split("/")[0] for one in theme.documents}
        assert all(one.startswith(f"q{subject}") for one in theme.summary.text.split())
    wide, narrow = themes["1"].summary, themes["1.1"].summary
    assert wide is not None and narrow is not None
    assert set(narrow.text.split()) < set(wide.text.split())  # written from it
    again = summarised(folder, writer)
    assert (again.kept, again.written, again.calls, writer.calls()) == (THEMES, 0, 0, 0)


def test_a_dry_run_says_what_it_would_take(folder: Path, writer: Writer) -> None:
    asked = summarised(folder, writer, dry_run=True)
    assert (asked.pending, asked.calls, asked.written) == (THEMES, THEMES, 0)
    assert asked.tokens_in > 1000 and asked.tokens_out > 100 and asked.seconds is None
    assert writer.calls() == 0 and without_summary(folder) == THEMES
    summarised(folder, writer)
    none = summarised(folder, writer, dry_run=True, usd_per_million=1.0)
    assert (none.kept, none.calls, none.tokens_in, none.seconds, none.usd) == (THEMES, 0, 0, 0, 0)


def test_a_changed_document_costs_the_summaries_that_rest_on_it(folder: Path, writer: Writer) -> None:
    summarised(folder, writer)
    writer.calls()
    themes = {theme.id: theme.summary for theme in shown(folder)}
    narrow = themes["1.1"]
    assert narrow is not None
    changed = narrow.text.split()[0]
    rest_on_it = sum(changed in one.text.split() for one in themes.values() if one is not None)
    assert rest_on_it == 2  # the theme and the wider one
    new = [
        Document(one.id, f"{one.text} It was mended.", one.title, one.metadata)
        if mark(one.id) == changed
        else one
        for one in documents()
    ]
    Index.build(new, folder, settings=Settings(threads=1)).close()
    assert without_summary(folder) == rest_on_it
    done = summarised(folder, writer)
    assert done.written == done.calls == writer.calls() == rest_on_it
    assert done.kept == THEMES - rest_on_it


def test_a_change_that_no_summary_rests_on_costs_nothing(folder: Path, writer: Writer) -> None:
    summarised(folder, writer)
    writer.calls()
    used = {word for theme in shown(folder) if theme.summary for word in theme.summary.text.split()}
    unused = "stars/004.md"  # without some others, a theme is divided otherwise
    assert mark(unused) not in used
    with Index.open(folder) as index:
        index.update(remove=unused)
    assert summarised(folder, writer).kept == THEMES and writer.calls() == 0


def test_a_theme_that_grew_is_summarised_again(folder: Path, writer: Writer) -> None:
    summarised(folder, writer)
    writer.calls()
    more = [Document(f"bread/n{number}.md", half_of("bread", 501 + 2 * number)) for number in range(40)]
    with Index.open(folder) as index:
        index.update(add=more)
    done = summarised(folder, writer)
    assert done.kept >= 6 and done.written == writer.calls() >= 1  # those of the other subjects


def test_a_killed_process_loses_no_summary(folder: Path) -> None:
    slow = Writer(pause=0.2)
    with slow.chat:
        child = start(
            "themes",
            "-i",
            str(folder),
            "--summarise",
            "--llm",
            slow.llm,
            "--llm-slots",
            "1",
            cwd=folder.parent,
        )
        while len(slow.chat.requests) < 4 and child.poll() is None:
            time.sleep(0.02)
        child.kill()
        child.communicate()
        assert len(slow.chat.requests) == 4
        done = summarised(folder, slow)
    assert (done.kept, done.written) == (3, THEMES - 3)
    assert without_summary(folder) == 0


def test_a_stopped_call_goes_on(folder: Path, writer: Writer) -> None:
    def progress(event: Any) -> bool:
        return event.stage != "summaries" or event.done < 4

    with pytest.raises(Cancelled, match="summarising themes"):
        summarised(folder, writer, progress=progress, llm_slots=1)
    first = writer.calls()
    assert 0 < first < THEMES
    summarised(folder, writer)
    assert first + writer.calls() == THEMES


def test_limits_leave_the_rest_for_later(folder: Path, writer: Writer) -> None:
    price = {"usd_per_million": 1000.0, "llm_slots": 1}
    cost = summarised(folder, writer, dry_run=True, **price)
    assert cost.usd is not None
    done = summarised(folder, writer, limit_usd=cost.usd / 2, **price)
    assert done.stopped == "limit_usd" and 0 < done.written < THEMES and done.usd is not None
    assert done.pending == THEMES - done.written and done.usd <= cost.usd / 2
    assert summarised(folder, writer, limit_seconds=1e-6 + 3600).written == done.pending
    assert writer.calls() == THEMES


@pytest.mark.parametrize("reply", ["nothing to say", '{"title": "x"}', '{"summary": ""}', "[[[[{"])
def test_quotes_stand_in_for_a_summary_without_a_usable_reply(
    folder: Path, writer: Writer, reply: str
) -> None:
    def answer(text: str) -> str:
        return reply if "bread" in text and "narrower theme" not in text else said_about(text)

    writer.answer = answer
    done = summarised(folder, writer)
    assert (done.failed, done.written, done.pending) == (2, THEMES - 2, 0)
    assert done.calls == writer.calls() == THEMES + 2  # two attempts each
    themes = {theme.id: theme for theme in shown(folder)}
    (wide,) = (one for one in themes.values() if one.themes and one.documents[0].document.startswith("bread"))
    assert wide.summary is not None and all(one.summary is None and one.quotes for one in wide.themes)
    writer.answer = said_about
    same = summarised(folder, writer)
    assert (same.failed, same.calls) == (2, 0)
    last = summarised(folder, writer, retry_failed=True)
    assert (last.failed, last.written, writer.calls()) == (0, 2, 2)


def test_an_endpoint_that_fails_is_an_error_and_what_was_written_stays(
    folder: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ketrag_fast.models.llms.openai.RetryPolicy", lambda: RetryPolicy(2, 0.01))

    def answer(text: str) -> str:
        if len(writer.chat.requests) > 3:
            writer.chat.over.set()
            raise OSError("gone")
        return said_about(text)

    writer.answer = answer
    with pytest.raises(BackendError):
        summarised(folder, writer, llm_slots=1)
    assert without_summary(folder) == THEMES - 3


# ------------------------------------------------------------ who sees what


@pytest.mark.parametrize("how", ["filter", "allow"])
def test_nobody_sees_a_summary_of_a_hidden_document(folder: Path, writer: Writer, how: str) -> None:
    summarised(folder, writer)
    hidden = {mark(f"{subject}/{number:03}.md") for subject in SUBJECTS for number in range(40)}
    for subject in SUBJECTS:
        own = {one for one in hidden if one.startswith(f"q{subject}")}
        for theme in shown(folder, **{how: f"subject={subject}"}):
            words = set() if theme.summary is None else set(theme.summary.text.split())
            assert not words & (hidden - own)


@pytest.mark.parametrize("how", ["filter", "allow"])
def test_a_summary_is_hidden_with_one_of_its_documents(tmp_path: Path, writer: Writer, how: str) -> None:
    """Two documents of three that a summary rests on may be seen: then it may not."""
    library = [
        Document(one.id, one.text, one.title, {**one.metadata, "open": at % 40 != 7})
        for at, one in enumerate(documents())
    ]
    Index.build(library, tmp_path / "index", settings=Settings(threads=1)).close()
    summarised(tmp_path / "index", writer)
    secret = {mark(one.id) for one in library if not one.metadata["open"]}
    texts = {theme.summary.text for theme in shown(tmp_path / "index") if theme.summary is not None}
    with_secret = {text for text in texts if set(text.split()) & secret}
    assert with_secret
    seen = {theme.summary.text for theme in shown(tmp_path / "index", **{how: "open=true"}) if theme.summary}
    assert seen <= texts - with_secret


def test_the_themes_of_a_caller_can_be_summarised(folder: Path, writer: Writer) -> None:
    done = summarised(folder, writer, allow="subject=ships")
    assert done.written == done.themes == writer.calls() > 1
    assert all(theme.summary is not None for theme in shown(folder, allow="subject=ships"))
    with Index.open(folder) as index, index.allowed("subject=ships") as ships:
        assert all(theme.summary is not None for theme in ships.themes().walk())


def test_an_open_index_shows_summaries_that_came_later(folder: Path, writer: Writer) -> None:
    with Index.open(folder) as index:
        assert all(theme.summary is None for theme in index.themes().walk())
        summarised(folder, writer)
        assert all(theme.summary is not None for theme in index.themes().walk())


def test_the_model_used_last_is_shown(folder: Path, writer: Writer) -> None:
    summarised(folder, writer)
    other = Writer(lambda text: json.dumps({"title": "other", "summary": "Another model."}), name="maxi")
    with other.chat:
        assert summarised(folder, other).written == THEMES
    assert {theme.summary.title for theme in shown(folder) if theme.summary} == {"other"}
    writer.calls()
    assert summarised(folder, writer).kept == THEMES and writer.calls() == 0
    assert "other" not in {theme.summary.title for theme in shown(folder) if theme.summary}


# ------------------------------------------------------------ bad input


def test_altered_replies_are_not_shown(folder: Path, writer: Writer) -> None:
    summarised(folder, writer)
    with sqlite3.connect(folder / "index.sqlite") as db:
        db.execute("UPDATE replies SET records = CAST(replace(records, 'marks', 'lies') AS BLOB)")
    db.close()
    assert without_summary(folder) == THEMES


@pytest.mark.parametrize(
    "row",
    [
        [],
        ["theme"],
        ["theme", 1, "text", 3, False, "a"],
        ["theme", "title", "text", "3", False, "a"],
        ["other", "title", "text", 3, False, "a"],
        {"theme": 1},
    ],
)
def test_results_of_another_form_are_left_out(row: Any) -> None:
    assert summaries._load(json.dumps(row)) is None


@pytest.mark.parametrize(
    ("text", "finish", "said"),
    [
        ('{"title": "a", "summary": "One. Two."}', "stop", "One. Two."),
        (
            '{"title": "a", "summary": "It sailed to the north. Then it came ba',
            "length",
            "It sailed to the north.",
        ),
        ('{"title": "a", "summary": "It sailed \\', "time", "It sailed"),
        ('{"title": "a", "summary": "It sailed to the north. Then it came ba', "stop", None),
        ('{"title": "a", "summary": "x"}', "repetition", None),
        ('{"title": "a', "length", None),
        ("{" * 9999, "length", None),
        ('{"title": 1, "summary": ["x"]}', "stop", None),
        ('{"title": null, "summary": "' + "x" * 9999 + '"}', "stop", "x" * 2000),
    ],
)
def test_replies_are_read_as_far_as_they_are_whole(text: str, finish: str, said: str | None) -> None:
    theme = summaries.ThemeTexts(9, ("a passage",), (), frozenset({"0" * 32}))
    found = summaries.summary_task(is_english=True).parse(theme, text, finish)
    assert (None if found is None else found.value.summary.text) == said


def test_sources_that_are_no_hashes_hold_for_nothing(folder: Path) -> None:
    from ketrag_fast.query.themes.describe import find_themes

    with Index.open(folder) as index:
        opened = index._state.opened
        reader = summaries.ThemeReader(opened, find_themes(opened))
        stored = [
            summaries.WrittenSummary(summaries.ThemeSummary("a", "b"), 40, wide, frozenset(sources))
            for wide in (False, True)
            for sources in ([], ["zz"], ["g" * 32], ["0" * 32])
        ]
        reader.take(stored)
        assert reader.summaries == {}


def test_it_needs_a_model_and_the_lock(folder: Path, writer: Writer) -> None:
    with Index.open(folder) as index, pytest.raises(ModeUnavailable, match="language model"):
        index.summarise_themes()
    with builder_lock(Layout(folder)), pytest.raises(IndexLocked, match="another process"):
        summarised(folder, writer)
    assert writer.calls() == 0


@pytest.mark.parametrize("texts", [[], [" "], ["Nansen sailed the Fram."], ["the same words"] * 9])
def test_small_indexes(tmp_path: Path, writer: Writer, texts: Sequence[str]) -> None:
    own = [Document(str(at), text) for at, text in enumerate(texts)]
    Index.build(own, tmp_path / "index").close()
    done = summarised(tmp_path / "index", writer)
    assert done.written == done.calls == done.themes == any(text.strip() for text in texts)


def test_an_endpoint_that_only_the_index_names_gets_nothing(tmp_path: Path, writer: Writer) -> None:
    settings = Settings(system="ket-rag", llm=writer.llm, threads=1)
    Index.build(library(2), tmp_path / "index", settings=settings).close()
    writer.calls()
    (tmp_path / "index").rename(tmp_path / "sent")
    with Index.open(tmp_path / "sent") as index, pytest.raises(EndpointNotConfirmed):
        index.summarise_themes()
    assert writer.calls() == 0


# ------------------------------------------------------------ answers


def asked(folder: Path, writer: Writer, question: str, **options: Any) -> Any:
    with Index.open(folder, settings=Settings(answer_llm=writer.llm, threads=1)) as index:
        return index.ask(question, mode="survey", budget=1500, **options)


def test_a_survey_maps_over_summaries_and_cites_passages(folder: Path, writer: Writer) -> None:
    def answer(text: str) -> str:
        if "NOTE" in text:  # the last call: notes and passages
            found = re.search(r"\[(\d+)\]\n(.*?\.)", text)
            assert found is not None
            return f"{found[2]} [{found[1]}]"
        return "NOTE somebody repaired the bread." if "marks" in text else said_about(text)

    question = "Which breads were praised or repaired?"
    writer.answer = said_about
    plain = asked(folder, writer, question)
    assert writer.calls() == 1 and plain.tokens_in > 0
    summarised(folder, writer)
    writer.calls()
    writer.answer = answer
    mapped = asked(folder, writer, question)
    prompts = [body["messages"][-1]["content"] for body in writer.chat.requests]
    assert 2 < len(prompts) <= 9  # a call for each theme, and one for the answer
    assert all(question in text for text in prompts)
    assert all("marks\nq" in text for text in prompts[:-1]) and prompts[-1].count("NOTE") == len(prompts) - 1
    assert mapped.citations and not mapped.warnings
    assert mapped.context.to_json()["passages"] == plain.context.to_json()["passages"]
    assert [one.name for one in mapped.context.sections] == [one.name for one in plain.context.sections]
    assert mapped.tokens_in > plain.tokens_in


def test_a_question_without_a_subject_maps_over_the_widest_themes(folder: Path, writer: Writer) -> None:
    summarised(folder, writer)
    writer.calls()
    writer.answer = lambda text: "NOTE here." if "marks\nq" in text else "They are about ships. [1]"
    asked(folder, writer, "What are these documents about?")
    assert writer.calls() == 4  # three themes and the answer


def test_irrelevant_themes_leave_no_note(folder: Path, writer: Writer) -> None:
    summarised(folder, writer)
    writer.answer = lambda text: "irrelevant" if "marks\nq" in text else "Nothing. [1]"
    asked(folder, writer, "Which breads were praised or repaired?")
    assert "irrelevant" not in writer.chat.requests[-1]["messages"][-1]["content"]


def test_notes_hide_what_the_caller_must_not_see(folder: Path, writer: Writer) -> None:
    summarised(folder, writer)
    writer.chat.requests.clear()
    asked(folder, writer, "Which things were praised or repaired?", allow="subject=ships")
    sent = "\n".join(body["messages"][-1]["content"] for body in writer.chat.requests)
    assert "qships" in sent and "qbread" not in sent and "qstars" not in sent
