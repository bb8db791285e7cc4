"""BERTScore (Zhang et al. 2020) of answers, with a local model folder. Nothing is downloaded.

Without idf weights and without rescaling, on one hidden layer: 9 for models of 12 layers, as the authors
chose for bert-base-uncased; the same fraction in models of another depth. Every run names the model and the
layer, because scores of two models cannot be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendError
from ketrag_fast.eval.datasets import DataSet
from ketrag_fast.eval.run import Collected
from ketrag_fast.models.optional_imports import import_quietly
from ketrag_fast.records import replace

_BATCH = 32
_LONGEST = 512  # tokens of an answer that are read


class BertScore:
    """A loaded model that scores answers; `about` names it by its content."""

    def __init__(self, folder: str | Path) -> None:
        """Load the model in `folder` (as transformers saves one), on the CPU, in single precision.

        Raises BackendMissing without transformers and torch, BackendError if the folder has no model.
        """
        self._torch: Any = import_quietly("torch", "embed")
        transformers: Any = import_quietly("transformers", "embed")
        path = Path(folder)
        if not (path / "config.json").is_file():
            raise BackendError(f"{path} is not a model folder", hint="use a folder that contains config.json")
        transformers.utils.logging.disable_progress_bar()
        local = {"local_files_only": True, "trust_remote_code": False}
        try:
            self._tokens: Any = transformers.AutoTokenizer.from_pretrained(str(path), **local)
            # Other weight files are pickles, which can execute code.
            model: Any = transformers.AutoModel.from_pretrained(str(path), use_safetensors=True, **local)
        except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
            raise BackendError(f"{path}: the model cannot be loaded: {error}") from error
        self._model = model.float().eval()
        self.layer = max(1, round(model.config.num_hidden_layers * 0.75))
        self._vectors: dict[str, tuple[NDArray[np.float32], NDArray[np.bool_]]] = {}
        digest = hashlib.sha256()
        for file in (path / "config.json", *sorted(path.glob("*.safetensors"))):
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        self.about = {"model": path.name, "fingerprint": digest.hexdigest(), "layer": self.layer}

    def judge(self, found: Collected, dataset: DataSet) -> Collected:
        """Return the results with `bertscore`, if they have an answer and a gold answer."""
        golds = {question.id: question.answers for question in dataset.questions}
        answered = [(r.answer, golds[r.question]) for r in found.results if r.answer is not None]
        self._embed([text for answer, own in answered if own for text in (answer, *own)])
        results = (
            r if r.answer is None else replace(r, bertscore=self.best(r.answer, golds[r.question]))
            for r in found.results
        )
        return replace(found, results=tuple(results))

    def best(self, answer: str, golds: Sequence[str]) -> float | None:
        """Return the F1 with the best gold answer; None without one."""
        usable = [gold for gold in golds if gold.strip()]
        if not usable:
            return None
        self._embed([answer, *usable])
        return max(self._f1(answer, gold) for gold in usable)

    def _f1(self, answer: str, gold: str) -> float:
        (ours, mine), (theirs, wanted) = self._vectors[answer], self._vectors[gold]
        if not mine.any() or not wanted.any():
            return 0.0
        similar = ours.astype(np.float64) @ theirs.astype(np.float64).T
        # Special tokens carry no weight, but may be what a token is most similar to (as published).
        precision = float(similar.max(axis=1)[mine].mean())
        recall = float(similar.max(axis=0)[wanted].mean())
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    def _embed(self, texts: Sequence[str]) -> None:
        """Store the unit vectors of the tokens of each text, and which tokens are not special."""
        fresh = sorted({text for text in texts if text not in self._vectors}, key=lambda t: (len(t), t))
        for start in range(0, len(fresh), _BATCH):
            batch = fresh[start : start + _BATCH]
            inputs = self._tokens(
                [text.strip() for text in batch],
                padding=True,
                truncation=True,
                max_length=_LONGEST,
                return_tensors="pt",
                return_special_tokens_mask=True,
            )
            special = inputs.pop("special_tokens_mask").numpy().astype(bool)
            with self._torch.inference_mode():
                hidden = self._model(**inputs, output_hidden_states=True).hidden_states[self.layer]
            mask = inputs["attention_mask"].numpy().astype(bool)
            for text, own, kept, marks in zip(batch, hidden.numpy(), mask, special, strict=True):
                vectors = own[kept]
                lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
                self._vectors[text] = (vectors / np.maximum(lengths, 1e-12), ~marks[kept])
