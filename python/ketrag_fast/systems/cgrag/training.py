"""Trains LeSeGR on questions with judged documents (specs 40, 4.5): the one place that needs torch.

What is learned is added to what LeSeGR gives without training, and is nothing at first: a network that learns
nothing ranks as `cg-rag` does. Encoders stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.declarations.system import Judged, OnEpoch, Trained
from ketrag_fast.errors import BackendMissing, Cancelled, ConfigError, InputError
from ketrag_fast.stages.rows import Arrays
from ketrag_fast.systems.cgrag.candidates import candidates, free_scores, owners_of
from ketrag_fast.systems.cgrag.trained import LAYERS
from ketrag_fast.systems.cgrag.weights import LINEAR, PARTS, embedder_of, expected, read, write

TEMPERATURE: Final = 0.05
_SLICE: Final = 0.1
_LEAST: Final = 2


@dataclass(frozen=True, slots=True)
class Options:
    """The paper's values where it gives any; `hidden` and `width` are smaller than its 1,024 and 2,048."""

    epochs: int = 20
    rate: float = 1e-4
    decay: float = 0.01
    batch: int = 8
    clip: float = 1.0
    patience: int = 5
    heads: int = 4
    hidden: int = 256
    width: int = 256
    wanted: int = 200
    kinds: int = 4
    epsilon: float = 0.1
    share: float = 0.75
    seed: int = 42


@dataclass(frozen=True, slots=True)
class Epoch:
    """What is reported after each: the mean loss, and on the held-out slice Hit@1 and the loss."""

    number: int
    loss: float
    hit: float
    held: float


@dataclass(frozen=True, slots=True)
class _Case:
    """One question as tensors."""

    h: Any
    vector: Any
    owners: Any
    senders: Any
    weights: Any
    free: Any
    ranked: Any
    gold: Any


def train_on(
    arrays: Mapping[str, Arrays],
    questions: Sequence[Judged],
    out: Path,
    given: Mapping[str, Any],
    on_epoch: OnEpoch | None,
) -> Trained:
    """Trains, and writes the best weights to `out`.

    After each epoch the state is kept beside it (`OUT.partial`): stopped or killed, the same call goes on
    from there. Raises ConfigError where there are too few questions whose answers are among the candidates,
    Cancelled where `on_epoch` returned False, BackendMissing without torch.
    """
    try:
        options = Options(**given)
    except TypeError as error:
        raise ConfigError(f"training: {error}") from None
    torch = _torch()
    dimension = arrays["vectors"]["unit_vectors"].shape[1]
    if options.heads < 1 or dimension % options.heads or options.hidden % options.heads:
        raise ConfigError(
            f"{options.heads} heads do not divide {options.hidden} hidden values and {dimension} dimensions",
            hint="give --heads 1, or other sizes",
        )
    cases = [case for one in questions if (case := _case(torch, arrays, one, options)) is not None]
    lost = len(questions) - len(cases)
    if len(cases) < _LEAST:
        raise ConfigError(
            f"{len(cases)} of {len(questions)} questions have a judged unit among their candidates; at least "
            f"{_LEAST} are needed",
            hint="do the judgements name documents of this index?",
        )
    generator = np.random.default_rng(options.seed)
    order = generator.permutation(len(cases))
    held = max(1, math.ceil(_SLICE * len(cases)))
    slice_, rest = [cases[i] for i in order[:held]], [cases[i] for i in order[held:]]
    model = _Model(torch, dimension, options)
    optimizer = torch.optim.AdamW(
        model.parameters, lr=options.rate, weight_decay=options.decay, betas=(0.9, 0.999)
    )
    about = {**asdict(options), "dimension": dimension, "embedder": embedder_of(arrays)}
    state = _State(torch, model, optimizer, out, about, [one.text for one in questions])
    state.resume()
    while state.epoch < options.epochs and state.stopped is None:
        shuffled = np.random.default_rng([options.seed, state.epoch]).permutation(len(rest))
        loss = _epoch(torch, model, optimizer, [rest[i] for i in shuffled], options)
        hit, outside = _judged(torch, model, slice_)
        state.take(loss, hit, outside, options.patience)
        if on_epoch is not None and on_epoch(state.epoch, options.epochs, loss, hit) is False:
            raise Cancelled("stopped while training; the same command goes on from there")
    state.finish()
    return Trained(state.epoch, state.best_epoch, len(cases), lost, state.stopped)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise BackendMissing(
            f"training needs torch: {error}",
            hint="pip install 'ketrag-fast[score]'; ranking needs none",
        ) from error
    return torch


def _case(torch: Any, arrays: Mapping[str, Arrays], one: Judged, options: Options) -> _Case | None:
    """None where none of the candidates is gold."""
    if not one.vector.any():
        return None
    found = candidates(
        one.text,
        one.vector,
        arrays,
        wanted=options.wanted,
        kinds=options.kinds,
        epsilon=options.epsilon,
        layers=LAYERS,
    )
    gold = np.isin(found.units, sorted(one.gold)) & found.ranked
    if not gold.any():
        return None
    alphas = arrays["citation_graph"]["edge_alpha"][found.places]
    free = free_scores(found, alphas, options.share, LAYERS)
    return _Case(
        h=torch.from_numpy(np.array(arrays["vectors"]["unit_vectors"][found.units])),
        vector=torch.from_numpy(np.array(one.vector)),
        owners=torch.from_numpy(owners_of(found)),
        senders=torch.from_numpy(found.indices.astype(np.int64)),
        weights=torch.from_numpy(found.weights),
        free=torch.from_numpy(free.astype(np.float32)),
        ranked=torch.from_numpy(found.ranked),
        gold=torch.from_numpy(gold),
    )


class _Model:
    """The network in torch; its arithmetic is written out in reference/cgrag/transformer.py."""

    def __init__(self, torch: Any, dimension: int, options: Options) -> None:
        self._torch, self.heads = torch, options.heads
        generator = torch.Generator().manual_seed(options.seed)
        self.tensors: dict[str, Any] = {}
        for name, shape in expected(dimension, options.hidden, options.width).items():
            silent = name.startswith(("layer2.own", "layer2.value")) or name.endswith("bias")
            limit = 0.0 if silent else 1 / math.sqrt(shape[0])
            drawn = (2 * torch.rand(shape, generator=generator) - 1) * limit
            self.tensors[name] = drawn.requires_grad_()

    @property
    def parameters(self) -> list[Any]:
        return list(self.tensors.values())

    def _linear(self, x: Any, name: str) -> Any:
        return x @ self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]

    def logits(self, case: _Case) -> Any:
        """Of the ranked candidates: the free score and q . H, over the temperature."""
        torch = self._torch
        x = case.h[case.owners] - case.h[case.senders]
        for name in LINEAR[:2]:
            x = torch.relu(self._linear(x, f"weigh.{name}"))
        alphas = torch.sigmoid(self._linear(x, "weigh.third")).squeeze(1)
        factors = (alphas * case.weights[case.senders]).unsqueeze(1)
        h = case.h
        for number in range(1, LAYERS + 1):
            h = self._layer(h, case, factors, f"layer{number}")
            h = torch.relu(h) if number < LAYERS else h
        return ((case.free + h @ case.vector) / TEMPERATURE)[case.ranked]

    def _layer(self, h: Any, case: _Case, factors: Any, name: str) -> Any:
        torch, heads = self._torch, self.heads
        matrix = {part: self.tensors[f"{name}.{part}.weight"] for part in PARTS}
        bias = {part: self.tensors[f"{name}.{part}.bias"] for part in PARTS}
        own = case.weights.unsqueeze(1) * (h @ matrix["own"]) + bias["own"]
        key = factors * (h @ matrix["key"])[case.senders] + bias["key"]
        value = factors * (h @ matrix["value"])[case.senders] + bias["value"]
        query = (h @ matrix["query"] + bias["query"])[case.owners]
        n, width = h.shape[0], own.shape[1] // heads
        scores = (query * key).view(-1, heads, width).sum(2) / math.sqrt(width)
        index = case.owners.unsqueeze(1).expand(-1, heads)
        most = torch.full((n, heads), -math.inf).scatter_reduce(0, index, scores.detach(), "amax")
        shares = torch.exp(scores - most[case.owners])
        total = torch.zeros(n, heads).index_add(0, case.owners, shares)
        shares = (shares / total[case.owners]).unsqueeze(2)
        taken = (shares * value.view(-1, heads, width)).reshape(-1, heads * width)
        return own + torch.zeros_like(own).index_add(0, case.owners, taken)


def _loss(torch: Any, model: _Model, case: _Case) -> tuple[Any, bool]:
    """(-log of the gold candidates' share together, whether one of them is first)."""
    logits = model.logits(case)
    gold = case.gold[case.ranked]
    loss = torch.logsumexp(logits, 0) - torch.logsumexp(logits[gold], 0)
    return loss, bool(gold[int(logits.argmax())])


def _epoch(torch: Any, model: _Model, optimizer: Any, cases: Sequence[_Case], options: Options) -> float:
    """The mean loss; NaN as soon as one is, before anything is changed by it."""
    total = 0.0
    for start in range(0, len(cases), options.batch):
        batch = cases[start : start + options.batch]
        optimizer.zero_grad()
        for case in batch:
            loss, _ = _loss(torch, model, case)
            (loss / len(batch)).backward()
            total += float(loss.detach())
        norm = torch.nn.utils.clip_grad_norm_(model.parameters, options.clip)
        if not (math.isfinite(total) and bool(torch.isfinite(norm))):
            return math.nan
        optimizer.step()
    return total / max(len(cases), 1)


def _judged(torch: Any, model: _Model, cases: Sequence[_Case]) -> tuple[float, float]:
    """(Hit@1, mean loss)."""
    with torch.no_grad():
        made = [_loss(torch, model, case) for case in cases]
    return sum(hit for _, hit in made) / len(made), sum(float(loss) for loss, _ in made) / len(made)


class _State:
    """Where a training is: kept after each epoch, so that it can go on; no pickle."""

    def __init__(
        self, torch: Any, model: _Model, optimizer: Any, out: Path, about: Mapping[str, Any], texts: list[str]
    ) -> None:
        self._torch, self._model, self._optimizer = torch, model, optimizer
        self._out, self._about, self._texts = out, dict(about), texts
        self.epoch, self.best_epoch = 0, 0
        self.stopped: str | None = None
        self.history: list[Epoch] = []
        self._best = self._values()
        self._least = (-1.0, -math.inf)

    @property
    def _partial(self) -> Path:
        return self._out.with_name(self._out.name + ".partial")

    def _values(self) -> dict[str, NDArray[np.float32]]:
        return {name: tensor.detach().numpy().copy() for name, tensor in self._model.tensors.items()}

    def take(self, loss: float, hit: float, held: float, patience: int) -> None:
        """One epoch is done."""
        self.epoch += 1
        self.history.append(Epoch(self.epoch, loss, hit, held))
        if not (math.isfinite(loss) and math.isfinite(held)):
            self.stopped = "the loss was no number; the best weights until then are kept"
        elif (hit, -held) > self._least:
            self._least, self.best_epoch, self._best = (hit, -held), self.epoch, self._values()
        elif self.epoch - self.best_epoch >= patience:
            self.stopped = f"no better for {patience} epochs"
        self._keep()

    def _keep(self) -> None:
        moments = {}
        for name, tensor in self._model.tensors.items():
            kept = self._optimizer.state.get(tensor, {})
            for part in ("exp_avg", "exp_avg_sq"):
                if part in kept:
                    moments[f"{part}.{name}"] = kept[part].numpy()
        tensors = {
            **{f"now.{name}": value for name, value in self._values().items()},
            **{f"best.{name}": value for name, value in self._best.items()},
            **moments,
        }
        steps = [int(state["step"]) for state in self._optimizer.state.values()]
        where = {
            "of": self._about,
            "texts": self._texts,
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "least": list(self._least),
            "stopped": self.stopped,
            "steps": max(steps, default=0),
            "history": [asdict(epoch) for epoch in self.history],
        }
        write(self._partial, where, tensors)

    def resume(self) -> None:
        """Goes on from what is kept; InputError where that is of another training."""
        if not self._partial.is_file():
            return
        kept = read(self._partial)
        about = kept.about
        if about.get("of") != self._about or about.get("texts") != self._texts:
            raise InputError(
                f"{self._partial} is of another training: other options, questions or vectors",
                hint="delete it to begin anew, or give another --out",
            )
        torch = self._torch
        self.epoch, self.best_epoch = int(about["epoch"]), int(about["best_epoch"])
        self.stopped, self._least = about["stopped"], (about["least"][0], about["least"][1])
        self.history = [Epoch(**entry) for entry in about["history"]]
        for name, tensor in self._model.tensors.items():
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(kept.tensors[f"now.{name}"]))
            self._best[name] = kept.tensors[f"best.{name}"]
            if f"exp_avg.{name}" in kept.tensors:
                moments = {
                    part: torch.from_numpy(kept.tensors[f"{part}.{name}"])
                    for part in ("exp_avg", "exp_avg_sq")
                }
                self._optimizer.state[tensor] = {"step": torch.tensor(float(about["steps"])), **moments}

    def finish(self) -> None:
        """Writes the best weights; what was kept on the way is no longer needed."""
        write(self._out, {**self._about, "epochs": self.epoch, "best_epoch": self.best_epoch}, self._best)
        self._partial.unlink(missing_ok=True)
