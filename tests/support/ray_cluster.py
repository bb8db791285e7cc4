"""A Ray cluster of two processors on this machine: a process that holds it, and its client server.

Its token is its own, so that no other Ray is touched.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.process import environment

_HOLD = """
import subprocess, sys, ray
ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False,
         object_store_memory=100_000_000, _temp_dir=sys.argv[1])
gcs = ray.get_runtime_context().gcs_address
server = [sys.executable, "-m", "ray.util.client.server", "--host=127.0.0.1", f"--port={sys.argv[2]}"]
child = subprocess.Popen([*server, f"--address={gcs}", "--mode=legacy"])
print(gcs, flush=True)
sys.stdin.read()
child.kill()
ray.shutdown()
"""
_HOLD_NODES = """
import os, sys
os.environ["RAY_TMPDIR"] = sys.argv[1]  # where it writes its address, which would be that of any Ray here
os.mkdir(os.path.join(sys.argv[1], "ray"))
from ray.cluster_utils import Cluster
memory = 80_000_000
head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": memory}
cluster = Cluster(initialize_head=True, head_node_args=head)
for _ in range(int(sys.argv[3])):
    cluster.add_node(num_cpus=1, object_store_memory=memory)
cluster.wait_for_nodes()
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""
"""A head without processors, and nodes of one processor each, all on this machine."""


@dataclass(frozen=True)
class RayCluster:
    """The variables with which a driver of this machine uses it, and the address of its client server."""

    variables: dict[str, str]
    client: str


@contextmanager
def ray_cluster(nodes: int = 0) -> Iterator[RayCluster]:
    """Starts the cluster, and ends all its processes. With `nodes`, it has several and no client server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "CUDA_VISIBLE_DEVICES": "",
    }
    with tempfile.TemporaryDirectory(prefix="kr-", ignore_cleanup_errors=True) as folder:
        with Path(folder, "log").open("w") as log:
            holder = subprocess.Popen(
                [sys.executable, "-c", _HOLD_NODES if nodes else _HOLD, folder, str(port), str(nodes)],
                env={name: value for name, value in environment(**own).items() if name != "RAY_ADDRESS"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert holder.stdin is not None and holder.stdout is not None
        try:
            address = holder.stdout.readline().strip()
            assert address, Path(folder, "log").read_text()[-2000:]
            yield RayCluster({**own, "RAY_ADDRESS": address}, f"ray://127.0.0.1:{port}")
        finally:
            holder.stdin.close()
            try:
                holder.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(holder.pid, signal.SIGKILL)
                holder.wait()
            holder.stdout.close()
