"""Clusters of units: copies, samples, levels, and the same themes for the same units."""

from __future__ import annotations

import numpy as np
import pytest

from ketrag_fast.query.themes import clusters
from ketrag_fast.query.themes.clusters import NO_THEME, Keywords, cluster, find_copies


def keywords(rows: list[list[int]], count: int, digits: tuple[int, ...] = ()) -> Keywords:
    ends = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    indices = np.array([one for row in rows for one in row], np.uint32)
    return Keywords(ends, indices, np.ones(len(indices), np.uint32), count, np.array(digits, np.int64))


def keys(sketches: list[int]) -> np.ndarray:
    return np.array([[at, sketch] for at, sketch in enumerate(sketches)], np.uint64)


def test_units_with_the_same_keywords_are_copies_whatever_their_numbers() -> None:
    rows = keywords([[0, 1, 2], [0, 1, 3], [0, 1], [0, 4], [3], [2]], 5, digits=(2, 3))
    assert find_copies(keys([0] * 6), rows).tolist() == [0, 0, 0, 3, 4, 5]


def test_units_with_nearly_equal_sketches_are_copies() -> None:
    base = 0x0123456789ABCDEF
    sketches = [base, base ^ 0b111, base ^ 0b1111 << 20, base ^ 0b111 << 40, 0, 0]
    rows = keywords([[at] for at in range(6)], 6)
    assert find_copies(keys(sketches), rows).tolist() == [0, 0, 2, 0, 4, 5]


def oracle(sketches: list[int]) -> list[int]:
    """The first unit that each leads to by pairs of nearly equal sketches."""
    first = list(range(len(sketches)))
    for _ in sketches:
        for a in range(len(sketches)):
            for b in range(len(sketches)):
                if sketches[a] and sketches[b] and (sketches[a] ^ sketches[b]).bit_count() <= 3:
                    first[a] = first[b] = min(first[a], first[b])
    return first


@pytest.mark.parametrize("seed", range(5))
def test_copies_equal_those_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found: list[int] = []
    for _ in range(6):
        base = int(rng.integers(1, 2**63))
        found += [base ^ int(1 << int(rng.integers(0, 64))) for _ in range(3)]
    rows = keywords([[at] for at in range(len(found))], len(found))
    assert find_copies(keys(found), rows).tolist() == oracle(found)


def groups(count: int, each: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(count, 16))
    rows = np.repeat(centres, each, axis=0) + 0.2 * rng.normal(size=(count * each, 16))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_levels_are_nested_and_numbered_by_size() -> None:
    vectors = groups(6, 40)
    count = len(vectors)
    rows = keywords([[at] for at in range(count)], count)
    found = cluster(keys([0] * count), rows, vectors, seed=1, threads=1)
    assert 1 <= len(found.levels) <= 4
    assert found.levels[-1].tolist() == list(range(int(found.leaf.max()) + 1))
    for wide, narrow in zip(found.levels, found.levels[1:], strict=False):
        for theme in range(int(narrow.max()) + 1):
            assert len(set(wide[narrow == theme].tolist())) == 1
    for level in found.levels:
        own = level[found.leaf]
        for group in range(6):
            assert np.bincount(own[group * 40 : (group + 1) * 40]).max() > 10
    truth = np.repeat(np.arange(6), 40)
    for theme in range(int(found.leaf.max()) + 1):
        assert len(set(truth[found.leaf == theme].tolist())) == 1


def test_a_sample_gives_the_same_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "SAMPLE", 100)
    vectors = groups(5, 60)
    count = len(vectors)
    rows = keywords([[at] for at in range(count)], count)
    found = cluster(keys([0] * count), rows, vectors, seed=1, threads=1)
    assert (found.leaf != NO_THEME).all()
    truth = np.repeat(np.arange(5), 60)
    for theme in range(int(found.leaf.max()) + 1):
        assert len(set(truth[found.leaf == theme].tolist())) == 1


def test_units_without_words_are_in_no_theme() -> None:
    vectors = np.zeros((3, 4), np.float32)
    found = cluster(keys([0, 0, 0]), keywords([[], [], []], 0), vectors, seed=1)
    assert (found.leaf.tolist(), found.levels) == ([NO_THEME] * 3, ())


def test_no_units() -> None:
    found = cluster(np.zeros((0, 2), np.uint64), keywords([], 0), None, seed=1)
    assert (len(found.leaf), found.levels) == (0, ())
