# ruff: noqa: E501 - one line for each way to be wrong
"""Systems of other packages: one that works, and every way in which one can be wrong."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import parser
from ketrag_fast.base.config import catalogue
from ketrag_fast.errors import ConfigError, ExtensionError
from ketrag_fast.systems.spec.validation import OPTIONS
from tests.process import command
from tests.systems.outside import Install
from tests.systems.outside_checks import DOCUMENTS, broken, unharmed


def test_one_that_works(install: Install, tmp_path: Path) -> None:
    assert install("").broken == {}
    with Index.build(DOCUMENTS, tmp_path / "ix", settings=Settings(system="mine")) as index:
        assert "backwards" in index.modes
        context = index.retrieve("Ada", budget=100)
        assert context.mode == "backwards"
        assert [passage.document for passage in context.passages] == ["b", "a"]
        many = index.retrieve_many(["Ada", "x"], budget=100, threads=2)
        assert [c.text for c in many] == [context.text] * 2


def test_everything_reaches_a_system_of_another_package(install: Install, tmp_path: Path) -> None:
    """Build, query, explanation and commands know it from its declarations: no existing file names it."""
    install("")
    for document in DOCUMENTS:
        (tmp_path / f"{document.id}.txt").write_text(document.text, "utf-8")
    built = command("index", "a.txt", "b.txt", "--system", "mine", "-o", "own_start=1", cwd=tmp_path)
    assert built.code == 0, built.err
    with Index.open(tmp_path / ".ketrag") as index:
        assert index.stats()["settings"]["own_start"] == 1
        context = index.retrieve("Ada", budget=100, explain=True)
        assert [passage.document for passage in context.passages] == ["b.txt", "a.txt"]
        assert {passage.channel for passage in context.passages} == {"backwards"}
        assert all(p.why == ({"word": "ada", "count": 1},) for p in context.passages)

    def printed(*argv: str) -> Any:
        done = command(*argv, "--json", cwd=tmp_path)
        assert done.code == 0, done.err
        return json.loads(done.out)

    found = printed("retrieve", "Ada", "--mode", "backwards", "--explain")
    assert found["context"] == context.text
    assert [row["why"] for row in found["passages"]] == [list(p.why) for p in context.passages]
    assert "own" in printed("stats")["stages"]
    assert {row["name"] for row in printed("config", "list", "mine")["settings"]} == {
        "own_start",
        "own_share",
    }
    assert "mine" in command("index", "--help", cwd=tmp_path).out
    assert "own_start: -1" in command("index", "-o", "own_start=-1", cwd=tmp_path).err


def test_its_channel_beside_the_core_s(install: Install, tmp_path: Path) -> None:
    """Channels of both kinds share a budget, and are fused."""
    install(
        """
        PARTS["recipes"] = {
            "half": Recipe((Share("backwards", of="own_share"), Share("bm25", of=REST)), "both"),
            "joined": Recipe((Share("backwards"), Share("bm25")), "both", join="fuse"),
        }
        PARTS["presets"] = {"mine": {"modes": "half,joined", "mode": "half"}}
        """
    )
    texts = [Document(str(n), f"Ada wrote program {n} in the year {1800 + n}.") for n in range(20)]
    with Index.build(texts, tmp_path / "ix", settings=Settings(system="mine")) as index:
        assert set(index.modes) >= {"half", "joined", "bm25"}
        channels = [p.channel for p in index.retrieve("program 3", budget=100).passages]
        assert channels == sorted(channels)
        assert set(channels) == {"backwards", "bm25"}
        fused = index.retrieve("program 3", mode="joined", budget=60)
        assert {p.document for p in fused.passages} & {"19", "3"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise RuntimeError('no licence')", "ketrag-mine cannot be loaded: RuntimeError: no licence"),
        ("import sys; sys.exit(3)", "cannot be loaded: SystemExit: 3"),
        ("import a_library_that_is_not_here", "ModuleNotFoundError"),
        ("this is no Python", "SyntaxError"),
        ("THING = 1", "AttributeError"),
        ("SYSTEM = 'a text'", "ketrag_mine:SYSTEM is not a System"),
    ],
)
def test_a_package_that_cannot_be_loaded(install: Install, tmp_path: Path, source: str, said: str) -> None:
    assert said in broken(install, source, whole=True)
    unharmed(tmp_path / "ix")
    with pytest.raises(ExtensionError, match="system mine cannot be used") as caught:
        Index.build(DOCUMENTS, tmp_path / "ix", settings=Settings(system="mine"))
    assert caught.value.hint == "fix or uninstall the package that provides it"
    with pytest.raises(ConfigError, match="unknown system 'nine'") as near:
        Index.build(DOCUMENTS, tmp_path / "ix", settings=Settings(system="nine"))
    assert said in (near.value.hint or "")
    with pytest.raises(ConfigError, match="mode: 'backwards' is not one of") as mode:
        Settings(mode="backwards")
    assert said in (mode.value.hint or "")
    with pytest.raises(ConfigError, match="unknown mode 'backwards'") as modes:
        Settings(modes="auto,backwards")
    assert said in (modes.value.hint or "")
    with pytest.raises(ConfigError, match="unknown setting 'own_start'") as setting:
        Settings(own_start=1)
    assert said in (setting.value.hint or "")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("PARTS['name'] = 'walk'", "the system walk already exists"),
        ("PARTS['presets'] = {'ket-rag:reference': {}}", "the preset ket-rag:reference already exists"),
        ("PARTS['presets'] = {'a b': {}}", "invalid name 'a b' for a preset"),
        ("PARTS['presets'] = {'mine': {'own_stat': 1}}", "the preset mine sets own_stat, which is not a setting"),
        ("PARTS['presets'] = {'mine': {'own_start': -1}}", "own_start: -1 is not a whole number from 0 up"),
        ("PARTS['presets'] = {'mine': {'modes': 'auto,forwards'}}", "the mode forwards, which does not exist"),
        ("PARTS['presets'] = {'mine': {'mode': 'forwards'}}", "the mode forwards, which does not exist"),
        ("PARTS['recipes'] = {'bm25': MODES['backwards']}", "the mode bm25 already exists"),
        ("PARTS['recipes'] = {'auto': MODES['backwards']}", "the mode auto already exists"),
        ("PARTS['recipes'] = {'all': MODES['backwards']}", "the mode all already exists"),
        ("PARTS['recipes'] = {'a,b': MODES['backwards']}", "invalid name 'a,b' for a mode"),
        ("PARTS['recipes'] = {'x': Recipe((), '')}", "the mode x has no channel"),
        ("PARTS['recipes'] = {'x': Recipe((Share('y'),), '')}", "has the channel y, which does not exist"),
        ("PARTS['recipes'] = {'x': Recipe((Share('bm25', 0.6), Share('text', 0.5)), '')}", "1.1, which exceeds 1"),
        ("PARTS['recipes'] = {'x': Recipe((Share('bm25', -1),), '')}", "gives bm25 a share of -1"),
        ("PARTS['recipes'] = {'x': Recipe((Share('bm25', float('nan')),), '')}", "a share of nan"),
        ("PARTS['recipes'] = {'x': Recipe((Share('bm25', 'knn_k'),), '')}", "the share knn_k, which is not a setting"),
        ("PARTS['recipes'] = {'x': Recipe((Share('bm25', 'nothing'),), '')}", "the share nothing"),
        ("PARTS['recipes'] = {'x': Recipe((Share('bm25', REST), Share('text')), '')}", "that is not the last"),
        ("PARTS['recipes'] = {'x': Recipe((Share('bm25'), Share('bm25')), '', join='fuse')}", "a channel twice"),
        ("PARTS['recipes'] = {'x': Recipe((Share('bm25'),), '', join='sum')}", "join='sum'"),
        ("PARTS['recipes'] = {'x': Recipe((Share('bm25'),), '', automatic='first')}", "automatic='first'"),
        ("PARTS['recipes'] = {'x': Recipe((Share('bm25'),), '', rollover='no')}", "the setting no, which does not exist"),
        ("PARTS['recipes'] = {'x': 'bm25'}", "AttributeError"),
        ("PARTS['channels'] = (Channel('bm25', ('units',), '', rank=rank),)", "the channel bm25 already exists"),
        ("PARTS['channels'] = (BACKWARDS, BACKWARDS)", "the channel backwards already exists"),
        ("PARTS['channels'] = (Channel('backwards', ('units',), ''),)", "has no rank function"),
        ("PARTS['channels'] = (Channel('backwards', ('own'), '', rank=rank),)", "needs='own'"),
        ("PARTS['channels'] = (Channel('backwards', ('own',), '', rank, vector='perhaps'),)", "vector='perhaps'"),
        ("PARTS['channels'] = (Channel('backwards', (), '', rank, settings=('own_x',)),)", "own_x, which does not exist"),
        ("PARTS['channels'] = (Channel('backwards', (), '', rank, settings=('own_start',)),)", "concerns='build'"),
        ("PARTS['stages'] = (Stage('words', 1, (), (), run, arrays=OWN.arrays),)", "the stage words already exists"),
        ("PARTS['stages'] = (OWN, Stage('own', 1, (), (), run, arrays={}))", "the stage own already exists"),
        ("PARTS['stages'] = (Stage('a b', 1, (), (), run, arrays={}),)", "invalid name 'a b' for a stage"),
        ("PARTS['stages'] = (Stage('documents', 1, (), (), run, arrays={}),)", "for a stage"),
        ("PARTS['stages'] = (Stage('own', 1, (), (), run),)", "the stage own declares no arrays"),
        ("PARTS['stages'] = (Stage('own', 1, (), (), run, arrays={'Order!': array('u8', 1)}),)", "'Order!'"),
        ("PARTS['stages'] = (Stage('own', 1, (), (), run, arrays={'order': 'u8'}),)", "which is not an array"),
        ("PARTS['stages'] = (Stage('own', 1, ('units'), (), run, arrays={}),)", "needs='units'"),
        ("PARTS['stages'] = (Stage('own', 1, (), ('own_x',), run, arrays={}),)", "own_x, which does not exist"),
        ("PARTS['stages'] = (Stage('own', 1, (), ('own_share',), run, arrays={}),)", "concerns='query'"),
        ("PARTS['stages'] = (Stage('own', 1, (), (), run, arrays={}, chosen_by=('cut', 'mine')),)", "cut = mine"),
        ("PARTS['stages'] = (Stage('own', 1, (), (), run, arrays={}, counts={'chunks': 'x'}),)", "counts chunks"),
        ("PARTS['stages'] = (Stage('own', 1, (), (), run, arrays={}, edges={'e': ('x', 1)}),)", "edges by x"),
        ("OWN = Stage('own', 1, (), (), run, arrays={'order': array('u9', 1)})", "unknown array type 'u9'"),
        ("OWN = Stage('own', 1, (), (), run, arrays={'order': array('u8', 'a-b')})", "invalid size 'a-b'"),
        ("PARTS['choices'] = {'own_start': ('x',)}", "own_start does not allow further values"),
        ("PARTS['choices'] = {'core_selection': (1,)}", "further values of the setting core_selection"),
        ("PARTS['choices'] = {'mode': ('x',)}", "mode does not allow"),
    ],
)  # fmt: skip
def test_declarations_that_do_not_hold_together(install: Install, part: str, said: str) -> None:
    registry = install(part)
    reason = next(iter(registry.broken.values()))
    assert said in reason
    assert "ketrag-mine" in reason
    assert [system.name for system in registry.systems] == [
        "plain",
        "walk",
        "ket-rag",
        "g2cons",
        "noderag",
        "cg-rag",
    ]


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("chunk_tokens: int = setting(3, 'x')", "chunk_tokens is already a setting of all systems"),
        ("knn_k: int = setting(3, 'x')", "knn_k is already a setting of ket-rag"),
        ("rebuild: bool = setting(False, 'x')", "the setting name rebuild is invalid"),
        ("config: str = setting('x', 'x')", "the setting name config is invalid"),
        ("openai_api_key: str = setting('x', 'x')", "the setting name openai_api_key is invalid"),
        ("having: int = setting(1, 'x')", "the setting name having is invalid"),
        ("Big: int = setting(1, 'x')", "the setting name Big is invalid"),
        ("own: int = 3", "is not declared with setting"),
        ("own: int = setting('three', 'x')", "own: 'three' is not a whole number"),
        ("own: int = setting(3, 'x', high=2)", "own: 3 is not"),
        ("own: list = setting([], 'x')", "ValueError"),
        ("own: tuple = setting((), 'x')", "must be a text, a number or true/false"),
        ("own: int = setting(3, 'x', concerns='nobody')", "KeyError"),
    ],
)
def test_settings_that_do_not_hold_together(install: Install, field: str, said: str) -> None:
    source = f"@dataclass(frozen=True, kw_only=True)\nclass Bad:\n    {field}\nPARTS['settings'] = Bad"
    assert said in broken(install, source)


def test_names_of_options_are_reserved() -> None:
    """The list in systems/spec/validation.py is that of the command."""

    def options(of: argparse.ArgumentParser) -> Iterator[str]:
        for action in of._actions:
            yield from (o[2:].replace("-", "_") for o in action.option_strings if o.startswith("--"))
            if isinstance(action, argparse._SubParsersAction):
                for each in action.choices.values():
                    yield from options(each)

    assert set(options(parser())) - set(catalogue()) == OPTIONS


def test_two_packages_with_one_name(install: Install, tmp_path: Path) -> None:
    """The first in the order of the packages' names is taken."""
    install("")
    registry = install("PARTS['name'] = 'mine'", name="second")
    assert [system.name for system in registry.systems] == [
        "plain",
        "walk",
        "ket-rag",
        "g2cons",
        "noderag",
        "cg-rag",
        "mine",
    ]
    assert registry.broken == {"mine": "ketrag-second: the system mine already exists"}
    with Index.build(DOCUMENTS, tmp_path / "ix", settings=Settings(system="mine")) as index:
        assert index.retrieve("Ada").mode == "backwards"


def test_none_are_loaded_where_they_are_switched_off(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KETRAG_EXTENSIONS", "none")
    registry = install("raise RuntimeError", whole=True)
    assert registry.broken == {}
    assert [system.name for system in registry.systems] == [
        "plain",
        "walk",
        "ket-rag",
        "g2cons",
        "noderag",
        "cg-rag",
    ]


def test_the_command_says_what_is_wrong(install: Install, tmp_path: Path) -> None:
    install("raise RuntimeError('no licence')", whole=True)
    (tmp_path / "a.txt").write_text("Ada wrote the first program.", "utf-8")
    done = command("index", "a.txt", "--system", "mine", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert (
        "the system mine cannot be used: ketrag-mine cannot be loaded: RuntimeError: no licence" in done.err
    )
    assert not (tmp_path / ".ketrag" / "CURRENT").exists()
    assert command("index", "a.txt", cwd=tmp_path).code == 0
    assert "Ada" in command("retrieve", "program", cwd=tmp_path).out
    assert command("config", "show", cwd=tmp_path).code == 0
