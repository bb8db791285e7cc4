"""Titles of filings."""

from __future__ import annotations

import pytest

from ketrag_fast.readers.pdf.reader import filing_title

COVER = "FORM 10-Q\n\n\tCommission File Number: 001-36743\n\t{}\n{}(Exact name of Registrant as specified)\n"


@pytest.mark.parametrize("rule", ["", "\t", "\n____ \n"])
def test_the_company_is_in_the_title(rule: str) -> None:
    assert filing_title("FORM 10-Q", COVER.format("Apple Inc.", rule)) == "Apple Inc., Form 10-Q"
    assert (
        filing_title("AMAZON.COM, INC.", COVER.format("AMAZON.COM, INC.", rule))
        == "AMAZON.COM, INC., Form 10-Q"
    )


def test_other_titles_stay() -> None:
    cover = COVER.format("MICROSOFT CORPORATION", "")
    assert filing_title("Form 10-Q for Microsoft Corp", cover) == "Form 10-Q for Microsoft Corp"
    assert filing_title("A report", "Exact name of the registrant is unknown. Form 10-Q") == "A report"
    assert filing_title("A report", "(Exact name of registrant)") == "A report"
    assert filing_title("", "") == ""
