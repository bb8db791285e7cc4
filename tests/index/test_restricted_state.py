"""The open state of an index under rights: what is opened, shared, followed and closed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Query, Settings
from ketrag_fast.base.filters import allow_condition
from ketrag_fast.base.progress import Event
from ketrag_fast.building import allowed_index
from ketrag_fast.errors import Cancelled, DeadlineExceeded, InputError
from ketrag_fast.index import state as module
from ketrag_fast.index.state import IndexState
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.query import Clock
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.shared import rows
from ketrag_fast.systems.shared.rows import read_strings

BM25 = Settings(modes="bm25", threads=1)


def documents(names: str) -> list[Document]:
    """Documents of one letter; capitals are drafts, and each letter is a team."""
    return [
        Document(name, f"The ship {name} sailed.", "", {"draft": name.isupper(), "team": name.lower()})
        for name in names
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "index"
    Index.build(documents("abAB"), path, settings=BM25).close()
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "index"))


@pytest.fixture
def state(path: Path) -> Iterator[IndexState]:
    opened = IndexState(path, BM25)
    yield opened
    opened.close()


def visible(state: IndexState) -> str:
    return "".join(dict.fromkeys(read_strings(state.opened.generation.stages["units"], "document_ids")))


def change(path: Path, **changes: Any) -> None:
    with Index.open(path) as index:
        index.update(**changes)


A = allow_condition("team=a")
FINAL = allow_condition("draft=false")


def test_what_is_open(state: IndexState, path: Path) -> None:
    assert (state.path, state.folder, state.settings) == (path, path, BM25)
    assert (state.allows, state.checked, visible(state)) == ((), None, "abAB")
    assert state.opened.generation.number == 1


def test_an_allow_of_the_settings(path: Path) -> None:
    opened = IndexState(path, replace_allow("draft=false"))
    assert visible(opened) == "ab" and opened.allows == (FINAL,)
    assert opened.path == path and opened.folder.is_relative_to(Layout(path).allowed)
    assert opened.opened.generation.number == 1, "the number of the whole index"
    part = opened.restricted(A)
    assert visible(part) == "a" and part.allows == (FINAL, A)
    opened.close()


def replace_allow(allow: str) -> Settings:
    return Settings(**{**BM25.given, "allow": allow})


def test_a_restricted_state_is_kept(state: IndexState) -> None:
    part = state.restricted(A)
    assert (part.path, part.settings, part.checked) == (state.path, state.settings, None)
    assert part.folder != state.folder and visible(part) == "aA" and visible(state) == "abAB"
    assert state.restricted(A) is part and state.restricted_by("team=a") is part
    other = state.restricted(FINAL)
    assert other is not part and visible(other) == "ab" and state.restricted(A) is part
    inner = part.restricted(FINAL)
    assert visible(inner) == "a" and inner.allows == (A, FINAL) and inner.folder != part.folder
    part.close()
    again = state.restricted(A)
    assert again is not part and visible(again) == "aA"


def test_the_states_that_were_used_last_stay_open(state: IndexState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OPEN_PARTS", 2)
    one, two = state.restricted(A), state.restricted(FINAL)
    assert state.restricted(A) is one, "it is the last used now"
    three = state.restricted_by("team=b")
    assert state.restricted(A) is one and state.restricted_by("team=b") is three
    assert state.restricted(FINAL) is not two


def test_bad_conditions_do_not_name_the_fields(state: IndexState) -> None:
    with pytest.raises(InputError) as caught:
        state.restricted_by("group=a")
    assert caught.value.message == "allow: no document has a field 'group'"
    with pytest.raises(InputError, match="every document"):
        state.restricted_by({})


def test_progress_is_reported_and_stops_the_work(state: IndexState) -> None:
    stages: list[str] = []

    def progress(event: Event) -> bool:
        stages.append(event.stage)
        return True

    part = state.restricted_by("team=a", progress)
    assert {"filter", "copy"} <= set(stages) and visible(part) == "aA"
    for stage in ("filter", "copy"):
        with pytest.raises(Cancelled, match=stage):
            state.restricted(FINAL, lambda event, stage=stage: event.stage != stage)  # type: ignore[misc]


def test_rows_of_one_document_must_all_match(state: IndexState, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document whose first or last row does not match is not allowed, wherever the row is."""
    monkeypatch.setattr(rows, "read_strings", lambda units, name: ["x", "y", "x", "y"])
    for condition, wanted in (
        ("team=a", ["x"]),
        ("team=a or team=b", ["x", "y"]),
        ("draft=false", []),
        ("not (team=b and draft=true)", ["x"]),
        ("not (team=a and draft=false)", ["y"]),
    ):
        found = module._matching_documents(state.opened, allow_condition(condition), None)
        assert found == wanted, condition


def test_a_newer_generation_is_opened(path: Path) -> None:
    state = IndexState(path, replace_allow("draft=false"))
    part = state.restricted(A)
    assert not state.refresh() and not part.refresh() and state.restricted(A) is part
    change(path, add=documents("cC"))
    assert state._is_behind() and part._is_behind()
    assert state.refresh() is True and visible(state) == "abc" and state.opened.generation.number == 2
    assert not state._is_behind() and not state.refresh()
    newer = state.restricted(A)
    assert newer is not part and visible(newer) == "a" and newer.opened.generation.number == 2
    assert part.refresh() is True and visible(part) == "a" and part.folder == newer.folder
    assert part.path == path and not part.refresh()
    change(path, remove=["a"])
    assert part.refresh() and visible(part) == ""
    state.close()


def test_an_index_without_a_current_generation_is_behind(state: IndexState, path: Path) -> None:
    shutil.rmtree(path)
    assert state._is_behind()


def test_a_refresh_ends_at_the_deadline(
    state: IndexState, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time left is that of one query; the open generation stays."""
    clocks: list[tuple[float | None, int]] = []

    class Noted(Clock):
        def __init__(self, seconds: float | None, queries: int) -> None:
            clocks.append((seconds, queries))
            super().__init__(seconds, queries)

    part = state.restricted(A)
    change(path, add=documents("cC"))
    monkeypatch.setattr(module, "Clock", Noted)
    with pytest.raises(DeadlineExceeded):
        part.refresh(1e-9)
    assert visible(part) == "aA" and part.opened.generation.number == 1 and part._is_behind()
    assert part.refresh(60.0) and part.opened.generation.number == 2
    assert IndexState(path, BM25, 50.0).opened.generation.number == 2
    assert clocks == [(1e-9, 1), (60.0, 1), (50.0, 1)]
    with pytest.raises(DeadlineExceeded):
        IndexState(path, replace_allow("team=b"), 1e-9)


def test_models_are_handed_on(state: IndexState, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`load` gets the open generation, whose models it may use, and the endpoints that the whole may use."""
    calls: list[tuple[Any, ...]] = []
    load = module.load

    def noted(*given: Any) -> Opened:
        calls.append(given)
        return load(*given)

    monkeypatch.setattr(module, "load", noted)
    part = state.restricted(A)
    assert calls.pop() == (part.folder, BM25, state.opened, state.opened.trust) and not calls
    before = state.opened
    change(path, add=documents("c"))
    calls.clear()
    assert state.refresh()
    assert calls.pop() == (path, BM25, before) and not calls
    limited = IndexState(path, replace_allow("team=b"))
    assert calls.pop()[:2] == (limited.folder, BM25), "the settings without `allow`"
    monkeypatch.setattr(module, "_lender", lambda opened, folder: None)
    state.restricted_by("team=c")
    assert calls[-1][2] is None


def test_models_are_lent_to_an_index_with_the_same_embedder(state: IndexState, path: Path) -> None:
    opened, part = state.opened, state.restricted(A)
    assert module._lender(opened, part.folder) is opened and module._lender(opened, path) is opened
    change(path, add=documents("c"))
    shutil.rmtree(Layout(path).generation(1))
    assert module._lender(opened, path) is opened, "the manifest of the current generation"
    for models in ({"embedder": {"fingerprint": "x"}}, {"other": 1}):
        manifest = replace(opened.generation.manifest, models=models)
        other = replace(opened, generation=replace(opened.generation, manifest=manifest))
        assert (module._lender(other, path) is other) == (models == {"other": 1})


def test_models_are_compared_by_the_embedder_of_both(
    state: IndexState, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = state.opened
    own = replace(opened.generation.manifest, models={"embedder": {"fingerprint": "x"}, "other": 1})
    opened = replace(opened, generation=replace(opened.generation, manifest=own))
    for fingerprint, is_lent in (("x", True), ("y", False)):
        there = replace(own, models={"embedder": {"fingerprint": fingerprint}})
        monkeypatch.setattr(module, "read_manifest", lambda _, there=there: there)
        assert (module._lender(opened, path) is opened) is is_lent


def test_an_allowed_index_trusts_the_endpoints_of_the_whole_one(
    state: IndexState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it is built again because it is damaged."""
    given: list[tuple[Any, bool]] = []
    build = allowed_index.allowed_index

    def noted(*arguments: Any, **named: Any) -> Any:
        given.append((arguments[4], named.get("rebuild", False)))
        return build(*arguments, **named)

    monkeypatch.setattr(allowed_index, "allowed_index", noted)
    part = state.restricted(A)
    part.close()
    (part.folder / "gen-000001" / "manifest.json").write_text("{")
    part = state.restricted(A)
    part.close()
    assert [is_again for _, is_again in given] == [False, False, True]
    assert all(trust is state.opened.trust for trust, _ in given)


def test_an_index_that_was_removed_or_damaged_is_built_again(
    state: IndexState, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = state.restricted(A)
    folder = part.folder
    for harm in (
        lambda: shutil.rmtree(folder / "gen-000001"),
        lambda: (folder / "gen-000001" / "manifest.json").write_text("{"),
    ):
        part.close()
        harm()
        part = state.restricted(A)
        assert part.folder == folder and visible(part) == "aA" and part.opened.generation.number == 1
    load, calls = module.load, []

    def failing(*given: Any) -> Opened:
        calls.append(given)
        if len(calls) == 1:
            shutil.rmtree(folder / "gen-000001")
        return load(*given)

    part.close()
    monkeypatch.setattr(module, "load", failing)
    stages: set[str] = set()
    part = state.restricted(A, lambda event: bool(stages.add(event.stage)) or True)
    assert visible(part) == "aA" and "copy" in stages
    assert calls[0] == calls[1] == (folder, BM25, state.opened, state.opened.trust)


def test_chunks_that_wait_for_a_model_are_counted(state: IndexState, monkeypatch: pytest.MonkeyPatch) -> None:
    from ketrag_fast.building import allowed_index

    assert state.restricted(A).opened.pending == 0
    build = allowed_index.allowed_index
    monkeypatch.setattr(allowed_index, "allowed_index", lambda *a, **n: replace(build(*a, **n), pending=7))
    assert state.restricted(FINAL).opened.pending == 7


def test_a_shared_state_is_closed_alone(state: IndexState, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Opened] = []
    monkeypatch.setattr(Opened, "close", lambda self: closed.append(self))
    part, other = state.restricted(A), state.shared()
    opened = state.opened
    assert other.opened is opened and other.path == state.path and other.allows == state.allows
    assert other.restricted(A) is not part and state.restricted(A) is part
    for lent in (part, other):
        lent.close()
        with pytest.raises(InputError, match="the index is closed"):
            _ = lent.opened
    assert not closed and state.opened is opened
    state.close()
    state.close()
    assert closed == [opened]


def test_warming_reads_what_is_opened_next(
    state: IndexState, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ketrag_fast.query import core_plans

    warmed: list[tuple[Any, ...]] = []
    monkeypatch.setattr(core_plans, "warm_up", lambda *given: warmed.append((*given, state.opened)))
    before = state.opened
    assert not state.refresh(warm=True) and not warmed
    change(path, add=documents("c"))
    assert state.refresh(warm=True)
    assert warmed == [(state.opened, path, before)], "queries still used the old one"
    change(path, add=documents("d"))
    assert state.refresh() and len(warmed) == 1


def test_building_for_a_query_ends_at_its_deadline(
    state: IndexState, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Expiring(Clock):
        def __init__(self, seconds: float | None, queries: int) -> None:
            assert (seconds, queries) == (50.0, 1), "one query, unless there are more"
            super().__init__(seconds, queries)

    monkeypatch.setattr(module, "Clock", Expiring)
    callbacks: list[Any] = []
    part = state.restricted(A)
    monkeypatch.setattr(state, "restricted", lambda allow, progress: callbacks.append(progress) or part)
    state.visible(Query("Which ship?", allow="team=a", deadline=50.0))
    event = Event("copy", 1, None)
    assert callbacks[0](event) is True
    monkeypatch.setattr("time.monotonic", lambda: 1e18)
    with pytest.raises(DeadlineExceeded):
        callbacks[0](event)


def test_the_deadline_of_queries_is_shared(state: IndexState, path: Path) -> None:
    plain = Query("Which ship?", deadline=5.0)
    assert state.visible(plain) == (state, plain)
    for count, seconds, least, most in ((1, 50.0, 10, 50), (3, 50.0, 30, 50), (None, 50.0, 10, 50)):
        query = Query("Which ship?", allow="team=a", deadline=seconds)
        part, rest = state.visible(query) if count is None else state.visible(query, count)
        assert part is state.restricted(A) and rest.allow is None and rest.text == query.text
        assert rest.deadline is not None and least < rest.deadline < most
    assert state.visible(Query("Which ship?", allow="team=a"))[1].deadline is None
    with pytest.raises(DeadlineExceeded):
        state.visible(Query("Which ship?", allow="team=b", deadline=1e-9))
    with_limit = IndexState(path, Settings(**{**BM25.given, "deadline": 40.0}))
    rest = with_limit.visible(Query("Which ship?", allow="team=a"))[1]
    assert rest.deadline is not None and 10 < rest.deadline < 40
    rest = with_limit.visible(Query("Which ship?", allow="team=a", deadline=90.0))[1]
    assert rest.deadline is not None and 40 < rest.deadline < 90
