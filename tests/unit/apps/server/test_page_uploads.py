"""Files dropped on the page: a row for each, answers from all, nothing replaced or removed silently."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Event, Index, Settings
from tests.support.browser import Browser
from tests.support.browser_fixtures import fits, problems, texts
from tests.support.many_formats import ASKED, FILES
from tests.support.service import running

pytestmark = pytest.mark.usefixtures("loopback")
SETTINGS = Settings(threads=1)
STATES = "[...document.querySelectorAll('#uploads tr')].map((row) => row.dataset.state)"
DONE = f"{STATES}.every((state) => !['waiting', 'reading'].includes(state))"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents = [Document("a.md", "The Fram sailed.", "Fram"), Document("b.md", "The Maud sailed.", "Maud")]
    Index.build(documents, tmp_path / "index", settings=SETTINGS).close()
    return tmp_path / "index"


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[Path]]:
    (tmp_path / "files").mkdir()
    for name, content in FILES.items():
        (tmp_path / "files" / name).write_bytes(content)
    yield [tmp_path / "files" / name for name in FILES]


def open_documents(page: Browser, url: str) -> None:
    page.go("about:blank")
    page.go(f"{url}#documents")
    page.wait("!document.getElementById('documents-write').hidden")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=str)
def test_twenty_dropped_files_of_ten_formats_are_answered_from(
    folder: Path, files: list[Path], page: Browser, pictures: Path, width: int, dark: bool
) -> None:
    with running(folder, writable=True) as service:
        page.look(width, 844, dark=dark, phone=width < 500)
        open_documents(page, service.url)
        page.drop(".drop", *files)
        page.wait("document.querySelectorAll('#uploads tr').length === 20")
        page.wait("document.querySelectorAll('#uploads tr[data-state=read]').length > 3", 60)
        page.picture(pictures / f"uploading-{width}.png")
        page.wait(DONE, 120)
        assert page.value(STATES) == ["read"] * 20, texts(page, "#uploads tr")
        assert texts(page, "#uploads td:first-child") == list(FILES)
        assert texts(page, "#uploads .state")[0] == "read, 2 pages"
        assert texts(page, "#uploads-about") == ["20 files: 20 read"]
        assert fits(page)
        page.picture(pictures / f"uploaded-{width}.png")
        missed = []
        for question, answer in ASKED.items():
            page.value(f"askAnew({question!r})")
            page.wait(f"document.title.startsWith({question!r}) && running === null")
            quotes = " ".join(texts(page, "#quotes blockquote"))
            if answer not in quotes:
                missed.append((question, quotes[:200]))
        assert missed == []
        assert [line for line in problems(page) if "status of 409" not in line] == []


def test_refused_files_say_why_and_documents_are_replaced_only_on_request(
    folder: Path, page: Browser
) -> None:
    with running(folder, writable=True) as service:
        open_documents(page, service.url)
        page.value(
            "addFiles([new File(['The Maud was sold.'], 'b.md'), new File([''], 'empty.txt'),"
            " new File([new Uint8Array([0, 1, 2, 255])], 'junk.bin'), new File(['%PDF-1.4 cut'], 'cut.pdf')])"
        )
        page.wait(DONE)
        assert page.value(STATES) == ["exists", "refused", "refused", "refused"]
        said = texts(page, "#uploads .state")
        assert not any("…" in text for text in said), said
        assert said[0] == "not added: b.md is in the index already"
        assert all(text.startswith("not added: ") and len(text) > 20 for text in said), said
        assert texts(page, "#uploads-about") == ["4 files: 4 not added"]
        with service.client() as client:
            found = client.post("/v1/retrieve", json={"question": "Maud"}).json()["passages"]
            assert found[0]["text"] == "The Maud sailed."
            page.value("document.querySelector('#uploads button').click()")
            page.wait(f"{STATES}[0] === 'read'")
            found = client.post("/v1/retrieve", json={"question": "Maud"}).json()["passages"]
            assert found[0]["text"] == "The Maud was sold."
        assert problems(page) == []


def test_a_file_that_is_too_large_says_how_to_add_it(folder: Path, page: Browser, tmp_path: Path) -> None:
    large = tmp_path / "large.txt"
    with large.open("wb") as stream:
        stream.truncate(500_000_000)
    with running(folder, writable=True) as service:
        open_documents(page, service.url)
        page.drop(".drop", large, folder.parent / "none.txt")
        page.wait(f"{STATES}.length > 0 && {DONE}", 120)
        said = texts(page, "#uploads .state")[0]
        assert said.startswith("not added: The file has more than 100,000,000 bytes."), said
        assert "`ketrag add`" in said
        page.value("addFiles([new File(['The Vega sailed.'], 'vega.txt')])")
        page.wait(f"{STATES}.join() === 'read'")


def test_a_broken_connection_is_said_and_the_next_file_follows(folder: Path, page: Browser) -> None:
    with running(folder, writable=True) as service:
        open_documents(page, service.url)
        page.value(
            "(() => { const own = fetch; let broken = false; window.fetch = (path, given) => {"
            " if (!broken && path.startsWith('/v1/uploads')) { broken = true;"
            " return Promise.reject(new TypeError('x')); } return own(path, given); }; })()"
        )
        page.value("addFiles([new File(['One.'], 'one.txt'), new File(['The Vega sailed.'], 'vega.txt')])")
        page.wait(DONE)
        assert page.value(STATES) == ["refused", "read"]
        assert texts(page, "#uploads .state")[0].startswith("not added: The file could not be sent")
        assert problems(page) == []


def test_an_upload_waits_while_the_index_is_being_built(folder: Path, page: Browser) -> None:
    go_on = threading.Event()

    def slowly(_: Event) -> bool:
        go_on.wait(0.2)
        return True

    def build() -> None:
        with Index.open(folder) as other:
            other.update(add=[Document(f"{k}", f"Filler {k} sailed.") for k in range(300)], progress=slowly)

    with running(folder, writable=True) as service:
        open_documents(page, service.url)
        thread = threading.Thread(target=build)
        thread.start()
        try:
            page.wait("fetch('/v1/builds').then((reply) => reply.json()).then(({ running }) => !!running)")
            page.value("void addFiles([new File(['The Gjøa sailed.'], 'gjoa.txt')])")
            page.wait("document.querySelector('#uploads .state')?.textContent.startsWith('waiting')")
            page.value("void addFiles([new File(['The Vega sailed.'], 'vega.txt')])")
            assert texts(page, "#uploads-about") == ["2 files: 2 to go"]
        finally:
            go_on.set()
            thread.join()
        page.wait(f"{DONE} && {STATES}.length === 2", 60)
        assert page.value(STATES) == ["read", "read"]
        page.wait("document.getElementById('about').textContent === '304 documents'")
        assert [line for line in problems(page) if "status of 409" not in line] == []


def test_files_dropped_on_another_view_lead_to_the_documents(
    folder: Path, files: list[Path], page: Browser
) -> None:
    with running(folder, writable=True) as service:
        page.go("about:blank")
        page.go(service.url)
        page.wait("document.getElementById('about').textContent === '2 documents'")
        page.drop("main", files[-1])
        page.wait(f"location.hash === '#documents' && {STATES}.join() === 'read'")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 3")
        assert problems(page) == []


def test_a_dropped_folder_gives_its_files(folder: Path, files: list[Path], page: Browser) -> None:
    with running(folder, writable=True) as service:
        open_documents(page, service.url)
        page.drop(".drop", files[0].parent)
        page.wait("document.querySelectorAll('#uploads tr').length === 20")
        assert sorted(texts(page, "#uploads td:first-child")) == sorted(FILES)


def test_a_reader_sees_neither_adding_nor_removing(folder: Path, files: list[Path], page: Browser) -> None:
    with running(folder) as service:
        page.go(f"{service.url}#documents")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 2")
        assert page.value("document.getElementById('documents-write').hidden")
        assert texts(page, "#documents-table button") == ["Title", "File", "Passages"]
        page.drop("#view-documents", files[0], taken=False)
        assert page.value("location.href").startswith(service.url), "the browser does not open the file"
        assert page.value("document.querySelectorAll('#uploads tr').length") == 0
        assert problems(page) == []
