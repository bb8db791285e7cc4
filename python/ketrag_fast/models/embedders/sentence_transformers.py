"""`sentence-transformers:NAME_OR_PATH`: a local embedding model, run by sentence-transformers.

Measured with all-MiniLM-L6-v2: batches of 32 texts sorted by characters are 23 to 40 % padding, fp32 products
run at half of the peak, tokenizing takes a few percent. So texts are tokenized once, batched by tokens, and
computed in bf16 if the processor supports it and the vectors stay the same.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.processor import cores
from ketrag_fast.errors import BackendError, BackendMissing, ConfigError
from ketrag_fast.models.embedders.batching import Cutter, Piece, average, batches, pad_rows
from ketrag_fast.models.embedders.fingerprint import SAMPLE, closeness, of_folder
from ketrag_fast.models.embedders.model_folder import ModelFolder
from ketrag_fast.models.embedders.protocol import (
    CLOSE,
    Embedder,
    Engine,
    Precision,
    Role,
    Vectors,
    check_vectors,
    excerpt,
)
from ketrag_fast.models.optional_imports import import_quietly

EXTRA: Final = "embed"
BATCH_TOKENS_CPU: Final = 1024
BATCH_TOKENS_GPU: Final = 65_536
_NO_LIMIT: Final = 1_000_000
_ROLE_PROMPTS: Final[dict[Role, tuple[str, ...]]] = {
    "query": ("query",),
    "document": ("document", "passage", "corpus"),
}


class SentenceTransformersEmbedder(Embedder):
    """A sentence-transformers model. `threads=0` means all cores; `precision` is auto, fp32 or bf16."""

    def __init__(
        self,
        spec: str,
        folder: ModelFolder,
        *,
        precision: Precision = "auto",
        device: str = "auto",
        threads: int = 0,
    ) -> None:
        super().__init__()
        self.spec = spec
        self._folder = folder
        self._torch: Any = import_quietly("torch", EXTRA)
        self._device = _device(self._torch, device)
        self._cores = threads or cores()
        self._lock = threading.Lock()
        self._model = self._load()
        self._first = self._model[0]
        self._static = type(self._first).__name__ == "StaticEmbedding"
        _require_supported(self._model, folder, self._static)
        tokenizer = self._model.tokenizer
        self.longest = None if self._static else self._limit()
        self._cutter = None if self._static else Cutter(tokenizer, self.longest, _lowers(self._first))
        self._prompts = {role: _prompt(self._model, role) for role in _ROLE_PROMPTS}
        on_cpu = self._device == "cpu"
        self._batch_tokens = BATCH_TOKENS_CPU if on_cpu else BATCH_TOKENS_GPU
        self.dimension = int(self._trial().shape[1])
        self.fingerprint = of_folder(folder)
        self.engine = self._choose(precision)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the token count of each text, without special tokens."""
        if self._cutter is None:
            ids = self._model.tokenizer.encode_batch(list(texts), add_special_tokens=False)
            return [len(row.ids) for row in ids]
        return [len(ids) for ids in self._cutter.tokens(texts)]

    def close(self) -> None:
        """Release the model; the object cannot be used again."""
        self._model = self._first = None

    # -- loading ---------------------------------------------------------------------------------

    def _load(self) -> Any:
        with _no_hub():
            library = import_quietly("sentence_transformers", EXTRA)
            try:
                with _no_bars():
                    model = library.SentenceTransformer(
                        str(self._folder.path),
                        device=self._device,
                        local_files_only=True,
                        trust_remote_code=False,
                        model_kwargs={"use_safetensors": True, "dtype": self._torch.float32},
                    )
            except Exception as error:  # bad model files make the library raise anything
                raise BackendError(
                    f"the model in {self._folder.path} cannot be loaded: {type(error).__name__}: {error}",
                    hint="run `ketrag models check` for details; copy the model again if it is damaged",
                ) from error
        model.eval()
        _require_weights(model, self._folder)
        return model

    def _limit(self) -> int | None:
        limit = getattr(self._first, "max_seq_length", None)
        known = [x for x in (limit, self._folder.positions) if isinstance(x, int) and x < _NO_LIMIT]
        return min(known) if known else None

    def _trial(self) -> NDArray[Any]:
        """Run a first forward pass, which reveals files of different models."""
        return self._encode(["a trial"], "document", lambda _: None)

    def _choose(self, precision: Precision) -> Engine:
        """Choose the precision: bf16 only if its sample vectors stay close to those of fp32."""
        precision = "auto" if precision == "float" else precision
        wanted = precision == "bf16" or (precision == "auto" and _fast_bf16(self._torch, self._device))
        if precision == "int8":
            raise ConfigError(f"{self.spec} does not support int8", hint="native: does")
        if precision not in ("auto", "fp32", "bf16"):
            raise ConfigError(f"precision must be auto, fp32 or bf16, got {precision!r}")
        if not wanted or self._static:
            useless = self._static and precision == "bf16"
            return self._engine("fp32", 1.0, ("bf16 has no effect on static embeddings",) if useless else ())
        exact = self._sample()
        self._first.to(self._torch.bfloat16)
        lowest = closeness(exact, self._sample())
        if lowest >= CLOSE:
            return self._engine("bf16", lowest, ())
        if precision == "bf16":
            raise BackendError(
                f"{self.spec} in bf16 is too far from fp32 (lowest cosine {lowest:.4f}, need {CLOSE})",
                hint="use --precision fp32",
            )
        self._model = self._load()
        self._first = self._model[0]
        return self._engine("fp32", 1.0, (f"bf16 was not used: lowest cosine to fp32 {lowest:.4f}",))

    def _engine(self, precision: str, lowest: float, notes: tuple[str, ...]) -> Engine:
        with _no_hub():
            library = import_quietly("sentence_transformers", EXTRA)
        version = f"{library.__version__}, torch {self._torch.__version__}"
        return Engine("sentence-transformers", version, self._device, precision, round(lowest, 6), notes)

    def _sample(self) -> Vectors:
        raw = self._encode(SAMPLE, "document", lambda _: None)
        return check_vectors(raw, SAMPLE, self.dimension, self.spec)

    # -- encoding --------------------------------------------------------------------------------

    def _encode(self, texts: Sequence[str], role: Role, tick: Callable[[int], None]) -> NDArray[Any]:
        with self._all_cores():
            if self._cutter is None:
                return self._encode_static(texts, role, tick)
            pieces = self._cutter.pieces(texts, self._prompts[role])
            self.tally.windowed += len(pieces) - len({piece.owner for piece in pieces})
            if not pieces:
                raise BackendError(f"{self.spec} finds no token in {excerpt(texts[0])}")
            vectors: NDArray[Any] | None = None
            for numbers, found in self._run(pieces, list(batches(pieces, self._batch_tokens)), role):
                if vectors is None:
                    vectors = np.zeros((len(pieces), found.shape[1]), np.float32)
                vectors[numbers] = found
                tick(sum(pieces[number].weight for number in numbers))
            assert vectors is not None  # noqa: S101 - there is at least one piece, so at least one batch
            owners = [piece.owner for piece in pieces]
            return average(vectors, owners, [piece.weight for piece in pieces], len(texts))

    def _run(
        self, pieces: list[Piece], groups: list[list[int]], role: Role
    ) -> Iterator[tuple[list[int], NDArray[Any]]]:
        """Yield the results of batches, one core per batch.

        Cores that share a batch wait for each other after every product: separate batches were 2.2 times as
        fast on two busy cores. A single batch (a query) uses all cores.
        """

        def work(numbers: list[int]) -> NDArray[Any]:
            return self._forward_halving([pieces[number] for number in numbers], role)

        workers = min(self._cores, len(groups)) if self._device == "cpu" else 1
        if workers == 1:
            for numbers in groups:
                yield numbers, work(numbers)
            return
        with ThreadPoolExecutor(workers, "ketrag-embed", self._torch.set_num_threads, (1,)) as pool:
            futures = [pool.submit(work, numbers) for numbers in groups]
            try:
                for numbers, future in zip(groups, futures, strict=True):
                    yield numbers, future.result()
            finally:
                for future in futures:
                    future.cancel()

    def _forward_halving(self, pieces: list[Piece], role: Role) -> NDArray[Any]:
        """Encode a batch; when out of memory, encode its halves and use smaller batches from then on."""
        try:
            return self._forward(pieces, role)
        except (RuntimeError, MemoryError) as error:
            if not _out_of_memory(error):
                raise self._failed(error) from error
            if len(pieces) == 1:
                raise BackendError(
                    f"{self.spec}: out of memory for one text of {len(pieces[0].ids)} tokens",
                    hint="close other programs, or choose a smaller model or another device",
                ) from error
        except (IndexError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._failed(error) from error
        if self._device.startswith("cuda"):
            self._torch.cuda.empty_cache()
        with self._lock:
            self.tally.halvings += 1
            self._batch_tokens = max(self._batch_tokens // 2, 1)
        middle = len(pieces) // 2
        halves = (pieces[:middle], pieces[middle:])
        return np.concatenate([self._forward_halving(half, role) for half in halves])

    def _forward(self, pieces: list[Piece], role: Role) -> NDArray[Any]:
        torch, tokenizer = self._torch, self._model.tokenizer
        fill = tokenizer.pad_token_id
        left = tokenizer.padding_side == "left"
        ids, mask = pad_rows([piece.ids for piece in pieces], 0 if fill is None else fill, left)
        features: dict[str, Any] = {
            "input_ids": torch.from_numpy(ids).to(self._device),
            "attention_mask": torch.from_numpy(mask).to(self._device),
        }
        if "token_type_ids" in tokenizer.model_input_names:
            features["token_type_ids"] = torch.zeros_like(features["input_ids"])
        prompt = self._prompts[role]
        if prompt and self._cutter is not None:  # some models exclude the prompt from the mean
            features["prompt_length"] = len(self._cutter.before) + len(self._cutter.tokens([prompt])[0])
        with torch.inference_mode():
            features = self._first(features)
            for name, value in features.items():  # pooling and all that follows run in fp32
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    features[name] = value.float()
            for module in list(self._model)[1:]:
                features = module(features)
            found = features["sentence_embedding"].float().cpu().numpy()
        cut = getattr(self._model, "truncate_dim", None)
        return np.asarray(found[:, :cut] if cut else found)

    def _encode_static(self, texts: Sequence[str], role: Role, tick: Callable[[int], None]) -> NDArray[Any]:
        encode = self._model.encode_query if role == "query" else self._model.encode_document
        found = encode(list(texts), batch_size=1024, show_progress_bar=False, convert_to_numpy=True)
        tick(sum(self.count(texts)))
        return np.asarray(found)

    @contextmanager
    def _all_cores(self) -> Iterator[None]:
        """Set the number of torch threads, and restore it afterwards."""
        before = self._torch.get_num_threads()
        self._torch.set_num_threads(self._cores)
        try:
            yield
        finally:
            self._torch.set_num_threads(before)

    def _failed(self, error: Exception) -> BackendError:
        return BackendError(
            f"{self.spec} failed: {type(error).__name__}: {error}",
            hint="files of different models cause such errors: copy the model again",
        )


def _device(torch: Any, wanted: str) -> str:
    mps = getattr(torch.backends, "mps", None)
    has = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": mps is not None and mps.is_available()}
    if wanted == "auto":
        return "cuda" if has["cuda"] else "mps" if has["mps"] else "cpu"
    kind, _, number = wanted.partition(":")
    if kind not in has or (number and not number.isdigit()):
        raise ConfigError(f"device must be auto, cpu, cuda, cuda:N or mps, got {wanted!r}")
    if not has[kind] or (kind == "cuda" and number and int(number) >= torch.cuda.device_count()):
        raise BackendMissing(f"this machine has no device {wanted}", hint="use --device cpu or auto")
    return wanted


def _fast_bf16(torch: Any, device: str) -> bool:
    """Return whether the hardware supports bf16."""
    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    tests = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device == "cpu" and any(getattr(torch.cpu, name, lambda: False)() for name in tests)


def _out_of_memory(error: BaseException) -> bool:
    text = str(error).lower()
    phrases = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")
    return isinstance(error, MemoryError) or any(phrase in text for phrase in phrases)


def _lowers(first: Any) -> bool:
    return bool(getattr(first, "do_lower_case", False))


def _prompt(model: Any, role: Role) -> str:
    """Return the prompt of the model for a role, by the rule of sentence-transformers."""
    prompts = getattr(model, "prompts", None) or {}
    name = next((n for n in _ROLE_PROMPTS[role] if n in prompts), getattr(model, "default_prompt_name", None))
    return str(prompts.get(name) or "") if name else ""


def _require_supported(model: Any, folder: ModelFolder, static: bool) -> None:
    if static:
        return
    first, tokenizer = model[0], getattr(model, "tokenizer", None)
    modes = getattr(first, "modality_config", {"text": {}})
    reason = None
    if type(first).__name__ != "Transformer":
        reason = f"its first module is {type(first).__name__}"
    elif tokenizer is None or not getattr(tokenizer, "is_fast", False):
        reason = "it has no fast tokenizer"
    elif "message" in modes or "text" not in modes:
        reason = "it reads chat messages, not texts"
    elif any(getattr(first, name, None) for name in ("query_length", "document_length", "query_expansion")):
        reason = "its limits differ between queries and documents"
    if reason:
        raise BackendError(
            f"the model in {folder.path} is not supported: {reason}",
            hint="serve it with an endpoint and use openai:MODEL@URL",
        )


def _require_weights(model: Any, folder: ModelFolder) -> None:
    """Raise BackendError for missing weights, which the libraries fill with random numbers."""
    present = folder.tensors
    found, missing = set(), []
    for name, weight in model[0].named_parameters():
        short = name.split(".", 1)[1] if "." in name else name
        tails = (name, short)
        if any(key in tails or key.endswith("." + short) for key in present):
            found.add(weight.data_ptr())
        elif "pooler" not in name:  # mean pooling does not use this head
            missing.append((short, weight.data_ptr()))
    lost = [name for name, place in missing if place not in found]
    if lost:
        raise BackendError(
            f"the weights in {folder.path} lack {len(lost)} tensors of the model; the first is {lost[0]}",
            hint="copy the model again",
        )


_OFFLINE: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TQDM_DISABLE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}


@contextmanager
def _no_bars() -> Iterator[None]:
    """Disable the progress bars of transformers; its environment variable is only read at import."""
    logging = importlib.import_module("transformers.utils.logging")
    shown = bool(logging.is_progress_bar_enabled())
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


@contextmanager
def _no_hub() -> Iterator[None]:
    """Block network access of the hub client, whether it is already imported or not."""
    before = {name: os.environ.get(name) for name in _OFFLINE}
    os.environ.update(_OFFLINE)
    constants = sys.modules.get("huggingface_hub.constants")
    flag = getattr(constants, "HF_HUB_OFFLINE", None)
    imported_here = constants is None
    if constants is not None:
        constants.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        constants = sys.modules.get("huggingface_hub.constants")
        if constants is not None:  # read once at import: restore the user's setting
            own = (before["HF_HUB_OFFLINE"] or "").upper() in ("1", "ON", "YES", "TRUE")
            constants.HF_HUB_OFFLINE = own if imported_here else flag  # type: ignore[attr-defined]
