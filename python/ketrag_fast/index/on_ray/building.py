"""Build an index on Ray: tasks build shards of the documents, and this machine merges them.

The shards of the index DIR are in DIR.shards. A killed task is started again and continues in its
folder. If the build itself is killed, calling it again continues it.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Callback, Limited, Meter
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.building.sources import Sources, absolute, split_sources
from ketrag_fast.errors import (
    BackendError,
    Cancelled,
    ConfigError,
    DocumentError,
    IndexLocked,
    InputError,
    InternalError,
    KetragError,
    OutOfMemory,
    ReadOnly,
)
from ketrag_fast.index import Index
from ketrag_fast.index.annotations import checked_examples, store_examples
from ketrag_fast.index.on_ray.cluster import (
    RayNode,
    ShardJob,
    address_of,
    build_shard,
    connected,
    nodes_of,
    probe_of,
)
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.storage.durable import discard_folder, replace_file
from ketrag_fast.storage.generation import current_number
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import MERGE, Layout
from ketrag_fast.storage.source_trust import note_sources
from ketrag_fast.types import BuildReport, Failure

_STARTS: Final = 4
"""Maximum number of times a shard is started; if it is lost again, the build fails."""
_PROBE_SECONDS: Final = 120.0
_WAIT_SECONDS: Final = 0.25
_SHARED: Final = (
    "the sources and the index folder must be on storage that every machine of the cluster sees under the "
    "same path, writable for the user that runs Ray"
)
_RECORD: Final = "build.json"


@dataclass(frozen=True, slots=True)
class ShardReport:
    """One finished shard. `starts` counts its tasks: more than one if workers died."""

    path: Path
    name: str
    documents: int
    digest: str
    starts: int
    failures: tuple[Failure, ...] = ()
    warnings: tuple[str, ...] = ()


def build(
    sources: Sources,
    path: str | os.PathLike[str],
    *,
    on: str = "ray",
    shards: int | None = None,
    settings: Settings | None = None,
    progress: Callback | None = None,
    examples: Sequence[str] | None = None,
) -> BuildReport:
    """Build the index at `path` on Ray. The result equals an index built on one machine, byte for byte.

    If the call is stopped or killed, the same call continues. An existing index is updated on this
    machine instead, as `Index.build` does.

    Args:
        sources: Paths or globs, on storage that every machine of the cluster can read.
        path: Folder of the index, on the same storage. The shards are in `path.shards` until they are
            merged.
        on: `ray://HOST:PORT`, or `ray` for the address in RAY_ADDRESS; if that is unset, Ray is started on
            this machine.
        shards: Number of shards; None uses the number of tasks that the cluster can run at once.
        settings: As for `Index.build`. A task uses `threads` processors (default 1), and one GPU if
            `device` is `cuda`. `limit_usd` is divided among the shards.
        progress: Called with each `Event`; returning False stops the build.
        examples: Questions that the page of the index offers to start with.

    Raises:
        BackendMissing: Ray is not installed, or the package is missing on a worker.
        BackendError: The cluster does not respond, or a worker died repeatedly.
        OutOfMemory: A worker had too little memory.
        Also raises the errors of `Index.build` and `Index.merge`.
    """
    start, own, target = time.monotonic(), settings or Settings(), Layout(Path(path))
    questions = None if examples is None else checked_examples(examples)
    callback = Limited(progress, own.limit_seconds, start)
    with _held(target) as folder:
        is_merging = (target.work / MERGE).exists()
        if current_number(target) is not None and not is_merging:
            if _is_recorded(folder):
                discard_folder(folder)  # the process was killed after the merge
            with Index.build(sources, path, settings=own, progress=callback, examples=questions) as index:
                return _add_warnings(index, ("the index exists: it was updated on this machine, not on Ray",))
        if target.exists() and not is_merging:
            raise ReadOnly(
                f"{target.root} holds an index whose build on one machine was not finished",
                hint=f"finish it: ketrag index -i {target.root}; or name another folder",
            )
        built = _build_shards(sources, folder, own, callback, on=on, count=shards, keep=False)
        run = own.only(("threads", "memory", "offline", "device", "precision"))
        about = Settings(**{name: value for name, value in run.items() if name in own.given})
        with Index.merge([one.path for one in built], path, settings=about, progress=callback) as index:
            named = [absolute(one) for one in split_sources(sources)[0]]  # workers have noted their parts
            report = _add_warnings(index, (*_warnings(built), *note_sources(target, named)))
        if questions is not None:
            store_examples(target.root, questions)
        discard_folder(folder)
    return replace(report, seconds=time.monotonic() - start)


def build_shards(
    sources: Sources,
    path: str | os.PathLike[str],
    *,
    on: str = "ray",
    shards: int | None = None,
    settings: Settings | None = None,
    progress: Callback | None = None,
) -> tuple[ShardReport, ...]:
    """Build only the shards, in `path.shards`, as `build` does; `Index.merge` merges them later."""
    start, own, target = time.monotonic(), settings or Settings(), Layout(Path(path))
    callback = Limited(progress, own.limit_seconds, start)
    with _held(target) as folder:
        return _build_shards(sources, folder, own, callback, on=on, count=shards, keep=True)


@contextmanager
def _held(target: Layout) -> Iterator[Path]:
    """Lock DIR.shards for one build, and yield it. An unused folder is removed."""
    root = target.root.absolute()
    folder = root.with_name(f"{root.name}.shards")
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with writing(folder):
        lock = _core.lock_file(folder / "build.lock")
    if lock is None:
        raise IndexLocked(
            f"another process is building {target.root} on Ray", hint="wait until it has finished"
        )
    try:
        yield folder
    finally:
        lock.release()
        if not _is_recorded(folder):
            with suppress(OSError):
                (folder / "build.lock").unlink(missing_ok=True)
                folder.rmdir()


def _is_recorded(folder: Path) -> bool:
    """Return whether the folder is recorded as shards to be merged, and may be removed after the merge."""
    return not _record_of(folder).get("keep", True)


def _record_of(folder: Path) -> dict[str, Any]:
    try:
        record = json.loads(read_regular(folder / _RECORD))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _add_warnings(index: Index, warnings: Sequence[str]) -> BuildReport:
    assert index.report is not None  # noqa: S101 - the index was built
    return replace(index.report, warnings=(*index.report.warnings, *warnings))


def _warnings(built: Sequence[ShardReport]) -> tuple[str, ...]:
    lost = [
        f"shard {one.name} was started {one.starts} times, because workers ended or lost their memory"
        for one in built
        if one.starts > 1
    ]
    seen = dict.fromkeys(text for one in built for text in one.warnings if "outside shard" not in text)
    return (*lost, *seen)


@dataclass
class _RayTasks:
    """The tasks of one build: the running tasks, and the number of starts of each shard."""

    ray: Any
    options: Mapping[str, Any]
    running: dict[Any, ShardJob] = field(default_factory=dict)
    starts: Counter[int] = field(default_factory=Counter)

    def start(self, job: ShardJob) -> None:
        self.starts[job.number] += 1
        task = self.ray.remote(**self.options)(build_shard)
        self.running[task.remote(job)] = job

    def next(self) -> Iterator[tuple[ShardJob, dict[str, Any]]]:
        """Yield shards finished since the last call; restart lost ones.

        Raises KetragError after repeated losses.
        """
        errors = self.ray.exceptions
        ready, _ = self.ray.wait(list(self.running), num_returns=1, timeout=_WAIT_SECONDS)
        for task in ready:
            job = self.running.pop(task)
            try:
                yield job, self.ray.get(task)
            except errors.RayTaskError as error:
                raise InternalError(f"shard {job.name} failed: {_last_line(error)}") from error
            except errors.RayError as error:
                if self.starts[job.number] >= _STARTS:
                    raise self._lost(job, error) from error
                self.start(job)

    def _lost(self, job: ShardJob, error: BaseException) -> KetragError:
        starts = self.starts[job.number]
        if isinstance(error, self.ray.exceptions.OutOfMemoryError):
            return OutOfMemory(
                f"the worker of shard {job.name} was ended for lack of memory {starts} times",
                hint="--memory N bounds a shard in MB, and with a larger --threads N fewer run at once on a "
                "machine; the same command continues",
            )
        return BackendError(
            f"the worker of shard {job.name} died {starts} times: {_last_line(error)}",
            hint="look at the logs of Ray; the same command continues",
        )

    def cancel(self) -> None:
        """Stop all tasks; their folders are kept."""
        for task in self.running:
            with suppress(Exception):
                self.ray.cancel(task, force=True)


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:500] if lines else type(error).__name__


def _build_shards(
    sources: Sources,
    folder: Path,
    settings: Settings,
    callback: Callback,
    *,
    on: str,
    count: int | None,
    keep: bool,
) -> tuple[ShardReport, ...]:
    paths, documents = split_sources(sources)
    if documents is not None:
        raise InputError(
            "a build on Ray reads files; documents cannot be given", hint="write them to a .jsonl file"
        )
    if settings.shard is not None:
        raise ConfigError("--on builds all shards; --shard names one", hint="leave out --shard, or --on")
    cpus = max(settings.threads, 1)
    given = tuple(absolute(path) for path in paths)
    with connected(address_of(on), offline=settings.offline) as ray:
        nodes = nodes_of(ray, cpus)
        slots = [int(node.cpus) // cpus for node in nodes]
        number = _count_of(folder, count, sum(slots))
        values = {**settings.given, "threads": cpus}
        if settings.limit_usd is not None:
            values["limit_usd"] = settings.limit_usd / number
        _check_nodes(ray, nodes, given, folder)
        with writing(folder):
            replace_file(folder / _RECORD, json.dumps({"of": number, "keep": keep}).encode() + b"\n")
        options = {"num_cpus": cpus, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        if settings.device.startswith("cuda"):
            options["num_gpus"] = 1
        run = _RayTasks(ray, options)
        for shard in range(1, number + 1):
            place = folder / f"{shard:0{len(str(number))}}-of-{number}"
            run.start(ShardJob(given, str(place), shard, number, values, min(number, max(slots))))
        return _finish(run, number, callback)


def _finish(run: _RayTasks, number: int, callback: Callback) -> tuple[ShardReport, ...]:
    meter, done = Meter("shards", callback, "shards"), dict[int, ShardReport]()
    try:
        while run.running:
            if meter(len(done), number) is False:
                raise Cancelled("stopped while shards were built", hint="the same command continues")
            for job, result in run.next():
                done[job.number] = _report_of(job, result, run.starts[job.number])
    except (ConnectionError, run.ray.exceptions.RaySystemError) as error:
        raise BackendError(
            f"the connection to Ray was lost: {_last_line(error)}", hint="the same command continues"
        ) from error
    finally:
        run.cancel()
    meter(number, number)
    meter.finish()
    return tuple(done[shard] for shard in sorted(done))


def _count_of(folder: Path, count: int | None, slots: int) -> int:
    """Return the number of shards of the build that is continued, else the requested number."""
    begun = _record_of(folder)
    number = begun.get("of")
    if isinstance(number, int) and count in (None, number):
        count = number
    elif number is not None:
        raise ConfigError(
            f"{folder} holds a build of {number} shards, not of {count}",
            hint=f"--shards {number} continues it; or remove the folder",
        )
    if count is None:
        count = slots
    if not 0 < count <= 65_536:
        raise ConfigError(f"shards must be between 1 and 65,536, got {count}")
    return count


def _check_nodes(ray: Any, nodes: Sequence[RayNode], sources: Sequence[str], folder: Path) -> None:
    """Check every node: version of the package, access to the sources and to the shared folder."""
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    marker, text = folder / "shared", os.urandom(16).hex()
    with writing(folder):
        marker.write_text(text, encoding="utf-8", newline="\n")
    try:
        own = probe_of()((), str(marker), text)["version"]
        tasks = {
            ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=strategy(node.id, soft=False))(
                probe_of()
            ).remote(list(sources), str(marker), text): node
            for node in nodes
        }
        ready, late = ray.wait(list(tasks), num_returns=len(tasks), timeout=_PROBE_SECONDS)
        if late:
            raise BackendError(f"the machine {tasks[late[0]].address} of the Ray cluster does not respond")
        for task in ready:
            try:
                found = ray.get(task)
            except ray.exceptions.OutOfMemoryError as error:
                raise OutOfMemory(
                    f"Ray ends tasks on {tasks[task].address}, which has no free memory"
                ) from error
            except ray.exceptions.RayError as error:
                raise BackendError(f"{tasks[task].address} cannot run a task: {_last_line(error)}") from error
            _check_node(tasks[task].address, found, folder, own)
    finally:
        marker.unlink(missing_ok=True)


def _check_node(address: str, found: Mapping[str, Any], folder: Path, own: str) -> None:
    if found["version"] != own:
        has = f"version {found['version']}" if found["version"] else f"no usable version ({found['problem']})"
        raise ConfigError(
            f"the Ray worker on {address} has {has} of ketrag-fast, and this machine has {own}",
            hint=f"pip install ketrag-fast=={own} on every machine of the cluster",
        )
    if not found["shared"]:
        raise ConfigError(f"the Ray worker on {address} cannot read or write {folder}", hint=_SHARED)
    if found["missing"]:
        raise DocumentError(
            f"the Ray worker on {address} cannot read {', '.join(found['missing'][:5])}", hint=_SHARED
        )


def _report_of(job: ShardJob, result: Mapping[str, Any], starts: int) -> ShardReport:
    error = result.get("error")
    if error is not None:
        raise _error_of(error["code"])(f"shard {job.name}: {error['message']}", hint=error["hint"])
    return ShardReport(
        path=Path(job.folder),
        name=job.name,
        documents=result["documents"]["total"],
        digest=result["digest"],
        starts=starts,
        failures=tuple(Failure(**row) for row in result["failures"]),
        warnings=tuple(result["warnings"]),
    )


def _error_of(code: str) -> type[KetragError]:
    """Return the exception class with this code."""
    waiting: list[type[KetragError]] = [KetragError]
    while waiting:
        one = waiting.pop()
        if one.code == code:
            return one
        waiting += one.__subclasses__()
    return KetragError
