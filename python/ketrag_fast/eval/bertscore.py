"""BERTScore (Zhang et al. 2020) of answers, with a local model folder. Nothing is downloaded.

Without idf weights and without rescaling, on one hidden layer: 9 for models of 12 layers, as the authors
chose for bert-base-uncased; the same fraction in models of another depth. Every score names the model and the
layer, because scores of two models cannot be compared.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendError, BackendMissing
from ketrag_fast.eval.question import DataSet
from ketrag_fast.eval.run import Collected

_BATCH = 32
_MOST = 512


class BertScore:
    """A loaded model that scores pairs of texts."""

    def __init__(self, folder: str | Path) -> None:
        """Load the model in `folder` (as transformers saves one), on the CPU, in single precision.

        Raises BackendMissing without transformers and torch, BackendError if the folder has no model.
        """
        try:
            torch: Any = importlib.import_module("torch")
            transformers: Any = importlib.import_module("transformers")
        except ImportError as error:
            raise BackendMissing(
                f"BERTScore needs the package {error.name}", hint="pip install 'ketrag-fast[embed]'"
            ) from error
        path = Path(folder)
        if not (path / "config.json").is_file():
            raise BackendError(f"{path} is not a model folder", hint="use a folder that contains config.json")
        try:
            self._tokens: Any = transformers.AutoTokenizer.from_pretrained(str(path), local_files_only=True)
            # Other weight files are pickles, which can execute code.
            self._model: Any = transformers.AutoModel.from_pretrained(
                str(path), local_files_only=True, use_safetensors=True
            )
        except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
            raise BackendError(f"{path}: the model cannot be loaded: {error}") from error
        self._torch = torch
        self._model = self._model.float().eval()
        depth = int(self._model.config.num_hidden_layers)
        self.layer = max(1, round(depth * 0.75))
        self._vectors: dict[str, tuple[NDArray[np.float32], NDArray[np.bool_]]] = {}
        weights = sorted(path.glob("*.safetensors"))
        digest = hashlib.sha256()
        for file in [path / "config.json", *weights]:
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        self.about = {"model": path.name, "fingerprint": digest.hexdigest(), "layer": self.layer}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._vectors.clear()

    def best(self, answer: str, golds: Sequence[str]) -> float | None:
        """Return the F1 with the best gold answer; None without one."""
        usable = [gold for gold in golds if gold.strip()]
        if not usable:
            return None
        self._embed([answer, *usable])
        return max(self._f1(answer, gold) for gold in usable)

    def judge(self, found: Collected, dataset: DataSet) -> Collected:
        """Return the results with `bertscore`, if they have an answer and a gold answer."""
        golds = {question.id: question.answers for question in dataset.questions}
        judged = [r for r in found.results if r.answer is not None and golds[r.question]]
        self.prepare([text for r in judged for text in (r.answer or "", *golds[r.question])])
        return replace(
            found,
            results=tuple(
                r if r.answer is None else replace(r, bertscore=self.best(r.answer, golds[r.question]))
                for r in found.results
            ),
        )

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed many texts in batches and cache them for `best`."""
        self._embed(texts)

    def _f1(self, candidate: str, reference: str) -> float:
        (ours, mine), (theirs, wanted) = self._vectors[candidate], self._vectors[reference]
        if not mine.any() or not wanted.any():
            return 0.0
        similar = ours.astype(np.float64) @ theirs.astype(np.float64).T
        # Special tokens carry no weight, but may be what a token is most similar to (as published).
        precision = float(similar.max(axis=1)[mine].mean())
        recall = float(similar.max(axis=0)[wanted].mean())
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    def _embed(self, texts: Sequence[str]) -> None:
        fresh = sorted({text for text in texts if text not in self._vectors}, key=lambda t: (len(t), t))
        for start in range(0, len(fresh), _BATCH):
            batch = fresh[start : start + _BATCH]
            inputs = self._tokens(
                [text.strip() for text in batch],
                padding=True,
                truncation=True,
                max_length=_MOST,
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
