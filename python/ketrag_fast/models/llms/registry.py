"""Open LLMs by spec: `llama-cpp:PATH.gguf`, `openai:MODEL@URL`; the LLMs of an open index.

`none`, `heuristic` and `replay:FILE.jsonl` are also values of the `llm` setting, but not models. Each kind of
model has a module with a function `open_model(spec, rest, options)`, imported on demand.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from ketrag_fast.base.config import Settings
from ketrag_fast.base.config.local_servers import spell_out
from ketrag_fast.base.config.settings import prices_of
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import BackendError, Cancelled, ConfigError, DeadlineExceeded
from ketrag_fast.models.spending import Account, SpendingLimit
from ketrag_fast.records import dataclass, field

if TYPE_CHECKING:
    from ketrag_fast.models.http.endpoints import RetryPolicy
    from ketrag_fast.models.llms.protocol import Cancel, LanguageModel, ModelIdentity

NONE: Final = "none"
HEURISTIC: Final = "heuristic"
REPLAY: Final = "replay"
_MODULES: Final = {
    "llama-cpp": "ketrag_fast.models.llms.llama.model",
    "openai": "ketrag_fast.models.llms.openai",
}
_FILES: Final = {"llama-cpp": "a GGUF model", REPLAY: "a recording"}
_FORMS: Final = (
    "none, heuristic, llama-cpp:PATH.gguf, openai:MODEL@URL, ollama:MODEL, lmstudio:MODEL, replay:FILE.jsonl"
)


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options for running a model. They do not change replies, so they are not part of the fingerprint.

    Args:
        slots: number of concurrent replies; 0 lets the backend choose.
        context: tokens of prompt and reply to reserve memory for; None is as many as needed.
        threads: number of threads; 0 is all cores.
        account: counts and limits the costs of an endpoint.
        retry: retry settings.
        cancel: called while the model is opened; returns True to raise Cancelled.
    """

    offline: bool = False
    slots: int = 0
    context: int | None = None
    threads: int = 0
    account: Account | None = None
    retry: RetryPolicy | None = None
    cancel: Cancel | None = None

    def __post_init__(self) -> None:
        if self.slots < 0 or self.threads < 0 or (self.context is not None and self.context < 1):
            raise ConfigError(
                "slots and threads must be at least 0 and context at least 1, "
                f"got {self.slots}, {self.threads} and {self.context}"
            )


def parse_spec(spec: str) -> tuple[str, str]:
    """Return (kind, rest) of a spec. Raises ConfigError, which lists the forms."""
    if spec in (NONE, HEURISTIC):
        return spec, ""
    kind, colon, rest = spell_out(spec).partition(":")
    if not colon or kind not in (*_MODULES, REPLAY) or not rest.strip():
        raise ConfigError(f"llm must be one of {_FORMS}, got {spec!r}")
    return kind, rest


def is_model(spec: str) -> bool:
    """Return whether a spec names a model. Raises ConfigError for an invalid spec."""
    return parse_spec(spec)[0] in _MODULES


def require_file(spec: str) -> None:
    """Raise BackendError if the file that a spec names is missing; opens nothing."""
    kind, rest = parse_spec(spec)
    if kind not in _FILES:
        return
    path = Path(rest if Path(rest).expanduser().exists() else rest.removesuffix("#plain")).expanduser()
    if not path.exists():
        raise BackendError(f"no such file: {path}", hint=f"give the path of {_FILES[kind]}")


def open_model(spec: str, options: ModelOptions | None = None) -> LanguageModel:
    """Open the model of a spec.

    Raises ConfigError (spec), BackendMissing (names the extra), BackendError (file or endpoint),
    NetworkForbidden.
    """
    spec = spell_out(spec)
    kind, rest = parse_spec(spec)
    if kind not in _MODULES:
        raise ConfigError(
            f"{spec!r} is not a language model",
            hint="use llama-cpp:PATH.gguf or openai:MODEL@URL",
        )
    opened = import_module(_MODULES[kind]).open_model(spec, rest, options or ModelOptions())
    return cast("LanguageModel", opened)


class Models:
    """The LLMs of an open index. Thread-safe. They share an `account` under the spending `limit`."""

    def __init__(self, settings: Settings) -> None:
        self.limit = SpendingLimit(settings.limit_usd)
        prices = None if settings.usd_per_million is None else prices_of(settings.usd_per_million)
        if prices is None:  # a limit without a price is an error when an endpoint is used, not on opening
            self.account = Account()
        else:
            self.account = Account(prices[1], self.limit, usd_per_million_out=prices[2])
        self._priced = prices is not None or settings.limit_usd is None
        self._settings = settings
        self._lock = threading.Lock()
        self._opened: dict[str, _Opened] = {}

    @contextmanager
    def lend(self, spec: str, seconds: float | None = None) -> Iterator[LanguageModel]:
        """Lend the opened model of a spec exclusively until the `with` ends.

        Raises DeadlineExceeded if opening it or waiting for other users takes longer than `seconds`.
        """
        opened = self._find(spec)
        limit = Limited(None, seconds, time.monotonic())
        left = limit.left
        if not opened.busy.acquire(timeout=-1 if left is None else left):
            raise DeadlineExceeded(
                f"{spec} was busy with other queries until the deadline",
                hint="give more seconds, or send fewer queries at once",
            )
        try:
            try:
                model = self._ready(spec, opened, None if seconds is None else lambda: limit.reached)
            except Cancelled:
                raise DeadlineExceeded(
                    f"{spec} was not opened before the deadline", hint="give more seconds, or another model"
                ) from None
            yield model
        finally:
            opened.busy.release()

    def open(self, spec: str, slots: int) -> LanguageModel:
        """Open the model of a spec once more, for many prompts at a time; the caller closes it."""
        self._require_price(spec)
        return self._open(spec, slots)

    def _open(self, spec: str, slots: int, cancel: Cancel | None = None) -> LanguageModel:
        options = ModelOptions(
            offline=self._settings.offline,
            slots=slots,
            context=self._settings.llm_context,
            threads=self._settings.threads,
            account=self.account,
            cancel=cancel,
        )
        return open_model(spec, options)

    def identity(self, spec: str) -> ModelIdentity:
        """Return the identity of the model of a spec; waits only if it is not open yet."""
        opened = self._find(spec)
        model = opened.model
        if model is None:
            with opened.busy:
                model = self._ready(spec, opened)
        return model.identity

    def _find(self, spec: str) -> _Opened:
        with self._lock:
            return self._opened.setdefault(spec, _Opened())

    def _ready(self, spec: str, opened: _Opened, cancel: Cancel | None = None) -> LanguageModel:
        """Open the model on first use; the caller holds its lock.

        With `cancel`, the weights of a local model are loaded too, and Cancelled is raised when `cancel`
        returns True.
        """
        from ketrag_fast.models.llms.protocol import Loadable

        if opened.model is None:
            self._require_price(spec)
            # One reply at a time: batching changes rounding, and a ranking must not depend on it.
            opened.model = self._open(spec, 1, cancel)
        if cancel is not None and isinstance(opened.model, Loadable):
            opened.model.load(cancel)
        return opened.model

    def _require_price(self, spec: str) -> None:
        """Raise ConfigError for an endpoint without a price if there is a limit in USD."""
        if not self._priced and parse_spec(spec)[0] == "openai":
            Account(None, self.limit)  # raises if the model has no price

    def close(self) -> None:
        """Close all models."""
        with self._lock:
            every, self._opened = self._opened, {}
        for opened in every.values():
            with opened.busy:
                if opened.model is not None:
                    opened.model.close()


@dataclass
class _Opened:
    """A model, once it is open, and the lock of its current user."""

    model: LanguageModel | None = None
    busy: threading.Lock = field(default_factory=threading.Lock)
