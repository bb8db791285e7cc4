"""Training LeSeGR on questions with judged documents (CG-RAG); the only module that needs torch.

The output of the network is added to the scores of LeSeGR and is 0 at first, so an untrained network ranks as
`cg-rag` does with the paper's numbers. Encoders are not changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.installed import install_command
from ketrag_fast.errors import BackendMissing, Cancelled, ConfigError, InputError
from ketrag_fast.records import asdict, dataclass
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.papers.cg_rag.candidates import candidates, free_scores
from ketrag_fast.systems.papers.cg_rag.network import Batch, Case, Model, case_of
from ketrag_fast.systems.papers.cg_rag.trained import LAYERS, embedder_of, read_weights, write
from ketrag_fast.systems.shared.rows import Arrays
from ketrag_fast.systems.spec.system import Judged, OnEpoch, Trained

_SLICE: Final = 0.1
_LEAST: Final = 2


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Options with the paper's values, except `hidden` and `width` (1,024 and 2,048 in the paper)."""

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
    """The result of an epoch: mean loss, and on held-out questions Hit@1 and loss."""

    number: int
    loss: float
    hit: float
    held: float


def train_on(
    arrays: Mapping[str, Arrays],
    questions: Sequence[Judged],
    out: Path,
    given: Mapping[str, Any],
    on_epoch: OnEpoch | None,
) -> Trained:
    """Train, and write the best weights to `out`.

    The state is saved after each epoch as `OUT.partial`, from which the same call resumes. Raises ConfigError
    if too few questions have a judged unit among their candidates, Cancelled if `on_epoch` returned False,
    BackendMissing without torch.
    """
    try:
        options = TrainingOptions(**given)
    except TypeError as error:
        raise ConfigError(f"training: {error}") from None
    torch = _torch()
    dimension = StoredVectors.of(arrays["vectors"]).dimension
    if options.heads < 1 or dimension % options.heads or options.hidden % options.heads:
        raise ConfigError(
            f"{options.heads} heads do not divide {options.hidden} hidden values and {dimension} dimensions",
            hint="use --heads 1, or other sizes",
        )
    cases = [made for one in questions if (made := case(arrays, one, options)) is not None]
    lost = len(questions) - len(cases)
    if len(cases) < _LEAST:
        raise ConfigError(
            f"{len(cases)} of {len(questions)} questions have a judged unit among their candidates; at least "
            f"{_LEAST} are needed",
            hint="check that the judgements name documents of this index",
        )
    generator = np.random.default_rng(options.seed)
    order = generator.permutation(len(cases))
    held = max(1, math.ceil(_SLICE * len(cases)))
    slice_, rest = [cases[i] for i in order[:held]], [cases[i] for i in order[held:]]
    model = Model(torch, dimension, options.hidden, options.width, options.heads, options.seed)
    optimizer = torch.optim.AdamW(
        model.parameters, lr=options.rate, weight_decay=options.decay, betas=(0.9, 0.999)
    )
    about = {**asdict(options), "dimension": dimension, "embedder": embedder_of(arrays)}
    state = _TrainingState(torch, model, optimizer, out, about, [one.text for one in questions])
    state.resume()
    while state.epoch < options.epochs and state.stopped is None:
        shuffled = np.random.default_rng([options.seed, state.epoch]).permutation(len(rest))
        loss = _epoch(torch, model, optimizer, arrays, [rest[i] for i in shuffled], options)
        hit, outside = _evaluate(torch, model, arrays, slice_, options)
        state.take(loss, hit, outside, options.patience)
        if on_epoch is not None and on_epoch(state.epoch, options.epochs, loss, hit) is False:
            raise Cancelled("stopped while training; the same command resumes")
    state.finish()
    return Trained(state.epoch, state.best_epoch, len(cases), lost, state.stopped)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise BackendMissing(
            f"training needs torch: {error}",
            hint=f"{install_command('embed')}; only training needs it",
        ) from error
    return torch


def case(arrays: Mapping[str, Arrays], one: Judged, options: TrainingOptions) -> Case | None:
    """Return the case of a question; None if none of its candidates is judged relevant."""
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
    gold = np.isin(found.units[found.ranked], sorted(one.gold))
    if not gold.any():
        return None
    alphas = arrays["citation_graph"]["edge_alpha"][found.places]
    free = free_scores(found, alphas, options.share, LAYERS)
    return case_of(found, one.vector, free[found.ranked], gold)


def _epoch(
    torch: Any,
    model: Model,
    optimizer: Any,
    arrays: Mapping[str, Arrays],
    cases: Sequence[Case],
    options: TrainingOptions,
) -> float:
    """Return the mean loss; NaN as soon as a loss is NaN, before it changes the weights."""
    total = 0.0
    for start in range(0, len(cases), options.batch):
        batch = cases[start : start + options.batch]
        optimizer.zero_grad()
        losses, _ = model.losses(Batch(torch, arrays, batch))
        losses.mean().backward()
        total += float(losses.detach().sum())
        norm = torch.nn.utils.clip_grad_norm_(model.parameters, options.clip)
        if not (math.isfinite(total) and bool(torch.isfinite(norm))):
            return math.nan
        optimizer.step()
    return total / max(len(cases), 1)


def _evaluate(
    torch: Any, model: Model, arrays: Mapping[str, Arrays], cases: Sequence[Case], options: TrainingOptions
) -> tuple[float, float]:
    """Return (Hit@1, mean loss)."""
    hits, total = 0, 0.0
    with torch.no_grad():
        for start in range(0, len(cases), options.batch):
            losses, first = model.losses(Batch(torch, arrays, cases[start : start + options.batch]))
            hits, total = hits + sum(first), total + float(losses.sum())
    return hits / len(cases), total / len(cases)


class _TrainingState:
    """The state of a training run, saved after each epoch without pickle."""

    def __init__(
        self, torch: Any, model: Model, optimizer: Any, out: Path, about: Mapping[str, Any], texts: list[str]
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
        """Record the result of an epoch."""
        self.epoch += 1
        self.history.append(Epoch(self.epoch, loss, hit, held))
        if not (math.isfinite(loss) and math.isfinite(held)):
            self.stopped = "the loss became NaN; the best weights until then are kept"
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
        """Resume from the saved state. Raises InputError if it is from a different training run."""
        if not self._partial.is_file():
            return
        kept = read_weights(self._partial)
        about = kept.about
        if about.get("of") != self._about or about.get("texts") != self._texts:
            raise InputError(
                f"{self._partial} is from a different training run: its options, questions or vectors differ",
                hint="delete it to start over, or choose another --out",
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
        """Write the best weights, and delete the saved state."""
        write(self._out, {**self._about, "epochs": self.epoch, "best_epoch": self.best_epoch}, self._best)
        self._partial.unlink(missing_ok=True)
