"""Files in other encodings than UTF-8: which one was assumed is in their metadata and locations."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.readers import SourceFile, items_of
from ketrag_fast.readers.decode import decode, decode_html
from ketrag_fast.readers.file_types import kind_of
from tests.support.reading import at, read_all, read_one

INPUTS = Path(__file__).parents[2] / "data" / "inputs" / "encodings"
TEXTS = {
    "gbk.txt": ("北京大学的图书馆建于一九零二年。", "gbk"),
    "koi8.txt": ("Москва основана в 1147 году князем Юрием Долгоруким.", "koi8-u"),
    "sjis.txt": ("東京駅は1914年に開業した。", "shift_jis"),
    "cp1252.txt": ("The café’s “special” costs 5€ – naïve résumé", "windows-1252"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_short_texts(name: str) -> None:
    text, encoding = TEXTS[name]
    found = read_one(name, (INPUTS / name).read_bytes())
    assert (found.text, found.metadata) == (text, {"encoding": encoding})
    assert at(found, "encoding") == [(encoding, text)]


def test_an_index_of_them(tmp_path: Path) -> None:
    with Index.build(INPUTS, tmp_path / "ix", settings=Settings(threads=1)) as index:
        assert index.report is not None
        assert (index.report.failures, index.report.warnings) == ((), ())
        found = index.retrieve("Когда основана Москва?", mode="bm25").passages[0]
        assert (found.document, found.location) == (
            "koi8.txt",
            {"encoding": "koi8-u", "lines": [1, 1]},
        )
        languages = {row.id: row.metadata["encoding"] for row in index.inspect.stored()}
        assert languages == {name: encoding for name, (_, encoding) in TEXTS.items()}


def test_a_named_encoding_wins(tmp_path: Path) -> None:
    settings = Settings(threads=1, fallback_encoding="cp1251")
    with Index.build(INPUTS / "koi8.txt", tmp_path / "ix", settings=settings) as index:
        (document,) = index.inspect.stored()
        assert document.text == TEXTS["koi8.txt"][0].encode("koi8-r").decode("cp1251")
        assert document.metadata == {"encoding": "cp1251"}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["a.txt", "README", "b.log"])
def test_utf16_without_a_mark(name: str, encoding: str) -> None:
    text = "Nansen reached 86° 14′ N, and 北京大学的图书馆 was 建于 1902.\n" * 90
    found = read_one(name, text.encode(encoding))
    assert (found.text, found.metadata) == (text, {"encoding": encoding})


@pytest.mark.parametrize(
    "data", [b"\1\0\2\0" * 20, b"ab\0\0" * 20, b"\0" * 64, "é\x07".encode("utf-16-le") * 20]
)
def test_binary_data_are_not_utf16(data: bytes) -> None:
    assert kind_of(SourceFile(Path("a"), "a", data=data)) is None
    assert read_all("a.txt", data)[0] == []


@pytest.mark.parametrize("name", ["build.log", "typescript", "run.txt", "out.2024"])
def test_logs_with_bells_and_backspaces_are_text(name: str) -> None:
    text = "pump 1%\b\b2%\b\b\b stalled\a\n\x1b[31mvalve\x1b[0m closed\n" * 50
    assert read_one(name, text.encode()).text == text
    binary = SourceFile(Path("typescript"), "typescript", data=b"\x01\x02" + text.encode())
    assert kind_of(binary) is None


@pytest.mark.parametrize("name", ["NOTES", "notes.log", "liesmich.2024"])
@pytest.mark.parametrize("text", ["The café’s “special” – naïve résumé\n", TEXTS["gbk.txt"][0] + "\n"])
def test_texts_with_an_unknown_suffix(name: str, text: str) -> None:
    data = (text * 300).encode("gbk" if text.startswith("北") else "cp1252")
    assert read_one(name, data).text == text * 300
    assert kind_of(SourceFile(Path(name), name, data=bytes(range(128, 256)) * 40)) is None


def test_a_weak_guess_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "dos.txt").write_bytes("Die Straße führt über die Brücke".encode("cp437"))
    with Index.build(tmp_path / "dos.txt", tmp_path / "ix", settings=Settings(threads=1)) as index:
        assert index.report is not None
        assert index.report.failures == ()
        (warning,) = index.report.warnings
        assert "dos.txt (read as windows-1252, which may be wrong)" in warning
        assert "fallback_encoding" in warning


def test_utf8_wins_over_what_is_declared() -> None:
    page = "<meta charset=iso-8859-1><p>Größe</p>"
    assert decode_html(page.encode()).text == page
    assert decode(b"caf\xe9 \xe2\x80\x9cx\xe2\x80\x9d \xc3\xa9\xc3\xa9").text == "café “x” éé"
    assert read_one("a.txt", b"caf\xe9 \xe2\x80\x9cx\xe2\x80\x9d \xc3\xa9\xc3\xa9").metadata == {}


def test_pages_without_a_declaration() -> None:
    pytest.importorskip("resiliparse")
    words = "Москва основана в 1147 году князем Юрием Долгоруким. "
    page = f"<html><head><title>t</title></head><body><p>{words * 5}</p></body></html>"
    found = read_one("a.html", page.encode("cp1251"))
    assert found.text == (words * 5).strip()
    assert found.metadata["encoding"] == "windows-1251"
    declared = page.replace("<head>", "<head><meta charset=windows-1251>")
    assert "encoding" not in read_one("a.html", declared.encode("cp1251")).metadata


def test_rows_and_lines() -> None:
    """A line has few letters: the file decides."""
    texts = ["Москва", "Нева", "Волга и Ока", "Санкт-Петербург стоит на Неве"]
    table = "text\n" + "\n".join(texts)
    documents, failures = read_all("a.csv", table.encode("koi8-r"))
    assert ([document.text for document in documents], failures) == (texts, [])
    lines = "\n".join(f'{{"text": "{text}"}}' for text in texts)
    documents, failures = read_all("a.jsonl", lines.encode("koi8-r") + b'\n{"text": "\xd0\x9d"}')
    assert ([document.text for document in documents], failures) == ([*texts, "Н"], [])
    assert [document.metadata.get("encoding") for document in documents] == ["koi8-u"] * 4 + [None]


def test_the_guess_is_of_the_file_and_not_of_its_members(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes((INPUTS / "gbk.txt").read_bytes())
    file = SourceFile(path, "a.txt")
    items_of(file, "text")
    assert file.member("b", b"x").assumed.encoding is None
