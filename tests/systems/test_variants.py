"""Variants of a system: rules that follow from the preset of the index, and that nobody sets."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import pytest

from ketrag_fast import Settings
from ketrag_fast.base.config.settings import catalogue
from ketrag_fast.errors import ConfigError, ExtensionError
from ketrag_fast.systems.papers.ket_rag import DEFAULT, KNN, REFERENCE, SYSTEM, KetRules
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.stage import fingerprint_of
from ketrag_fast.systems.spec.system import System
from ketrag_fast.systems.spec.validation import check_system


def test_the_preset_of_the_index_decides() -> None:
    assert Settings(system="ket-rag:reference").of(KetRules) == REFERENCE
    for system in ("default", "ket-rag", "noderag", "somebody-elses"):
        assert Settings(system=system).of(KetRules) == DEFAULT


def test_no_rule_is_a_setting() -> None:
    for rule in fields(KetRules):
        assert rule.name not in catalogue()
    with pytest.raises(ConfigError, match="unknown setting 'knn_zero'"):
        Settings(knn_zero=True)


def test_a_rule_counts_in_the_fingerprints_of_the_stages_that_name_it() -> None:
    def fingerprint(system: str) -> str:
        settings = Settings(system=system)
        return fingerprint_of(KNN, settings, dict.fromkeys((*KNN.needed(settings), "reference_words"), "x"))

    assert fingerprint("default") == fingerprint("ket-rag") == fingerprint("noderag")
    assert fingerprint("ket-rag") != fingerprint("ket-rag:reference")


def test_each_variant_is_a_preset() -> None:
    for system in registry().systems:
        assert set(system.rules) <= set(system.presets)
        assert not system.rules or system.name in system.rules
    assert {"default", "ket-rag", "ket-rag:reference"} <= set(registry().presets)


@dataclass(frozen=True)
class OwnRules:
    """Rules of a system from elsewhere."""

    own_way: str


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"presets": {"own": {}}}, "lack the preset own:reference"),
        ({"rules": {"own:reference": OwnRules("b")}}, "lack the preset own"),
        ({"rules": {"own": OwnRules("a"), "own:reference": DEFAULT}}, "records of one dataclass"),
        ({"rules": {"own": DEFAULT, "own:reference": REFERENCE}}, "the rule .* is taken"),
    ],
)
def test_declarations_that_do_not_hold_together(changes: dict[str, object], message: str) -> None:
    presets = {"own": {}, "own:reference": {}}
    rules = {"own": OwnRules("a"), "own:reference": OwnRules("b")}
    system = System("own", "somewhere", "a system", presets=presets, rules=rules)
    check_system(registry(), system, outside=True)
    with pytest.raises(ExtensionError, match=message):
        check_system(registry(), replace(system, **changes), outside=True)


def test_stages_name_only_what_exists() -> None:
    found = registry()
    known = {*found.specs, *found.rules_of("default")}
    assert all(set(stage.settings) <= known for stage in SYSTEM.stages)
