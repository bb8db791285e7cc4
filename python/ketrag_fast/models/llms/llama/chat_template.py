"""Apply the chat template of a model so that no text can be mistaken for a part of the template.

The template is rendered once around marks instead of the contents. Only the text between the marks may
contain control tokens of the model, so "<|im_end|>" in a document is plain text. The template is untrusted:
it runs in Jinja's sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from ketrag_fast.errors import BackendError
from ketrag_fast.models.llms.protocol import Prompt
from ketrag_fast.models.optional_imports import import_quietly
from ketrag_fast.records import dataclass

PLAIN: Final = "plain"
_MARK: Final = "[[ketrag-{}]]"


@dataclass(frozen=True, slots=True)
class TemplatePiece:
    """A part of a prompt; with `own` it is from the template and may contain control tokens."""

    text: str
    own: bool


class ChatTemplate:
    """Splits prompts into pieces. Without a `source`, prompts are plain paragraphs."""

    def __init__(self, source: str | None, bos: str, eos: str) -> None:
        self.name = PLAIN if source is None else "model"
        self._bos, self._eos = bos, eos
        self._template = None if source is None else _compile(source)
        self._known: dict[int, list[str]] = {}
        self._system = True
        self._tools: list[Any] | None = None
        if self._template is not None:
            self._choose()

    def _choose(self) -> None:
        """Find out whether the template supports a system message and needs tools."""
        first: BackendError | None = None
        for turns in (1, 0):
            for self._system, self._tools in ((True, None), (True, []), (False, None), (False, [])):
                self._known.clear()
                try:
                    self._frame(0)
                    self._frame(turns)
                except BackendError as error:
                    first = first or error
                else:
                    return
        if first is not None:
            raise first

    def pieces(self, prompt: Prompt) -> tuple[list[TemplatePiece], list[TemplatePiece]]:
        """Return the beginning that prompts with these instructions share, and the rest up to the reply."""
        contents = [
            prompt.instructions.strip(),
            prompt.text,
            *(text for turn in prompt.turns for text in turn),
        ]
        if self._template is None:
            frame = ["", *["\n\n"] * len(contents)]
        else:
            frame = self._frame(len(prompt.turns))
        out = [
            piece
            for own, text in zip(frame, [*contents, ""], strict=True)
            for piece in (TemplatePiece(own, own=True), TemplatePiece(text, own=False))
        ]
        return [p for p in out[:3] if p.text], [p for p in out[3:] if p.text]

    def begins_with_bos(self) -> bool:
        """Return whether the template includes the BOS token."""
        return bool(self._bos) and self._template is not None and self._frame(0)[0].startswith(self._bos)

    def _frame(self, turns: int) -> list[str]:
        """Return the template parts: before the instructions, between the contents, and at the end."""
        if turns not in self._known:
            marks = [_MARK.format(n) for n in range(2 + 2 * turns)]
            self._known[turns] = _split_at_marks(self._render(self._messages(marks)), marks)
        return self._known[turns]

    def _messages(self, marks: Sequence[str]) -> list[dict[str, str]]:
        first = [{"role": "system", "content": marks[0]}, {"role": "user", "content": marks[1]}]
        if not self._system:
            first = [{"role": "user", "content": f"{marks[0]}\n\n{marks[1]}"}]
        roles = ("assistant", "user")
        return [*first, *({"role": roles[n % 2], "content": mark} for n, mark in enumerate(marks[2:]))]

    def _render(self, messages: list[dict[str, str]]) -> str:
        try:
            text = self._template.render(  # type: ignore[union-attr]
                messages=messages,
                add_generation_prompt=True,
                bos_token=self._bos,
                eos_token=self._eos,
                enable_thinking=False,  # a grammar does not allow thoughts
                tools=self._tools,
                documents=None,
            )
        except Exception as error:  # an untrusted template may raise anything
            raise BackendError(
                f"the model's chat template cannot be used: {type(error).__name__}: {error}",
                hint="use an instruct model, or ask it in plain paragraphs: llama-cpp:PATH.gguf#plain",
            ) from error
        return str(text)


def _compile(source: str) -> Any:
    jinja: Any = import_quietly("jinja2", "llm")
    sandbox: Any = import_quietly("jinja2.sandbox", "llm")

    def refuse(message: str) -> None:
        raise jinja.TemplateError(message)

    # Marks what a model is trained to write; its content counts, the tag does not.
    generation = type(
        "Generation",
        (import_quietly("jinja2.ext", "llm").Extension,),
        {"tags": {"generation"}, "parse": _content},
    )
    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", generation],
        autoescape=False,
    )
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda _: "2026-01-01"  # prompts must not depend on the date
    environment.filters["tojson"] = lambda value, **named: json.dumps(
        value, ensure_ascii=False, indent=named.get("indent")
    )
    try:
        return environment.from_string(source)
    except jinja.TemplateError as error:
        raise BackendError(
            f"the model's chat template is not valid: {error}",
            hint="use another file of the model, or plain paragraphs: llama-cpp:PATH.gguf#plain",
        ) from error


def _content(_: Any, parser: Any) -> Any:
    next(parser.stream)
    return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _split_at_marks(text: str, marks: Sequence[str]) -> list[str]:
    parts: list[str] = []
    for mark in marks:
        before, found, text = text.partition(mark)
        if not found or mark in text:
            raise BackendError(
                "the model's chat template leaves out a message or repeats one",
                hint="use an instruct model, or ask it in plain paragraphs: llama-cpp:PATH.gguf#plain",
            )
        parts.append(before)
    return [*parts, text]
