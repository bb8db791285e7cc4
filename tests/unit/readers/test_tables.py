"""Heads of tables in two rows, rows above them, ids, numbers, and very long heads."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from tests.support.office_files import text_row, xlsx
from tests.support.reading import read_all

GROUPED = """Sales of the north
Created,2026-01-02,,,
,2020,,2021,
region,sales,costs,sales,costs
Oslo,10,5,12,6
Bergen,7,3,8,2
"""
UNITS = "ship,length,crew,built\n,m,persons,\nFram,39,16,1892\nMaud,36.5,12,1916\n"


def rows(data: str, name: str = "a.csv") -> list[tuple[str, str]]:
    documents, failures = read_all(name, data.encode())
    assert failures == []
    return [(document.id, document.text) for document in documents]


def test_two_rows_of_a_head_and_rows_above_it() -> None:
    found = rows(GROUPED)
    assert found[:2] == [("a.csv#1", "Sales of the north"), ("a.csv#2", "Created 2026-01-02")]
    assert found[2] == (
        "a.csv#5",
        "region: Oslo\n2020 sales: 10\n2020 costs: 5\n2021 sales: 12\n2021 costs: 6",
    )
    assert len(found) == 4


def test_a_second_row_with_units() -> None:
    assert rows(UNITS) == [
        ("a.csv#3", "ship: Fram\nlength (m): 39\ncrew (persons): 16\nbuilt: 1892"),
        ("a.csv#4", "ship: Maud\nlength (m): 36.5\ncrew (persons): 12\nbuilt: 1916"),
    ]


def test_the_same_in_a_sheet() -> None:
    cells = [line.split(",") for line in GROUPED.splitlines()]
    sheet = "".join(text_row(number, *row) for number, row in enumerate(cells, 1))
    documents, failures = read_all("b.xlsx", xlsx({"North": [sheet]}))
    assert failures == []
    assert documents[2].id == "b.xlsx/North#5"
    assert documents[2].text.splitlines()[1] == "2020 sales: 10"


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        ("name,,note\na,b,c\nd,5,f\n", ["name: a\ncolumn 2: b\nnote: c", "name: d\ncolumn 2: 5\nnote: f"]),
        ("a,b\nx,\ny,1\n", ["a: x", "a: y\nb: 1"]),
        ("year,ship\n1892,Fram\n1916,Maud\n", ["year: 1892\nship: Fram", "year: 1916\nship: Maud"]),
        ("\n\nsep=;\na;b\n1,5;2\n", ["a: 1,5\nb: 2"]),
        ("# made by hand\n#id;n\n1;2\n", ["made"]),
        ("a;b\n1,5;2,5\n3,5;4,5\n", ["a: 1,5\nb: 2,5", "a: 3,5\nb: 4,5"]),
    ],
)
def test_heads_in_one_row(data: str, texts: list[str]) -> None:
    found = [text for _, text in rows(data)]
    if texts == ["made"]:
        assert found == ["# made by hand", "#id: 1\nn: 2"]
    else:
        assert found == texts


def test_ids_that_repeat_between_files(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.csv").write_text(f"id,name,year\n1,{name} one,1890\n2,{name} two,1880\n")
    with Index.build(folder, tmp_path / "ix", settings=Settings(threads=1)) as index:
        assert index.report is not None
        assert index.report.failures == ()
        documents = {document.id: document for document in index.inspect.stored()}
        assert sorted(documents) == ["a.csv#2", "a.csv#3", "b.csv#2", "b.csv#3"]
        assert documents["b.csv#2"].metadata == {"id": 1, "name": "b one", "year": 1890}
        found = index.retrieve("one", mode="bm25", filter="year>=1890 and id=1").passages
        assert {passage.document for passage in found} == {"a.csv#2", "b.csv#2"}


def test_numbers_are_columns_of_numbers() -> None:
    data = "text,year,zip,share,mixed,none\nx,1890,01234,0.5,1,\ny,-3,98765,12.25,n/a,\n"
    documents, _ = read_all("a.csv", data.encode())
    assert documents[0].metadata == {"year": 1890, "zip": "01234", "share": 0.5, "mixed": "1"}
    assert documents[1].metadata == {"year": -3, "zip": "98765", "share": 12.25, "mixed": "n/a"}


def test_a_column_of_ids_of_documents_stays_one() -> None:
    documents, failures = read_all("a.csv", b"_id,title,text\nx,T,hello\n,U,there\n")
    assert failures == []
    assert [document.id for document in documents] == ["x", "a.csv#3"]


def test_a_head_of_a_million_characters() -> None:
    long = "word " * 200_000
    documents, failures = read_all("a.csv", f"{long},b\n".encode() + b"1,2\n" * 3_000)
    assert failures == []
    assert len(documents) == 3_000
    assert all(len(document.text) < 250 for document in documents)
    sheet = text_row(1, long, "b") + "".join(text_row(n, "1", "2") for n in range(2, 3_002))
    documents, failures = read_all("a.xlsx", xlsx({"S": [sheet]}))
    assert failures == []
    assert all(len(document.text) < 250 for document in documents)
    assert sum(len(document.text) for document in documents) < 1_000_000


@pytest.mark.parametrize(
    ("data", "first"),
    [
        ("2024-01-01,12.5,ok\n2024-01-02,13.1,ok\n", "column 1: 2024-01-01\ncolumn 2: 12.5\ncolumn 3: ok"),
        ("Ann,ann@example.org\nBob,bob@example.org\n", "column 1: Ann\ncolumn 2: ann@example.org"),
        ("name,1,2,3\nA,4,5,6\n", "name: A\n1: 4\n2: 5\n3: 6"),
        ("name,2023,2024\nA,4,5\n", "name: A\n2023: 4\n2024: 5"),
        ("when,n\n2024-01-01,5\n", "when: 2024-01-01\nn: 5"),
        ("a,b\nc,d\n", "a: c\nb: d"),
    ],
)
def test_a_first_row_of_values_is_not_a_head(data: str, first: str) -> None:
    assert rows(data)[0][1] == first
