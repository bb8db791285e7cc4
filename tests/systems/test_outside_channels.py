# ruff: noqa: E501 - one line for each way to be wrong
"""Channels of other packages that fail, or rank little; shares that exceed the budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import ConfigError, ExtensionError, KetragError, ModeUnavailable
from tests.systems.outside import Install
from tests.systems.outside_checks import DOCUMENTS, unharmed


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
    with pytest.raises(ConfigError, match="modes: unknown mode 'sideways'"):
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


def test_an_inspector_that_fails(install: Install, tmp_path: Path) -> None:
    install("PARTS['recipes'] = MODES\nPARTS['inspect'] = 'ketrag_mine:Nothing'")
    unharmed(tmp_path / "plain")
    with Index.open(tmp_path / "plain") as index, pytest.raises(ModeUnavailable, match="no graph of named"):
        index.inspect.node("Ada")
    with (
        Index.build(DOCUMENTS, tmp_path / "ix", settings=Settings(modes="bm25,backwards")) as index,
        pytest.raises(ExtensionError, match="the system mine cannot show its graph: AttributeError"),
    ):
        index.inspect.node("Ada")
