"""The systems of this package, held to the rules for those of others, and each mode by itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.base.config import catalogue
from ketrag_fast.errors import ConfigError, ExtensionError, ModeUnavailable
from ketrag_fast.systems.planning import chain, needs_reader, wanted_modes
from ketrag_fast.systems.registry import OWN, Registry, registry
from ketrag_fast.systems.spec.validation import check_system
from tests.process import POLAR

ARTICLES = sorted((POLAR / "articles").glob("[a-e]*.md"))
QUESTION = "Who built the Fram?"
MODES = tuple(registry().recipes)
NEED_MORE = {"cg-rag-sparse", "cg-rag-trained"}
"""A sparse encoder, and trained weights."""
PLAIN = tuple(mode for mode in MODES if not needs_reader(registry(), mode, Settings()))


def ran(index: Index) -> dict[str, str]:
    assert index.report is not None
    return {stage.name: stage.how for stage in index.report.stages}


def stages_of(*modes: str, **settings: str) -> set[str]:
    given = Settings(**settings)
    return {stage.name for mode in modes for stage in chain(registry(), mode, given)} | {"units"}


def built(path: Path, modes: str | Iterable[str], **settings: str) -> Index:
    return Index.build(ARTICLES, path, settings=Settings(modes=modes, **settings))


def test_the_systems_of_this_package_keep_the_rules() -> None:
    before = Registry(())
    for system in registry().systems:
        if registry().origins[system.name] == OWN:
            check_system(before, system, outside=False)
            before = Registry((*before.systems, system))
    names = [system.name for system in before.systems]
    assert names[:6] == ["plain", "walk", "ket-rag", "g2cons", "noderag", "cg-rag"]  # the declared order
    assert registry().broken == {}


def test_what_is_made_from_the_registry() -> None:
    found = registry()
    assert tuple(found.specs) == tuple(catalogue())
    assert catalogue()["mode"].choices == ("auto", *found.recipes)
    assert found.system_of("walk").name == "walk"
    assert {found.system_of(mode).name for mode in ("ket", "knn", "keyword")} == {"ket-rag"}
    assert found.outside(found.stages[0]) is None
    with pytest.raises(ConfigError, match="mode: unknown mode 'wlak'") as mode:
        found.recipe("wlak")
    assert "walk" in (mode.value.hint or "")
    with pytest.raises(ConfigError, match="system: unknown system 'ket'") as preset:
        found.table["ket"]
    assert "noderag: noderag, noderag:reference;" in (preset.value.hint or "")
    broken = Registry(found.systems, {"mine": "no licence"})
    with pytest.raises(ExtensionError, match="system mine cannot be used: no licence"):
        broken.table["mine"]


@pytest.mark.parametrize("mode", PLAIN)
def test_each_mode_by_itself(mode: str, tmp_path: Path) -> None:
    """A build for one mode runs its stages alone, and the command that an error names adds another."""
    with built(tmp_path / "ix", mode) as index:
        assert set(ran(index)) == stages_of(mode)
        assert set(ran(index).values()) == {"ran"}
        served = {name for name in PLAIN if stages_of(name) <= set(ran(index)) and name not in NEED_MORE}
        assert set(index.modes) == served
        assert index.stats()["modes"] == list(index.modes)
        assert index.stats()["settings"]["modes"] == mode
        assert set(index.stats()["stages"]) == stages_of(mode)
        if mode not in NEED_MORE:
            assert index.retrieve(QUESTION, mode=mode, budget=300).passages
        lacking = [name for name in PLAIN if not stages_of(name) <= set(ran(index))]
        for other in lacking:
            with pytest.raises(ModeUnavailable, match=f"mode {other} needs .*which this index does not have"):
                index.retrieve(QUESTION, mode=other)
        hint = None
        if lacking:
            with pytest.raises(ModeUnavailable) as caught:
                index.retrieve(QUESTION, mode=lacking[-1])
            hint = caught.value.hint or ""
            assert "adds it in about a second and repeats nothing else" in hint
        before = {name: record["bytes"] for name, record in index.stats()["stages"].items()}
    if hint is None:
        return
    found = re.search(r"`ketrag (index [^`]*)`", hint)
    assert found is not None
    assert main(shlex.split(found[1])) == 0  # as the hint has it, with nothing added
    with Index.open(tmp_path / "ix") as index:
        assert index.generation == 2
        assert lacking[-1] in index.modes or lacking[-1] in NEED_MORE
        assert mode in index.modes or mode in NEED_MORE
        assert set(index.stats()["stages"]) == stages_of(mode, lacking[-1])
        after = {name: record["bytes"] for name, record in index.stats()["stages"].items()}
        assert before.items() <= after.items()


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    """bm25, then text, then all but the skeleton's, then bm25 again: each time only what is new runs."""
    with built(tmp_path / "ix", "bm25") as index:
        assert index.modes == ("bm25", "walk", "survey")  # without a model the walk needs no more
        assert ran(index) == {"units": "ran", "links": "ran"}
    with Index.build([], tmp_path / "ix", settings=Settings(modes="bm25,text")) as index:
        assert ran(index)["units"] == ran(index)["links"] == "reused"
        assert {name for name, how in ran(index).items() if how == "ran"} == {
            "words",
            "vectors",
            "unit_search",
        }
        assert index.modes == ("bm25", "text", "fused", "walk", "survey")
    with Index.build([], tmp_path / "ix", settings=Settings(modes="all")) as index:
        new = {name for name, how in ran(index).items() if how == "ran"}
        assert new == stages_of(*PLAIN) - stages_of("bm25", "text")
        assert set(index.modes) == set(PLAIN) - NEED_MORE
        whole = index.digest
    with Index.build([], tmp_path / "ix") as index:  # what the index was told stays
        assert index.report is not None
        assert not index.report.changed
    with built(tmp_path / "once", "all") as index:
        assert index.digest == whole  # however it came about
    with Index.build([], tmp_path / "ix", settings=Settings(modes="bm25")) as index:
        assert set(ran(index).values()) == {"reused"}
        assert set(index.stats()["stages"]) == {"units", "links"}


@pytest.mark.parametrize("modes", [" bm25 , text ", ["text", "bm25"]])
def test_lists_of_modes(modes: str | list[str], tmp_path: Path) -> None:
    with built(tmp_path / "ix", modes) as index:
        assert set(ran(index)) == stages_of("bm25", "text")
        assert index.modes == ("bm25", "text", "fused", "walk", "survey")


def test_auto_is_the_usual_modes_and_the_preset_s(tmp_path: Path) -> None:
    usual = {mode for mode in PLAIN if registry().recipes[mode].usual}
    assert usual == set(PLAIN) - {
        "knn",
        "g2cons",
        "cg-rag",
        "cg-rag-sparse",
        "cg-rag-trained",
    }
    with built(tmp_path / "auto", "auto") as index:
        assert set(ran(index)) == stages_of("bm25", "walk")
        assert index.modes == ("bm25", "walk", "survey")
    with built(tmp_path / "both", "knn,auto") as index:
        assert set(ran(index)) == stages_of("bm25", "walk", "knn")
    by_themselves = {"bm25", "text", "fused", "walk"}
    assert set(wanted_modes(Settings(embedder="native:folder"), reads=False)) == by_themselves
    assert set(wanted_modes(Settings(embedder="native:folder", mode="ket"), reads=False)) == usual
    assert set(wanted_modes(Settings(), reads=True)) > usual
    with built(tmp_path / "preset", "auto", system="g2cons") as index:
        assert "g2cons" in index.modes


def test_the_modes_of_the_skeleton_wait_for_a_reader(tmp_path: Path) -> None:
    found = registry()
    skeleton = tuple(mode for mode in MODES if mode not in PLAIN)
    assert skeleton == ("skeleton", "ket", "noderag")
    assert wanted_modes(Settings(modes="all"), reads=False) == PLAIN
    assert wanted_modes(Settings(modes="all"), reads=True) == MODES
    assert wanted_modes(Settings(modes="skeleton"), reads=False) == ()
    with built(tmp_path / "ix", "ket,bm25") as index:
        assert set(ran(index)) == stages_of("bm25")
        with pytest.raises(ModeUnavailable) as caught:
            index.retrieve(QUESTION, mode="ket")
        assert "--llm SPEC" in (caught.value.hint or "")
    settings = Settings(llm="heuristic")
    with Index.build([], tmp_path / "ix", settings=settings) as index:
        assert set(ran(index)) == {
            stage.name for mode in ("bm25", "ket") for stage in chain(found, mode, settings)
        }
        assert ran(index)["links"] == "reused"
        assert set(index.modes) >= {"bm25", "ket", "skeleton", "keyword"}
        assert index.retrieve(QUESTION, mode="ket").passages


def test_a_core_that_is_drawn_needs_no_graph(tmp_path: Path) -> None:
    with built(tmp_path / "ix", "skeleton", llm="heuristic", core_selection="uniform") as index:
        assert "core_uniform" in ran(index)
        assert not {"core", "knn"} & set(ran(index))
        assert "skeleton" in index.modes
    with Index.build([], tmp_path / "ix", settings=Settings(core_selection="pagerank")) as index:
        assert {"core", "knn"} <= {name for name, how in ran(index).items() if how == "ran"}


@pytest.mark.parametrize("modes", ["", " ", "bm25,", ",", "bm52", "auto,bm52", "BM25", "bm25;text"])
def test_modes_that_there_are_not(modes: str) -> None:
    with pytest.raises(ConfigError, match="modes"):
        Settings(modes=modes)
