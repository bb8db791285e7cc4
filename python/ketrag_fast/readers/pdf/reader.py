"""Read a PDF as one document: paragraphs in reading order, with page, box and heading locators."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from ketrag_fast._core import PdfPages
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.pdf.inside import added, attached_names, form_lines
from ketrag_fast.readers.pdf.pages import Paragraph, open_document, paragraphs_of, read_pages
from ketrag_fast.readers.pdf.parallel import LEAST_PAGES, read_in_processes
from ketrag_fast.readers.protocol import Item, SourceFile, import_optional
from ketrag_fast.readers.text_builder import Heading, sections
from ketrag_fast.records import replace
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import EMBEDDED, HIDDEN
from ketrag_fast.types.locations import Locator

MOST_PAGES: Final = 50_000
_MOST_OUTLINE: Final = 20_000
_LISTED: Final = 5
_NEEDS_OCR: Final = "pictures without text; --ocr eng recognises it if Tesseract is installed"
_UNMAPPED: Final = (
    "unreadable letters: their fonts have no Unicode map; --ocr eng recognises them if Tesseract is installed"
)
_NO_TITLE = re.compile(
    r"untitled.*|microsoft word.*|.*\.(?:docx?|pdf|tex|dvi|indd|pptx?)|slide \d+|document\d*|[\W\d_]+", re.I
)
_BEGINNING: Final = 200
_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?")


def read_pdf(file: SourceFile) -> Iterator[Item]:
    """Yield one document, and a Failure that lists the pages without text."""
    pdfium = import_optional("pypdfium2", "a PDF")
    raw = import_optional("pypdfium2.raw", "a PDF")
    try:
        document = open_document(file, raw, pdfium)
    except pdfium.PdfiumError as error:
        raise DocumentError(_why(str(error), getattr(error, "err_code", None), raw)) from None
    try:
        count = len(document)
        if count == 0:
            raise DocumentError("the PDF has no pages")
        if count > MOST_PAGES:
            raise DocumentError(f"the PDF has {count:,} pages; the maximum is {MOST_PAGES:,}")
        if file.processes > 1 and file.data is None and count >= LEAST_PAGES:
            pages, broken, remarks = read_in_processes(file, document, raw, pdfium)
        else:
            pages, broken, remarks = read_pages(document, range(count), raw, pdfium, file.ocr)
        metadata, title = _about(document, pdfium)
        outline = _outline(document, pdfium)
        attached = attached_names(document, raw)
        fields, damage = _fields(document, raw)
    finally:
        document.close()
    states = dict(enumerate(pages.states(), 1)) | dict.fromkeys(broken, "")
    unmapped = [number for number, state in states.items() if state == "unmapped"]
    scanned = [number for number, state in states.items() if state == "scanned"]
    result = _document(file, pages, metadata | {"pages": count}, title, outline)
    lines = "\n".join(line for _, line in added([(0, one) for one in fields], result.text))
    result = _with_more(result, list(added(remarks, result.text)), lines)
    reasons = [
        (broken, "damaged"),
        (unmapped, _UNMAPPED),
        (scanned, "no text was recognised in the picture" if file.ocr else _NEEDS_OCR),
    ]
    problems = [f"{_list_pages(numbers, count)}: {why}" for numbers, why in reasons if numbers]
    unseen = [number for number, words in enumerate(pages.unseen(), 1) if words]
    if unseen and not file.hidden:
        count = sum(pages.unseen())
        words = f"{count:,} words that nobody sees" if count > 1 else "a word that nobody sees"
        yield Failure(file.id, HIDDEN, f"{words} on {_list_pages(unseen, len(states))}")
    if attached:
        names = ", ".join(attached[:_LISTED]) + (", ..." if len(attached) > _LISTED else "")
        files = f"{len(attached):,} attached file{'s' * (len(attached) > 1)}"
        yield Failure(file.id, EMBEDDED, f"not read: {files} ({names})")
    problems += damage
    if result.text:
        yield result
        if problems:
            yield file.failure("; ".join(problems))
    else:
        yield file.failure("; ".join(problems) or "no page has text")


def _fields(document: Any, raw: Any) -> tuple[list[str], list[str]]:
    """Return the fields of an XFA form, and what is wrong with it."""
    try:
        return form_lines(document, raw), []
    except DocumentError as error:
        return [], [f"the XFA form cannot be read: {error}"]


def _with_more(result: Document, remarks: Sequence[tuple[int, str]], fields: str) -> Document:
    """Return a document with the comments on its pages and the fields of its XFA form at the end."""
    parts, locators, length = [result.text], list(result.locators), len(result.text)
    more = [("comments", page, text) for page, text in remarks]
    more += [("form", 0, fields)] if fields else []
    for part, page, text in more:
        between = "\n\n" if length else ""
        start = length + len(between)
        length = start + len(text)
        parts += [between, text]
        locators.append(Locator(start, length, "part", part))
        locators += [Locator(start, length, "page", page)] if page else []
    return replace(result, text="".join(parts), locators=tuple(locators)) if more else result


def _why(message: str, code: Any, raw: Any) -> str:
    if code == raw.FPDF_ERR_PASSWORD or "password" in message.lower():
        return "encrypted: it needs a password"
    if code == raw.FPDF_ERR_SECURITY:
        return "encrypted with an unsupported method"
    return f"not a PDF, or damaged: {message}"


def _list_pages(numbers: Sequence[int], count: int) -> str:
    if len(numbers) == count:
        return f"all {count:,} pages" if count > 1 else "the only page"
    parts: list[str] = []
    start = before = numbers[0]
    for number in [*numbers[1:], -1]:
        if number != before + 1:
            parts.append(f"{start}-{before}" if before > start else f"{start}")
            start = number
        before = number
    shown = ", ".join(parts[:10]) + (", ..." if len(parts) > 10 else "")
    return f"pages {shown}" if len(numbers) > 1 else f"page {shown}"


def _about(document: Any, pdfium: Any) -> tuple[dict[str, Any], str]:
    try:
        entries = document.get_metadata_dict(skip_empty=True)
    except (pdfium.PdfiumError, UnicodeError, ValueError):
        return {}, ""
    plain = {name: " ".join(_usable(str(value)).split())[:1000] for name, value in entries.items()}
    metadata: dict[str, Any] = {}
    for name, own in (("Author", "author"), ("Subject", "subject"), ("Keywords", "keywords")):
        if plain.get(name):
            metadata[own] = plain[name]
    date = _DATE.match(plain.get("CreationDate", ""))
    if date is not None:
        metadata["date"] = "-".join(part for part in date.groups() if part)
    title = plain.get("Title", "")
    return metadata, "" if _NO_TITLE.fullmatch(title) else title


def _usable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)


def _outline(document: Any, pdfium: Any) -> list[tuple[int, int, float | None, str]]:
    """Return (level, page, y upwards, title) of each outline entry that points to a page."""
    found: list[tuple[int, int, float | None, str]] = []
    try:
        for mark in document.get_toc(max_depth=15):
            dest = mark.get_dest()
            page = dest.get_index() if dest is not None else None
            title = " ".join(_usable(mark.get_title() or "").split())
            if page is not None and title:
                _, view = dest.get_view()
                place = view[1] if len(view) > 1 else None
                found.append((mark.level + 1, page, place, title))
            if len(found) >= _MOST_OUTLINE:
                break
    except (pdfium.PdfiumError, UnicodeError, ValueError, TypeError, IndexError, RecursionError):
        pass
    return found


def _document(
    file: SourceFile,
    pages: PdfPages,
    metadata: dict[str, Any],
    title: str,
    outline: Sequence[tuple[int, int, float | None, str]],
) -> Document:
    parts: list[str] = []
    length = 0
    locators: list[Locator] = []
    placed: list[list[tuple[int, Paragraph]]] = []
    before: Paragraph | None = None
    for number, own in enumerate(paragraphs_of(pages), 1):
        begin: int | None = None
        on_page: list[tuple[int, Paragraph]] = []
        for paragraph in own:
            text = paragraph.text
            if before is not None:
                between = _between(before, paragraph, turned=begin is None)
                if between is None:  # a word split between columns or pages
                    whole = pages.join(parts[-1], text, before.soft)
                    cut = parts[-1]
                    if not whole.startswith(cut):  # its hyphen was dropped
                        parts[-1] = cut[:-1]
                        length -= 1
                        text = whole[len(cut) - 1 :]
                        for place in range(max(len(locators) - 3, 0), len(locators)):
                            locators[place] = _shorten_locator(locators[place], length)
                    else:
                        text = whole[len(cut) :]
                else:
                    parts.append(between)
                    length += len(between)
            start = length
            parts.append(text)
            length += len(text)
            begin = start if begin is None else begin
            box = [round(value, 1) for value in paragraph.shown]
            locators.append(Locator(start, length, "box", box))
            on_page.append((start, paragraph))
            before = paragraph
        if begin is not None:
            locators.append(Locator(begin, length, "page", number))
        placed.append(on_page)
    whole = "".join(parts)
    headings = list(_headings_from_outline(outline, placed, pages.heights()))
    headings = headings or list(headings_of(placed))
    named = filing_title(title or _largest(placed), whole)
    locators += sections(headings, len(whole), named)
    return Document(file.id, whole, named, metadata, tuple(locators))


def _shorten_locator(one: Locator, length: int) -> Locator:
    return one if one.end <= length else Locator(min(one.start, length), length, one.kind, one.value)


def _between(before: Paragraph, after: Paragraph, *, turned: bool) -> str | None:
    """Return the separator of two paragraphs; None if a word continues in the next column or page."""
    if _tall(before) or _tall(after):
        return "\n\n"
    same = abs(before.size - after.size) <= 0.1 * max(before.size, after.size)
    goes_on = before.open and same and (turned or after.column != before.column) and after.text[:1].islower()
    if not goes_on:
        return "\n\n"
    return None if before.soft or before.text.endswith("-") else " "


def _tall(own: Paragraph) -> bool:
    """Return whether a paragraph is written up or down the page."""
    return own.rows == 1 and own.box[3] - own.box[1] > 2 * (own.box[2] - own.box[0])


def _headings_from_outline(
    outline: Sequence[tuple[int, int, float | None, str]],
    placed: Sequence[Sequence[tuple[int, Paragraph]]],
    heights: Sequence[float],
) -> Iterator[Heading]:
    begins: dict[int, list[str]] = {}  # the letters that the paragraphs of a page begin with
    for level, page, up, title in outline:
        if page >= len(placed):
            continue
        if page not in begins:
            begins[page] = [letters(own.text[:_BEGINNING]) for _, own in placed[page]]
        down = None if up is None else heights[page] - up
        start = _place(title, down, placed[page], begins[page])
        if start is None:  # an empty page: use the next one with text
            later = (own[0][0] for own in placed[page + 1 :] if own)
            start = next(later, None)
        if start is not None:
            yield Heading(start, level, title)


def _place(
    title: str, down: float | None, own: Sequence[tuple[int, Paragraph]], begins: Sequence[str]
) -> int | None:
    if not own:
        return None
    if wanted := letters(title[: _BEGINNING // 2]):
        for (start, _), first in zip(own, begins, strict=True):
            if first.startswith(wanted) or (len(wanted) > 5 and 0 <= first.find(wanted) < 12):
                return start
    if down is not None:
        below = [start for start, paragraph in own if paragraph.box[3] > down - 2]
        if below:
            return below[0]
    return own[0][0]


def _largest(placed: Sequence[Sequence[tuple[int, Paragraph]]]) -> str:
    """Return the text in the largest letters of the first page with text, as the title."""
    body = body_size(placed)
    first = next((page for page in placed if page), None)
    if body is None or first is None:
        return ""
    large = [own for _, own in first if may_head(own) and own.size >= 1.25 * body]
    if not large:
        return ""
    size = max(own.size for own in large)
    return " ".join(own.text for own in large if own.size > 0.95 * size)[:300]


_COVER: Final = 6_000
"""The cover page is in this many characters at the beginning."""
_REGISTRANT = re.compile(r"\(exact name of (?:the )?registrant", re.I)
_LONGEST: Final = 100
_FORM = re.compile(r"\bform[ \xa0]+(\d{1,2}-[A-Z]{1,2}|S-\d|F-\d)\b", re.I)


def filing_title(title: str, text: str) -> str:
    """Return the title of a filing with the company's name and the form, or the title as it is.

    >>> filing_title("FORM 10-Q", "FORM 10-Q\\n\\nApple Inc.\\n(Exact name of Registrant as specified)")
    'Apple Inc., Form 10-Q'
    """
    cover = text[:_COVER]
    found, form = _REGISTRANT.search(cover), _FORM.search(cover)
    if found is None or form is None:
        return title
    # The name is the last text in the lines before, which may end with a line to write on.
    lines = cover[: found.start()].rstrip(" \t_").rpartition("\n")[0].rstrip("_ \t\n")
    name = re.split("[\n\t]", lines)[-1][-_LONGEST:].strip(" _,")
    first = name.split()[0].lower() if name.split() else ""
    if not first or (first in title.lower() and form[1].lower() in title.lower()):
        return title
    return f"{name}, Form {form[1].upper()}"


Placed = Sequence[Sequence[tuple[int, Paragraph]]]
"""The paragraphs of each page with their offsets in the text."""
_LARGER: Final = 1.12
"""Headings have letters larger than the body text by this factor."""
_LONGEST_HEADING: Final = 160
_OFTEN: Final = 0.2
"""Large letters that are the same on more than this share of the pages are a running header."""
_LONG_PAGES: Final = 8
_LONG_SHARE: Final = 0.4
"""In a document of this many pages or more, a section with a larger share of the text shows that large
letters are not all headings: those of a filing are on its cover."""
_BULLET = re.compile(r"\s*[•‣▪■□●○◦◆➢➤✓✔✗✘☐☑☒❏❑❒►▶*·\uf0a7\uf0a8\uf0b7\uf0fe-]\s*")
_NUMBERED = re.compile(r"(?:\d{1,2}(?:\.\d{1,2}){0,4}\.?|[A-Z]\.\d{1,2}|[IVX]{1,5}\.)\s+[^\W\d_][^\n]{1,90}")
_LABELLED = re.compile(
    r"(?:(part|chapter|appendix|annex|book)|(item|section|article)|(note))[ \xa0]+"
    r"(?:\d{1,3}[a-z]?|[ivxlc]{1,6}|[a-z])(?!\w|\.\d)[ \xa0]*(?:[.:)\u2013\u2014-]{1,2}[ \xa0]*)?(.*)",
    re.I | re.S,
)
_LABEL_TAB = re.compile(
    r"((?:part|chapter|appendix|annex|book|item|section|article|note)[ \xa0]+\w{1,6}[.:)]?)"
    r"\t(?=[^\W\d_][^\t]*$)",
    re.I,
)
"""A label that is set apart as if it were a cell."""
_DIAGONAL: Final = 1.5
"""Height of a line of text that is not level, relative to its letters."""
_NO_LETTERS = re.compile(r"[\W_]+")


def headings_of(placed: Placed) -> Iterator[Heading]:
    """Yield the headings of a document without an outline.

    They are short paragraphs in large letters. If these leave much of the text in one section, they are
    instead what is labelled ("Item 2. Properties", "Note 4"), numbered, or in capitals, if anything is.
    """
    body = body_size(placed)
    if body is None:
        return
    plain = ((start, _without_label_tab(own)) for page in placed for start, own in page)
    every = [(start, own) for start, own in plain if may_head(own)]
    often = Counter(letters(own.text) for _, own in every)
    every = [one for one in every if often[letters(one[1].text)] <= max(_OFTEN * len(placed), 3)]
    large = [(start, own) for start, own in every if own.size >= _LARGER * body]
    found = list(_large_letters(large)) if len(large) > 1 else []
    if not found or (len(placed) >= _LONG_PAGES and _longest_share(found, placed) > _LONG_SHARE):
        labelled = list(_labels(every))
        if not found or _longest_share(labelled, placed) < _longest_share(found, placed):
            found = labelled
    yield from found


def _without_label_tab(own: Paragraph) -> Paragraph:
    """Return a paragraph that may be a heading with a blank after its label."""
    if "\t" not in own.text or len(own.text) > _LONGEST_HEADING:
        return own
    return own._replace(text=_LABEL_TAB.sub(r"\1 ", own.text))


def _large_letters(large: Sequence[tuple[int, Paragraph]]) -> Iterator[Heading]:
    sizes = sorted({round(own.size, 1) for _, own in large}, reverse=True)[:6]
    for start, own in large:
        size = round(own.size, 1)
        yield Heading(start, sizes.index(size) + 1 if size in sizes else len(sizes), own.text)


def _longest_share(found: Sequence[Heading], placed: Placed) -> float:
    """Return the share of the text that is in the longest section; 1 without headings."""
    length = max((start + len(own.text) for page in placed for start, own in page), default=0)
    starts = [*(heading.start for heading in found), length]
    longest = max((after - before for before, after in pairwise(starts)), default=length)
    return longest / max(length, 1)


def _labels(every: Sequence[tuple[int, Paragraph]]) -> Iterator[Heading]:
    """Yield parts, items and notes, below them numbered headings, and below these lines in capitals."""
    for start, own in every:
        level = _label_level(own.text)
        if level:
            yield Heading(start, level, own.text)
        elif _is_numbered(own.text):
            yield Heading(start, 2 + _depth(own.text), own.text)
        elif own.text.isupper() and len(own.text.split()) > 1 and own.rows <= 2:
            yield Heading(start, 9, own.text)


def _label_level(text: str) -> int:
    """Return the level of a labelled heading, 0 for other texts: a sentence goes on in lower case or ends."""
    match = _LABELLED.fullmatch(text.strip())
    if match is None:
        return 0
    title = match[4].strip()
    if title and (not title[0].isupper() or title.endswith((".", ";", ","))):
        return 0
    return 1 if match[1] else 2 if match[2] else 3


def _is_numbered(text: str) -> bool:
    return _NUMBERED.fullmatch(text) is not None and not text.rstrip().endswith((".", ",", ";"))


def _depth(text: str) -> int:
    return text.split()[0].rstrip(".").count(".") + 2


def may_head(own: Paragraph) -> bool:
    """Return whether a paragraph is short and plain enough for a heading."""
    text = own.text
    return (
        len(text) <= _LONGEST_HEADING
        and not _is_diagonal(own)
        and own.rows <= 3
        and "\t" not in text
        and sum(map(str.isalpha, text)) >= 3
        and not _BULLET.match(text)
        and not text.rstrip().endswith((",", ";"))
    )


def _is_diagonal(own: Paragraph) -> bool:
    """Return whether a line is written across the page, as a watermark is."""
    return own.rows == 1 and own.box[3] - own.box[1] > _DIAGONAL * max(own.size, 4.0)


def body_size(placed: Placed) -> float | None:
    """Return the size of most letters; None without text."""
    sizes: Counter[float] = Counter()
    for page in placed:
        for _, own in page:
            sizes[round(own.size, 1)] += len(own.text)
    return sizes.most_common(1)[0][0] if sizes else None


def letters(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return _NO_LETTERS.sub("", text.lower())
