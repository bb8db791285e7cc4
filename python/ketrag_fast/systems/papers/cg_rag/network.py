"""The network of a trained LeSeGR in torch, over several questions at once (CG-RAG).

Everything independent of the question is computed once per batch: products with unit vectors, and edge
weights. The last layer computes only the scores. The plain version is in tests/oracles/cg_rag/transformer.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.records import dataclass
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.papers.cg_rag.candidates import Candidates
from ketrag_fast.systems.papers.cg_rag.trained import LINEAR, PARTS, expected_shapes
from ketrag_fast.systems.shared.rows import F32, Arrays, lengths

TEMPERATURE: Final = 0.05
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its candidates, in local numbers.

    `units` provide vectors, `texts` (positions in `units`) get values of the first layer, `ranked` (positions
    in `texts`) get scores. An edge is (receiver, sender, number in the graph): in the first layer from
    `units` to `texts`, in the second from `texts` to `ranked`.
    """

    vector: F32
    units: I64
    weights: F32
    texts: I64
    ranked: I64
    first: tuple[I64, I64, I64]
    second: tuple[I64, I64, I64]
    free: F32
    gold: NDArray[np.bool_]


def case_of(found: Candidates, vector: F32, free: NDArray[np.float64], gold: NDArray[np.bool_]) -> Case:
    """`free` and `gold` are for the ranked candidates, in order."""
    ranked = found.ranked.astype(np.int64)
    second = _into(found, ranked)
    texts = np.union1d(ranked, second[1])
    first = _into(found, texts)
    units = np.union1d(texts, first[1])
    return Case(
        vector=np.array(vector, np.float32),
        units=found.units[units],
        weights=found.weights[units],
        texts=np.searchsorted(units, texts),
        ranked=np.searchsorted(texts, ranked),
        first=(first[0], np.searchsorted(units, first[1]), first[2]),
        second=(second[0], np.searchsorted(texts, second[1]), second[2]),
        free=free.astype(np.float32),
        gold=gold,
    )


def _into(found: Candidates, rows: I64) -> tuple[I64, I64, I64]:
    """Return the incoming edges of some rows: (position of the row, sender, edge number in the graph)."""
    starts, counts = found.indptr.astype(np.int64)[rows], lengths(found.indptr).astype(np.int64)[rows]
    ends = np.cumsum(counts)
    at = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts) + np.repeat(starts, counts)
    return np.repeat(np.arange(len(rows)), counts), found.indices[at].astype(np.int64), found.places[at]


class Batch:
    """Several cases side by side, as tensors.

    `vectors` are those of the units of all cases, each once, and `ends` the ends among them of every edge
    that occurs, each once.
    """

    def __init__(self, torch: Any, arrays: Mapping[str, Arrays], cases: Sequence[Case]) -> None:
        units, place = np.unique(np.concatenate([case.units for case in cases]), return_inverse=True)
        each = np.cumsum([0, *(len(case.units) for case in cases)])
        rows = [place[a:b] for a, b in pairwise(each)]
        edges = np.concatenate([part[2] for case in cases for part in (case.first, case.second)])
        edges, edge_place = np.unique(edges, return_inverse=True)
        text_of, ranked_of = _starts(cases, "texts"), _starts(cases, "ranked")
        pairs = list(zip(cases, rows, strict=True))
        graph = arrays["citation_graph"]
        heard = np.searchsorted(graph["edges_indptr"].astype(np.int64), edges, side="right") - 1
        sent = graph["edges_indices"][edges].astype(np.int64)

        def whole(parts: Sequence[NDArray[Any]]) -> Any:
            return torch.from_numpy(np.ascontiguousarray(np.concatenate(parts)))

        self.size = len(cases)
        self.vectors = torch.from_numpy(StoredVectors.of(arrays["vectors"]).decode(units))
        self.ends = tuple(torch.from_numpy(np.searchsorted(units, part)) for part in (heard, sent))
        self.questions = torch.from_numpy(np.stack([case.vector for case in cases]))
        self.text_units = whole([row[case.texts] for case, row in pairs])
        self.text_weights = whole([case.weights[case.texts] for case in cases])
        self.text_question = whole([np.full(len(case.texts), at) for at, case in enumerate(cases)])
        self.ranked = whole([case.ranked + at for case, at in zip(cases, text_of, strict=True)])
        cut = np.cumsum([0, *(n for case in cases for n in (len(case.first[2]), len(case.second[2])))])
        places = [edge_place[a:b] for a, b in pairwise(cut)]
        self.first = (
            whole([case.first[0] + at for case, at in zip(cases, text_of, strict=True)]),
            whole([row[case.first[1]] for case, row in pairs]),
            whole(places[::2]),
            whole([case.weights[case.first[1]] for case in cases]),
        )
        self.second = (
            whole([case.second[0] + at for case, at in zip(cases, ranked_of, strict=True)]),
            whole([case.second[1] + at for case, at in zip(cases, text_of, strict=True)]),
            whole(places[1::2]),
            whole([case.weights[case.texts[case.second[1]]] for case in cases]),
        )
        self.free = whole([case.free for case in cases])
        self.gold = whole([case.gold for case in cases])
        self.counts = [len(case.ranked) for case in cases]


def _starts(cases: Sequence[Case], name: str) -> list[int]:
    counts = [len(getattr(case, name)) for case in cases]
    return [0, *np.cumsum(counts).tolist()][:-1]


class Model:
    """The parameters of the network, and its computations."""

    def __init__(self, torch: Any, dimension: int, hidden: int, width: int, heads: int, seed: int) -> None:
        self._torch, self.heads = torch, heads
        generator = torch.Generator().manual_seed(seed)
        self.tensors: dict[str, Any] = {}
        for name, shape in expected_shapes(dimension, hidden, width).items():
            silent = name.startswith(("layer2.own", "layer2.value")) or name.endswith("bias")
            limit = 0.0 if silent else 1 / math.sqrt(shape[0])
            drawn = (2 * torch.rand(shape, generator=generator) - 1) * limit
            self.tensors[name] = drawn.requires_grad_()

    @property
    def parameters(self) -> list[Any]:
        """The trained parameters."""
        return list(self.tensors.values())

    def scores(self, batch: Batch) -> Any:
        """Return the scores of the ranked candidates of all questions: free score plus q . H."""
        alphas = self._alphas(batch)
        heard = self._first(batch, alphas)
        return batch.free + self._second(batch, alphas, heard)

    def losses(self, batch: Batch) -> tuple[Any, list[bool]]:
        """Return for each question -log of the softmax share of gold candidates, and whether one is first."""
        torch = self._torch
        logits = self.scores(batch) / TEMPERATURE
        rows = torch.nn.utils.rnn.pad_sequence(
            logits.split(batch.counts), batch_first=True, padding_value=-math.inf
        )
        gold = torch.nn.utils.rnn.pad_sequence(batch.gold.split(batch.counts), batch_first=True)
        own = torch.where(gold, rows, torch.full_like(rows, -math.inf))
        losses = torch.logsumexp(rows, 1) - torch.logsumexp(own, 1)
        first = rows.detach().argmax(1, keepdim=True)
        return losses, gold.gather(1, first).squeeze(1).tolist()

    def _matrix(self, name: str) -> tuple[Any, Any]:
        return self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]

    def _alphas(self, batch: Batch) -> Any:
        """Return the weight of each edge; the first product, which is linear, is computed for each unit."""
        torch = self._torch
        weight, bias = self._matrix(f"weigh.{LINEAR[0]}")
        turned = batch.vectors @ weight
        x = torch.relu(turned.index_select(0, batch.ends[0]) - turned.index_select(0, batch.ends[1]) + bias)
        weight, bias = self._matrix(f"weigh.{LINEAR[1]}")
        x = torch.relu(torch.addmm(bias, x, weight))
        weight, bias = self._matrix(f"weigh.{LINEAR[2]}")
        return torch.sigmoid(torch.addmm(bias, x, weight)).squeeze(1)

    def _first(self, batch: Batch, alphas: Any) -> Any:
        """Return the first layer's values of the texts, with ReLU."""
        torch = self._torch
        part = {name: self._matrix(f"layer1.{name}") for name in PARTS}
        made = {name: batch.vectors @ weight for name, (weight, _) in part.items()}
        owners, senders, edges, weights = batch.first
        factors = (alphas.index_select(0, edges) * weights).unsqueeze(1)
        own = made["own"].index_select(0, batch.text_units) * batch.text_weights.unsqueeze(1)
        query = (made["query"] + part["query"][1]).index_select(0, batch.text_units)
        key = made["key"].index_select(0, senders) * factors + part["key"][1]
        shares = self._shares(query.index_select(0, owners), key, owners, len(own))
        value = made["value"].index_select(0, senders) * factors + part["value"][1]
        heads = value.view(len(value), self.heads, -1) * shares.unsqueeze(2)
        heard = own.new_zeros(own.shape).index_add(0, owners, heads.flatten(1))
        return torch.relu(own + part["own"][1] + heard)

    def _second(self, batch: Batch, alphas: Any, h: Any) -> Any:
        """Return the products of each question with the second layer's values of its ranked texts."""
        part = {name: self._matrix(f"layer2.{name}") for name in PARTS}
        owners, senders, edges, weights = batch.second
        factors = (alphas.index_select(0, edges) * weights).unsqueeze(1)
        ranked, question = batch.ranked, batch.text_question
        of_ranked = question.index_select(0, ranked)
        # The products with the question are computed before the sum, because they are smaller.
        own_weight, own_bias = part["own"]
        own = (h @ (own_weight @ batch.questions.T)).index_select(0, ranked)
        own = own.gather(1, of_ranked.unsqueeze(1)).squeeze(1) * batch.text_weights.index_select(0, ranked)
        own = own + (batch.questions @ own_bias).index_select(0, of_ranked)
        weight, bias = part["value"]
        width = weight.shape[1] // self.heads
        asked = batch.questions.view(batch.size, self.heads, width)
        turned = self._torch.einsum("ihw,qhw->iqh", weight.view(-1, self.heads, width), asked)
        every = (h @ turned.reshape(len(weight), -1)).view(len(h), batch.size, self.heads)
        index = question.view(-1, 1, 1).expand(-1, 1, self.heads)
        worth = every.gather(1, index).squeeze(1)
        said = (bias.view(self.heads, width) * asked).sum(2).index_select(0, of_ranked)
        weight, bias = part["query"]
        query = self._torch.addmm(bias, h.index_select(0, ranked), weight)
        weight, bias = part["key"]
        key = (h @ weight).index_select(0, senders) * factors + bias
        shares = self._shares(query.index_select(0, owners), key, owners, len(ranked))
        heard = shares * (worth.index_select(0, senders) * factors + said.index_select(0, owners))
        return own.index_add(0, owners, heard.sum(1))

    def _shares(self, query: Any, key: Any, owners: Any, rows: int) -> Any:
        """Return for each edge and head the softmax over the edges into the same row."""
        torch, heads = self._torch, self.heads
        width = key.shape[1] // heads
        scores = (query * key).view(-1, heads, width).sum(2) / math.sqrt(width)
        index = owners.unsqueeze(1).expand(-1, heads)
        most = torch.full((rows, heads), -math.inf).scatter_reduce(0, index, scores.detach(), "amax")
        shares = torch.exp(scores - most.index_select(0, owners))
        total = torch.zeros(rows, heads).index_add(0, owners, shares)
        return shares / total.index_select(0, owners)
