# ruff: noqa: E501 - one line for each way to be wrong
"""Stages of other packages that fail, or whose arrays break their declaration."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import ExtensionError, ModeUnavailable, StageError
from ketrag_fast.storage.generation import current_number
from ketrag_fast.storage.layout import Layout
from tests.systems.outside import Install
from tests.systems.outside_checks import DOCUMENTS, unharmed


@pytest.mark.parametrize(
    ("makes", "said"),
    [
        ("1 / 0", "stage own of system mine failed: ZeroDivisionError"),
        ("open('/nowhere/at/all')", "stage own of system mine failed: FileNotFoundError"),
        ("inputs['words']", "stage own of system mine failed: KeyError: 'words'"),
        ("inputs.documents", "stage own of system mine failed: KeyError: 'documents'"),
        ("None", "system mine: own returned a NoneType, not a mapping"),
        ("{'order': [1, 0]}", "system mine: own.order is not an array but a list"),
        ("{}", "system mine: own.order is declared, but the stage did not return it"),
        ("{**good, 'more': good['order']}", "system mine: own.more is not declared"),
        ("{**good, 3: good['order']}", "system mine: own.3 is not declared"),
        ("{'order': good['order'].astype(np.int64)}", "own.order has type int64; u32 is declared"),
        ("{'order': good['order'].astype(object)}", "own.order has type object; u32 is declared"),
        ("{'order': good['order'][:1]}", "own.order has 1 rows or columns; units is 2"),
        ("{'order': good['order'][:, None]}", "own.order has 2 dimensions; 1 are declared"),
        (
            "{'order': good['order'] + np.uint32(1)}",
            r"own.order has the value 2; it must be 0 or more and below units \(2\)",
        ),
    ],
)
def test_a_stage_that_fails(install: Install, tmp_path: Path, makes: str, said: str) -> None:
    """What was published before stays, to the byte; nothing half made is published."""
    install(
        f"""
        good_run = run

        def run(inputs, settings, context):
            good = good_run(inputs, settings, context)
            return {makes}

        PARTS["stages"] = (Stage("own", 1, ("units",), (), run, arrays=OWN.arrays),)
        """
    )
    path = tmp_path / "ix"
    unharmed(path)
    before = {file: file.read_bytes() for file in path.glob("gen-*/**/*") if file.is_file()}
    with pytest.raises((ExtensionError, StageError), match=said) as caught:
        Index.build([], path, settings=Settings(modes="bm25,backwards"))
    assert "own" in str(caught.value) and "mine" in str(caught.value)
    assert current_number(Layout(path)) == 1
    assert {file: file.read_bytes() for file in path.glob("gen-*/**/*") if file.is_file()} == before
    with Index.open(path) as index:
        assert index.retrieve("engine").passages
        with pytest.raises(ModeUnavailable, match="mode backwards needs the stage own") as missing:
            index.retrieve("engine", mode="backwards")
        assert "--modes bm25,backwards" in (missing.value.hint or "")
    unharmed(path)


@pytest.mark.parametrize(
    ("spec", "made", "said"),
    [
        ("array('f64', 'units')", "np.array([1.0, np.nan])", "has a value that is not finite"),
        ("array('f32', 'units')", "np.array([1, np.inf], np.float32)", "has a value that is not finite"),
        ("array('f64', 'units', below='units')", "np.array([1.0, np.nan])", "not finite"),
        (
            "array('i64', 'units', below='units')",
            "np.array([-1, 0])",
            "has the value -1; it must be 0 or more and below units",
        ),
        ("array('u64', 'units', rising=True)", "np.array([1, 0], np.uint64)", "but a value decreases"),
        (
            "array('u64', 'units+1', over='order')",
            "np.array([0, 1, 3], np.uint64)",
            "from 0 to 3; order has 2",
        ),
        (
            "array('u64', 'units+1', over='order')",
            "np.array([1, 1, 2], np.uint64)",
            "from 1 to 2; order has 2",
        ),
        (
            "array('u32', 'units', below='nobody')",
            "np.array([1, 0], np.uint32)",
            "bounded by the size nobody",
        ),
        ("array('u8', 3)", "np.zeros(2, np.uint8)", "has 2 rows or columns; 3 is 3"),
    ],
)
def test_values_that_break_their_declaration(
    install: Install, tmp_path: Path, spec: str, made: str, said: str
) -> None:
    install(
        f"""
        good_run = run

        def run(inputs, settings, context):
            return {{**good_run(inputs, settings, context), "values": {made}}}

        arrays = {{**OWN.arrays, "values": {spec}}}
        PARTS["stages"] = (Stage("own", 1, ("units",), (), run, arrays=arrays),)
        """
    )
    unharmed(tmp_path / "ix")
    with pytest.raises(StageError, match=f"^system mine: own.values .*{said}"):
        Index.build([], tmp_path / "ix", settings=Settings(modes="bm25,backwards"))
    assert current_number(Layout(tmp_path / "ix")) == 1


def test_what_else_may_fail_is_kept_apart(install: Install, tmp_path: Path) -> None:
    """Functions that say what is needed, how long it takes, what is reported, whether settings go together."""
    install(
        """
        def fails(*_):
            raise RuntimeError("not today")

        PARTS["channels"] += (Channel("forwards", fails, "x", rank=rank),)
        PARTS["recipes"] = {**MODES, "forwards": Recipe((Share("forwards"),), "x")}
        PARTS["stages"] = (Stage("own", 1, ("units",), (), run, arrays=OWN.arrays, seconds=fails),)
        PARTS["describe"] = PARTS["check"] = fails
        """
    )
    unharmed(tmp_path / "ix")
    with Index.open(tmp_path / "ix") as index:
        assert index.stats()["systems"]["mine"] == {"error": "RuntimeError: not today"}
        with pytest.raises(
            ModeUnavailable, match=r"channel forwards, which fails \(RuntimeError: not today\)"
        ):
            index.retrieve("Ada", mode="forwards")
    for settings in ({"modes": "forwards"}, {"system": "mine"}, {"own_start": 3}):
        with pytest.raises(
            ExtensionError, match="the check of the system mine failed: RuntimeError: not today"
        ):
            Index.build(DOCUMENTS, tmp_path / "ix", settings=Settings(**settings))
