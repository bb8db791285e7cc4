"""`ketrag serve` and `ketrag mcp`: serve indexes over HTTP, and offer them to an assistant."""

from __future__ import annotations

import logging
import os
import signal
import sys
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.assistants import ASSISTANTS, SKILL, Edit, edits, lines, write
from ketrag_fast.apps.cli.command import EMBEDDER, Command, answering, embedding, option, switch, topic
from ketrag_fast.apps.terminal import inline, one_line
from ketrag_fast.base.installed import install_command
from ketrag_fast.errors import BackendMissing, ConfigError, IndexLocked

if TYPE_CHECKING:
    from socket import socket

    from ketrag_fast.apps.server.options import ServerOptions

DEFAULT_FOLDER: Final = ".ketrag"
_MOST_PORT: Final = 65_535
_MOST_WORKERS: Final = 256
_SERVICE: Final = "service"
_HTTP: Final = "HTTP"
_INSTALLATION: Final = "installation"


def _declare_indexes() -> Any:
    return option(
        "[NAME=]DIR",
        "index folder and its name; repeatable (default: $KETRAG_INDEX, ./.ketrag, else all collections)",
        "-i",
        "--index",
    )


def _declare_host(group: str) -> Any:
    return option(None, "address to listen on (default 127.0.0.1)", group=group, default="127.0.0.1")


def _declare_port(group: str, port: int) -> Any:
    return option("N", f"port; 0: any free one (default {port})", group=group, default=port)


def _declare_token_file(group: str) -> Any:
    return option("FILE", "file with the token that clients send (default: $KETRAG_TOKEN)", group=group)


def _declare_allow_host(group: str) -> Any:
    return option("NAME", "host name that clients use for this server; repeatable", group=group, rare=True)


def _limit(flag: str, text: str, metavar: str = "N") -> Any:
    return option(metavar, text, flag, rare=True, group="limits of each worker")


_RETRIEVAL: Final = topic("retrieval", "query", shown=("mode", "budget", "filter", "allow"))
_LIMITS: Final = (
    *("concurrency", "queue", "answers", "batch", "body", "questions", "budget", "connections"),
    *("deadline", "answer_seconds", "read_seconds", "slow_seconds"),
)
"""Limits that are fields of `ServerOptions`, too."""


class Serve(Command):
    """Serve indexes over HTTP: passages, answers, graphs, the OpenAI protocol and a web page. Only this
    machine can connect unless --host is given, which requires a token."""

    examples = (
        "ketrag serve -i docs-index",
        "ketrag serve -i notes=./notes -i laws=./laws --llm llama-cpp:model.gguf --workers 2",
        "ketrag serve -i docs-index --host 0.0.0.0 --token-file token",
        "ketrag serve -i docs-index --users users.jsonl --log json",
    )
    indexes: tuple[str, ...] = _declare_indexes()
    host: str = _declare_host(_SERVICE)
    port: int = _declare_port(_SERVICE, 8765)
    workers: int = option("N", "processes; they share the index files (default 1)", group=_SERVICE, default=1)
    token_file: str | None = _declare_token_file(_SERVICE)
    users: str | None = option(
        "FILE", "file with users, each with a token, documents and abilities (`ketrag users`)", group=_SERVICE
    )
    allow_write: bool = switch(
        "let clients add documents; an index of -i that does not exist is created empty", group=_SERVICE
    )
    allow_copies: bool = switch(
        "let clients that query this service together with others keep copies of small indexes",
        group=_SERVICE,
    )
    log: str | None = option(
        None,
        "write a line for each request to stderr; without it, only slow and refused ones",
        group=_SERVICE,
        choices=("text", "json"),
    )
    log_questions: bool = switch("add the question to the lines of --log", group=_SERVICE, rare=True)
    slow_seconds: float | None = _limit(
        "--slow-seconds", "requests that take longer are logged as slow (default 5)", "X"
    )
    allow_host: tuple[str, ...] = _declare_allow_host(_SERVICE)
    allow_origin: tuple[str, ...] = option(
        "URL", "web site whose pages may use this server; repeatable", group=_SERVICE, rare=True
    )
    concurrency: int | None = _limit(
        "--concurrency", "queries run in parallel (default: number of CPU cores)"
    )
    queue: int | None = _limit("--queue", "queries that may wait; more get status 429 (default 512)")
    answers: int | None = _limit("--answer-queue", "LLM answers that may wait (default 8)")
    batch: int | None = _limit("--batch", "queries run in one batch (default 8, with an embedding model 32)")
    body: int | None = _limit("--max-body", "maximum bytes of a request (default 1,000,000)")
    questions: int | None = _limit("--max-questions", "maximum queries in one request (default 256)")
    budget: int | None = _limit(
        "--max-budget", "maximum context budget of a request in tokens (default 100,000)"
    )
    connections: int | None = _limit("--max-connections", "maximum open connections (default 1,024)")
    deadline: float | None = _limit("--request-seconds", "time limit of retrieval (default 30)", "X")
    answer_seconds: float | None = _limit("--answer-seconds", "time limit of an answer (default 300)", "X")
    read_seconds: float | None = _limit(
        "--read-seconds", "time limit for receiving a request (default 10)", "X"
    )
    cache_mb: float | None = _limit("--cache-mb", "size of the reply cache in MB (default 64)", "X")
    language_model = answering("llm")
    retrieval = _RETRIEVAL
    embedder = EMBEDDER
    model = embedding()

    @property
    def named_index(self) -> str | None:
        """The folder of the only index."""
        return self.indexes[0].rpartition("=")[2] if len(self.indexes) == 1 else None

    def run(self) -> int:
        """Serve until a signal ends it."""
        try:
            from ketrag_fast.apps.server.options import ServerOptions, parse_indexes
            from ketrag_fast.apps.server.running import serve
            from ketrag_fast.apps.server.workers import Supervisor
        except ImportError as error:
            raise _missing("serve", error) from None
        if not 0 <= self.port <= _MOST_PORT or not 1 <= self.workers <= _MOST_WORKERS:
            raise ConfigError(
                f"--port must be from 0 to {_MOST_PORT:,} and --workers from 1 to {_MOST_WORKERS}, "
                f"got {self.port} and {self.workers}"
            )
        if self.workers > 1 and os.name == "nt":
            raise ConfigError(
                f"--workers {self.workers}: Windows supports one worker only", hint="leave --workers out"
            )
        limits = {name: getattr(self, name) for name in _LIMITS if getattr(self, name) is not None}
        for name, value in limits.items():
            if value <= 0:
                flag = self.declared[name].metadata["flags"][0]
                raise ConfigError(f"{flag} must be above 0, got {value:g}")
        if self.cache_mb is not None:
            limits["cache"] = max(0, int(1e6 * self.cache_mb))
        given = ServerOptions(
            indexes=parse_indexes(_served_indexes(self, self.indexes)),
            settings=options.query_settings_of(self).given,
            host=self.host,
            port=self.port,
            workers=self.workers,
            writable=self.allow_write,
            copies=self.allow_copies,
            users=self.users,
            log=self.log,
            log_questions=self.log_questions,
            hosts=self.allow_host,
            origins=self.allow_origin,
            **limits,
        )
        logging.basicConfig(
            format="ketrag: %(message)s", level=logging.INFO if self.verbose else logging.WARNING
        )
        token, sockets, address = _open_sockets(given, self.token_file)
        if self.allow_write and self.indexes:
            self._create_missing(tuple(given.indexes.values()))

        def started() -> None:
            if not self.quiet:
                names = ", ".join(inline(name) for name in given.indexes)
                output.say(f"serving {names} at {address}")

        if given.workers == 1:
            serve(given, token, sockets[0], on_start=started)
        else:
            Supervisor(given, token, sockets, on_start=started).run()
        return 0

    def _create_missing(self, folders: tuple[str, ...]) -> None:
        """Create an empty index in each folder that does not exist, for clients to fill."""
        from ketrag_fast import Index

        for folder in folders:
            if not os.path.lexists(folder):
                Index.build([], folder).close()
                if not self.quiet:
                    output.say(f"created an empty index in {inline(folder)}")


def _missing(command: str, error: ImportError) -> BackendMissing:
    return BackendMissing(
        f"ketrag {command} needs the package {error.name}, which is not installed",
        hint=install_command("server"),
    )


def _served_indexes(command: Command, given: tuple[str, ...]) -> list[str]:
    """Return the indexes of a server as NAME=DIR; by default those that a search would use."""
    if given:
        return list(given)
    named = [f"{name}={path}" for name, path in options.collection_paths(command).items()]
    return named or [os.environ.get("KETRAG_INDEX") or DEFAULT_FOLDER]


def _open_sockets(given: ServerOptions, token_file: str | None) -> tuple[str | None, list[socket], str]:
    """Return the token, the listening sockets, and the URL of a service."""
    from ketrag_fast.apps.server.running import listen_sockets, token_of

    if token_file is not None and not Path(token_file).exists():
        raise ConfigError(
            f"--token-file {token_file}: no such file", hint="for example: openssl rand -hex 32 > token"
        )
    token = token_of(token_file, given.host, has_users=given.users is not None)
    sockets = listen_sockets(given.host, given.port, given.workers)
    host = f"[{given.host}]" if ":" in given.host else given.host
    return token, sockets, f"http://{host}:{sockets[0].getsockname()[1]}"


class Mcp(Command):
    """Offer indexes to an assistant by the Model Context Protocol: search, read, grep, list, themes, and ask
    if there is a model. Over standard input and output, or over HTTP with --http. --install writes the
    settings of an assistant."""

    examples = (
        "ketrag mcp --install claude-code",
        "ketrag mcp --install codex --user -c notes --print",
        "ketrag mcp -i notes=./notes -i laws=./laws --llm llama-cpp:model.gguf",
        "ketrag mcp -i docs-index --http --port 8766",
    )
    install: str | None = option(
        "ASSISTANT",
        "add the server to the settings of an assistant, and a skill that says when to use which tool: "
        + ", ".join(ASSISTANTS),
        group=_INSTALLATION,
        choices=tuple(ASSISTANTS),
    )
    user: bool = switch("for all projects, not only for the working directory", group=_INSTALLATION)
    print: bool = switch("print what to add, and write nothing", group=_INSTALLATION)
    yes: bool = switch("write without asking", group=_INSTALLATION)
    indexes: tuple[str, ...] = _declare_indexes()
    http: bool = switch("listen on a port instead of standard input", group=_HTTP)
    host: str = _declare_host(_HTTP)
    port: int = _declare_port(_HTTP, 8766)
    token_file: str | None = _declare_token_file(_HTTP)
    users: str | None = option(
        "FILE", "file with users, each with a token and documents (`ketrag users`)", group=_HTTP
    )
    allow_host: tuple[str, ...] = _declare_allow_host(_HTTP)
    language_model = answering("llm")
    retrieval = _RETRIEVAL
    embedder = EMBEDDER
    model = embedding()

    named_index = Serve.named_index

    def run(self) -> int:
        """Serve until the client disconnects or until Ctrl-C, which is the normal end."""
        if self.install is not None:
            return self._install(self.install)
        for name, given in (("user", self.user), ("print", self.print), ("yes", self.yes)):
            if given:
                raise ConfigError(f"--{name} needs --install", hint=f"--install {next(iter(ASSISTANTS))}")
        with suppress(KeyboardInterrupt):
            self._serve()
        return 0

    def _serve(self) -> None:
        try:
            from ketrag_fast.apps.server.mcp_tools import create_mcp_app, over_pipes
            from ketrag_fast.apps.server.options import ServerOptions, parse_indexes

            if self.http:
                from ketrag_fast.apps.server.running import serve
        except ImportError as error:
            raise _missing("mcp", error) from None
        if not 0 <= self.port <= _MOST_PORT:
            raise ConfigError(f"--port must be from 0 to {_MOST_PORT:,}, got {self.port}")
        if self.users is not None and not self.http:
            raise ConfigError("--users needs --http: over standard input the only caller is you")
        folders = _served_indexes(self, self.indexes)
        if folders == [DEFAULT_FOLDER] and not self.http:
            self._begin_index()
        given = ServerOptions(
            indexes=parse_indexes(folders),
            settings=options.query_settings_of(self).given,
            host=self.host,
            port=self.port,
            users=self.users,
            hosts=self.allow_host,
            front=False,
        )
        logging.basicConfig(format="ketrag: %(message)s", level=logging.WARNING)
        if not self.http:
            # The thread that waits for standard input cannot be interrupted.
            before = signal.signal(signal.SIGINT, lambda *_: os._exit(0))
            try:
                over_pipes(given)
            finally:
                signal.signal(signal.SIGINT, before)
            return
        token, sockets, address = _open_sockets(given, self.token_file)

        def started() -> None:
            if not self.quiet:
                output.say(f"serving {', '.join(given.indexes)} at {address}/mcp")

        serve(given, token, sockets[0], on_start=started, make=create_mcp_app)

    def _begin_index(self) -> None:
        """Create the index of a repository that has none: its files are indexed behind the first answers."""
        from ketrag_fast.base.config import Settings
        from ketrag_fast.index.building import has_begun
        from ketrag_fast.index.first_index import begin_index
        from ketrag_fast.readers.repository import top_of

        if not has_begun(Path(DEFAULT_FOLDER)) and top_of(os.curdir) is not None:
            given = options.build_settings_of(self).given.items()
            settings = Settings(**{name: value for name, value in given if name not in ("llm", "answer_llm")})
            with suppress(IndexLocked):  # another server has just begun it
                begin_index(Path(DEFAULT_FOLDER), Path(), settings)
            output.say(f"{DEFAULT_FOLDER} is new: the files of this repository are being indexed")

    def _install(self, name: str) -> int:
        """Add the server to the settings of an assistant."""
        if self.http:
            raise ConfigError(
                "--install and --http cannot be used together: assistants start the server themselves"
            )
        words = self._words()
        if self.print:
            assistant = ASSISTANTS[name]
            for path, text in (
                (assistant.settings(for_user=self.user), lines(name, words)),
                (assistant.skill(for_user=self.user), SKILL),
            ):
                output.write(f"# {path}\n{text}")
            return 0
        wanted = edits(name, words, for_user=self.user)
        if not wanted:
            output.say(f"{name} has these settings already")
            return 0
        for edit in wanted:
            output.write(_diff(edit))
        if not self.yes and not _is_confirmed(len(wanted)):
            output.say("nothing was written")
            return 1
        for edit in wanted:
            write(edit)
            output.say(f"wrote {edit.path}")
        return 0

    def _words(self) -> list[str]:
        """Return the command that an assistant runs, with the indexes and settings of this one."""
        own = Path(sys.executable).with_name("ketrag.exe" if os.name == "nt" else "ketrag")
        words = [str(own)] if own.is_file() else [sys.executable, "-P", "-m", "ketrag_fast"]
        words.append("mcp")
        named = os.environ.get("KETRAG_INDEX")
        indexes = self.indexes or ((named,) if named else ())
        if self.collection is not None:
            words += ["-c", self.collection]
        elif indexes or Path(".ketrag").exists():
            from ketrag_fast.apps.server.options import DEFAULT_NAME, parse_indexes

            for name, folder in parse_indexes(list(indexes) or [".ketrag"]).items():
                words += ["-i", folder if name == DEFAULT_NAME else f"{name}={folder}"]
        for text in (*(f"{name}={value}" for name, value in self.settings.items()), *self.assignments):
            words += ["-o", text]
        return words


def _diff(edit: Edit) -> str:
    """Return what changes in a file."""
    rows = unified_diff(
        (edit.before or "").splitlines(),
        edit.after.splitlines(),
        "" if edit.before is None else str(edit.path),
        str(edit.path),
        lineterm="",
    )
    return "\n".join(one_line(row) for row in rows)


def _is_confirmed(count: int) -> bool:
    if not sys.stdin.isatty():
        raise ConfigError("cannot ask for confirmation: standard input is not a terminal", hint="add --yes")
    files = "this file" if count == 1 else f"these {count} files"
    return input(f"Write {files}? [y/N] ").strip().lower() in ("y", "yes")
