# ruff: noqa: E501 - one line for each way to be wrong
"""Systems of other packages: one that works, and every way in which one can be wrong."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import parser
from ketrag_fast.base.config import catalogue
from ketrag_fast.errors import ConfigError, ExtensionError, KetragError, ModeUnavailable, StageError
from ketrag_fast.storage.generation import current_number
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.spec.validation import OPTIONS
from tests.process import command
from tests.systems.outside import Install

DOCUMENTS = [Document("a", "Ada wrote the first program."), Document("b", "Charles built an engine for Ada.")]

WRITER = "openai:nobody@http://127.0.0.1:9/v1"
"""A model that is never asked: the rewritings here need none, but modes with one wait for it."""


def broken(found: Install, source: str, *, whole: bool = False) -> str:
    """Why the system of this package cannot be used; that it is, is checked."""
    registry = found(source, whole=whole)
    assert "mine" not in {system.name for system in registry.systems}
    assert "backwards" not in registry.recipes
    assert "own_start" not in catalogue()
    return registry.broken["mine"]


def unharmed(path: Path) -> None:
    """Everything else works while a system is broken."""
    with Index.build(DOCUMENTS, path, settings=Settings(modes="bm25")) as index:
        assert index.retrieve("Who built an engine?", mode="bm25").passages[0].document == "b"
        assert index.modes == ("bm25", "walk")
        assert index.stats()["counts"]["documents"] == 2


def test_one_that_works(install: Install, tmp_path: Path) -> None:
    assert install("").broken == {}
    with Index.build(DOCUMENTS, tmp_path / "ix", settings=Settings(system="mine")) as index:
        assert "backwards" in index.modes
        context = index.retrieve("Ada", budget=100)
        assert context.mode == "backwards"
        assert [passage.document for passage in context.passages] == ["b", "a"]
        many = index.retrieve_many(["Ada", "x"], budget=100, threads=2)
        assert [c.text for c in many] == [context.text] * 2


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


# ------------------------------------------------------------------ what cannot be loaded


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
    with pytest.raises(ConfigError, match="there is no system 'nine'") as near:
        Index.build(DOCUMENTS, tmp_path / "ix", settings=Settings(system="nine"))
    assert said in (near.value.hint or "")
    with pytest.raises(ConfigError, match="mode: 'backwards' is not one of") as mode:
        Settings(mode="backwards")
    assert said in (mode.value.hint or "")
    with pytest.raises(ConfigError, match="there is no mode 'backwards'") as modes:
        Settings(modes="auto,backwards")
    assert said in (modes.value.hint or "")
    with pytest.raises(ConfigError, match="there is no setting 'own_start'") as setting:
        Settings(own_start=1)
    assert said in (setting.value.hint or "")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("PARTS['name'] = 'walk'", "the system walk already exists"),
        ("PARTS['presets'] = {'parity': {}}", "the preset parity already exists"),
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
        ("PARTS['stages'] = (Stage('own', 1, (), (), run, arrays={}, chosen_by=('words', 'mine')),)", "words = mine"),
        ("PARTS['stages'] = (Stage('own', 1, (), (), run, arrays={}, counts={'chunks': 'x'}),)", "counts chunks"),
        ("PARTS['stages'] = (Stage('own', 1, (), (), run, arrays={}, edges={'e': ('x', 1)}),)", "edges by x"),
        ("OWN = Stage('own', 1, (), (), run, arrays={'order': array('u9', 1)})", "unknown array type 'u9'"),
        ("OWN = Stage('own', 1, (), (), run, arrays={'order': array('u8', 'a-b')})", "invalid size 'a-b'"),
        ("PARTS['choices'] = {'own_start': ('x',)}", "own_start does not allow further values"),
        ("PARTS['choices'] = {'core_selection': (1,)}", "further values of the setting core_selection"),
        ("PARTS['choices'] = {'mode': ('x',)}", "mode does not allow"),
    ],
)  # fmt: skip
def test_declarations_that_do_not_hold_together(
    install: Install, tmp_path: Path, part: str, said: str
) -> None:
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
    unharmed(tmp_path / "ix")


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
def test_settings_that_do_not_hold_together(install: Install, tmp_path: Path, field: str, said: str) -> None:
    source = f"@dataclass(frozen=True, kw_only=True)\nclass Bad:\n    {field}\nPARTS['settings'] = Bad"
    assert said in broken(install, source)
    unharmed(tmp_path / "ix")


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


# ------------------------------------------------------------------ a channel that fails


@pytest.fixture
def failing(install: Install, tmp_path: Path) -> Iterator[Index]:
    """An index with mode `backwards`, whose channel does what a file says."""
    install(
        f"""
        from pathlib import Path

        def rank(query, arrays):
            return eval(Path({str(tmp_path / "says")!r}).read_text(), globals(), dict(query=query, arrays=arrays))

        PARTS["channels"] = (Channel("backwards", ("units", "own"), "x", rank=rank),)
        """
    )
    settings = Settings(system="mine", modes="bm25,backwards")
    with Index.build(DOCUMENTS, tmp_path / "ix", settings=settings) as index:
        yield index


@pytest.mark.parametrize(
    ("says", "said"),
    [
        ("1 / 0", "failed: ZeroDivisionError: division by zero"),
        ("None", "failed: TypeError: cannot unpack"),
        ("([0],)", "failed: ValueError: not enough values"),
        ("arrays['nothing']", "failed: KeyError: 'nothing'"),
        (
            "arrays['own']['order'].__setitem__(0, 1)",
            "failed: ValueError: assignment destination is read-only",
        ),
        ("([2], [1.0])", "returned the id 2 for an index of 2 units"),
        ("([-1], [1.0])", "returned the id -1"),
        ("(np.array([2**40]), [1.0])", "returned the id 1099511627776"),
        ("([0, 1, 0], [3.0, 2.0, 1.0])", "returned 3 ids for an index of 2 units"),
        ("([1, 1], [2.0, 1.0])", "returned a unit twice"),
        ("([0], [float('nan')])", "returned a score that is not a finite number"),
        ("([0], [float('inf')])", "returned a score that is not a finite number"),
        ("([0, 1], [1.0])", r"returned \(2,\) ids and \(1,\) scores"),
        ("([[0]], [[1.0]])", r"returned \(1, 1\) ids"),
        ("([0.5], [1.0])", "returned ids of type float64"),
        ("([True], [1.0])", "returned ids of type bool"),
        ("(['a'], [1.0])", "returned ids of type <U1"),
        ("([0], ['high'])", "returned something that is not a ranking"),
        ("([0], [None, [1]])", "returned something that is not a ranking"),
    ],
)
def test_a_channel_that_fails(failing: Index, tmp_path: Path, says: str, said: str) -> None:
    (tmp_path / "says").write_text(says, "utf-8")
    with pytest.raises(ExtensionError, match=f"channel backwards of system mine {said}"):
        failing.retrieve("Ada")
    with pytest.raises(ExtensionError, match="channel backwards of system mine"):
        failing.retrieve_many(["Ada", "Charles"], threads=2)
    assert failing.retrieve("engine", mode="bm25").passages[0].document == "b"


def test_a_channel_may_rank_little_or_nothing(failing: Index, tmp_path: Path) -> None:
    (tmp_path / "says").write_text("([], [])", "utf-8")
    assert failing.retrieve("Ada").reason == "no_match"
    (tmp_path / "says").write_text("(np.array([1], np.int8), np.array([2], np.float32))", "utf-8")
    assert [p.document for p in failing.retrieve("Ada").passages] == ["b"]


def test_a_channel_gets_what_is_promised(failing: Index, tmp_path: Path) -> None:
    checks = "query.question == 'Ada wrote' and query.vector is None and query.budget == 50"
    checks += " and query.keywords == ('ada', 'wrote') and query.settings.own_share == 0.5"
    checks += " and set(arrays) >= {'units', 'own'} and 0 < query.wanted <= 2"
    (tmp_path / "says").write_text(f"([0], [1.0]) if {checks} else 1 / 0", "utf-8")
    assert failing.retrieve("Ada wrote", budget=50).passages


# ------------------------------------------------------------------ a stage that fails


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


def test_a_channel_whose_needs_fail_or_are_not_made(install: Install, tmp_path: Path) -> None:
    install(
        """
        PARTS["channels"] += (
            Channel("forwards", lambda settings: 1 / 0, "x", rank=rank),
            Channel("nowhere", ("stage_of_nobody",), "x", rank=rank),
        )
        PARTS["recipes"] = {
            **MODES, "forwards": Recipe((Share("forwards"),), "x"), "nowhere": Recipe((Share("nowhere"),), "x")
        }
        """
    )
    unharmed(tmp_path / "ix")
    with pytest.raises(ExtensionError, match="the needs of channel forwards raised ZeroDivisionError"):
        Index.build([], tmp_path / "ix", settings=Settings(modes="bm25,forwards"))
    with pytest.raises(KetragError, match="needs stage_of_nobody, which no stage provides"):
        Index.build([], tmp_path / "ix", settings=Settings(modes="bm25,nowhere"))
    with Index.open(tmp_path / "ix") as index, pytest.raises(ModeUnavailable, match="stage_of_nobody"):
        index.retrieve("Ada", mode="nowhere")
    with pytest.raises(ConfigError, match="modes: there is no mode 'sideways'"):
        Settings(modes="bm25,sideways")


def test_shares_by_settings_that_exceed_the_budget(install: Install, tmp_path: Path) -> None:
    install(
        """
        shares = (Share("backwards", of="own_share"), Share("bm25", of="kg_share"))
        PARTS["recipes"] = {"both": Recipe(shares, "x")}
        PARTS["presets"] = {"mine": {"mode": "both"}}
        """
    )
    with Index.build(DOCUMENTS, tmp_path / "ix", settings=Settings(system="mine")) as index:
        assert index.retrieve("Ada").passages
    with Index.open(tmp_path / "ix", settings=Settings(own_share=0.7)) as index:
        with pytest.raises(ConfigError, match=r"own_share, kg_share: .* add up to 1\.1, which exceeds 1"):
            index.retrieve("Ada", mode="both")
        assert index.retrieve("Ada", mode="bm25").passages


def test_a_rewriting_and_an_inspector_that_fail(install: Install, tmp_path: Path) -> None:
    install(
        """
        def raises(opened, questions, seconds):
            raise RuntimeError("not today")

        def too_few(opened, questions, seconds):
            return [], ()

        def louder(opened, questions, seconds):
            return [question.upper() + " engine" for question in questions], ("louder",)

        PARTS["recipes"] = {
            **MODES, **{
                f.__name__: Recipe((Share("bm25"),), "x", rewrite=f"ketrag_mine:{f.__name__}")
                for f in (raises, too_few, louder)
            }
        }
        PARTS["inspect"] = "ketrag_mine:Nothing"
        """
    )
    unharmed(tmp_path / "plain")
    with Index.open(tmp_path / "plain") as index, pytest.raises(ModeUnavailable, match="no graph of named"):
        index.inspect.node("Ada")
    with Index.build(
        DOCUMENTS, tmp_path / "ix", settings=Settings(modes="bm25,backwards", answer_llm=WRITER)
    ) as index:
        with pytest.raises(ExtensionError, match="the system mine cannot show its graph: AttributeError"):
            index.inspect.node("Ada")
        with pytest.raises(ExtensionError, match="rewriting of mode raises failed: RuntimeError: not today"):
            index.retrieve("Ada", mode="raises")
        with pytest.raises(
            ExtensionError, match="rewriting of mode too_few returned 0 texts for 1 questions"
        ):
            index.retrieve("Ada", mode="too_few")
        context = index.retrieve("x", mode="louder")
        assert [p.document for p in context.passages] == ["b"]
        assert "louder" in context.warnings
