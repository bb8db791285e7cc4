"""Sheets: values as the program shows them, merged cells, several tables, and forms."""

from __future__ import annotations

import pytest

from ketrag_fast.readers.office.cell_formats import format_of, shown, shown_text
from tests.support.reading import at, read_all
from tests.support.sheets import workbook


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("0.0%", "0.125", "12.5%"),
        ("00000", "7042", "07042"),
        ("#,##0.00 €", "1234.5", "1,234.50 €"),
        ("#,##0.00;[Red](#,##0.00)", "-1234.567", "(1,234.57)"),
        ('_-* #,##0.00\\ "kr"_-;-* #,##0.00 "kr"_-;_-* "-"??\\ "kr"_-;_-@_-', "0", "- kr"),
        ("[$€-407] #,##0", "1000000", "€ 1,000,000"),
        ("000-00-0000", "123456789", "123-45-6789"),
        ('0.0,,"M"', "12345678", "12.3M"),
        ('[<1000]0;[>=1000]0.0,"k"', "2500", "2.5k"),
        ("0.00E+00", "123456", "1.23E+05"),
        ("# ?/?", "2.5", "2 1/2"),
        ('"about" ?/?', "1.5", "about 3/2"),
        ("General", "0.30000000000000004", "0.3"),
        ("General", "12345678901234", "12345678901234"),
        ("yyyy-mm-dd", "45356", "2024-03-05"),
        ("dd.mm.yyyy hh:mm", "45356.60416666666", "2024-03-05 14:30"),
        ("h:mm:ss AM/PM", "0.7500115740740741", "18:00:01"),
        ("[h]:mm", "1.5", "36:00"),
        ("[h]:mm", "-0.0625", "-1:30"),
        ("[mm]:ss", "0.0625", "90:00"),
        ("[ss]", "0.001", "86"),
        ("##0.0E+0", "12345678", "12.3E+6"),
        ("hh:mm:ss.000", "0.5000116", "12:00:01.002"),
        ("yyyy-mm-dd hh:mm:ss.0", "45356.99999995", "2024-03-06 00:00:00.0"),
        ("0.00", "not a number", "not a number"),
    ],
)
def test_values_are_what_the_program_shows(code: str, value: str, text: str) -> None:
    assert shown(value, format_of(170, code)) == text


@pytest.mark.parametrize(
    ("code", "text", "written"),
    [
        ('@" (spare)"', "pump", "pump (spare)"),
        ('0;-0;0;"Part "@', "a;b", "Part a;b"),
        ("@", "pump", "pump"),
        ("0.00", "pump", "pump"),
    ],
)
def test_formats_of_texts(code: str, text: str, written: str) -> None:
    assert shown_text(text, format_of(170, code)) == written


def test_a_head_of_two_rows_whose_first_column_is_merged_downwards() -> None:
    rows: dict[int, list[str | float | tuple[float, str] | None]] = {
        1: ["Region", "2023", None, "2024", None],
        2: [None, "Sales", "Cost", "Sales", "Cost"],
        3: ["North", 1.0, 2.0, 3.0, 4.0],
        4: ["South", 5.0, 6.0, 7.0, 8.0],
    }
    documents, failures = read_all(
        "a.xlsx", workbook(rows, merged=["A1:A2", "B1:C1", "D1:E1"], strong=[1, 2])
    )
    assert failures == []
    assert documents[1].text.split("\n") == [
        "Region: South",
        "2023 Sales: 5",
        "2023 Cost: 6",
        "2024 Sales: 7",
        "2024 Cost: 8",
    ]


def test_every_minute_of_a_day() -> None:
    own = format_of(170, "dd.mm.yyyy hh:mm")
    for minute in range(1440):
        stored = repr(45356 + minute / 1440)
        assert shown(stored, own) == f"2024-03-05 {minute // 60:02}:{minute % 60:02}"


def texts(data: bytes) -> dict[str, str]:
    documents, failures = read_all("a.xlsx", data)
    assert failures == []
    return {document.id.removeprefix("a.xlsx/S"): document.text for document in documents}


def test_numbers_of_formatted_cells_are_metadata() -> None:
    rows = {1: ("name", "share", "zip"), 2: ("Ann", (0.125, "0.0%"), (7042, "00000"))}
    documents, _ = read_all("a.xlsx", workbook(rows))
    assert documents[0].text == "name: Ann\nshare: 12.5%\nzip: 07042"
    assert documents[0].metadata == {"name": "Ann", "share": 0.125, "zip": "07042"}


def test_merged_cells_repeat() -> None:
    rows = {
        1: ("Region", "Quarter", "Sales"),
        2: ("North", "Q1", 11),
        3: (None, "Q2", 12),
        4: ("South", "both", None),
    }
    found = texts(workbook(rows, merged=["A2:A3", "B4:C4"]))
    assert found["#3"] == "Region: North\nQuarter: Q2\nSales: 12"
    assert found["#4"] == "Region: South\nQuarter: both\nSales: both"


def test_ten_thousand_merged_ranges_and_a_range_of_the_whole_sheet() -> None:
    rows = {1: ("A", "B"), **{n: ("x" if n % 2 == 0 else None, n) for n in range(2, 20_002)}}
    found = texts(workbook(rows, merged=[f"A{n}:A{n + 1}" for n in range(2, 20_002, 2)]))
    assert found["#20001"] == "A: x\nB: 20001"
    assert texts(workbook({1: ("A", "B"), 2: ("x", 1)}, merged=["A1:XFD1048576"]))["#2"] == "A: x\nB: 1"


def test_two_tables_below_each_other() -> None:
    rows = {
        1: ("City", "Pop"),
        2: ("Bergen", 290),
        3: ("Tromso", 77),
        6: ("Ship", "Year"),
        7: ("Fram", 1892),
        8: ("Maud", 1917),
    }
    found = texts(workbook(rows))
    assert found["#7"] == "Ship: Fram\nYear: 1892"
    assert "City: Ship\nPop: Year" not in found.values() and len(found) == 4


def test_an_empty_row_inside_a_table_does_not_end_it() -> None:
    rows = {1: ("City", "Pop"), 2: ("Bergen", 290), 4: ("Tromso", 77)}
    assert texts(workbook(rows))["#4"] == "City: Tromso\nPop: 77"
    words = {1: ("City", "Land"), 2: ("Bergen", "Norway"), 4: ("Turku", "Finland")}
    assert texts(workbook(words))["#4"] == "City: Turku\nLand: Finland"


def test_the_style_of_a_head_begins_a_table() -> None:
    rows = {1: ("City", "Land"), 2: ("Bergen", "Norway"), 4: ("Ship", "Captain"), 5: ("Fram", "Nansen")}
    assert texts(workbook(rows, strong=[1, 4]))["#5"] == "Ship: Fram\nCaptain: Nansen"
    near = {1: ("City", "Land"), 2: ("Bergen", "Norway"), 3: ("Ship", "Captain"), 4: ("Fram", "Nansen")}
    assert texts(workbook(near, strong=[1, 3]))["#4"] == "Ship: Fram\nCaptain: Nansen"


def test_two_tables_next_to_each_other() -> None:
    rows = {1: ("City", "Pop", None, "Ship", "Year"), 2: ("Bergen", 290, None, "Fram", 1892)}
    documents, _ = read_all("a.xlsx", workbook(rows))
    assert [(document.id, document.text) for document in documents] == [
        ("a.xlsx/S#2", "City: Bergen\nPop: 290"),
        ("a.xlsx/S#D2", "Ship: Fram\nYear: 1892"),
    ]
    assert at(documents[1], "cell")[0][0] == "D2:E2"


def test_an_empty_column_inside_a_table_does_not_divide_it() -> None:
    rows = {1: ("Account", None, "2023", "2024"), 2: ("Sales", None, 10, 12)}
    assert texts(workbook(rows)) == {"#2": "Account: Sales\n2023: 10\n2024: 12"}


def test_a_form() -> None:
    rows = {
        1: ("Customer:", "Helga Brandt"),
        2: ("Order no.:", "PX-4471-B"),
        3: ("Pier:", 9),
        4: ("Remark:", None),
        6: ("Item", "Price"),
        7: ("Rope", 12),
    }
    documents, _ = read_all("a.xlsx", workbook(rows))
    assert documents[0].text == "Customer: Helga Brandt\nOrder no.: PX-4471-B\nPier: 9\nRemark"
    assert documents[0].metadata["Order no."] == "PX-4471-B"
    assert at(documents[0], "cell")[0][0] == "A1:B4"
    assert documents[1].text == "Item: Rope\nPrice: 12"


def test_a_form_with_two_pairs_in_a_row_and_one_without_colons() -> None:
    pairs = {1: ("Name:", "Ann", None, "Date:", "5 May"), 2: ("Boat:", "Sula", None, "Length:", 9.4)}
    assert texts(workbook(pairs)) == {"#1": "Name: Ann\nDate: 5 May\nBoat: Sula\nLength: 9.4"}
    plain = {1: ("Name", "Ann"), 2: ("Age", 34), 3: ("City", "Oslo"), 4: ("Boat", "Sula")}
    assert texts(workbook(plain)) == {"#1": "Name: Ann\nAge: 34\nCity: Oslo\nBoat: Sula"}


def test_a_form_with_five_thousand_fields() -> None:
    found = texts(workbook({n: (f"Field {n}:", f"value {n}") for n in range(1, 5_001)}))
    assert len(found) == 5 and found["#4001"].endswith("Field 5000: value 5000")


def test_formulas_without_stored_values_are_reported() -> None:
    row = '<row r="3"><c r="A3" t="inlineStr"><is><t>sum</t></is></c><c r="B3"><f>SUM(B2)</f></c></row>'
    documents, failures = read_all("a.xlsx", workbook({1: ("what", "n"), 2: ("a", 1)}, extra_rows=row))
    assert len(documents) == 2
    assert failures == [
        "a.xlsx/S: a formula has no stored value (B3): open the file in a spreadsheet program and save it"
    ]


def test_characters_that_xml_cannot_have() -> None:
    found = texts(workbook({1: ("City", "Office"), 2: ("Tokyo", "east_x000D_\nwest_x0007_ _x005F_x000D_")}))
    assert found["#2"] == "City: Tokyo\nOffice: east\nwest _x000D_"
