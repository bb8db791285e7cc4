"""Commands of other packages, and what a command of our own leaves unloaded."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli.main import GROUP, outside_commands
from tests.process import ROOT, command, environment

Install = Callable[..., None]

_PAGE = (ROOT / "docs" / "how-to" / "own-mode.md").read_text("utf-8")
(COUNT,) = re.findall(r"^```py\n(.*?)^```", _PAGE, re.DOTALL | re.MULTILINE)
"""The command of the guide."""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Lay out a package with the command `count`, whose module has the given source."""

    def installed(source: str, name: str = "count") -> None:
        site = tmp_path / "site"
        about = site / "ketrag_count-1.0.dist-info"
        about.mkdir(parents=True)
        (site / "ketrag_count.py").write_text(source, "utf-8")
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ketrag-count\nVersion: 1.0\n", "utf-8")
        (about / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = ketrag_count:COMMAND\n", "utf-8")
        monkeypatch.syspath_prepend(str(site))
        outside_commands.cache_clear()

    yield installed
    sys.modules.pop("ketrag_count", None)
    monkeypatch.undo()
    outside_commands.cache_clear()


def test_one_is_listed_takes_options_and_opens_the_index(install: Install, tmp_path: Path) -> None:
    install(COUNT)
    Index.build([Document("a", "Ada wrote."), Document("b", "Bo read.")], tmp_path / ".ketrag").close()
    listed = command("-h", cwd=tmp_path).out
    assert "Of other packages:\n  count        print the number of documents\n" in listed
    done = command("count", "--times", "3", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, "6\n", "")
    assert "--times" in command("count", "-h", cwd=tmp_path).out
    assert "did you mean count?" in command("coun", cwd=tmp_path).err
    assert command("count", "-i", "nowhere", cwd=tmp_path).code == 4
    assert "--times" in command("completion", "bash", cwd=tmp_path).out


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise RuntimeError('no licence')", "the command count failed: RuntimeError: no licence"),
        ("import sys; sys.exit(3)", "the command count failed: SystemExit: 3"),
        ("COMMAND = print", "ketrag_count:COMMAND is not a Command"),
        (COUNT.replace("return 0", "return 1 // 0"), "the command count failed: ZeroDivisionError"),
        (COUNT.replace('"--times"', '"--json"'), "the command count failed: ArgumentError"),
    ],
)
def test_one_that_fails_leaves_the_others_alone(
    install: Install, tmp_path: Path, source: str, reason: str
) -> None:
    install(source)
    Index.build([Document("a", "Ada wrote.")], tmp_path / ".ketrag").close()
    done = command("count", cwd=tmp_path)
    assert (done.code, reason in done.err) == (1, True), done
    assert "count" in command("-h", cwd=tmp_path).out
    assert command("search", "Ada", cwd=tmp_path).code == 0


def test_one_cannot_replace_a_built_in_command(install: Install, tmp_path: Path) -> None:
    install(COUNT, "stats")
    assert "Of other packages" not in command("-h", cwd=tmp_path).out


def test_none_is_loaded_when_extensions_are_off(install: Install, tmp_path: Path) -> None:
    install(COUNT)
    assert "Of other packages" not in command("-h", cwd=tmp_path, KETRAG_EXTENSIONS="none").out
    assert "unknown command" in command("count", cwd=tmp_path, KETRAG_EXTENSIONS="none").err


def test_a_search_loads_no_other_command(tmp_path: Path) -> None:
    Index.build([Document("a", "Ada wrote.")], tmp_path / ".ketrag").close()
    code = (
        "import sys\nfrom ketrag_fast.apps.cli.main import main\nmain(['search', 'Ada'])\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Ada wrote" in done.stdout
    parts = ("eval", "interchange", "page", "building", "apps.server")
    loaded = {name.removeprefix("ketrag_fast.") for name in done.stderr.split()}
    loaded -= {"building", "building.file_changes"}  # a query looks for changed sources first
    assert [name for name in loaded if name in parts or name.startswith(tuple(f"{p}." for p in parts))] == []
