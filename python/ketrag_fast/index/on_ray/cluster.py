"""Connect to Ray: an instance started for this build, or the cluster that the user named.

Ray retries a wrong address for minutes without an error, so a child process with a time limit connects first.
"""

from __future__ import annotations

import importlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import (
    BackendError,
    BackendMissing,
    ConfigError,
    IndexLocked,
    KetragError,
    NetworkForbidden,
)
from ketrag_fast.models.http.endpoints import is_loopback
from ketrag_fast.records import dataclass

CLIENT: Final = "ray://"
_CONNECT_SECONDS: Final = 10.0
_START_SECONDS: Final = 60.0
_TOKEN: Final = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_TRY: Final = (
    "import sys, ray\n"
    "ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)\n"
    "print(len(ray.nodes()))"
)


@dataclass(frozen=True, slots=True)
class RayNode:
    """A machine of the cluster that can run tasks."""

    id: str
    address: str
    cpus: float


def address_of(where: str) -> str | None:
    """Return the address in `--on`, `ray` or `ray://HOST:PORT`; None to start Ray for this build.

    `ray` without an address uses the environment variable RAY_ADDRESS, as Ray does.

    Examples:
        >>> address_of("ray://10.0.0.5:10001")
        'ray://10.0.0.5:10001'
    """
    if where == "ray":
        named = os.environ.get("RAY_ADDRESS", "").strip()
        return None if named in ("", "local") else named
    if where.startswith(CLIENT) and _host_and_port(where) is not None:
        return where
    raise ConfigError(
        f"--on {where!r:.200} is not an address of Ray", hint="--on ray, or --on ray://HOST:10001"
    )


def _host_and_port(address: str) -> tuple[str, int] | None:
    host, mark, port = address.removeprefix(CLIENT).rpartition(":")
    if not mark or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        return None
    return host.removeprefix("[").removesuffix("]"), int(port)


@contextmanager
def connected(address: str | None, *, offline: bool) -> Iterator[Any]:
    """Connect to Ray, yield its module, and disconnect.

    Without an address, Ray is started on this machine and stopped at the end.

    Raises:
        BackendMissing: Ray is not installed.
        NetworkForbidden: `offline` is set and the address is on another machine.
        BackendError: no server responds at the address, or it is not Ray.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # set before the import, which reads it
    if address is None:
        _require_token()
    ray = _module()
    if ray.is_initialized():  # reuse the caller's connection, whose cluster `ray` means
        yield ray
        return
    folder = None
    if address is None:
        folder = tempfile.mkdtemp(prefix="ketrag-ray-")
        # Ray's default niceness is 15, at which a task gets little time on a busy machine.
        os.environ.setdefault("RAY_worker_niceness", "0")
        # A socket path has at most 107 bytes, and Ray appends about 60.
        more: dict[str, Any] = {"address": "local", "_temp_dir": folder, "include_dashboard": False}
    else:
        _require_reachable(address, offline=offline)
        more = {"address": address}
    handler = _sigterm()
    try:
        try:
            ray.init(log_to_driver=False, configure_logging=False, **more)
        except (ConnectionError, OSError, RuntimeError, ValueError, ImportError) as error:
            raise _refused(address, error) from error
        # Ray prints messages of its daemons to stdout even without `log_to_driver`.
        importlib.import_module("ray._private.worker").__dict__["_worker_logs_enabled"] = False
        yield ray
    finally:
        ray.shutdown()
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _module() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise BackendMissing(
            f"Ray is not installed ({error})", hint="pip install 'ray[client]>=2.40'"
        ) from error


def _require_token() -> None:
    """Require a token for the Ray instance started by this process, because it listens on all addresses.

    Ray reads these variables when it is imported. If the caller has imported it already, nothing is set.
    """
    if (
        "ray" not in sys.modules
        and os.environ.get("RAY_AUTH_MODE") is None
        and not any(name in os.environ for name in _TOKEN)
    ):
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def _sigterm() -> Any:
    """Return the SIGTERM handler, which Ray replaces; None outside the main thread."""
    return signal.getsignal(signal.SIGTERM) if threading.current_thread() is threading.main_thread() else None


def _require_reachable(address: str, *, offline: bool) -> None:
    found = _host_and_port(address)
    if address == "auto":  # the cluster running on this machine
        return
    if found is None:
        raise ConfigError(
            f"RAY_ADDRESS is {address!r:.200}, which is not HOST:PORT", hint="RAY_ADDRESS=10.0.0.5:6379"
        )
    host = found[0]
    if offline and not is_loopback(host):
        raise NetworkForbidden(
            f"the Ray cluster is on {host}, and network access is forbidden (offline)",
            hint="leave out --offline, or build on this machine with --on ray",
        )
    try:
        socket.create_connection(found, _CONNECT_SECONDS).close()
    except OSError as error:
        raise _refused(address, error) from error
    try:
        done = subprocess.run(  # noqa: S603 - this Python, a fixed program
            [sys.executable, "-P", "-c", _TRY, address],
            capture_output=True,
            text=True,
            timeout=_START_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        seconds = f"no answer of a Ray cluster in {_START_SECONDS:.0f} s"
        raise _refused(address, TimeoutError(seconds)) from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise _refused(address, ConnectionError(lines[-1][:500] if lines else f"exit {done.returncode}"))


def _refused(address: str | None, error: BaseException) -> BackendError:
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    if address is None:
        return BackendError(f"Ray could not be started on this machine: {text}", hint="ray start --head")
    return BackendError(
        f"no Ray cluster answers at {address}: {text}",
        hint="--on ray://HOST:10001 is the port of Ray's client server; on a machine of the cluster, "
        "RAY_ADDRESS=HOST:6379 and --on ray",
    )


def nodes_of(ray: Any, cpus: int) -> Sequence[RayNode]:
    """Return the nodes that can run tasks with this number of processors.

    Raises ConfigError if there are none.
    """
    rows = (row for row in ray.nodes() if row["Alive"])
    found = [
        RayNode(row["NodeID"], row["NodeManagerAddress"], row.get("Resources", {}).get("CPU", 0.0))
        for row in rows
    ]
    able = sorted((node for node in found if node.cpus >= cpus), key=lambda node: node.id)
    if not able:
        most = max((node.cpus for node in found), default=0)
        raise ConfigError(
            f"a shard needs {cpus} processors, and no machine of the Ray cluster has more than {most:g}",
            hint="--threads N sets the processors of a shard",
        )
    return able


_LOCK_SECONDS: Final = 120.0
"""Seconds to wait for the previous process in the folder, which may still be running."""


@dataclass(frozen=True, slots=True)
class ShardJob:
    """Shard `number` of `count` of the sources, to be built in `folder`."""

    sources: tuple[str, ...]
    folder: str
    number: int
    count: int
    settings: dict[str, Any]
    neighbours: int
    """Number of shards that one machine builds at the same time, which share its memory."""

    @property
    def name(self) -> str:
        """The shard in the form of the setting `shard`, such as `2/8`."""
        return f"{self.number}/{self.count}"


def build_shard(job: ShardJob, lock_seconds: float = _LOCK_SECONDS) -> dict[str, Any]:
    """Build or continue a shard. Returns its report, or an error as data, because classes may differ."""
    from ketrag_fast.base.config import LEAST_MEMORY
    from ketrag_fast.index import Index
    from ketrag_fast.systems.shared.memory_bound import memory_of

    settings = Settings(**job.settings)
    if not settings.memory:
        settings = settings.having(memory=max(LEAST_MEMORY, memory_of(settings) // job.neighbours))
    settings = settings.having(shard=job.name)
    end = time.monotonic() + lock_seconds
    while True:
        try:
            with Index.build(job.sources, job.folder, settings=settings, replace=True) as index:
                report = index.report
        except IndexLocked as error:
            if time.monotonic() > end:
                return _as_data(error)
            time.sleep(0.5)
        except KetragError as error:
            return _as_data(error)
        else:
            return {} if report is None else report.to_json()


def _as_data(error: KetragError) -> dict[str, Any]:
    return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}


def probe_of() -> Callable[[Sequence[str], str, str], dict[str, Any]]:
    """Return the function that checks a node, sent by value because the node may lack this package."""

    def probe(sources: Sequence[str], marker: str, text: str) -> dict[str, Any]:
        """Return the package version on this node, missing sources, and whether the folder is shared."""
        import glob
        import os
        import time

        try:
            from ketrag_fast._core import __version__

            version, problem = str(__version__), ""
        except Exception as error:  # noqa: BLE001 - whatever the import raises is reported to the driver
            version, problem = "", f"{type(error).__name__}: {error}"
        missing = [
            path
            for path in sources
            if not os.path.exists(path)  # noqa: PTH110
            and not (glob.has_magic(path) and glob.glob(path, recursive=True))  # noqa: PTH207
        ]
        shared = False
        for wait in (0.0, 1.0, 3.0, 6.0):  # a new file may appear late on a network file system
            time.sleep(wait)
            try:
                with open(marker, encoding="utf-8") as file:  # noqa: PTH123
                    shared = file.read() == text
            except OSError:
                continue
            if shared:
                break
        shared = shared and os.access(os.path.dirname(marker), os.W_OK)  # noqa: PTH120
        return {"version": version, "problem": problem, "missing": missing, "shared": shared}

    return probe
