"""Builds on a real Ray: equal to local ones, whatever is killed; and what is wrong with a cluster is said."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import BackendError, ConfigError, InputError, NetworkForbidden, ReadOnly
from ketrag_fast.index.on_ray.building import _error_of, _RayTasks
from ketrag_fast.index.on_ray.cluster import ShardJob, address_of, build_shard, connected
from ketrag_fast.ray import build as build_on_ray
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from tests import small_model
from tests.index.test_merge_shards import folder
from tests.process import Done, python, start
from tests.support.merging import build, document
from tests.support.parts import part
from tests.support.ray_cluster import RayCluster, ray_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    part("ray", "checks")
    part("grpc", "checks")
    with ray_cluster() as found:
        yield found


def run(cluster: RayCluster, cwd: Path, *argv: str, on: str = "ray", **more: str) -> Done:
    child = start("index", *argv, "--on", on, cwd=cwd, variables={**cluster.variables, **more})
    out, err = child.communicate(timeout=300)
    return Done(child.returncode, out, err)


def many(base: Path, count: int) -> Path:
    """One file of many documents: a shard takes seconds."""
    rows = ({"_id": f"row{n}", "title": "", "text": document(f"row{n}").text} for n in range(count))
    (base / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return base / "many.jsonl"


def builder_of(shard: Path, driver: Any) -> int:
    """The process that builds a shard, once it has begun."""
    end = time.monotonic() + 120
    while time.monotonic() < end and driver.poll() is None:
        try:
            owner = int(json.loads((shard / "index.owner").read_text())["pid"])
        except (OSError, ValueError):
            owner = 0
        if owner and (shard / "index.sqlite").exists():
            return owner
        time.sleep(0.002)
    raise AssertionError(f"no builder of {shard} was seen: {driver.communicate()}")


def test_it_is_a_local_build(cluster: RayCluster, tmp_path: Path) -> None:
    """A document that cannot be read does not end it; again nothing changes; shards can be kept."""
    notes = folder(tmp_path / "notes")
    wanted = build(tmp_path / "local", notes)
    done = run(cluster, tmp_path, "notes", "-i", "whole", "--shards", "3", "--json")
    assert done.code == 3, done.err
    report = json.loads(done.out)
    assert report["digest"] == wanted
    assert [row["document"] for row in report["failures"]] == ["bad.jsonl:2"]
    assert not (tmp_path / "whole.shards").exists()
    again = run(cluster, tmp_path, "notes", "-i", "whole", "--json")
    assert (json.loads(again.out)["digest"], json.loads(again.out)["changed"]) == (wanted, False)
    assert "updated on this machine" in again.err
    kept = run(cluster, tmp_path, "notes", "-i", "apart", "--shards", "2", "--keep-shards", "--json")
    places = [Path(row["path"]) for row in json.loads(kept.out)["shards"]]
    assert places == [tmp_path / "apart.shards" / f"{n}-of-2" for n in (1, 2)]
    assert not (tmp_path / "apart").exists()
    with Index.merge(places, tmp_path / "apart") as merged:
        assert merged.digest == wanted
    assert all(place.is_dir() for place in places)


def test_a_model_runs_in_the_shards_of_a_client(cluster: RayCluster, tmp_path: Path) -> None:
    """Through `ray://`; one shard has no document."""
    (tmp_path / "two.jsonl").write_text(
        '{"_id": "a", "text": "The Fram."}\n{"_id": "b", "text": "The Maud."}\n'
    )
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    options = ["--embedder", f"native:{model}", "--modes", "auto,knn"]
    wanted = build(
        tmp_path / "local", tmp_path / "two.jsonl", Settings(embedder=options[1], modes="auto,knn")
    )
    done = run(
        cluster, tmp_path, "two.jsonl", "-i", "w", "--shards", "4", "--json", *options, on=cluster.client
    )
    assert done.code == 0, done.err
    assert json.loads(done.out)["digest"] == wanted


def test_a_killed_worker_is_started_again(cluster: RayCluster, tmp_path: Path) -> None:
    source = many(tmp_path, 6_000)
    driver = start(
        *("index", source.name, "-i", "w", "--shards", "2", "--json", "--on", "ray"),
        cwd=tmp_path,
        variables=cluster.variables,
    )
    os.kill(builder_of(tmp_path / "w.shards" / "2-of-2", driver), signal.SIGKILL)
    out, err = driver.communicate(timeout=300)
    assert driver.returncode == 0, err
    report = json.loads(out)
    assert [text for text in report["warnings"] if "shard 2/2 was started 2 times" in text]
    assert report["digest"] == build(tmp_path / "local", source)


def parent_of(process: str) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended
        return 0


def kill_node(worker: int) -> None:
    """Kill the node of a worker: its raylet, and all processes that this has started."""
    node = parent_of(str(worker))
    assert "raylet" in Path(f"/proc/{node}/cmdline").read_text()
    children = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    killed = [node, *(int(child) for child in children if parent_of(child) == node)]
    assert worker in killed
    for process in killed:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def test_a_node_that_dies_during_a_build_is_replaced(tmp_path: Path) -> None:
    """Its shard continues on one of the two other nodes, and the index is that of one machine."""
    part("ray", "checks")
    source = many(tmp_path, 6_000)
    with ray_cluster(nodes=3) as three:
        driver = start(
            *("index", source.name, "-i", "w", "--shards", "3", "--json", "--on", "ray"),
            cwd=tmp_path,
            variables=three.variables,
        )
        worker = builder_of(tmp_path / "w.shards" / "2-of-3", driver)
        kill_node(worker)
        out, err = driver.communicate(timeout=300)
    assert driver.returncode == 0, err
    report = json.loads(out)
    assert [text for text in report["warnings"] if "shard 2/3 was started 2 times" in text]
    assert report["digest"] == build(tmp_path / "local", source)


def test_a_killed_driver_is_continued(cluster: RayCluster, tmp_path: Path) -> None:
    source = many(tmp_path, 6_000)
    words = ("index", source.name, "-i", "w", "--on", "ray")
    driver = start(*words, "--shards", "2", cwd=tmp_path, variables=cluster.variables)
    builder_of(tmp_path / "w.shards" / "1-of-2", driver)
    driver.kill()
    driver.communicate()
    other = run(cluster, tmp_path, source.name, "-i", "w", "--shards", "5")
    assert other.code == 2 and "holds a build of 2 shards, not of 5" in other.err
    done = run(cluster, tmp_path, source.name, "-i", "w", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["digest"] == build(tmp_path / "local", source)
    assert not (tmp_path / "w.shards").exists()


def test_workers_that_cannot_build(cluster: RayCluster, tmp_path: Path) -> None:
    """Without the package, with another version, or without the files: said before anything is built."""
    source = folder(tmp_path / "notes") / "zebra.md"
    for code, wanted in (("raise ImportError('no core here')", "no core here"), ("", "version 0.0.1")):
        fake = tmp_path / "fake" / "ketrag_fast"
        fake.mkdir(parents=True, exist_ok=True)
        (fake / "__init__.py").write_text(code)
        (fake / "_core.py").write_text("__version__ = '0.0.1'")
        job = {"runtime_env": {"env_vars": {"PYTHONPATH": str(fake.parent)}}}
        done = run(cluster, tmp_path, str(source), "-i", "w", RAY_JOB_CONFIG_JSON_ENV_VAR=json.dumps(job))
        assert done.code == 2 and wanted in done.err and "pip install ketrag-fast==" in done.err, done.err
    # This path leads to another folder in every process, as if the machines shared nothing.
    here = "/proc/self/cwd"
    done = run(cluster, tmp_path, f"{here}/notes/zebra.md", "-i", str(tmp_path / "w"))
    assert done.code == 1 and "cannot read /proc/self/cwd/notes/zebra.md" in done.err
    done = run(cluster, tmp_path, str(source), "-i", f"{here}/w")
    assert done.code == 2 and "cannot read or write /proc/self/cwd/w.shards" in done.err
    assert "storage that every machine" in done.err
    assert not (tmp_path / "w").exists() and not (tmp_path / "w.shards").exists()


def test_a_worker_out_of_memory(tmp_path: Path) -> None:
    """Ray ends its tasks, on a Ray that the command starts and stops itself. With enough memory the same
    command goes on, whether or not a task had begun to write.
    """
    ray = part("ray", "checks")
    source = many(tmp_path, 10)
    limits = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "50"}
    with tempfile.TemporaryDirectory() as temporary:  # short, because the path of a socket is
        limits["TMPDIR"] = temporary
        done = run(RayCluster(limits, ""), tmp_path, source.name, "-i", "w", "--shards", "1", "--json")
        assert not list(Path(temporary).glob("ketrag-ray-*"))
    assert done.code == 1
    assert json.loads(done.err.splitlines()[-1])["code"] == "out_of_memory", done.err
    assert not done.out
    again = run(RayCluster({}, ""), tmp_path, source.name, "-i", "w", "--shards", "1", "--json")
    assert again.code == 0, again.err
    assert not (tmp_path / "w.shards").exists()
    lost = _RayTasks(ray, {}, starts=Counter({1: 4}))._lost
    job = ShardJob((), "", 1, 2, {}, 1)
    assert lost(job, ray.exceptions.OutOfMemoryError("no memory")).code == "out_of_memory"
    assert lost(job, ray.exceptions.WorkerCrashedError()).code == "backend"


def test_the_workers_of_a_ray_of_its_own_have_the_priority_of_the_build(tmp_path: Path) -> None:
    part("ray", "checks")
    code = (
        "import os\n"
        "from ketrag_fast.index.on_ray.cluster import connected\n"
        "with connected(None, offline=True) as ray:\n"
        "    print(os.nice(0), ray.get(ray.remote(lambda: os.nice(0)).remote()))\n"
    )
    done = python(code, cwd=tmp_path)
    assert done.code == 0, done.err
    own, of_worker = done.out.split()
    assert own == of_worker


@pytest.mark.usefixtures("loopback")
def test_wrong_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part("ray", "checks")
    (tmp_path / "a.md").write_text("The Fram.")
    began = time.monotonic()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        where = f"ray://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(BackendError, match="no Ray cluster answers at ray://127"):
            build_on_ray(tmp_path / "a.md", tmp_path / "w", on=where)
        closed.listen()  # it accepts, and never says anything
        monkeypatch.setattr("ketrag_fast.index.on_ray.cluster._START_SECONDS", 4.0)
        with pytest.raises(BackendError, match="no answer of a Ray cluster in 4 s"):
            build_on_ray(tmp_path / "a.md", tmp_path / "w", on=where)
    assert time.monotonic() - began < 30
    for wrong in ("ray:", "ray://", "ray://host", "ray://host:0", "dask", "ray://host:99999"):
        with pytest.raises(ConfigError, match="not an address of Ray"):
            address_of(wrong)
    monkeypatch.setenv("RAY_ADDRESS", "host")
    with pytest.raises(ConfigError, match="not HOST:PORT"):
        build_on_ray(tmp_path / "a.md", tmp_path / "w")
    with pytest.raises(NetworkForbidden), connected("10.1.2.3:6379", offline=True):
        pass
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.md"]


def test_what_it_does_not_build(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="documents cannot be given"):
        build_on_ray([document("a")], tmp_path / "w")
    (tmp_path / "a.md").write_text("The Fram.")
    with pytest.raises(ConfigError, match="--on builds all shards"):
        build_on_ray(tmp_path / "a.md", tmp_path / "w", settings=Settings(shard="1/2"))
    layout = Layout(tmp_path / "begun")
    layout.create()
    layout.tables.touch()
    with pytest.raises(ReadOnly, match="was not finished"):
        build_on_ray(tmp_path / "a.md", tmp_path / "begun")
    for words in (
        ["--shards", "2"],
        ["--keep-shards"],
        ["--on", "ray", "--rebuild"],
        ["--on", "ray", "--dry-run"],
    ):
        child = start("index", "a.md", "-i", "w", *words, cwd=tmp_path)
        assert "--on" in child.communicate()[1] and child.returncode == 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.md", "begun"]


def test_a_shard_waits_for_the_process_that_had_its_folder(tmp_path: Path) -> None:
    """Then it gives up with the lock's error, as data: a worker's classes need not be the driver's."""
    (tmp_path / "a.md").write_text("The Fram.")
    job = ShardJob((str(tmp_path / "a.md"),), str(tmp_path / "s"), 1, 2, {}, 2)
    layout = Layout(tmp_path / "s")
    layout.create()
    with builder_lock(layout):
        error = build_shard(job, lock_seconds=0.1)["error"]
    assert error["code"] == "index_locked" and _error_of(error["code"]).code == "index_locked"
    assert build_shard(job)["documents"]["total"] in (0, 1)
