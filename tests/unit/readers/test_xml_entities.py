"""Entities of XML documents: short ones are read, others stay as they are, and small files do not grow."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.support.reading import read_all, read_one


def xml(declarations: str, body: str) -> bytes:
    return f"<?xml version='1.0'?>\n<!DOCTYPE book [{declarations}]>\n<book>{body}</book>".encode()


def test_names_and_versions_that_a_document_defines() -> None:
    data = xml(
        '<!ENTITY version "4.2"><!ENTITY author "<person>Ada Byron</person>"><!ENTITY and "x &amp; y">',
        "<title>Kettle &version;</title>&author;<para>Made of &and;.</para>",
    )
    found = read_one("kettle.xml", data)
    assert found.text == "title: Kettle 4.2\nperson: Ada Byron\npara: Made of x & y."


def test_what_is_elsewhere_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    data = xml(
        f'<!ENTITY code SYSTEM "{secret.as_uri()}"><!ENTITY % defs SYSTEM "{secret.as_uri()}"> %defs;',
        "<para>See &code; and &undefined; &copy; 1994 &ldquo;X&rdquo;</para>",
    )
    found = read_one("outside.xml", data)
    assert found.text == "para: See &code; and &undefined; © 1994 “X”"


@pytest.mark.parametrize(
    "declarations",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">',
        f'<!ENTITY a "{"ha" * 300}">',
        '<!ENTITY % p "x"><!ENTITY a "&#37;p;">',
    ],
)
def test_entities_that_grow_are_refused(declarations: str) -> None:
    failures = read_all("bomb.xml", xml(declarations, "<para>text &a;</para>"))[1]
    assert failures == ["bomb.xml: the file: XML with entity declarations is not accepted"]


def test_a_file_of_references_does_not_grow() -> None:
    data = xml(f'<!ENTITY a "{"ha " * 160}">', "<p>" + "&a;" * 20_000 + "</p>")
    documents, failures = read_all("references.xml", data)
    assert (documents, len(failures)) == ([], 1) and "more than 10 times its size" in failures[0]


def test_a_packed_file_without_a_reader_has_its_own_name() -> None:
    assert read_all("card.ps.gz", gzip.compress(b"%!PS"))[1] == ["card.ps.gz: no reader for .ps files"]
