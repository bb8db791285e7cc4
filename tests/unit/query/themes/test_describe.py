"""Themes of whole indexes: what they hold, and that they depend on the documents alone."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings, Theme, Themes
from ketrag_fast.errors import Cancelled, InputError, ModeUnavailable, UnknownName
from ketrag_fast.query.themes.clusters import FoundThemes
from ketrag_fast.query.themes.describe import ThemeFinder
from tests import small_model

SHIPS_TEXT, BREAD_TEXT, STARS_TEXT = (
    """hull keel mast sail rudder anchor deck rigging captain harbour cargo voyage storm crew tide
    compass galley bow stern buoy""",
    """flour yeast dough oven crust salt loaf kneading baker rye wheat crumb starter sourdough butter
    tin proofing scoring mill toast""",
    """telescope nebula orbit comet eclipse planet galaxy lens astronomer parallax supernova spectrum
    meteor moon dwarf pulsar quasar zenith asteroid sunspot""",
)
SHIPS, BREAD, STARS = (text.split() for text in (SHIPS_TEXT, BREAD_TEXT, STARS_TEXT))
SUBJECTS = {"ships": SHIPS, "bread": BREAD, "stars": STARS}
VERBS = ("checked", "repaired", "described", "praised", "measured", "compared")


def text_about(words: Sequence[str], number: int) -> str:
    """Some sentences of a subject; no two numbers give the same ones."""
    chance = Random(number)
    out = []
    for _ in range(4):
        a, b, c = chance.sample(words, 3)
        out.append(f"Somebody {chance.choice(VERBS)} the {a} and the {b} before the {c} was needed.")
    return " ".join(out)


def library(each: int = 12, date: bool = False) -> list[Document]:
    found = []
    for at, (name, words) in enumerate(SUBJECTS.items()):
        for number in range(each):
            metadata: dict[str, Any] = {"subject": name}
            if date:
                metadata["date"] = f"2026-{1 + (number + 4 * at) % 12:02}-03"
            found.append(
                Document(f"{name}/{number:03}.md", text_about(words, number), f"{name} {number}", metadata)
            )
    return found


def themes_of(documents: Sequence[Document], folder: Path, **settings: Any) -> Themes:
    with Index.build(documents, folder, settings=Settings(**settings)) as index:
        return index.themes()


def comparable(found: Themes) -> str:
    """All but numbers of passages and of the generation, which depend on what else is in the index."""
    data = found.to_json() | {"generation": 0}

    def without_units(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without_units(one) for name, one in value.items() if name != "unit"}
        return [without_units(one) for one in value] if isinstance(value, list) else value

    return json.dumps(without_units(data), sort_keys=True)


def subjects_of(theme: Theme) -> set[str]:
    return {one.document.split("/")[0] for one in theme.documents}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Index.build(library(date=True), tmp_path_factory.mktemp("themes") / "index") as built:
        yield built


def test_each_subject_is_a_theme_named_by_its_words(index: Index) -> None:
    found = index.themes()
    assert [subjects_of(theme) for theme in found.themes].count({"ships"}) == 1
    assert len(found.themes) == 3
    for theme in found.themes:
        (subject,) = subjects_of(theme)
        assert set(theme.terms) & set(SUBJECTS[subject])
        assert theme.passages == theme.document_count == 12
    assert (found.passages, found.copies, found.documents, found.unassigned) == (36, 0, 36, 0)


def test_quotes_are_sentences_of_the_documents(index: Index) -> None:
    texts = {document.id: document.text for document in library()}
    for theme in index.themes().walk():
        assert theme.quotes
        for quote in theme.quotes:
            assert texts[quote.document][quote.start : quote.end] == quote.text
            assert quote.text.endswith(".")
        assert len({quote.document for quote in theme.quotes}) == len(theme.quotes)


def test_narrower_themes_share_the_passages(tmp_path: Path) -> None:
    found = themes_of(library(60), tmp_path / "index")
    nested = [theme for theme in found.walk() if theme.themes]
    assert nested
    for theme in nested:
        assert sum(one.passages for one in theme.themes) == theme.passages
        assert [one.id for one in theme.themes] == [
            f"{theme.id}.{n}" for n in range(1, len(theme.themes) + 1)
        ]
        sizes = [one.passages for one in theme.themes]
        assert sizes == sorted(sizes, reverse=True)


def test_shares_over_time_add_up(index: Index) -> None:
    found = index.themes()
    months = [period.period for period in found.themes[0].over_time]
    assert months == [f"2026-{month:02}-03" for month in range(1, 13)]
    for at in range(12):
        assert sum(theme.over_time[at].share for theme in found.themes) == pytest.approx(1, abs=0.001)


def test_the_same_bytes_on_any_number_of_threads(index: Index) -> None:
    first = json.dumps(index.themes().to_json())
    for threads in (1, 2):
        with Index.open(index.path, settings=Settings(threads=threads)) as other:
            assert json.dumps(other.themes().to_json()) == first


def test_the_same_bytes_after_any_history(tmp_path: Path) -> None:
    documents = library()
    once = themes_of(documents, tmp_path / "once")
    with Index.build(documents[::2], tmp_path / "later") as index:
        index.themes()
        index.update(add=[*documents[1::2], Document("other.md", text_about(SHIPS[:3] + BREAD[:3], 7))])
        index.update(remove="other.md")
        assert comparable(index.themes()) == comparable(once)


def test_parallel_first_calls_compute_the_themes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[ThemeFinder] = []
    find_themes = ThemeFinder.found

    def find_slowly(self: ThemeFinder) -> FoundThemes:
        computed.append(self)
        time.sleep(0.2)
        return find_themes(self)

    monkeypatch.setattr(ThemeFinder, "found", find_slowly)
    with Index.build(library(10), tmp_path / "index") as built, ThreadPoolExecutor(4) as pool:
        themes = list(pool.map(lambda _: built.themes(), range(4)))
    assert len(computed) == 1
    assert len({comparable(one) for one in themes}) == 1


def test_a_filter_gives_the_themes_of_its_documents_alone(tmp_path: Path) -> None:
    """Without titles, whose equal numbers make many sentences of few documents equally central."""
    every = [Document(one.id, one.text, "", one.metadata) for one in library(date=True)]
    own = [document for document in every if document.metadata["subject"] != "ships"]
    alone = themes_of(own, tmp_path / "alone")
    index = Index.build(every, tmp_path / "every")  # closed with the test
    assert comparable(index.themes(filter="subject!=ships")) == comparable(alone)
    assert comparable(index.themes(allow="subject!=ships")) == comparable(alone)
    with Index.open(index.path, settings=Settings(filter="subject!=ships")) as filtered:
        assert comparable(filtered.themes()) == comparable(alone)
    with index.allowed("subject!=ships") as part:
        assert comparable(part.themes(filter="subject=bread")) == comparable(
            index.themes(filter="subject=bread")
        )


def test_a_filter_that_nothing_matches_gives_no_themes(index: Index) -> None:
    found = index.themes(filter="subject=none")
    assert (found.themes, found.passages) == ((), 0)
    with pytest.raises(InputError, match="colour"):
        index.themes(filter="colour=red")


def test_copies_and_boilerplate_are_no_theme(tmp_path: Path) -> None:
    notice = (
        "Your parcel was delivered to the door at 08:{:02}, please pick it up as soon as you can. Regards."
    )
    notices = [Document(f"notice/{at}", notice.format(at)) for at in range(40)]
    found = themes_of([*library(), *notices], tmp_path / "index")
    assert found.copies == 39
    for theme in found.themes:
        assert subjects_of(theme) != {"notice"}


def test_an_empty_index_has_no_themes(tmp_path: Path) -> None:
    found = themes_of([], tmp_path / "empty")
    assert found.to_json()["themes"] == []
    assert themes_of([Document("a", "   \n")], tmp_path / "blank").themes == ()


def test_one_document_is_one_theme(tmp_path: Path) -> None:
    (theme,) = themes_of([library()[0]], tmp_path / "one").themes
    assert (theme.passages, theme.document_count, theme.themes) == (1, 1, ())
    assert theme.terms


def test_equal_documents_are_one_theme_of_one_passage(tmp_path: Path) -> None:
    text = text_about(STARS, 1)
    (theme,) = themes_of([Document(str(at), text) for at in range(30)], tmp_path / "equal").themes
    assert (theme.passages, theme.copies) == (1, 29)


def test_many_documents_of_one_line_are_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ketrag_fast.query.themes.clusters.SAMPLE", 200)
    lines = [
        Document(f"{name}/{a}-{b}-{c}", f"the {a} and the {b} with the {c}")
        for name, words in SUBJECTS.items()
        for a in words
        for b in words
        for c in words[:4]
    ]
    found = themes_of(lines, tmp_path / "lines")
    assert sum(theme.passages for theme in found.themes) + found.unassigned == found.passages > 200
    purity = sum(theme.passages for theme in found.themes if len(subjects_of(theme)) == 1)
    assert purity > 0.9 * found.passages


def test_passages_of_other_scripts_and_without_words(tmp_path: Path) -> None:
    texts = ["船在海上航行。" * 5, "Корабль плыл по морю на север.", "12 34 56", "!!! ???", "ⵣ" * 40]
    found = themes_of([Document(str(at), text) for at, text in enumerate(texts)], tmp_path / "odd")
    assert sum(theme.passages for theme in found.themes) + found.unassigned == found.passages


def test_vectors_of_a_model_are_used(tmp_path: Path) -> None:
    small_model.save(tmp_path / "model", small_model.config())
    found = themes_of(library(), tmp_path / "index", embedder=f"native:{tmp_path / 'model'}")
    assert sum(theme.passages for theme in found.themes) == found.passages == 36


def test_progress_can_stop_the_work(tmp_path: Path) -> None:
    with Index.build(library(), tmp_path / "index") as index:
        with pytest.raises(Cancelled):
            index.themes(progress=lambda _: False)
        assert index.themes().themes


def test_an_index_without_keywords_names_the_command(tmp_path: Path) -> None:
    with (
        Index.build(library(2), tmp_path / "index", settings=Settings(modes="text")) as index,
        pytest.raises(ModeUnavailable, match="themes need") as error,
    ):
        index.themes()
    assert "--modes" in (error.value.hint or "")


def test_the_documents_of_a_theme_are_listed(index: Index) -> None:
    for theme in index.themes().walk():
        listed = [one.document for one in index.inspect.documents(theme=theme.id)]
        assert len(listed) == theme.document_count
        assert {one.document for one in theme.documents} <= set(listed)
        some = index.inspect.documents(1, 2, theme=theme.id)
        assert [one.document for one in some] == listed[1:3]
        for one in theme.documents:
            assert index.inspect.around(one.unit, 0, 0)[0][1].document == one.document
    part = index.inspect.documents(theme="1", filter="subject=bread")
    assert {one.metadata["subject"] for one in part} == {"bread"}
    with pytest.raises(UnknownName, match=r"9\.9"):
        index.inspect.documents(theme="9.9")
