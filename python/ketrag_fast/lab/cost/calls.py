"""Tokens and seconds of LLM calls: counted, timed on a few chunks, or estimated by rules."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import BackendError
from ketrag_fast.kernels.text import count_tokens
from ketrag_fast.lab.cost.estimate import RULES, SAMPLED, TIMED
from ketrag_fast.models.extraction.prompt import PromptOptions, build_prompt
from ketrag_fast.models.extraction.reader_choice import prompt_options
from ketrag_fast.models.extraction.schema import reply_schema
from ketrag_fast.models.llms.protocol import LanguageModel, Limits, Prompt
from ketrag_fast.models.llms.registry import ModelOptions, is_model, open_model

_FRAME: Final = 12
"""Approximate tokens that a chat template adds to a prompt."""
_COUNTED: Final = 200


@dataclass(frozen=True, slots=True)
class Calls:
    """Means per call. `seconds` is for a machine busy with many calls; None is unknown."""

    tokens_in: float
    tokens_out: float
    seconds: float | None
    basis_in: str
    basis_out: str
    timed: int = 0
    note: str | None = None


NO_CALLS: Final = Calls(0.0, 0.0, 0.0, "", "")


def reckon(chunks: Sequence[tuple[str, str]], settings: Settings, *, timed: int, spend: bool) -> Calls:
    """Return the means for the model of the settings. An endpoint is called only with `spend`.

    `chunks` are core chunks, the most important first. Raises BackendMissing or BackendError if a local model
    cannot be loaded.
    """
    if not is_model(settings.llm) or not chunks:
        return NO_CALLS
    options = prompt_options(settings)
    step = max(len(chunks) // _COUNTED, 1)
    prompts = [build_prompt(n, title, text, options) for n, (title, text) in enumerate(chunks[::step])]
    remote = not settings.llm.startswith("llama-cpp:")
    if remote and not spend:
        note = (
            f"{settings.llm} was not timed, because that may cost money: --spend times "
            f"{timed} call{'' if timed == 1 else 's'}"
        )
        said = fmean(_reply_tokens_by_rules(title, text, options) for title, text in chunks[::step])
        return Calls(_prompt_tokens(prompts), said, None, f"{SAMPLED}, in cl100k tokens", RULES, note=note)
    model = open_model(
        settings.llm,
        ModelOptions(
            offline=settings.offline,
            slots=settings.llm_slots,
            context=settings.llm_context,
            threads=settings.threads,
        ),
    )
    try:
        return _time_calls(model, prompts, settings, options, timed)
    finally:
        model.close()


def _time_calls(
    model: LanguageModel, prompts: Sequence[Prompt], settings: Settings, options: PromptOptions, most: int
) -> Calls:
    """Time a few calls, spread over the chunks; the first one also loads the model and does not count."""
    step = max(len(prompts) // max(most + 1, 1), 1)
    chosen = list(prompts[::step][: most + 1])
    limits = Limits(settings.llm_tokens, settings.llm_seconds, reply_schema(options))
    first = list(model.replies(chosen[:1], limits))
    begin = time.monotonic()
    replies = list(model.replies(chosen[1:], limits)) or first
    took = time.monotonic() - begin if len(chosen) > 1 else sum(reply.seconds for reply in first)
    good = [reply for reply in replies if reply.finish != "error"]
    if not good:
        raise BackendError(f"{settings.llm} answered none of {len(chosen)} calls: {replies[0].error}")
    counted = fmean(model.count(prompt.text) for prompt in prompts) - fmean(
        model.count(prompt.text) for prompt in chosen
    )
    sent = fmean(reply.tokens_in for reply in good) + counted
    return Calls(
        sent, fmean(r.tokens_out for r in good), took / len(replies), TIMED, TIMED, timed=len(chosen)
    )


def _prompt_tokens(prompts: Sequence[Prompt]) -> float:
    head = _count([prompts[0].instructions])[0]
    return head + fmean(_count([prompt.text for prompt in prompts])) + _FRAME


def _reply_tokens_by_rules(title: str, text: str, options: PromptOptions) -> float:
    """Return the number of tokens of the reply that the rules would give."""
    from ketrag_fast.models.extraction.heuristic import extract

    found = extract(title, text, options.language)
    entities = [list(entity) for entity in found.entities]
    relations = [list(relation) for relation in found.relations]
    value = {"e": entities, "r": relations}
    return float(_count([json.dumps(value, ensure_ascii=False, separators=(",", ":"))])[0])


def _count(texts: Sequence[str]) -> list[int]:
    counted: list[int] = count_tokens(texts).tolist()
    return counted
