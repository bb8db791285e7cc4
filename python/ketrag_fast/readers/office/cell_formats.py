"""How a spreadsheet shows the value of a cell: numbers, dates, times and durations (ECMA-376, 18.8.30)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import floor, log10
from typing import Final, NamedTuple

_BUILT_IN: Final = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "m/d/yy h:mm",
    37: "#,##0;(#,##0)",
    38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;(#,##0.00)",
    41: "#,##0",
    42: "$#,##0",
    43: "#,##0.00",
    44: "$#,##0.00",
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss",
    48: "0.0E+0",
    49: "@",
    **dict.fromkeys((14, 15, 16, 17, *range(27, 32), 34, 35, 36, *range(50, 59)), "yyyy-mm-dd"),
    **dict.fromkeys((32, 33), "h:mm:ss"),
}
_LITERAL: Final = re.compile(
    r'"([^"]*)"|\\(.)|_(.)|\*(.)|\[\$([^\[\]-]*+)(?:-[^\[\]]*)?\]|\[[^\[\]]*\]', re.S
)
_DURATION: Final = re.compile(r"\[(h+|m+|s+)\]", re.I)
_CONDITION: Final = re.compile(r"\[(<=|>=|<>|<|>|=)(-?\d+(?:\.\d+)?)\]")
_DIGITS: Final = re.compile(r"[0#?][0#?,.]*|\.[0#?]+")
_EXPONENT: Final = re.compile(r"(?<![0#?.])([0#?.]++)E([+-])(0+)", re.I)
_FRACTION: Final = re.compile(r"(?<![0#?])(?:([0#?]++ )\s*+)?([0#?]++) ?/ ?([0#?]+|\d+)")
_SEVERAL: Final = re.compile(r'(?:"[^"]*"|\\.|\[[^\[\]]*\]|[^;"\\])++|;')
_FRACTION_OF_SECOND: Final = re.compile(r"s\.(0+)", re.I)
_MOST_DECIMALS: Final = 30
_EPOCH: Final = dt.datetime(1899, 12, 30)
_EPOCH_1904: Final = dt.datetime(1904, 1, 1)
_LEAP: Final = 60
"""Day numbers before it are one less than the days since the epoch: for Excel, 1900 is a leap year."""


class CellFormat(NamedTuple):
    """A number format. `kind` is "general", "text", "number", "date", "time", "date time" or "duration"."""

    kind: str
    code: str = ""
    has_seconds: bool = False


GENERAL: Final = CellFormat("general")


def format_of(number: int, code: str | None) -> CellFormat:
    """Return the format with a number; `code` is that of a format that the file declares."""
    return _parsed(_BUILT_IN.get(number, "General") if code is None else code)


@cache
def _parsed(code: str) -> CellFormat:
    plain = _LITERAL.sub("", code).lower()
    if _DURATION.search(code):
        return CellFormat("duration", code, "s" in plain or "[s" in code.lower())
    first = plain.partition(";")[0]
    if "general" in first or not first.strip():
        return (
            GENERAL if not code.strip() or code.strip().lower() == "general" else CellFormat("number", code)
        )
    letters = set(first.replace("am/pm", "h").replace("a/p", "h"))
    has_day, has_time = bool(letters & set("dyge")), bool(letters & set("hs"))
    if "@" in first and not _DIGITS.search(first):
        return CellFormat("text", code)
    if "e" in letters and not letters & set("dymhs"):
        has_day = False  # an exponent
    has_day = has_day or ("m" in letters and not has_time)
    if has_day or has_time:
        kind = "date time" if has_day and has_time else "date" if has_day else "time"
        return CellFormat(kind, code, "s" in letters)
    return CellFormat("number", code)


def shown(text: str, own: CellFormat, *, since_1904: bool = False) -> str:
    """Return a stored number as the cell shows it; dates and times in ISO 8601.

    >>> shown("0.125", format_of(10, None)), shown("7042", format_of(164, "00000"))
    ('12.50%', '07042')
    >>> shown("45356.60416666666", format_of(22, None))
    '2024-03-05 14:30'
    """
    try:
        value = float(text)
    except ValueError:
        return text.strip()
    if value != value or abs(value) == float("inf"):
        return text.strip()
    match own.kind:
        case "general" | "text":
            return general(value, text)
        case "duration":
            return _duration(value, own)
        case "number":
            return _formatted(value, own.code)
    return _date(value, own, since_1904) or general(value, text)


def shown_text(text: str, own: CellFormat) -> str:
    """Return a text as the cell shows it: its format may have a section for texts.

    >>> shown_text("pump", format_of(164, '0;-0;0;@" (spare)"'))
    'pump (spare)'
    """
    if "@" not in own.code or own.code == "@":
        return text
    part = next((part for part in reversed(_sections(own.code)) if "@" in _LITERAL.sub("", part)), "@")
    plain, literals = _without_literals(part)
    return _with_literals(plain.strip(), literals).replace("@", text, 1).strip() if plain else text


def general(value: float, text: str = "") -> str:
    """Return a number with the 15 digits that a spreadsheet keeps, not the 17 that a file may store."""
    plain = text.strip()
    if plain.lstrip("-").isdigit():
        return plain
    short = f"{value:.15g}"
    if "e" not in short:
        return short
    return f"{value:.20f}".rstrip("0").rstrip(".") if 1e-10 < abs(value) < 1e21 else short.upper()


def _date(days: float, own: CellFormat, since_1904: bool) -> str:
    if not 0 <= days < 2_958_466:  # 10000-01-01
        return ""
    parts = _fraction_digits(own.code)
    if parts:
        days, rest = divmod(round(days * 86_400 * 10**parts), 86_400 * 10**parts)
        clock_text, behind = divmod(rest, 10**parts)
        whole = _date(days + clock_text / 86_400, own._replace(code=""), since_1904)
        return f"{whole}.{behind:0{parts}}"
    seconds = round(days * 86_400)
    if own.kind == "time" or (days < 1 and not since_1904):
        clock = dt.timedelta(seconds=seconds % 86_400)
        when = _EPOCH + clock
        return when.strftime("%H:%M:%S" if own.has_seconds or when.second else "%H:%M")
    if since_1904:
        when = _EPOCH_1904 + dt.timedelta(seconds=seconds)
    else:
        when = _EPOCH + dt.timedelta(days=int(days < _LEAP), seconds=seconds)
    if own.kind == "date":
        return when.date().isoformat()
    return when.isoformat(" ", "seconds" if own.has_seconds or when.second else "minutes")


def _fraction_digits(code: str) -> int:
    """Return how many digits of a fraction of a second a format shows: 3 for `hh:mm:ss.000`."""
    found = _FRACTION_OF_SECOND.search(code)
    return min(len(found[1]), 6) if found is not None else 0


def _duration(days: float, own: CellFormat) -> str:
    """Return a number of days in the units that the format counts: `26:30:00`, `26:30`, `90:00`, `86`."""
    seconds = round(days * 86_400)
    minutes, rest = divmod(abs(seconds), 60)
    sign = "-" if seconds < 0 else ""
    unit = _DURATION.search(own.code)
    if unit is not None and unit[1][0] in "sS":
        return f"{sign}{abs(seconds)}"
    if unit is not None and unit[1][0] in "mM":
        return f"{sign}{minutes:02}:{rest:02}" if own.has_seconds or rest else f"{sign}{minutes}"
    end = f":{rest:02}" if own.has_seconds or rest else ""
    return f"{sign}{minutes // 60}:{minutes % 60:02}{end}"


@cache
def _sections(code: str) -> Sequence[str]:
    parts = [""]
    for piece in _SEVERAL.findall(code):
        if piece == ";":
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _section(value: float, code: str) -> tuple[str, float]:
    """Return the section for a value, and the value as this section takes it."""
    parts = _sections(code)
    for part in parts[:3]:
        condition = _CONDITION.search(part)
        if condition is not None and _holds(value, condition[1], float(condition[2])):
            return part, value
    numbers = [part for part in parts[:3] if not _CONDITION.search(part)] or parts[:1]
    if len(numbers) >= 3 and value == 0:
        return numbers[2], value
    if len(numbers) >= 2 and value < 0:
        return numbers[1], -value
    return numbers[0], value


def _holds(value: float, sign: str, bound: float) -> bool:
    return {
        "<": value < bound,
        "<=": value <= bound,
        ">": value > bound,
        ">=": value >= bound,
        "=": value == bound,
        "<>": value != bound,
    }[sign]


def _formatted(value: float, code: str) -> str:
    part, value = _section(value, code)
    plain, literals = _without_literals(part)
    sign = "-" if value < 0 else ""
    size = abs(value) * 100 ** plain.count("%")
    if "general" in plain.lower():
        body = re.sub("general", lambda _: general(size), plain, flags=re.I)
    elif exponent := _EXPONENT.search(plain):
        body = plain.replace(exponent[0], _scientific(size, exponent), 1)
    elif (fraction := _FRACTION.search(plain)) and "/" in plain:
        body = plain.replace(fraction[0], _as_fraction(size, fraction), 1)
    elif digits := _DIGITS.search(plain):
        body = _in_digits(size, plain, digits)
    else:
        body = plain.replace("@", general(size))
    if sign and not any(char.isdigit() and char != "0" for char in body):
        sign = ""  # rounded to zero
    return f"{sign}{_with_literals(body, literals)}".strip()


def _without_literals(part: str) -> tuple[str, list[str]]:
    """Return a section with NUL for each literal text, and these texts."""
    literals: list[str] = []

    def keep(found: re.Match[str]) -> str:
        text = found[1] or found[2] or found[5] or (" " if found[3] else "")
        literals.extend([text] if text else [])
        return "\0" if text else ""

    return _LITERAL.sub(keep, part), literals


def _with_literals(body: str, literals: Sequence[str]) -> str:
    for text in literals:
        body = body.replace("\0", text, 1)
    return body


def _in_digits(size: float, plain: str, digits: re.Match[str]) -> str:
    """Return a number in a pattern such as `#,##0.00`, or digits among other signs: `00-00`."""
    pattern = digits[0]
    whole, _, decimals = pattern.partition(".")
    while pattern and (whole + decimals).endswith(","):  # in thousands
        size /= 1000
        whole, decimals = (whole[:-1], decimals) if not decimals else (whole, decimals[:-1])
        if not whole and not decimals:
            break
    least = min(decimals.count("0"), _MOST_DECIMALS)
    most = min(len(decimals.replace(",", "")), _MOST_DECIMALS)
    text = f"{_rounded(size, most):.{most}f}"
    front, _, behind = text.partition(".")
    behind = behind.rstrip("0").ljust(least, "0") if most else ""
    further = list(_DIGITS.finditer(plain, digits.end()))
    if further and not decimals and not behind:
        return _masked(front, plain, [digits, *further])
    front = front.zfill(whole.replace(",", "").count("0"))
    front = front if front.strip("0") or "0" in whole else ""
    if "," in whole:
        front = _in_thousands(front)
    number = f"{front}.{behind}" if behind else front or ("" if "#" in whole and decimals else front)
    return f"{plain[: digits.start()]}{number}{plain[digits.end() :]}"


def _in_thousands(digits: str) -> str:
    """Return digits with a comma before each group of three."""
    first = len(digits) % 3 or 3
    return ",".join((digits[:first], *(digits[at : at + 3] for at in range(first, len(digits), 3))))


def _rounded(size: float, decimals: int) -> float:
    """Return a number rounded half up, as a spreadsheet does; `round` rounds half to even."""
    if size >= 1e15 or decimals > 12:
        return size
    scaled = float(f"{size * 10**decimals:.15g}")
    return int(scaled + 0.5) / float(10**decimals)


def _masked(number: str, plain: str, patterns: Sequence[re.Match[str]]) -> str:
    """Return the digits of a number in a mask with other signs: `123-45-6789` in `000-00-0000`."""
    out, end = "", len(plain)
    for at, pattern in enumerate(reversed(patterns)):
        width = len(pattern[0].replace(",", ""))
        is_first = at == len(patterns) - 1
        own, number = (number, "") if is_first else (number[-width:], number[:-width])
        own = own.zfill(pattern[0].count("0"))
        out = f"{own}{plain[pattern.end() : end]}{out}"
        end = pattern.start()
    return f"{plain[:end]}{out}"


def _scientific(size: float, exponent: re.Match[str]) -> str:
    decimals = min(len(exponent[1].partition(".")[2]), _MOST_DECIMALS)
    number, _, power = f"{size:.{decimals}E}".partition("E")
    own = int(power)
    step = len(exponent[1].partition(".")[0])
    if step > 1 and size:  # an exponent that is a multiple of three, for example
        own = floor(log10(size)) // step * step
        number = f"{_rounded(size / 10.0**own, decimals):.{decimals}f}"
    sign = "-" if own < 0 else "+" if exponent[2] == "+" else ""
    return f"{number}E{sign}{abs(own):0{min(len(exponent[3]), 9)}}"


def _as_fraction(size: float, found: re.Match[str]) -> str:
    whole = int(size) if found[1] else 0
    fixed = int(found[3]) if found[3].isdigit() and found[3].strip("0") and len(found[3]) < 6 else 0
    if fixed:
        part = Fraction(round((size - whole) * fixed), fixed)
        upper, lower = round((size - whole) * fixed), fixed
    else:
        part = Fraction(size - whole).limit_denominator(10 ** min(len(found[3]), 4) - 1)
        upper, lower = part.numerator, part.denominator
    if part >= 1 and found[1]:
        whole, upper = whole + 1, 0
    if not upper:
        return str(whole)
    return f"{whole} {upper}/{lower}" if whole else f"{upper}/{lower}"
