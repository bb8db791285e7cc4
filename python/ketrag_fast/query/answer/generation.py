"""Generation of an answer from a context by a language model, with its citations read as it streams."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import BackendError, Cancelled, DeadlineExceeded
from ketrag_fast.kernels import sentence_spans
from ketrag_fast.models.llms.protocol import LanguageModel, Loadable, ModelReply, Prompt
from ketrag_fast.models.llms.registry import Models
from ketrag_fast.models.tasks.driver import Driver
from ketrag_fast.models.tasks.task import ParsedReply, Task
from ketrag_fast.query.answer.forms import FREE, Form
from ketrag_fast.query.answer.grounding import Grounds, Support
from ketrag_fast.query.answer.prompt import NOTHING, CitationReader, fence_in, fitting, instructions
from ketrag_fast.secrets import Cover, redact_all
from ketrag_fast.types import Answer, AnswerSentence, Citation, Context

OnText = Callable[[str], bool | None]
"""Receives an answer piece by piece; False stops it."""
TOKENS: Final = 512
"""Maximum length of an answer."""
SECONDS: Final = 300.0
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that move a terminal's cursor or end a text; line breaks and tabs are kept."""


UNSUPPORTED: Final = "[?]"
"""The mark of a sentence that no passage supports."""
_MARKS: Final = r"(?: {0,8}\[(?:\d{1,9}|\?)\])"
_MARK: Final = re.compile(_MARKS)
_FALSE_MARK: Final = re.compile(r" {0,8}\[\?\]")
_NUMBER: Final = re.compile(r"\[(\d{1,9})\]")
_QUOTES: Final = "\"'”’»)*_`"
_STOPS: Final = ".!?…。！？:;,"
_ENDS: Final = re.compile(
    rf"\n|(?<![.!?…])[.!?…]++[{_QUOTES}]*+{_MARKS}*+[^\S\n]++(?=[^\s\[]|\[[^\d?])"
    rf"|(?<![。！？])[。！？]++[{_QUOTES}]*+{_MARKS}*+(?=[^\s\[{_QUOTES}])"
)
"""Where a sentence may end: a line break, or a mark with what closes it, before what follows."""
_LISTED: Final = re.compile(r"\s*(?:\d{1,3}|[A-Za-z])[.)]\s*")
"""The number of a list item, which is not a sentence."""
_BEFORE: Final = "It was a long time ago that the rest of this was written by "
_AFTER: Final = " Then it went on and on."
_LONGEST: Final = 4000
"""Maximum number of characters of a sentence; a longer one is cut."""
_UNCHECKED: Final = re.compile(
    r"\s*(?:#{1,6} |\||[-*_=]{3,}(?:\s|$)|\[[a-z](?:\s*[,;>]\s*[a-z])*\]\s*$)", re.IGNORECASE
)
"""A heading, a row, a rule or fence, or the ranking of options."""
_OF_PASSAGES: Final = r"\b(?:passages?|documents?|sources?|context|texts?|information)\b"
_NOT: Final = r"(?:\b(?:not|no|none|insufficient|cannot)\b|n['’]t\b)"
_HOLD_NOTHING: Final = re.compile(
    rf"{_OF_PASSAGES}.{{0,60}}{_NOT}|{_NOT}.{{0,60}}{_OF_PASSAGES}", re.IGNORECASE | re.DOTALL
)
"""A statement about what the passages do not have."""
_FENCE: Final = ("```", "~~~")


def answer_by(
    models: Models,
    spec: str,
    context: Context,
    *,
    seconds: float | None = SECONDS,
    deadline: float | None = None,
    **options: Any,
) -> Answer:
    """Return the answer of the model that a spec names; `seconds` includes opening it.

    Raises what opening the model raises, and DeadlineExceeded if that, or waiting for other queries, takes
    all the time. The other options are those of `answer`.
    """
    limit = _limit(seconds, deadline)
    with models.lend(spec, limit.left) as model:
        before = models.account.usd
        result = answer(context, model, seconds=limit.left, **options)
        after = models.account.usd
    return result if before is None or after is None else replace(result, usd=after - before)


def answer_without_model(context: Context, reason: str | None = None) -> Answer:
    """Return the answer if no model is called: there is none, or the context has no passages."""
    return Answer(
        context.question,
        "" if reason else NOTHING,
        context,
        reason=reason or context.reason or "no_match",
        timings_ms=dict(context.timings_ms),
        warnings=context.warnings,
    )


def answer_task(tokens: int, seconds: float | None, form: Form = FREE) -> Task[str, str]:
    """Return the task for the model: the question after its passages, answered in text with citations."""
    return Task(
        name="answer",
        version=1,
        instructions=instructions(form),
        text=str,
        parse=lambda _, text, finish: ParsedReply(text),
        tokens=tokens,
        seconds=seconds,
        subject="the question with its passages",
        activity="answering",
    )


def answer(
    context: Context,
    model: LanguageModel,
    *,
    tokens: int = TOKENS,
    seconds: float | None = SECONDS,
    deadline: float | None = None,
    on_text: OnText | None = None,
    form: Form = FREE,
    languages: Sequence[int] = (),
) -> Answer:
    """Return the model's answer from a context with passages, with its sentences checked.

    Args:
        context: The passages to answer from.
        model: An open model.
        tokens: Maximum length of the answer.
        seconds: Time limit of the reply.
        deadline: Seconds left of the query's deadline. What has been generated by then is the answer, with a
            warning that it was cut.
        on_text: Receives the answer piece by piece; False stops it.
        form: What the answer begins with.
        languages: Numbers of the index's languages; none if all texts are English.

    Raises:
        BackendError: The model fails.
        DeadlineExceeded: The model was not loaded in time.
    """
    limit = _limit(seconds, deadline)
    _load(model, limit)
    prompt, used = fitting(context, model, tokens, form)
    tables = [section.text for section in context.sections if not section.passages]
    grounds = Grounds(context.question, context.passages[:used], tables, languages)
    stream = _AnswerStream(CitationReader(used), AnswerChecker(grounds), on_text)
    try:
        reply = Driver(model, limit=limit).stream(
            prompt, answer_task(tokens, limit.left, form).limits, stream.feed
        )
    except BackendError as error:
        if error.hint is None:
            error.hint = "try again, or use --llm none to print the passages alone"
        raise
    stream.finish(is_cut=reply.finish != "stop")
    finish = "time" if reply.finish == "cancelled" and limit.reached else reply.finish
    return _build_answer(context, model, form, stream, reply, finish, prompt, used)


def _limit(seconds: float | None, deadline: float | None) -> Limited:
    """Return the limit of a reply, which starts now."""
    limits = [bound for bound in (seconds, deadline) if bound is not None]
    return Limited(None, min(limits) if limits else None, time.monotonic())


def _load(model: LanguageModel, limit: Limited) -> None:
    """Load a model within the limit; otherwise counting the prompt's tokens would, without a limit."""
    if not isinstance(model, Loadable):
        return
    try:
        model.load(lambda: limit.reached)
    except Cancelled:
        raise DeadlineExceeded(
            f"{model.identity.spec} was not loaded in time", hint="allow more time, or use another model"
        ) from None


@dataclass(slots=True)
class _AnswerStream:
    """The text of an answer as it arrives: sentences checked, control characters and keys removed."""

    reader: CitationReader
    checker: AnswerChecker
    on_text: OnText | None
    pieces: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)
    first: float | None = None
    """Seconds until the first piece."""
    _cover: Cover = field(default_factory=Cover)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def feed(self, piece: str) -> bool:
        """Take a piece of the reply. Returns whether to go on."""
        return self._emit(self._cover.feed(self.checker.feed(_CONTROL.sub("", self.reader.feed(piece)))))

    def finish(self, *, is_cut: bool) -> None:
        """Process the end of the reply."""
        self._emit(self._cover.feed(self.checker.feed(_CONTROL.sub("", self.reader.finish()))))
        self._emit(self._cover.feed(self.checker.finish(is_cut=is_cut)))
        self._emit(self._cover.finish())

    def _emit(self, text: str) -> bool:
        if not text:
            return True
        if self.first is None:
            self.first = time.perf_counter() - self.started
        self.pieces.append(text)
        return self.on_text is None or self.on_text(text) is not False


def _build_answer(
    context: Context,
    model: LanguageModel,
    form: Form,
    stream: _AnswerStream,
    reply: ModelReply,
    finish: str,
    prompt: Prompt,
    used: int,
) -> Answer:
    """Return the answer of a reply, with warnings about what went wrong."""
    elapsed = time.perf_counter() - stream.started
    passages, checker = context.passages, stream.checker
    warnings = list(context.warnings)
    if used < len(passages):
        warnings.append(f"the model's context holds {used} of the {len(passages)} passages")
    if fence_in(prompt) in stream.text:
        warnings.append("the answer repeats the marks between passages, which no answer needs")
    if finish != "stop":
        warnings.append(f"the answer was cut ({finish})")
    text = stream.text.strip()
    return Answer(
        context.question,
        text,
        context,
        tuple(Citation(number, passages[number - 1]) for number in checker.cited),
        stream.reader.removed,
        used,
        None,
        finish,
        {"spec": model.identity.spec, "fingerprint": model.identity.fingerprint},
        reply.tokens_in,
        reply.tokens_out,
        reply.tokens_shared,
        timings_ms={
            **context.timings_ms,
            "first": 1e3 * (stream.first or elapsed),
            "model": 1e3 * elapsed,
        },
        warnings=tuple(warnings),
        decision=form.decision(text),
        ranking=form.ranking(text),
        sentences=tuple(replace(sentence, text=redact_all(sentence.text)) for sentence in checker.sentences),
    )


class AnswerChecker:
    """Checks the sentences of an answer.

    Attributes:
        cited: Numbers of cited passages, each once, in order of first use.
        sentences: The sentences so far.
    """

    def __init__(self, grounds: Grounds) -> None:
        self._grounds = grounds
        self._held = ""
        self._returned = 0  # characters of `_held`
        self._is_code = False
        self.cited: list[int] = []
        self.sentences: list[AnswerSentence] = []

    def feed(self, text: str) -> str:
        """Take text whose citations are complete, and return the text that is final so far."""
        self._held += text
        parts = []
        while (end := self._end_of_sentence()) is not None:
            parts.append(self._close(end))
        mark = _MARK.search(self._held)
        live = mark.start() if mark else len(self._held)
        while live > self._returned and (self._held[live - 1] in _WAITING or self._held[live - 1].isspace()):
            live -= 1
        parts.append(self._held[self._returned : live])
        self._returned = max(live, self._returned)
        return "".join(parts)

    def finish(self, *, is_cut: bool = False) -> str:
        """Return the rest at the end of the answer. Of one that is cut the last word may be a part of one."""
        return self._close(len(self._held), is_cut=is_cut) if self._held else ""

    def _end_of_sentence(self) -> int | None:
        """Return where the first sentence of the held text ends, with its blanks; None if that is unknown."""
        for found in _ENDS.finditer(self._held):
            end = found.end()
            if end > _LONGEST:
                break
            if found[0] == "\n":
                return end
            sentence = self._held[:end].strip()
            if self._held[end].islower() or _LISTED.fullmatch(sentence):
                continue
            text = _BEFORE + _MARK.sub("", sentence).strip()
            if sentence_spans(text + _AFTER)[-1][0] > len(text):
                return end
        return _LONGEST if len(self._held) > _LONGEST + 1 else None

    def _close(self, end: int, *, is_cut: bool = False) -> str:
        """Check the sentence up to `end`, and return what of it was not returned yet."""
        whole, self._held = self._held[:end], self._held[end:]
        text = self._checked(whole, is_cut=is_cut)
        returned, self._returned = self._returned, 0
        return text[returned:]

    def _checked(self, whole: str, *, is_cut: bool) -> str:
        """Return a sentence with the right marks. The last word of one that is cut is not compared."""
        plain = _MARK.sub("", whole)
        if not plain.strip():
            return whole
        is_fence = plain.lstrip().startswith(_FENCE)
        self._is_code ^= is_fence
        support = Support((), None)
        if not (is_fence or self._is_code or _is_unchecked(plain)):
            compared = plain.rstrip()
            if is_cut and compared[-1] not in _WAITING:
                compared = compared[: -len(compared.split()[-1])]
            support = self._grounds.check(compared, [int(number) for number in _NUMBER.findall(whole)])
        text = _FALSE_MARK.sub("", whole) if support.is_supported is None else _with_marks(whole, support)
        numbers = tuple(dict.fromkeys(int(number) for number in _NUMBER.findall(text)))
        self.cited += [number for number in numbers if number not in self.cited]
        self.sentences.append(AnswerSentence(plain.strip(), numbers, support.is_supported))
        return text


_WAITING: Final = frozenset(_QUOTES + _STOPS)
"""Characters that are returned with the citations before or after them."""


def _is_unchecked(plain: str) -> bool:
    """Return whether a sentence states nothing that a passage could support."""
    return (
        _UNCHECKED.match(plain) is not None
        or plain.rstrip().rstrip("*_").endswith((":", "：", "?", "？"))
        or _HOLD_NOTHING.search(plain) is not None
    )


def _with_marks(whole: str, support: Support) -> str:
    """Return a sentence with the right marks: those that it has, and others at its end."""
    missing = list(support.numbers)

    def keep(found: re.Match[str]) -> str:
        number = _NUMBER.search(found[0])
        if number is None or int(number[1]) not in missing:
            return ""
        missing.remove(int(number[1]))
        return found[0]

    text = _MARK.sub(keep, whole)
    added = "".join(f"[{number}]" for number in missing) if support.is_supported else UNSUPPORTED
    if not added:
        return text
    body = text.rstrip()
    marks = list(_MARK.finditer(body))
    if marks and not body[marks[-1].end() :].strip(_QUOTES + _STOPS):
        at, blank = marks[-1].end(), ""
    else:
        end = body.rstrip(_QUOTES)
        # Before the full stop, but after a quote or bracket that ends with one.
        at, blank = len(end.rstrip(_STOPS)) if end == body else len(body), " "
    return f"{text[:at]}{blank}{added}{text[at:]}"
