"""Text of scanned pages: recognised by Tesseract if the setting `ocr` names languages, never otherwise."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from ketrag_fast import Document, Failure, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import BackendMissing, ConfigError
from ketrag_fast.readers import SourceFile, items_of, ocr
from tests.support.parts import part, strict
from tests.support.pdf_files import Page, pdf, simple

part("pypdfium2", "documents")

TEXT = "The harbour froze in winter.\nNine men walked over the ice to the depot."
needs_tesseract = pytest.mark.skipif(
    shutil.which(ocr.COMMAND) is None and not strict(), reason="the command tesseract is not installed"
)


def scan(*pages: bytes) -> bytes:
    """Return a PDF whose pages are pictures of the first pages of others."""
    import pypdfium2

    document = pypdfium2.PdfDocument.new()
    for data in pages:
        source = pypdfium2.PdfDocument(data)
        picture = pypdfium2.PdfImage.new(document)
        picture.set_bitmap(source[0].render(scale=200 / 72, grayscale=True))
        width, height = source[0].get_size()
        picture.set_matrix(pypdfium2.PdfMatrix().scale(width, height))
        page = document.new_page(width, height)
        page.insert_obj(picture)
        page.gen_content()
        source.close()
    out = io.BytesIO()
    document.save(out)
    document.close()
    return out.getvalue()


def read(data: bytes, languages: str | None) -> list[Document | Failure]:
    return list(items_of(SourceFile(Path("a.pdf"), "a.pdf", data=data, ocr=languages), "pdf"))


def test_a_scanned_page_is_a_failure_that_names_the_setting() -> None:
    (failure,) = read(scan(simple(TEXT)), None)
    assert isinstance(failure, Failure)
    assert failure.message.startswith("the only page: pictures without text; --ocr eng recognises it")


@needs_tesseract
def test_text_is_recognised_with_its_page_and_box() -> None:
    (document,) = read(scan(simple("A plain page of text."), simple(TEXT)), "eng")
    assert isinstance(document, Document)
    for line in TEXT.split("\n"):
        assert line in document.text.replace("\n", " ") or line in document.text
    start = document.text.index("The harbour")
    pages = [one.value for one in document.locators if one.kind == "page" and one.start <= start < one.end]
    boxes = [one.value for one in document.locators if one.kind == "box" and one.start <= start < one.end]
    assert pages == [2]
    assert 50 < boxes[0][0] < 70
    assert 60 < boxes[0][1] < 90


@needs_tesseract
def test_a_table_in_a_picture_keeps_its_columns() -> None:
    page = Page()
    for number, (first, second) in enumerate([("1204", "8831"), ("3310", "4472"), ("7415", "9026")]):
        page.text(60, 100 + 24 * number, "Ships in port", 14)
        page.text(300, 100 + 24 * number, first, 14)
        page.text(440, 100 + 24 * number, second, 14)
    (document,) = read(scan(pdf([page])), "eng")
    assert isinstance(document, Document)
    assert document.text.splitlines()[-1] == "Ships in port\t7415\t9026"


@needs_tesseract
def test_only_pages_without_text_are_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "recognise", None)
    (document,) = read(simple(TEXT), "eng")
    assert isinstance(document, Document)


@needs_tesseract
def test_a_picture_without_letters_is_named() -> None:
    (failure,) = read(scan(pdf([Page()])), "eng")
    assert isinstance(failure, Failure)
    assert failure.message == "the only page: no text was recognised in the picture"


@needs_tesseract
def test_an_index_reads_scans_again_when_ocr_is_set(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(scan(simple(TEXT)))
    with Index.build([folder], tmp_path / "index") as index:
        assert index.inspect.documents() == []
    with Index.build([folder], tmp_path / "index", settings=Settings(ocr="eng")) as index:
        assert [one.document for one in index.inspect.documents()] == ["a.pdf"]


def test_a_missing_command_is_an_error_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "a.txt").write_text("The harbour froze.")
    with pytest.raises(BackendMissing, match="the command tesseract is missing"):
        Index.build([tmp_path / "a.txt"], tmp_path / "index", settings=Settings(ocr="eng"))
    assert main(["read", str(tmp_path / "a.txt"), "--ocr", "eng"]) != 0
    assert "install Tesseract" in capsys.readouterr().err


@needs_tesseract
@pytest.mark.parametrize(
    ("languages", "expected"), [("xyz", "no data for xyz"), ("-x", "not a list"), ("", "not a list")]
)
def test_unknown_languages_are_refused(languages: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        ocr.check_ocr(languages)
