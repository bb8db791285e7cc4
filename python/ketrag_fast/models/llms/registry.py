"""Open LLMs by spec: `llama-cpp:PATH.gguf`, `openai:MODEL@URL`.

`none`, `heuristic` and `replay:FILE.jsonl` are also values of the `llm` setting, but not models. Each kind of
model has a module with a function `open_model(spec, rest, options)`, imported on demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, cast

from ketrag_fast.errors import BackendError, ConfigError
from ketrag_fast.models.http.retry import RetryPolicy
from ketrag_fast.models.llms.protocol import Cancel, LanguageModel
from ketrag_fast.models.spending import Account

NONE: Final = "none"
HEURISTIC: Final = "heuristic"
REPLAY: Final = "replay"
_MODULES: Final = {
    "llama-cpp": "ketrag_fast.models.llms.llama.model",
    "openai": "ketrag_fast.models.llms.openai",
}
_FILES: Final = {"llama-cpp": "a GGUF model", REPLAY: "a recording"}
_FORMS: Final = "none, heuristic, llama-cpp:PATH.gguf, openai:MODEL@URL, replay:FILE.jsonl"


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
    kind, colon, rest = spec.partition(":")
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
    kind, rest = parse_spec(spec)
    if kind not in _MODULES:
        raise ConfigError(
            f"{spec!r} is not a language model",
            hint="use llama-cpp:PATH.gguf or openai:MODEL@URL",
        )
    opened = import_module(_MODULES[kind]).open_model(spec, rest, options or ModelOptions())
    return cast("LanguageModel", opened)
