"""Which stages run, in which order; and how long what lacks would take."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError
from ketrag_fast.storage.manifest import FileRecord, StageRecord
from ketrag_fast.systems.planning import chain, seconds_to_add, stages_for
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.stage import DOCUMENTS, Stage, check_order, order_stages


def stage(name: str, *needs: str, provides: str = "", chosen_by: tuple[str, str] | None = None) -> Stage:
    return Stage(name, 1, needs, (), "nowhere:run", provides=provides, chosen_by=chosen_by)


def names(stages: tuple[Stage, ...]) -> list[str]:
    return [found.name for found in stages]


A, B, C, D = stage("a", DOCUMENTS), stage("b", "a"), stage("c", "a"), stage("d", "b", "c")


@pytest.mark.parametrize("stages", list(permutations((A, B, C, D))))
def test_needs_come_before(stages: tuple[Stage, ...]) -> None:
    found = order_stages(stages, ["d"], Settings())
    check_order(found, Settings())
    assert sorted(names(found)) == ["a", "b", "c", "d"]
    # Where needs leave it open, the order is that of the declarations.
    assert (found.index(B) < found.index(C)) == (stages.index(B) < stages.index(C))


def test_only_what_is_wanted() -> None:
    assert names(order_stages((A, B, C, D), ["c"], Settings())) == ["a", "c"]
    assert order_stages((A, B, C, D), [], Settings()) == ()
    assert order_stages((A, B, C, D), [DOCUMENTS], Settings()) == ()
    assert names(order_stages((D, C, B, A), ["b", "b", "a"], Settings())) == ["a", "b"]


@given(st.data())
def test_any_needs_without_a_circle_have_an_order(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 8))
    needs = [data.draw(st.sets(st.integers(0, n - 1), max_size=n)) if n else set() for n in range(count)]
    stages = [stage(f"s{n}", *(f"s{m}" for m in sorted(needs[n]))) for n in range(count)]
    shuffled = data.draw(st.permutations(stages))
    wanted = data.draw(st.lists(st.sampled_from([s.name for s in stages]), unique=True))
    found = order_stages(shuffled, wanted, Settings())
    check_order(found, Settings())
    reached, pending = set(), list(wanted)
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += [f"s{m}" for m in needs[int(name[1:])]]
    assert {s.name for s in found} == reached


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ((stage("a", "a"),), "stage a needs itself: a needs a"),
        ((stage("a", "b"), stage("b", "a")), "stage a needs itself: a needs b needs a"),
        (
            (stage("a", "b"), stage("b", "c"), stage("c", "b")),
            "stage b needs itself: a needs b needs c needs b",
        ),
        ((stage("a", "b"),), "stage a needs b, which no stage provides"),
        ((stage("b"),), "a mode needs a, which no stage provides"),
        (
            (stage("x", provides="a", chosen_by=("cut", "windows")),),
            "a mode needs a, which no stage provides",
        ),
    ],
)
def test_needs_that_cannot_be_met(stages: tuple[Stage, ...], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        order_stages(stages, ["a"], Settings())
    assert said in str(caught.value)


def test_the_settings_choose_between_stages_for_one_place() -> None:
    whole = stage("whole", DOCUMENTS, provides="cutting", chosen_by=("cut", "sentences"))
    plain = stage("plain", "a", provides="cutting", chosen_by=("cut", "windows"))
    both = (A, whole, plain, stage("end", "cutting"))
    assert names(order_stages(both, ["end"], Settings())) == ["whole", "end"]
    assert names(order_stages(both, ["end"], Settings(cut="windows"))) == ["a", "plain", "end"]


def test_needs_may_depend_on_settings() -> None:
    either = Stage("x", 1, lambda s: ("a",) if s.overlap else ("b",), (), "nowhere:run")
    assert names(order_stages((A, B, either), ["x"], Settings())) == ["a", "b", "x"]
    assert names(order_stages((A, B, either), ["x"], Settings(overlap=1))) == ["a", "x"]


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("modes", ["auto", "all", "bm25", "text", "knn", "ket", "bm25,skeleton"])
@pytest.mark.parametrize("embedder", ["builtin", "local:model"])
def test_every_plan_can_be_run(modes: str, embedder: str, reads: bool) -> None:
    settings = Settings(modes=modes, embedder=embedder)
    found = stages_for(settings, reads)
    check_order(found, settings)
    assert found[0].name == "units"
    assert reads or not any(s.reads for s in found)


def test_a_stage_that_no_mode_asks_for() -> None:
    plain = {s.name for s in stages_for(Settings(modes="bm25"), False)}
    more = {s.name for s in stages_for(Settings(modes="bm25"), False, ["core"])}
    assert plain == {"units", "links"}
    assert {"core", "knn"} <= more


def record(name: str, seconds: float, **shapes: tuple[int, ...]) -> StageRecord:
    files = {array: FileRecord(1, "", "<u4", shape) for array, shape in shapes.items()}
    return StageRecord(name, 1, "", seconds, files)


def test_how_long_a_mode_takes_goes_by_sizes_and_by_this_machine() -> None:
    settings = Settings()
    units = 100_000

    def seconds(mode: str, took: float, given: Settings = settings) -> float | None:
        made = {"units": record("units", took, unit_document=(units,), chunk_document=(units,))}
        return seconds_to_add(registry(), mode, given, made)

    usual = seconds("bm25", 2.0)  # as fast as the declarations say
    assert usual == pytest.approx(4.0)
    slow = seconds("bm25", 4.0)
    assert slow == pytest.approx(8.0)
    text = seconds("text", 2.0)
    assert text is not None and usual is not None and text > usual
    assert seconds("ket", 2.0) is None  # chunks have to be read
    assert seconds("text", 2.0, Settings(embedder="local:model")) is None
    assert [s.name for s in chain(registry(), "bm25", settings)] == ["units", "links"]
