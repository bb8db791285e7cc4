"""Fits a transformer that marks the span of an answer, with torch; it continues from its last checkpoint.

The loss of a question has two parts. In each text, the start and the end of the answer are chosen among
its tokens and `[CLS]`, which stands for "no answer". Among the texts of the question, the one with the answer
must have the largest margin above its "no answer", because that margin chooses the passage when served.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ketrag_fast.errors import BackendError, InputError
from ketrag_fast.lab.answers.examples import SpanExample
from ketrag_fast.models.embedders.quiet_imports import import_quietly, no_bars, no_hub
from ketrag_fast.storage.durable import replace_path
from ketrag_fast.storage.io_errors import writing

LEAST: Final = 10
"""Questions that are needed at least."""
EPOCHS: Final = 2
QUESTIONS: Final = 2
"""Questions of a step."""
LONGEST: Final = 384
SAVE_EVERY: Final = 25
"""Steps between checkpoints."""
_SORTED: Final = 64
"""Questions that are sorted by length together."""
_RATE: Final = 1e-4
_HEAD_RATE: Final = 1e-3
_WARMUP: Final = 0.1
_NORM: Final = 1.0
_AMONG_TEXTS: Final = 0.5
"""Weight of the choice among texts."""
_QUESTION_TOKENS: Final = 64
_OUT: Final = -1e4
_TOKENS: Final = "tokenizer.json"
_SERVED: Final = ("bert", "roberta", "xlm-roberta", "camembert", "mpnet")
"""Types of models that `answer_llm` can serve."""
_PADDING: Final = ("[PAD]", "<pad>")
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Libraries:
    """The packages that training needs."""

    torch: Any
    transformers: Any
    tensors: Any


def load_libraries() -> Libraries:
    """Return torch, transformers and safetensors. Raises BackendMissing if one is not installed."""
    with no_hub():
        return Libraries(
            *(import_quietly(name, "train") for name in ("torch", "transformers", "safetensors.torch"))
        )


class Fitting:
    """A model in training, its optimiser and its position."""

    def __init__(self, libraries: Libraries, base: Path, examples: Sequence[SpanExample], seed: int) -> None:
        """Load the transformer in `base` with new outputs.

        Raises:
            BackendError: The folder has no transformer for extractive question answering.
            InputError: There are too few examples, or none has a text without the answer.
        """
        if len(examples) < LEAST:
            raise InputError(
                f"{len(examples)} questions have an answer in a judged passage; "
                f"training needs at least {LEAST}",
                hint="answers are read from metadata.answers of queries.jsonl, judgements from qrels.tsv",
            )
        if all(own for one in examples for own in one.spans):
            raise InputError("no question has a passage without its answer; training needs such passages")
        self.torch = libraries.torch
        self._tensors = libraries.tensors
        self.examples = list(examples)
        self.seed = seed
        self.step = 0
        self.torch.manual_seed(seed)
        self.base = base
        self.model, self.tokens = _load(libraries.transformers, base)
        self._has_types = getattr(self.model.config, "type_vocab_size", 0) > 1
        head = [p for name, p in self.model.named_parameters() if name.startswith("qa_outputs.")]
        body = [p for name, p in self.model.named_parameters() if _is_trained(name)]
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(_is_trained(name) or name.startswith("qa_outputs."))
        groups = [{"params": body, "lr": _RATE}, {"params": head, "lr": _HEAD_RATE}]
        self.optimiser = self.torch.optim.AdamW(groups, weight_decay=0.01)

    def steps(self, epochs: int) -> int:
        """Return the number of steps of a number of epochs."""
        return epochs * math.ceil(len(self.examples) / QUESTIONS)

    def run(self, epochs: int, checkpoint: Path, tell: Tell) -> None:
        """Train to the end of `epochs`, from the step of the checkpoint if there is one."""
        self.restore(checkpoint)
        total = self.steps(epochs)
        each = math.ceil(len(self.examples) / QUESTIONS)
        self.model.train()
        known, order = -1, [0]
        while self.step < total:
            epoch, at = divmod(self.step, each)
            if epoch != known:
                known, order = epoch, self.order(epoch)
            own = [self.examples[k] for k in order[at * QUESTIONS : (at + 1) * QUESTIONS]]
            self.torch.manual_seed(self.seed + 1 + self.step)
            loss = self._learn(own, total)
            self.step += 1
            if self.step % SAVE_EVERY == 0 or self.step == total:
                self.save_checkpoint(checkpoint)
                tell(f"step {self.step:,} of {total:,}, loss {loss:.3f}")

    def order(self, epoch: int) -> list[int]:
        """Return the order of the examples: by chance, but those of a step are about equally long.

        Shorter texts of a step are padded, and padding takes as long as text.
        """
        generator = np.random.default_rng([self.seed, epoch])
        shuffled = generator.permutation(len(self.examples)).tolist()
        steps: list[list[int]] = []
        for start in range(0, len(shuffled), _SORTED):
            own = sorted(
                shuffled[start : start + _SORTED], key=lambda k: max(map(len, self.examples[k].texts))
            )
            steps += [own[at : at + QUESTIONS] for at in range(0, len(own), QUESTIONS)]
        last = [steps.pop()] if len(steps[-1]) < QUESTIONS else []
        mixed = [steps[at] for at in generator.permutation(len(steps)).tolist()]
        return [k for step in mixed + last for k in step]

    def _learn(self, own: Sequence[SpanExample], total: int) -> float:
        warm = max(1, round(_WARMUP * total))
        share = min((self.step + 1) / warm, (total - self.step) / max(1, total - warm))
        for group, rate in zip(self.optimiser.param_groups, (_RATE, _HEAD_RATE), strict=True):
            group["lr"] = rate * share
        loss = self.loss(own)
        value = float(loss.item())
        if not math.isfinite(value):
            raise BackendError(
                f"the loss of step {self.step + 1} is not finite", hint="check the weights of the base model"
            )
        self.optimiser.zero_grad()
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), _NORM)
        self.optimiser.step()
        return value

    def loss(self, own: Sequence[SpanExample]) -> Any:
        """Return the mean loss of some questions."""
        torch = self.torch
        inputs, is_text, starts, ends = self._encode(own)
        found = self.model(**inputs)
        allowed = is_text.clone()
        allowed[:, 0] = True
        first = found.start_logits.float().masked_fill(~allowed, _OUT)
        last = found.end_logits.float().masked_fill(~allowed, _OUT)
        inside = _mass(first, starts) + _mass(last, ends)
        margins = (
            torch.logsumexp(first.masked_fill(~is_text, _OUT), 1)
            + torch.logsumexp(last.masked_fill(~is_text, _OUT), 1)
            - first[:, 0]
            - last[:, 0]
        )
        has_answer = ~starts[:, 0]
        among, row = [], 0
        for one in own:
            part = slice(row, row + len(one.texts))
            row += len(one.texts)
            if has_answer[part].any():
                among.append(_mass(margins[None, part], has_answer[None, part]))
        chosen = torch.cat(among).mean() if among else 0.0
        return inside.mean() / 2 + _AMONG_TEXTS * chosen

    def _encode(self, own: Sequence[SpanExample]) -> tuple[Any, Any, Any, Any]:
        """Return the inputs, which tokens are of the text, and right starts and ends ([CLS]: no answer)."""
        questions = [one.question for one in own for _ in one.texts]
        texts = [text for one in own for text in one.texts]
        questions = [self._shorten(question) for question in questions]
        inputs = self.tokens(
            questions,
            texts,
            padding=True,
            truncation="only_second",
            max_length=min(LONGEST, self._longest()),
            return_offsets_mapping=True,
            return_token_type_ids=self._has_types,
            return_tensors="pt",
        )
        offsets = inputs.pop("offset_mapping").numpy()
        shape = offsets.shape[:2]
        is_text, starts, ends = (np.zeros(shape, bool) for _ in range(3))
        spans = [spans for one in own for spans in one.spans]
        for row, own_spans in enumerate(spans):
            kinds = np.array([kind == 1 for kind in inputs.sequence_ids(row)])
            is_text[row] = kinds
            for start, end in own_spans:
                inside = np.flatnonzero(kinds & (offsets[row, :, 1] > start) & (offsets[row, :, 0] < end))
                whole = len(inside) and offsets[row, inside[-1], 1] >= end
                if whole:
                    starts[row, inside[0]] = ends[row, inside[-1]] = True
            if not starts[row].any():
                starts[row, 0] = ends[row, 0] = True
        as_tensor = self.torch.from_numpy
        return dict(inputs), as_tensor(is_text), as_tensor(starts), as_tensor(ends)

    def _shorten(self, question: str) -> str:
        ids = self.tokens(question, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        most = min(_QUESTION_TOKENS, self._longest() // 2)
        return question if len(ids) <= most else question[: ids[most - 1][1]]

    def _longest(self) -> int:
        return int(self.model.config.max_position_embeddings) - 2

    def save_checkpoint(self, path: Path) -> None:
        """Write weights, the optimiser's moments and the step to a file, atomically."""
        tensors = {f"model.{k}": v.contiguous() for k, v in self.model.state_dict().items()}
        for number, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": value for name, value in state.items()}
        fresh = path.with_name(f"{path.name}.new")
        with writing(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(self._tensors.save(tensors, metadata={"step": str(self.step)}))
            replace_path(fresh, path)

    def restore(self, path: Path) -> None:
        """Continue from a checkpoint if there is a whole one."""
        try:
            content = path.read_bytes()
            tensors = self._tensors.load(content)
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            step = int(header["__metadata__"]["step"])
        except Exception:  # noqa: BLE001 - a damaged checkpoint means starting again
            return
        own = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
        if {k: v.shape for k, v in own.items()} != {k: v.shape for k, v in self.model.state_dict().items()}:
            return
        state: dict[int, dict[str, Any]] = {}
        for name, value in tensors.items():
            if name.startswith("optimiser."):
                _, number, part = name.split(".")
                state.setdefault(int(number), {})[part] = value
        self.model.load_state_dict(own)
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": state})
        self.step = step

    def save(self, folder: Path) -> None:
        """Write the model folder, in half precision."""
        weights = {name: value.half().contiguous() for name, value in self.model.state_dict().items()}
        config = self.model.config.to_dict() | {"architectures": [type(self.model).__name__]}
        config |= {"dtype": "float16"}
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.base / _TOKENS, folder / _TOKENS)
            text = json.dumps(config, indent=1, sort_keys=True, default=str) + "\n"
            (folder / "config.json").write_text(text, encoding="utf-8", newline="\n")
            fresh = folder / "model.safetensors.new"
            fresh.write_bytes(self._tensors.save(weights, metadata={"format": "pt"}))
            replace_path(fresh, folder / "model.safetensors")


def _mass(logits: Any, right: Any) -> Any:
    """Return minus the log of the share of the right places in each row."""
    return logits.logsumexp(1) - logits.masked_fill(~right, _OUT).logsumexp(1)


def _is_trained(name: str) -> bool:
    """Return whether a parameter of the body is trained: the tables of words and positions are not."""
    return not name.startswith("qa_outputs.") and ".embeddings." not in name


@contextmanager
def _quiet(logging: Any) -> Iterator[None]:
    """Silence the report that the outputs are new, and the progress bar."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with no_hub(), no_bars():
            yield
    finally:
        logging.set_verbosity(before)


def _load(transformers: Any, base: Path) -> tuple[Any, Any]:
    try:
        kind = transformers.AutoConfig.from_pretrained(str(base), local_files_only=True).model_type
        if kind not in _SERVED or not (base / _TOKENS).is_file():
            raise ValueError(f"it is of type {kind}" if kind not in _SERVED else f"it has no {_TOKENS}")
        with _quiet(transformers.utils.logging):
            model = transformers.AutoModelForQuestionAnswering.from_pretrained(
                str(base), local_files_only=True, use_safetensors=True
            ).float()
        tokens = transformers.PreTrainedTokenizerFast(tokenizer_file=str(base / _TOKENS))
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, AttributeError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BackendError(
            f"{base} cannot be trained: {first}",
            hint="give a folder of BERT, RoBERTa, XLM-RoBERTa, CamemBERT or MPNet with safetensors weights",
        ) from error
    padding = next((one for one in _PADDING if one in tokens.get_vocab()), None)
    if padding is None:
        raise BackendError(f"{base} cannot be trained: its tokeniser has no padding token")
    tokens.pad_token = padding
    return model, tokens
