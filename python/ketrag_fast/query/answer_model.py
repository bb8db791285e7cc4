"""The language model that answers by the settings, before it is opened."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ModeUnavailable

if TYPE_CHECKING:
    from ketrag_fast.models.llms.open_models import Models


class AnswerModel:
    """The model of a spec, which the first answer opens."""

    def __init__(self, spec: str, models: Models, permit: Callable[[], None] | None = None) -> None:
        """Raise ModeUnavailable if the spec does not name a model.

        `permit` is called before the model is used, and raises if nothing may be sent to it.
        """
        from ketrag_fast.models.llms.registry import is_model

        if not is_model(spec):
            raise ModeUnavailable(
                f"writing text needs a language model, got {spec!r}",
                hint="name one: --llm llama-cpp:PATH.gguf or openai:MODEL@URL",
            )
        self.spec = spec
        self._models = models
        self._permit = permit

    def require_permission(self) -> None:
        """Raise EndpointNotConfirmed if the model is an endpoint that only the index names."""
        if self._permit is not None:
            self._permit()

    def open(self) -> None:
        """Open a model file, so that a wrong one is an error now. Loads no weights; contacts no endpoint.

        Raises BackendMissing, BackendError or ConfigError.
        """
        from ketrag_fast.models.llms.registry import parse_spec

        if parse_spec(self.spec)[0] != "openai":
            with self._models.lend(self.spec):
                pass


def answer_model_of(
    settings: Settings, models: Models, permit: Callable[[str], None] | None = None
) -> AnswerModel | None:
    """Return the language model that answers, or None.

    It is the setting `answer_llm`, else `llm` if that is a language model; "none" means no model. An
    extractive `answer_llm` writes nothing, so that `llm` is used. `permit` raises if nothing may be sent to
    the model of a spec that only the index names.
    """
    from ketrag_fast.models.extractive import is_extractive
    from ketrag_fast.models.llms.registry import NONE, is_model

    spec = settings.answer_llm
    if spec == NONE:
        return None
    if spec is None or is_extractive(spec):
        spec = settings.llm
        if not is_model(spec):
            return None
        if permit is not None:
            return AnswerModel(spec, models, partial(permit, spec))
    return AnswerModel(spec, models)
