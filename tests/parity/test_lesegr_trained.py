"""The trained LeSeGR layer by layer, beside the arithmetic written out and torch; weights; training."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracles.cg_rag import candidates as written_out
from tests.oracles.cg_rag import transformer
from tests.support.parts import part

from ketrag_fast import Document, Index, Settings, _core
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import Cancelled, ConfigError, InputError, ModelMismatch, ModeUnavailable
from ketrag_fast.index.training import train
from ketrag_fast.systems.papers.cg_rag import candidates, trained, training
from ketrag_fast.systems.papers.cg_rag import network as torch_network
from ketrag_fast.systems.papers.cg_rag.trained import GraphWeights, read_weights, write

OPTIONS = {"hidden": 16, "width": 8, "heads": 2, "wanted": 6, "epochs": 4, "rate": 0.01}
ANIMALS = ("whale", "seal", "penguin", "krill", "albatross", "bear", "fox", "hare", "owl", "wolf")


def drawn(seed: int, texts: int = 12, inputs: int = 8, outputs: int = 12) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    rows = [sorted(rng.choice(texts, int(rng.integers(0, 5)), replace=False).tolist()) for _ in range(texts)]
    factors = [rng.random(len(row)).tolist() for row in rows]
    weights = rng.random(texts)
    h = rng.normal(size=(texts, inputs))
    matrices = {
        name: (rng.normal(size=(inputs, outputs)) / 3, rng.normal(size=outputs) / 3)
        for name in ("own", "value", "query", "key")
    }
    return rows, factors, weights, h, matrices


def packed(rows: list[list[int]]) -> tuple[Any, Any]:
    ends = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    return ends, np.array([other for row in rows for other in row], np.uint32)


def single(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    return pair[0].astype(np.float32), pair[1].astype(np.float32)


def network(seed: int, sizes: list[int]) -> tuple[Any, Any]:
    """(three matrices that weigh edges, for each layer its four), in f64."""
    rng = np.random.default_rng(seed)

    def matrix(inputs: int, outputs: int) -> tuple[Any, Any]:
        return rng.normal(size=(inputs, outputs)) / 2, rng.normal(size=outputs) / 3

    weigh = [matrix(sizes[0], 5), matrix(5, 5), matrix(5, 1)]
    names = ("own", "value", "query", "key")
    return weigh, [{n: matrix(a, b) for n in names} for a, b in pairwise(sizes)]


def core_network(weigh: Any, layers: Any, heads: int) -> _core.GraphNetwork:
    return _core.GraphNetwork(
        tuple(single(pair) for pair in weigh),  # type: ignore[arg-type]
        [tuple(single(pair) for pair in layer.values()) for layer in layers],  # type: ignore[misc]
        heads=heads,
    )


def test_edges_are_weighed_as_written_out() -> None:
    rows, _, _, h, _ = drawn(3)
    weigh, layers = network(1, [8, 8])
    made = core_network(weigh, layers, 1)
    texts = np.repeat(np.arange(len(rows)), [len(row) for row in rows]).astype(np.uint32)
    fast = made.weigh(h.astype(np.float32), texts, packed(rows)[1])
    assert np.allclose(fast, transformer.weigh(rows, h, weigh), atol=1e-5)
    with pytest.raises(InputError, match="network"):
        made.weigh(h.astype(np.float32)[:, :4].copy(), texts, packed(rows)[1])
    with pytest.raises(InputError, match=r"text [0-9]+ does not exist"):
        made.weigh(h.astype(np.float32)[:2].copy(), texts, packed(rows)[1])


@pytest.mark.parametrize("sizes", [[8, 8], [8, 12, 8], [8, 12, 4, 8]])
def test_scores_are_those_of_layers_written_out(sizes: list[int]) -> None:
    for seed in range(4):
        rows, factors, weights, h, _ = drawn(seed)
        weigh, layers = network(seed, sizes)
        vector = np.random.default_rng(seed).normal(size=8)
        slow = h
        for number, layer in enumerate(layers, 1):
            relu = number < len(layers)
            slow = transformer.layer(slow, rows, factors, weights.tolist(), layer, 4, relu=relu)
        ranked = np.array([11, 0, 5], np.uint32)
        fast = core_network(weigh, layers, 4).scores(
            h.astype(np.float32),
            packed(rows),
            np.array([f for row in factors for f in row], np.float32),
            weights.astype(np.float32),
            vector.astype(np.float32),
            ranked,
            threads=1 + seed % 2,
        )
        assert np.allclose(fast, (slow @ vector)[ranked], atol=1e-4)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_candidates_are_as_written_out(steps: int) -> None:
    rng = np.random.default_rng(steps)
    for texts in (1, 40):
        rows = [
            sorted(rng.choice(texts, int(rng.integers(0, min(texts, 4) + 1)), replace=False).tolist())
            for _ in range(texts)
        ]
        indptr, indices = packed(rows)
        kinds = rng.integers(1, 16, len(indices)).astype(np.uint8)
        vectors = rng.normal(size=(texts, 5)).astype(np.float32)
        vector, weights = rng.normal(size=5).astype(np.float32), rng.random(texts)
        given = (vectors, vector, weights, (indptr, indices), kinds)
        fast = _core.citation_candidates(*given, best=6, steps=steps, wanted=5, threads=2)
        slow = written_out.candidates(*given, best=6, steps=steps, wanted=5)
        (units, near, ranked, rows_, places) = fast
        assert units.tolist() == slow.units
        assert np.allclose(near, slow.near)
        assert ranked.tolist() == slow.ranked
        assert [part.tolist() for part in rows_] == [slow.indptr, slow.indices]
        assert places.tolist() == slow.places


def documents() -> list[Document]:
    made = []
    for at, animal in enumerate(ANIMALS):
        text = f"The {animal} lives in the cold. A {animal} eats what the ice gives, number {at}."
        cites = [str((at + 1) % len(ANIMALS)), str((at + 3) % len(ANIMALS))]
        made.append(Document(str(at), text, f"About the {animal}", {"cites": cites}))
    return made


QUESTIONS = [
    (f"What does the {animal} eat?", [str((at + 1) % len(ANIMALS))]) for at, animal in enumerate(ANIMALS)
]


@pytest.fixture
def index(tmp_path: Path) -> Any:
    with Index.build(documents(), tmp_path / "ix", settings=Settings(system="cg-rag")) as built:
        yield built


def learn(index: Index, out: Path, **more: Any) -> Any:
    return train(index, "cg-rag", QUESTIONS, out, **{**OPTIONS, **more})


def ranked(path: Path, weights: Path, question: str) -> dict[str, float]:
    settings = Settings(mode="cg-rag-trained", lesegr_weights=str(weights))
    with Index.open(path, settings=settings) as opened:
        return {p.document: p.score for p in opened.retrieve(question).passages}


def test_what_is_learned_ranks_better_and_nothing_published_changes(index: Index, tmp_path: Path) -> None:
    part("torch", "embed")
    digest, out = index.digest, tmp_path / "w.safetensors"
    losses: list[float] = []
    # Those that are kept apart ask in other words for what is trained on.
    questions = QUESTIONS + [
        (f"Say what the {a} eats.", gold) for a, (_, gold) in zip(ANIMALS, QUESTIONS, strict=True)
    ]
    options = {**OPTIONS, "epochs": 16, "wanted": 10, "patience": 16, "rate": 0.03}
    outcome = train(
        index, "cg-rag", questions, out, on_epoch=lambda n, of, loss, hit: losses.append(loss), **options
    )
    assert (outcome.questions, outcome.without_gold) == (20, 0)
    assert losses[-1] < losses[0] / 4
    assert Index.open(tmp_path / "ix").digest == digest == index.digest
    assert not out.with_name("w.safetensors.partial").exists()
    first = 0
    for question, gold in QUESTIONS:
        found = ranked(tmp_path / "ix", out, question)
        assert list(found.values()) == sorted(found.values(), reverse=True)
        assert len(found) == len(ANIMALS)
        first += next(iter(found)) == gold[0]
    plain = [index.retrieve(question, mode="cg-rag").passages[0].document for question, _ in QUESTIONS]
    assert first >= 6 > sum(own == gold[0] for own, (_, gold) in zip(plain, QUESTIONS, strict=True))
    assert main(["retrieve", "-i", str(tmp_path / "ix"), "--mode", "cg-rag-trained", "whale"]) == 4


def test_the_same_numbers_in_torch_and_in_the_core(index: Index, tmp_path: Path) -> None:
    torch = part("torch", "embed")
    out = tmp_path / "w.safetensors"
    learn(index, out)
    weights, arrays = read_weights(out), index.inspect.arrays()
    options = training.TrainingOptions(**OPTIONS)
    from ketrag_fast.query.python_channels import fitted_vectors

    texts = [text for text, _ in QUESTIONS[:3]]
    vectors = fitted_vectors(index._opened, texts)
    assert vectors is not None
    rows = zip(texts, vectors, strict=True)
    cases = [training.case(arrays, training.Judged(*row, frozenset(range(10))), options) for row in rows]
    assert None not in cases
    batch = torch_network.Batch(torch, arrays, cases)  # type: ignore[arg-type]
    dimension = arrays["vectors"]["unit_vectors"].shape[1]
    model = torch_network.Model(torch, dimension, options.hidden, options.width, options.heads, options.seed)
    rng = np.random.default_rng(5)
    drawn = {name: rng.normal(size=x.shape).astype(np.float32) / 4 for name, x in weights.tensors.items()}
    for name, tensor in model.tensors.items():
        tensor.data = torch.from_numpy(drawn[name].copy())
    with torch.no_grad():
        want = model.scores(batch).split(batch.counts)
    network = trained.Network(replace(weights, tensors=drawn))
    more = {"wanted": 6, "kinds": 4, "epsilon": 0.1}
    for text, vector, scores in zip(texts, vectors, want, strict=True):
        found = candidates.candidates(text, vector, arrays, **more)  # type: ignore[arg-type]
        for _ in range(2):  # the second time what is said of the edges is known
            got = network.scores(found, vector, arrays)
            assert np.allclose(got, scores.numpy(), atol=1e-4)
        written = found_by_layers(found, vector, arrays, drawn)
        assert np.allclose(got, written, atol=1e-4)


def found_by_layers(found: Any, vector: Any, arrays: Any, tensors: Any) -> Any:
    """The scores of the ranked candidates, with every layer of every text written out."""
    weights = GraphWeights({}, {name: tensor.astype(np.float64) for name, tensor in tensors.items()})
    h = arrays["vectors"]["unit_vectors"][found.units].astype(np.float64)
    ends = found.indptr.astype(int)
    rows = [found.indices[a:b].tolist() for a, b in pairwise(ends)]
    alphas = iter(transformer.weigh(rows, h, weights.network))
    factors = [[next(alphas) * float(found.weights[other]) for other in row] for row in rows]
    for number in (1, 2):
        layer = dict(zip(("own", "value", "query", "key"), weights.layer(number), strict=True))
        h = transformer.layer(h, rows, factors, found.weights.tolist(), layer, 2, relu=number < 2)
    own = arrays["citation_graph"]["edge_alpha"][found.places]
    free = candidates.free_scores(found, own, 0.75, 2)
    return (free + h @ vector)[found.ranked]


def test_without_learning_it_ranks_as_the_paper_s_cg_rag_does(index: Index, tmp_path: Path) -> None:
    part("torch", "embed")
    out = tmp_path / "w.safetensors"
    learn(index, out, rate=1e-12, epochs=1, wanted=10)
    reference = Index.open(tmp_path / "ix", settings=Settings(lesegr_share=0.75, lesegr_epsilon=0.1))
    for question, _ in QUESTIONS:
        plain = {p.document: p.score for p in reference.retrieve(question, mode="cg-rag").passages}
        # The similarity of cg-rag comes from the vectors' codes of eight bits.
        assert ranked(tmp_path / "ix", out, question) == pytest.approx(plain, abs=1e-2)


def test_a_training_that_was_stopped_goes_on(index: Index, tmp_path: Path) -> None:
    part("torch", "embed")
    whole, stopped = tmp_path / "whole.safetensors", tmp_path / "stopped.safetensors"
    learn(index, whole)
    with pytest.raises(Cancelled):
        learn(index, stopped, on_epoch=lambda n, of, loss, hit: n < 2)
    assert not stopped.exists()
    with pytest.raises(InputError, match="different training run"):
        learn(index, stopped, rate=0.02)
    seen: list[int] = []
    learn(index, stopped, on_epoch=lambda n, of, loss, hit: seen.append(n))
    assert seen == [3, 4]
    again, first = read_weights(stopped), read_weights(whole)
    assert all(np.allclose(again.tensors[name], first.tensors[name], atol=1e-6) for name in first.tensors)


def test_a_loss_that_is_no_number_stops_and_keeps_the_best(index: Index, tmp_path: Path) -> None:
    part("torch", "embed")
    out = tmp_path / "w.safetensors"
    outcome = learn(index, out, rate=1e30, epochs=8)
    assert outcome.stopped is not None
    assert all(np.isfinite(tensor).all() for tensor in read_weights(out).tensors.values())


def test_labels_that_cannot_be_learned_from(index: Index, tmp_path: Path) -> None:
    part("torch", "embed")
    out = tmp_path / "w.safetensors"
    with pytest.raises(ConfigError, match="0 of 2 questions"):
        train(index, "cg-rag", [("whale?", ["nowhere"]), ("seal?", ["none"])], out, **OPTIONS)
    with pytest.raises(ConfigError, match="1 of 1 questions"):
        train(index, "cg-rag", QUESTIONS[:1], out, **OPTIONS)
    with pytest.raises(ConfigError, match="no judged question"):
        train(index, "cg-rag", [], out, **OPTIONS)
    with pytest.raises(ConfigError, match="heads"):
        learn(index, out, heads=3)
    with pytest.raises(ConfigError, match="training"):
        learn(index, out, spoons=3)
    with pytest.raises(ConfigError, match="'walk' is not a system with training"):
        train(index, "walk", QUESTIONS, out)
    with (
        Index.build(documents(), tmp_path / "no", settings=Settings(modes="bm25")) as other,
        pytest.raises(ModeUnavailable, match="lacks the arrays"),
    ):
        learn(other, out)
    assert not out.exists()


def test_weights_that_do_not_serve(index: Index, tmp_path: Path) -> None:
    part("torch", "embed")
    good, bad = tmp_path / "w.safetensors", tmp_path / "bad.safetensors"
    learn(index, good, epochs=1)
    path = tmp_path / "ix"
    with pytest.raises(ConfigError, match="No such file"):
        ranked(path, tmp_path / "none.safetensors", "whale")
    data = good.read_bytes()
    flipped = bytearray(data)
    flipped[-3] ^= 1
    for broken in (bytes(flipped), data[:-4], data[:5], b"", b"\xff" * 64, data[:8] + b"}" + data[9:]):
        bad.write_bytes(broken)
        with pytest.raises(ModelMismatch, match="damaged"):
            ranked(path, bad, "whale")
    weights = read_weights(good)
    for about in ({"embedder": "another"}, {"dimension": 3}, {"hidden": 99}, {"wanted": "x"}):
        changed = replace(weights, about={**weights.about, **about})
        write(bad, changed.about, changed.tensors)
        with pytest.raises(ModelMismatch):
            ranked(path, bad, "whale")
    nan = GraphWeights(weights.about, {**weights.tensors, "layer1.own.bias": np.full(16, np.nan, np.float32)})
    write(bad, nan.about, nan.tensors)
    with pytest.raises(ModelMismatch, match="inconsistent"):
        ranked(path, bad, "whale")
    with pytest.raises(ModeUnavailable, match="needs trained weights"):
        index.retrieve("whale", mode="cg-rag-trained")
