"""Foreign formats are read in processes: in order, within limits, and a crash costs one file."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.base.installed import install_command
from ketrag_fast.errors import Cancelled
from ketrag_fast.readers import SourceFile, items_of, single
from ketrag_fast.readers import sandbox as module
from ketrag_fast.readers.process_time import processor_seconds
from ketrag_fast.readers.sandbox import Apart
from ketrag_fast.types import Document, Failure
from tests.support.office_files import archive, docx, mail, paragraph, text_row, xlsx

LARGEST = 1_000_000_000


def read(
    paths: list[tuple[Path, str]], processes: int = 2, seconds: float = 60, megabytes: int = 800
) -> list[object]:
    with Apart(processes, seconds, megabytes, LARGEST) as apart:
        asked = ((SourceFile(path, path.name), kind) for path, kind in paths)
        return [item for _, items in apart.read(asked) for item in single(items)]


def test_items_come_in_the_order_of_the_files(tmp_path: Path) -> None:
    paths = []
    for n in range(30):
        if n % 3 == 0:
            path, kind = tmp_path / f"{n}.txt", "text"
            path.write_text(f"text {n}")
        else:
            path, kind = tmp_path / f"{n}.docx", "docx"
            path.write_bytes(docx(paragraph(f"text {n}") * (1 + 50 * (n % 2))))
        paths.append((path, kind))
    for processes in (1, 3):
        found = read(paths, processes)
        assert [item.id for item in found if isinstance(item, Document)] == [path.name for path, _ in paths]
        assert all(f"text {n}" in found[n].text for n in range(30))  # type: ignore[attr-defined]


def test_a_crash_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is killed from outside while it reads, as the system does when memory is short."""
    paths = [(tmp_path / f"{n}.docx", "docx") for n in range(4)]
    for path, _ in paths:
        path.write_bytes(docx(paragraph("some text")))
    started = module.Worker.read

    def killed(self: module.Worker, request: dict[str, object], *rest: object, **named: object) -> bool:
        if request["id"] == "1.docx":
            os.kill(self._child.pid, signal.SIGSEGV)
        return started(self, request, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(module.Worker, "read", killed)
    found = read(paths, 1)
    assert [type(item) for item in found] == [Document, Failure, Document, Document]
    assert isinstance(found[1], Failure)
    assert "crashed (SIGSEGV)" in found[1].message


def test_time_and_memory_are_limited(tmp_path: Path) -> None:
    slow = tmp_path / "slow.zip"
    slow.write_bytes(archive({f"{n}.docx": docx(paragraph("some text") * 3000) for n in range(300)}))
    good = tmp_path / "good.docx"
    good.write_bytes(docx(paragraph("good text")))
    begin = time.monotonic()
    found = read([(slow, "zip"), (good, "docx")], 1, seconds=2)
    assert time.monotonic() - begin < 60
    late = [item for item in found if isinstance(item, Failure)]
    assert "longer than 2 s" in late[0].message
    assert isinstance(found[-1], Document)
    greedy = tmp_path / "greedy.json"
    greedy.write_text("[" + "[0,1,2,3,4,5,6,7,8,9]," * 4_000_000 + "0]")
    found = read([(greedy, "json"), (good, "docx")], 1, megabytes=400)
    assert isinstance(found[0], Failure)
    assert "memory" in found[0].message or "MB" in found[0].message
    assert isinstance(found[1], Document)


@pytest.mark.skipif(sys.platform != "linux", reason="processor time is read from /proc")
def test_the_text_of_a_large_file_without_memory_is_a_failure(tmp_path: Path) -> None:
    """The decoded text finds no memory in the core, which panicked: the process ended with code 1."""
    (tmp_path / "a.txt").write_bytes(b"The Fram sailed north.\n" * 9_000_000)
    (found,) = read([(tmp_path / "a.txt", "text")], 1, megabytes=620)
    assert isinstance(found, Failure)
    assert found.message == "reading it took more than 620 MB (setting read_memory)"


def test_the_time_limit_counts_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is read in a second is not lost if another program has the processors for that second."""
    worker = module.Worker(0, seconds=10.0)
    clock, busy = 0.0, 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: clock)
    monkeypatch.setattr("ketrag_fast.readers.process_time.processor_seconds", lambda _: busy)
    try:
        worker._begin()
        worker._since = 0.0
        for clock, busy, is_late in (
            (9.0, 9.0, False),
            (11.0, 9.0, False),  # it waits for a processor
            (39.0, 0.1, False),
            (11.0, 10.5, True),
            (41.0, 0.1, True),  # it waits for something that does not come
        ):
            worker._late = False
            worker.end_if_late()
            assert worker._late is is_late, (clock, busy)
    finally:
        worker.kill()


def test_processor_time_of_a_process() -> None:
    def work() -> float:
        begin = time.process_time()
        while time.process_time() - begin < 0.2:
            pass
        return time.process_time() - begin

    before = processor_seconds(os.getpid())
    if before is None:
        pytest.skip("this system has no /proc")
    spent = work()
    after = processor_seconds(os.getpid())
    assert after is not None
    assert spent - 0.05 < after - before < spent + 5
    assert processor_seconds(2**22 + 1) is None


def test_a_later_file_with_many_items_does_not_stop_an_earlier_one(tmp_path: Path) -> None:
    paths = []
    for n in range(4):
        path = tmp_path / f"{n}.xlsx"
        rows = [text_row(1, "a"), *(text_row(m, f"row {m}") for m in range(2, 300))]
        path.write_bytes(xlsx({"S": rows}))
        paths.append((path, "xlsx"))
    assert len(read(paths, 2)) == 4 * 298


def test_a_build_lists_what_failed_and_stops_when_told(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for n in range(5):
        (folder / f"{n}.docx").write_bytes(docx(paragraph(f"The ship number {n} sailed south.")))
    (folder / "broken.docx").write_bytes(docx(paragraph("x"))[:-40])
    (folder / "mail.eml").write_bytes(mail("A ship was seen."))
    with Index.build(folder, tmp_path / "ix", settings=Settings()) as index:
        assert index.report is not None
        assert [failure.document for failure in index.report.failures] == ["broken.docx"]
        assert index.report.documents == 6
        digest = index.digest
    with Index.build(folder, tmp_path / "ix2", settings=Settings(threads=1)) as index:
        assert index.digest == digest
    with pytest.raises(Cancelled):
        Index.build(folder, tmp_path / "ix3", progress=lambda event: event.stage != "read")


def test_progress_counts_documents_and_bytes(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / f"{n}.docx").write_bytes(docx(paragraph("some text")))
    notes = []
    Index.build(
        tmp_path, tmp_path / ".ix", progress=lambda event: notes.append((event.stage, event.note))
    ).close()
    assert ("read", "file 1 of 3, 0.0 MB, 0.docx") in notes
    assert ("read", "file 3 of 3, 0.0 MB, 2.docx") in notes


def test_a_file_that_is_written_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"_id": "{n}", "text": "x"}}\n' for n in range(50)))
    items = items_of(SourceFile(path, "a.jsonl"), "jsonl")
    first = next(items)
    assert isinstance(first, Document)
    with path.open("a") as out:
        out.write('{"_id": "late", "text": "y"}\n')
    last = list(items)[-1]
    assert isinstance(last, Failure)
    assert "changed while it was read" in last.message


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    (failure,) = items_of(SourceFile(Path("a.pdf"), "a.pdf", data=b"%PDF-1.7"), "pdf")
    assert isinstance(failure, Failure)
    assert install_command("documents") in failure.message
