"""`native:NAME_OR_PATH`: a local embedding model, run by this package without other libraries.

Folder, windows, prompts and fingerprint are the same as for `sentence-transformers:`, so either
opens an index that the other built. BERT, DistilBERT, RoBERTa, XLM-RoBERTa, CamemBERT and MPNet are
supported; `local:` passes other models to sentence-transformers.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.processor import processor_name
from ketrag_fast.errors import BackendError, BackendMissing, ConfigError, IndexDamaged, InputError
from ketrag_fast.kernels.encoder import KERNEL_VARIABLE, Encoded, EncodedSpans, Encoder, kernels
from ketrag_fast.models.embedders.batching import whole
from ketrag_fast.models.embedders.fingerprint import SAMPLE, of_folder
from ketrag_fast.models.embedders.model_folder import ModelFolder
from ketrag_fast.models.embedders.protocol import (
    Cancel,
    Embedder,
    Engine,
    Precision,
    Role,
    Spans,
    Vectors,
    least_cosine,
)
from ketrag_fast.records import asdict, dataclass

R = TypeVar("R", Encoded, EncodedSpans)
SHORT: Final = 2000
"""Texts of up to this many characters (a query) are encoded without a progress thread."""

REQUESTED_INT8_CLOSE: Final = 0.99
"""Lowest cosine to fp32 at which int8 is used when it is requested explicitly."""

_PRECISIONS: Final = {"auto": "auto", "float": "float", "fp32": "f32", "bf16": "bf16", "int8": "int8"}
_DAMAGED: Final = "run `ketrag models check` for details; copy the model again if it is damaged"


class NativeEmbedder(Embedder):
    """The native encoder. `threads=0` means all cores; `precision` auto is the fastest on this machine."""

    is_parallel = True
    pools_spans = True

    def __init__(
        self,
        spec: str,
        folder: ModelFolder,
        *,
        precision: Precision = "auto",
        device: str = "auto",
        threads: int = 0,
        verified: Verified | None = None,
    ) -> None:
        super().__init__()
        if device not in ("auto", "cpu"):
            raise BackendMissing(
                f"{spec} runs on the CPU only, not on {device}",
                hint="use sentence-transformers: for another device, or --device cpu",
            )
        require_supported(spec, folder)
        self.spec = spec
        self._folder = folder
        self._threads = threads
        # Files are hashed while the weights are packed, so that the two overlap.
        with ThreadPoolExecutor(1, "ketrag-hash") as pool:
            mark = pool.submit(of_folder, folder)
            self._encoder, choice = self._choose(precision, verified or Verified(), mark.result)
            self.fingerprint = mark.result()
        self.engine = _engine(self._encoder, choice)
        self.timings = choice.timings
        self.dimension = self._encoder.dimension
        self.longest = self._encoder.longest
        own = {"query": "", "document": ""} | self._encoder.prompts  # sentence-transformers' rule
        self._prompts: dict[Role, str] = {"query": own["query"], "document": own["document"]}

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the token count of each text, without special tokens."""
        counts = self._encoder.counts([whole(text) for text in texts], threads=self._threads)
        return [int(count) for count in counts]

    def _encode(self, texts: Sequence[str], role: Role, tick: Callable[[int], None]) -> NDArray[Any]:
        clean = [whole(text) for text in texts]
        prompt = self._prompts[role]
        short = sum(map(len, clean)) <= SHORT

        def encode(report: Callable[[int, int], None]) -> Encoded:
            return self._encoder.encode_counted(
                clean, prompt=prompt, threads=self._threads, report=None if short else report
            )

        return self._run(encode, tick).vectors

    def _encode_spans(
        self, texts: Sequence[str], spans: Sequence[Spans], tick: Callable[[int], None]
    ) -> tuple[NDArray[Any], Vectors]:
        clean = [whole(text) for text in texts]
        prompt = self._prompts["document"]

        def encode(report: Callable[[int, int], None]) -> EncodedSpans:
            return self._encoder.encode_spans(
                clean, spans, prompt=prompt, threads=self._threads, report=report
            )

        result = self._run(encode, tick)
        return result.vectors, result.spans

    def _run(self, encode: Callable[[Callable[[int, int], None]], R], tick: Callable[[int], None]) -> R:
        """Run `encode`, count its tokens and add the name of the model to its errors."""
        reported = 0

        def report(done: int, _: int) -> None:
            nonlocal reported
            tick(done - reported)
            reported = done

        try:
            result = encode(report)
        except (IndexDamaged, InputError) as error:
            raise BackendError(f"{self.spec} failed: {error.message}", hint=_DAMAGED) from error
        self.tally.windowed += result.more
        tick(result.tokens - reported)
        return result

    def sample_vectors(self, cancel: Cancel | None = None) -> Vectors:
        """Return the vectors of the texts that identify a model. Raises Cancelled as `embed` does."""
        prompt = self._prompts["document"]
        return sample_vectors(self._encoder, prompt, lambda: self.embed(SAMPLE, cancel=cancel))

    # -- loading ---------------------------------------------------------------------------------

    def _open(self, precision: str, kernel: str) -> Encoder:
        try:
            return Encoder.open(self._folder.path, precision=precision, kernel=kernel, threads=self._threads)
        except (IndexDamaged, InputError) as error:
            raise BackendError(
                f"the model in {self._folder.path} cannot be loaded: {error.message}", hint=_DAMAGED
            ) from error

    def _choose(
        self, precision: Precision, verified: Verified, fingerprint: Callable[[], str]
    ) -> tuple[Encoder, PrecisionChoice]:
        """Open the fastest kernel; bf16 and int8 are used only if their vectors stay close to f32.

        Measured once per model and processor, then cached.
        """
        if precision not in _PRECISIONS:
            raise ConfigError(f"precision {precision!r} is not one of {', '.join(_PRECISIONS)}")
        own = _PRECISIONS[precision]
        forced = os.environ.get(KERNEL_VARIABLE) or "auto"
        wanted = f"{own} {forced}"
        encoder: Encoder | None = None
        choice = verified.get(fingerprint(), wanted)
        if choice is None:
            encoder = self._open(own, forced)
            closeness = encoder.closeness(threads=self._threads)
            timings = tuple(encoder.timings)
            choice = PrecisionChoice(encoder.kernel, encoder.precision, closeness, timings, encoder.note)
            verified.put(fingerprint(), wanted, choice)
        least = least_cosine(choice.precision)
        if choice.precision == "int8" and (own == "int8" or forced != "auto"):
            least = REQUESTED_INT8_CLOSE
        if choice.precision != "f32" and choice.closeness < least:
            raise BackendError(
                f"{self.spec} in {choice.precision} is too far from fp32 "
                f"(lowest cosine {choice.closeness:.4f}, at least {least} needed)",
                hint="use --precision fp32",
            )
        key = EncoderKey(fingerprint(), choice.precision, choice.kernel)
        return share(key, lambda: encoder or self._open(choice.precision, choice.kernel)), choice


def refusal(folder: ModelFolder) -> str | None:
    """Return the reason why the native encoder does not support a model, from its configuration, or None."""
    try:
        return _core.encoder_refusal(folder.path)
    except (IndexDamaged, InputError) as error:
        raise BackendError(f"{folder.path}: {error.message}", hint=_DAMAGED) from error


def require_supported(spec: str, folder: ModelFolder) -> None:
    """Raise BackendError if the native encoder does not support a model."""
    reason = refusal(folder)
    if reason is not None:
        raise BackendError(f"{spec}: {reason}", hint="use sentence-transformers: instead of native:")


def _engine(encoder: Encoder, choice: PrecisionChoice) -> Engine:
    precision = "fp32" if encoder.precision == "f32" else encoder.precision
    version = f"{_core.__version__}, {encoder.kernel}"
    notes = () if choice.note is None else (choice.note,)
    return Engine("native", version, "cpu", precision, round(choice.closeness, 6), notes)


FILE: Final = "verified.json"
_LARGEST: Final = 1 << 20
_ENTRIES: Final = 1000


@dataclass(frozen=True, slots=True)
class PrecisionChoice:
    """A kernel, its precision (f32, bf16, int8) and the lowest cosine of its vectors to f32.

    `timings` are (kernel, precision, microseconds per token and layer), fastest first; empty if there was no
    choice. `note` names a faster candidate that was rejected.
    """

    kernel: str
    precision: str
    closeness: float
    timings: tuple[tuple[str, str, float], ...] = ()
    note: str | None = None


class Verified:
    """The cached choices. `folder` defaults to the user's cache folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = (folder or cache_folder()) / FILE

    def get(self, fingerprint: str, wanted: str) -> PrecisionChoice | None:
        """Return the choice for a model and `wanted`, the requested precision and kernel (or auto)."""
        try:
            entry, checksum = self._read()[_key(fingerprint, wanted)]
        except (KeyError, TypeError, ValueError):
            return None
        if checksum != _checksum(entry):
            return None
        return PrecisionChoice(**entry | {"timings": tuple(map(tuple, entry["timings"]))})

    def put(self, fingerprint: str, wanted: str, choice: PrecisionChoice) -> None:
        """Store a choice; if the folder is not writable, do nothing."""
        entries = dict(list(self._read().items())[-_ENTRIES:])
        entries[_key(fingerprint, wanted)] = asdict(choice), _checksum(asdict(choice))
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._file.parent, delete=False) as file:
                json.dump(entries, file)
            Path(file.name).replace(self._file)
        except OSError:
            return

    def _read(self) -> dict[str, Any]:
        try:
            if self._file.stat().st_size > _LARGEST:
                return {}
            data = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return data if isinstance(data, dict) else {}


def cache_folder() -> Path:
    """Return the cache folder of this package."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ketrag-fast"


def _checksum(entry: Any) -> str:
    """Return a hash of an entry: one that was edited could name a kernel that this machine lacks."""
    return hashlib.blake2b(json.dumps(entry, sort_keys=True).encode(), digest_size=8).hexdigest()


def _key(fingerprint: str, wanted: str) -> str:
    """Return the key of an entry. It lists kernels too: a virtual machine may hide instructions."""
    return f"{fingerprint} {_core.__version__} {processor_name()} [{' '.join(kernels())}] {wanted}"


@dataclass(frozen=True, slots=True)
class EncoderKey:
    """The model and the options of an open encoder; `fingerprint` is a hash of the model's files."""

    fingerprint: str
    precision: str
    kernel: str


_open: Final[WeakValueDictionary[EncoderKey, Encoder]] = WeakValueDictionary()
_samples: Final[WeakKeyDictionary[Encoder, dict[str, Vectors]]] = WeakKeyDictionary()
_kept: Final[list[list[Encoder]]] = []


def share(key: EncoderKey, opened: Callable[[], Encoder]) -> Encoder:
    """Return the open encoder with this key, opening it if needed."""
    encoder = _open.get(key)
    if encoder is None:
        encoder = opened()
        _open[key] = encoder
    for held in _kept:
        held[:] = [encoder]
    return encoder


def sample_vectors(encoder: Encoder, prompt: str, embed: Callable[[], Vectors]) -> Vectors:
    """Return the vectors of the sample texts, which are embedded once by each encoder and prompt."""
    known = _samples.setdefault(encoder, {})
    if prompt not in known:
        known[prompt] = embed()
    return known[prompt]


@contextmanager
def keep_open() -> Iterator[None]:
    """Keep the encoder that was last used in this context open, even if no embedder uses it."""
    held: list[Encoder] = []
    _kept.append(held)
    try:
        yield
    finally:
        _kept[:] = [one for one in _kept if one is not held]
