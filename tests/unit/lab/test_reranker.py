"""Training of the walk's reranker: gradients, what is learned, cross-validation, and bad data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast.errors import InputError
from ketrag_fast.lab.reranker.examples import Examples, join
from ketrag_fast.lab.reranker.fitting import fit, loss_gradient
from ketrag_fast.lab.reranker.validation import STRENGTHS, cross_validate
from ketrag_fast.query.walk_features import DEPTH, FEATURES

PLANTED = FEATURES.index("mutual")


def planted(questions: int, seed: int, *, probes: int = 0, sign: float = 1.0) -> Examples:
    """Return examples whose gold candidate has a feature that no other one has; its score is random."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(questions, DEPTH, len(FEATURES))).astype(np.float32)
    gold = np.zeros((questions, DEPTH), bool)
    gold[np.arange(questions), generator.integers(0, DEPTH, questions)] = True
    features[..., PLANTED] = np.where(gold, sign, 0)
    scores = -np.sort(generator.exponential(size=(questions, DEPTH)), axis=1)
    documents = np.tile(np.arange(DEPTH, dtype=np.int32), (questions, 1))
    is_probe = np.arange(questions) < probes
    return Examples(features, scores, documents, gold, gold.sum(axis=1), is_probe)


def loss(logits: np.ndarray, gold: np.ndarray) -> float:
    """The loss of one question, term by term."""
    total = 0.0
    for own in logits[gold]:
        total += np.log(np.exp(own) + np.exp(logits[~gold]).sum()) - own
    return total / gold.sum()


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    generator = np.random.default_rng(0)
    logits, gold = generator.normal(size=7) * 3, np.array([0, 1, 0, 0, 1, 0, 0], bool)
    found = loss_gradient(logits[None], gold[None], np.ones((1, 7), bool))[0]
    for at in range(7):
        step = np.zeros(7)
        step[at] = 1e-5
        slope = (loss(logits + step, gold) - loss(logits - step, gold)) / 2e-5
        assert found[at] == pytest.approx(slope, abs=1e-6)


def test_a_planted_feature_is_learned_and_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    examples = planted(120, 1)
    model = fit([examples], vectors=False, epochs=15)
    again = fit([examples], vectors=False, epochs=15)
    other = fit([examples], vectors=False, epochs=15, seed=7)
    for folder, one in (("a", model), ("b", again), ("c", other)):
        one.save(tmp_path / folder)
    texts = [(tmp_path / folder / "reranker.json").read_bytes() for folder in "abc"]
    assert texts[0] == texts[1] != texts[2]
    unseen = planted(80, 2)
    before = unseen.measure().mean(axis=0)
    after = unseen.measure(model.adjustments(unseen.features.astype(float))).mean(axis=0)
    assert after[0] > before[0] + 0.5


def test_cross_validation_sees_what_transfers_and_what_does_not() -> None:
    good = cross_validate({"a": planted(60, 1, probes=20), "b": planted(60, 2)}, vectors=False, seed=0)
    assert good.is_better and good.strength == STRENGTHS[-1]
    assert {(row.dataset, row.is_probe) for row in good.rows} == {("a", False), ("a", True), ("b", False)}
    bad = cross_validate({"a": planted(60, 1), "b": planted(60, 2, sign=-1.0)}, vectors=False, seed=0)
    assert not bad.is_better
    alone = cross_validate({"a": planted(60, 3)}, vectors=False, seed=0)
    assert alone.is_better, "questions of one set are judged by models that have not seen them"


def test_only_named_changes_nothing_unless_the_query_names_a_subject() -> None:
    examples = planted(40, 1)
    named = FEATURES.index("named")
    examples.features[..., named] = 0
    examples.features[:20, 3, named] = 1
    everywhere = fit([examples], vectors=False, epochs=3)
    gated = fit([examples], vectors=False, epochs=3, only_named=True)
    rows = examples.features.astype(float)
    assert np.array_equal(gated.adjustments(rows)[:20], everywhere.adjustments(rows)[:20])
    assert everywhere.adjustments(rows)[20:].any() and not gated.adjustments(rows)[20:].any()
    assert np.array_equal(gated.adjustments(rows[0]), gated.adjustments(rows)[0])
    assert not gated.adjustments(rows[30]).any()


def test_measures_count_a_document_once() -> None:
    one = planted(1, 0)
    documents = np.full((1, DEPTH), -1, np.int32)
    documents[0, :4] = [0, 0, 1, 2]
    gold = np.zeros((1, DEPTH), bool)
    gold[0, [2, 3]] = True
    one = replace(one, documents=documents, gold=gold, wanted=np.array([3]))
    assert one.measure()[0].tolist() == pytest.approx([2 / 3, 0, 0, 0])
    added = np.zeros((1, DEPTH))
    added[0, 3] = 100
    assert one.measure(added)[0].tolist() == pytest.approx([2 / 3, 0, 0, 1])


def test_too_little_to_learn_from_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 of 1 questions"):
        fit([planted(1, 0)], vectors=False)
    every = planted(30, 0)
    no_negatives = replace(every, gold=every.documents >= 0)
    with pytest.raises(InputError, match="0 of 30 questions"):
        fit([no_negatives], vectors=False)
    with pytest.raises(InputError, match="0 of 24"):
        cross_validate({"a": replace(every, gold=np.zeros_like(every.gold))}, vectors=False, seed=0)
    every.save(tmp_path / "examples.npz")
    known = Examples.load(tmp_path / "examples.npz")
    assert known is not None and np.array_equal(known.features, every.features)
    whole = (tmp_path / "examples.npz").read_bytes()
    (tmp_path / "examples.npz").write_bytes(whole[: len(whole) // 2])
    assert Examples.load(tmp_path / "examples.npz") is None
    assert len(join([every, every])) == 60
