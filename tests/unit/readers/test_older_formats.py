"""Formats of older programs: Excel 97, messages of Outlook, notebooks before format 4, wrong declarations."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import pytest

from tests.support.outlook_files import SIGNATURE, compound, message, winmail
from tests.support.parts import part
from tests.support.reading import at, read_all, read_one


def workbook() -> Any:
    part("xlrd", "documents")
    return part("xlwt", "checks")


def saved(book: Any) -> bytes:
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def test_values_of_an_old_workbook_are_what_the_cell_shows() -> None:
    xlwt = workbook()
    book = xlwt.Workbook()
    sheet = book.add_sheet("Prices")
    bold = xlwt.easyxf("font: bold on")
    for column, name in enumerate(("item", "share", "code", "day", "time", "paid")):
        sheet.write(0, column, name, bold)
    sheet.write(1, 0, "Zoë's kettle")
    sheet.write(1, 1, 0.125, xlwt.easyxf(num_format_str="0.0%"))
    sheet.write(1, 2, 7042, xlwt.easyxf(num_format_str="00000"))
    sheet.write(1, 3, dt.date(2024, 3, 5), xlwt.easyxf(num_format_str="DD/MM/YYYY"))
    sheet.write(1, 4, dt.datetime(2024, 3, 5, 14, 30), xlwt.easyxf(num_format_str="D/M/YY h:mm"))
    sheet.write(1, 5, True)
    found = read_one("a.xls", saved(book))
    assert found.text.splitlines() == [
        "item: Zoë's kettle",
        "share: 12.5%",
        "code: 07042",
        "day: 2024-03-05",
        "time: 2024-03-05 14:30",
        "paid: TRUE",
    ]
    assert found.metadata["share"] == 0.125 and found.metadata["code"] == "07042"
    assert at(found, "cell") == [("A2:F2", found.text)] and at(found, "sheet") == [("Prices", found.text)]


def test_merged_cells_and_hidden_parts_of_an_old_workbook() -> None:
    xlwt = workbook()
    book = xlwt.Workbook()
    sheet = book.add_sheet("Sales")
    for column, name in enumerate(("region", "year", "sales")):
        sheet.write(0, column, name)
    sheet.write_merge(1, 2, 0, 0, "North")
    for row, (year, sales) in enumerate([("2019", 5), ("2020", 6), ("2021", 7)], 1):
        sheet.write(row, 1, year)
        sheet.write(row, 2, sales)
    sheet.row(3).hidden = True
    secret = book.add_sheet("Notes")
    secret.write(0, 0, "secret")
    secret.visibility = 1
    documents, failures = read_all("a.xls", saved(book))
    assert [one.text for one in documents] == [
        "region: North\nyear: 2019\nsales: 5",
        "region: North\nyear: 2020\nsales: 6",
    ]
    assert failures == ["a.xls/Sales: 1 row", "a.xls/Notes: the sheet"]


def test_damaged_and_encrypted_workbooks_are_refused() -> None:
    xlwt = workbook()
    book = xlwt.Workbook()
    book.add_sheet("A").write(0, 0, "x")
    data = saved(book)
    for content, reason in (
        (data[:3000], "not a workbook that can be read"),
        (SIGNATURE + bytes(600), "not a workbook that can be read"),
        (data + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
    ):
        documents, failures = read_all("a.xls", content)
        assert documents == [] and reason in failures[0]
    assert read_one("a.xls", b"name,city\nAda,London\n").text.startswith("name"), "a text with this suffix"


def test_a_message_of_outlook_has_text_sender_and_date() -> None:
    part("olefile", "documents")
    found = read_one("a.msg", message())
    assert found.title == "Harbour fees" and found.text.split() == [
        "The",
        "fee",
        "is",
        "40",
        "crowns.",
        "Ida",
    ]
    assert "ida@example.org" in str(found.metadata) and "2024-03-05T09:30" in str(found.metadata)


def test_other_and_damaged_messages_are_refused() -> None:
    part("olefile", "documents")
    for data in (message()[:900], compound({"WordDocument": b"x"}), SIGNATURE):
        documents, failures = read_all("a.msg", data)
        assert documents == [] and len(failures) == 1 and "not a message" in failures[0]


def test_an_envelope_of_outlook_is_read_as_a_file() -> None:
    data = winmail()
    for name in ("winmail.dat", "a.tnef"):
        documents, failures = read_all(name, data)
        assert [one.text for one in documents] == ["The fee is 40 crowns.", "The harbour is closed."]
        assert failures == []


@pytest.mark.parametrize(("version", "mark"), [(3, "\n"), (2, "")])
def test_notebooks_before_format_4(version: int, mark: str) -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Fees"]},
        {"cell_type": "markdown", "source": [f"The fee{mark}", "is 40."]},
        {"cell_type": "code", "input": [f"fee = 40{mark}", "fee"], "outputs": [
            {"output_type": "pyout", "text": ["40"]},
            {"output_type": "pyerr", "ename": "ValueError", "evalue": "no fee", "traceback": []},
        ]},
    ]  # fmt: skip
    book = {"nbformat": version, "worksheets": [{"cells": cells}, {"cells": None}, 3]}
    found = read_one("a.ipynb", json.dumps(book).encode())
    assert found.text == "## Fees\n\nThe fee\nis 40.\n\nfee = 40\nfee\n40\nValueError: no fee"
    documents, failures = read_all("b.ipynb", b'{"worksheets": 3}')
    assert documents == [] and failures == ["b.ipynb: not a notebook: it has no cells"]


@pytest.mark.parametrize(
    "data",
    [
        b'<?xml version="1.0" encoding="utf-16"?><a><b>The fee is 40 crowns.</b></a>',
        '<?xml version="1.0" encoding="utf-8"?><a><b>The fee is 40 crowns.</b></a>'.encode("utf-16"),
    ],
)
def test_xml_with_a_wrong_declaration(data: bytes) -> None:
    assert "The fee is 40 crowns." in read_one("a.xml", data).text


def test_a_single_row_and_rows_without_text_are_read() -> None:
    assert [one.text for one in read_all("a.csv", b"1,2,3\n")[0]] == ["1 2 3"]
    documents, failures = read_all("b.csv", b"text,year\nThe fee,1999\n,2000\n")
    assert [one.text for one in documents] == ["The fee", "year: 2000"] and failures == []
