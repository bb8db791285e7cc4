"""Fields of a query, such as `from:jonas` or `after:2024-03`, as masks of documents.

Fields with these names read what documents have in common: title, path, type, date, sender, recipients. Any
other name is a field of the documents' metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.filters.condition import Condition, FieldComparison
from ketrag_fast.kernels.text import unpack
from ketrag_fast.query.dates import FIELDS as DATE_FIELDS
from ketrag_fast.query.dates import date_in, file_days
from ketrag_fast.query.narrowing import documents_of_globs, units_of_pattern
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.source_paths import SourcePaths, without_part
from ketrag_fast.readers.file_types import BY_SUFFIX
from ketrag_fast.types.locations import EXCHANGE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

TITLES: Final = ("title", "subject", "heading")
PATHS: Final = ("in", "path", "folder", "file")
TYPES: Final = ("type", "filetype", "ext")
DATES: Final = ("after", "before", "date", "since", "until")
PEOPLE: Final[Mapping[str, tuple[str, ...]]] = {
    "from": ("from", "sender", "author"),
    "to": ("to", "cc", "recipients"),
}
"""The metadata fields that hold a person, by field of the query."""
ROLES: Final = ("role",)
SHOWN: Final = ("title:", "in:", "type:", "from:", "to:", "after:", "before:", "date:")
"""Fields as messages list them."""
_MOST_SHOWN: Final = 12
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "word": frozenset(("doc", "docx", "docm", "odt", "rtf")),
    "excel": frozenset(("xls", "xlsx", "xlsm", "ods", "csv", "tsv")),
    "powerpoint": frozenset(("ppt", "pptx", "pptm", "odp")),
    "mail": frozenset(("eml", "mbox", "msg")),
    "web": frozenset(("html", "htm", "xhtml", "mht", "mhtml")),
    "note": frozenset(("md", "markdown", "txt", "org", "rst", "adoc")),
    "image": frozenset(("png", "jpg", "jpeg", "tif", "tiff", "gif", "bmp", "webp")),
}
"""Suffixes of types that have several."""
_SAME_KIND: Final = {
    "email": "mail",
    "e-mail": "mail",
    "sheet": "excel",
    "spreadsheet": "excel",
    "document": "word",
    "slides": "powerpoint",
    "presentation": "powerpoint",
    "notes": "note",
    "picture": "image",
}
_DAY: Final = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?")
_EUROPEAN_DAY: Final = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_MONTHS: Final = 12
_DAYS: Final = 31
_COMPARISON: Final = re.compile(r"(>=|<=|>|<)(.+)")
_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?")
_SIGNS: Final = {">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}
_PLAIN_NAME: Final = re.compile(r"[a-z]{3,16}")
_SCHEMES: Final = frozenset(
    (
        *(
            "arxiv",
            "data",
            "doi",
            "file",
            "ftp",
            "git",
            "http",
            "https",
            "isbn",
            "issn",
            "javascript",
            "localhost",
        ),
        *("mailto", "note", "sha", "ssh", "std", "tel", "todo", "urn", "utf"),
    )
)
"""Words before a colon that are text and need no remark."""


def problem_of(opened: Opened, name: str, value: str, check: Callable[[], object]) -> str | None:
    """Return None if a field exists and its value is valid.

    Otherwise the part is text, and the result is a remark about it; "" if it does not look like a field.
    """
    if name in DATES:
        if _date_of(value) is not None:
            return None
        return f"{name}:{value[:40]} is not a date such as 2024, 2024-03 or 2024-03-12: searched for as text"
    if name in (*TITLES, *PATHS, *TYPES, *PEOPLE):
        return None
    if name in ROLES and opened.places.values_of_rows(EXCHANGE):
        return None
    known = opened.columns(check).fields
    if name in map(str.lower, known):
        return None
    if name in _SCHEMES or not _PLAIN_NAME.fullmatch(name) or value[:1].isdigit():
        return ""
    own = [f"{one}:" for one in known if f"{one.lower()}:" not in SHOWN][:_MOST_SHOWN]
    return f"{name}: is not a field, and was searched for as text; fields are {', '.join([*SHOWN, *own])}"


def _date_of(value: str) -> str | None:
    """Return a date as YYYY, YYYY-MM or YYYY-MM-DD; None if it is not one.

    Examples:
        >>> _date_of("2024/3"), _date_of("12.3.2024"), _date_of("lunch")
        ('2024-03', '2024-03-12', None)
    """
    found = _DAY.fullmatch(value)
    parts: tuple[str | None, ...] = ()
    if found is not None:
        parts = found.groups()
    elif (found := _EUROPEAN_DAY.fullmatch(value)) is not None:
        parts = found.groups()[::-1]
    numbers = [int(part) for part in parts if part is not None]
    if not numbers or not all(
        1 <= one <= most for one, most in zip(numbers[1:], (_MONTHS, _DAYS), strict=False)
    ):
        return None
    return "-".join([f"{numbers[0]:04}", *(f"{one:02}" for one in numbers[1:])])


class Selection:
    """Selects units by fields.

    A document matches any of several values of one field, but all of several titles, paths and dates.
    """

    def __init__(self, opened: Opened, folder: Path, check: Callable[[], object]) -> None:
        self._opened = opened
        self._folder = folder
        self._check = check
        self._either: dict[str, list[Mask]] = {}
        self._all: list[Mask] = []
        self._none: list[Mask] = []
        self._titles: list[tuple[str, bool]] = []

    def add(self, name: str, value: str, *, excluded: bool) -> None:
        """Add a field with a valid value."""
        self._check()
        if name in TITLES:
            self._titles.append((value, excluded))
            return
        units = self._matching(name, value)
        if excluded:
            self._none.append(units)
        elif name in (*PATHS, *DATES):
            self._all.append(units)
        else:
            self._either.setdefault(name, []).append(units)

    def units(self, titled: Callable[[str], Mask]) -> Mask:
        """Return a mask of the units that match. `titled` returns the units with words in their title."""
        units = np.ones(len(self._opened.searcher), bool)
        for mask in (*self._all, *map(np.logical_or.reduce, self._either.values())):
            units &= mask
        for mask in self._none:
            units &= ~mask
        for value, excluded in self._titles:
            units &= ~titled(value) if excluded else titled(value)
        return units

    def _matching(self, name: str, value: str) -> Mask:
        """Return a mask of the units of the documents that match a field."""
        if name in PATHS:
            paths = SourcePaths(self._folder)
            glob = value.strip("/") or value
            return self._of_documents(
                documents_of_globs(self._opened, glob.removeprefix("!"), paths, whole=True)
            )
        if name in TYPES:
            return self._of_documents(self._of_type(value))
        if name in ROLES and (exchanges := self._opened.places.values_of_rows(EXCHANGE)):
            return self._said_by(value, exchanges)
        if name in DATES:
            rows = self._of_date(name, _date_of(value) or value)
        else:
            rows = self._of_metadata(PEOPLE.get(name, (name,)), value)
        units: Mask = rows[self._opened.generation.stages["units"]["unit_document"]]
        return units

    def _of_documents(self, documents: bytes | None) -> Mask:
        if documents is None:
            return np.ones(len(self._opened.searcher), bool)
        return np.frombuffer(self._opened.texts.core.units_of(documents), np.bool_)

    def _said_by(self, who: str, exchanges: Iterable[int]) -> Mask:
        """Return the exchanges that contain a message by somebody whose name has this word."""
        rows = np.isin(self._opened.generation.stages["units"]["unit_document"], list(exchanges))
        line = rf"^(?:[^:]{{0,40}}\b)?{re.escape(who)}\b[^:]{{0,40}}: "
        units = units_of_pattern(
            self._opened, _core.Pattern(line, any_case=True), rows.tobytes(), self._check
        )
        return np.frombuffer(units, np.bool_)

    def _of_type(self, value: str) -> bytes:
        wanted: set[str] = set()
        for one in value.lower().split(","):
            kind = one.strip().lstrip(".")
            wanted |= {kind} | _KINDS.get(_SAME_KIND.get(kind, kind), frozenset())

        def fits(name: str) -> bool:
            """Return whether a file has a type, or a file that contains it: `crew.xlsx/Crew#3` is a sheet."""
            parts = map(PurePosixPath, PurePosixPath(without_part(name)).parts)
            suffixes = [part.suffix.lower() for part in parts if part.suffix]
            return any(one[1:] in wanted or BY_SUFFIX.get(one) in wanted for one in suffixes)

        return bytes(map(fits, self._opened.texts.names))

    def _of_metadata(self, names: tuple[str, ...], value: str) -> Mask:
        """Return the rows whose metadata has a value in any of some fields."""
        columns = self._opened.columns(self._check)
        fields = [field for field in columns.fields if field.lower() in names]
        found = np.zeros(columns.count, bool)
        for condition in (one for field in fields for one in _conditions(field, value)):
            found |= columns.fitting(condition, check=self._check)
        return found

    def _of_date(self, name: str, date: str) -> Mask:
        """Return the rows whose date is in, after or before a period. `after` includes the period."""
        dates = self._dates()
        if name in ("after", "since"):
            return np.array([day >= date for day in dates], bool)
        if name == "before":
            return np.array(["" < day < date for day in dates], bool)
        if name == "until":
            return np.array([day > "" and (day < date or day.startswith(date)) for day in dates], bool)
        return np.array([day.startswith(date) for day in dates], bool)

    def _dates(self) -> list[str]:
        """Return the date of each row, "" if unknown: the metadata's, else the day of the file's change."""
        own = vars(self._opened)
        if "_row_dates" not in own:
            columns = self._opened.columns(self._check)
            texts = [columns.each_text(field) for field in DATE_FIELDS]
            days = []
            for row in range(columns.count):
                values = {
                    field: text[row] for field, text in zip(DATE_FIELDS, texts, strict=True) if row in text
                }
                exact = [date_in({field: values[field]}) for field in values if field != "year"]
                days.append(max(exact, default="") or date_in(values))
            units = self._opened.generation.stages["units"]
            names = unpack(units["document_ids_blob"], units["document_ids_offsets"])
            unknown = dict.fromkeys(name for name, day in zip(names, days, strict=True) if not day)
            files = file_days(self._folder, list(unknown))
            days = [day or files.get(name, "") for name, day in zip(names, days, strict=True)]
            for row, moment in self._opened.places.values_of_rows("date").items():
                days[row] = str(moment)[: len("2024-03-12")]  # of an exchange
            own["_row_dates"] = days
        found: list[str] = own["_row_dates"]
        return found


def _conditions(field: str, value: str) -> list[Condition]:
    """Return conditions of which a document must meet one so that its field has a value."""
    compared = _COMPARISON.fullmatch(value)
    sign, bare = compared.groups() if compared is not None else ("", value)
    number = float(bare) if _NUMBER.fullmatch(bare) else None
    if sign:
        return [FieldComparison(field, _SIGNS[sign], (bare if number is None else number,))]
    found: list[Any] = [FieldComparison(field, "$contains", (value.removesuffix("*"),))]
    if number is not None:
        found.append(FieldComparison(field, "$eq", (number,)))
    if value.lower() in ("true", "false"):
        found.append(FieldComparison(field, "$eq", (value.lower() == "true",)))
    return found
