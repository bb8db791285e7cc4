"""Short names of programs that serve models on this machine: `ollama:MODEL`, `lmstudio:MODEL`.

Both programs have OpenAI's protocol, so a short name is another spelling of an endpoint on this machine. A
program on another machine, or with another port, is named by its address (`openai:MODEL@URL`).
"""

from __future__ import annotations

from typing import Final, TypeVar

T = TypeVar("T")

SERVERS: Final = {
    "ollama": "http://127.0.0.1:11434/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
}
"""The address that each program opens by default."""
SETTINGS: Final = frozenset({"embedder", "llm", "answer_llm"})
"""The settings that take such names."""


def spell_out(spec: T) -> T | str:
    """Return the endpoint of a short name; any other value is returned as it is.

    Examples:
        >>> from ketrag_fast.base.config.local_servers import spell_out
        >>> spell_out("ollama:llama3.2:3b")
        'openai:llama3.2:3b@http://127.0.0.1:11434/v1'
    """
    if not isinstance(spec, str):
        return spec
    program, _, model = spec.partition(":")
    if program not in SERVERS or not model.strip():
        return spec
    model, mark, options = model.partition("#")
    return f"openai:{model}@{SERVERS[program]}{mark}{options}"
