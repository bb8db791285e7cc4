"""RTF: paragraphs, headings, tables and notes; without pictures, deleted and hidden text."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any, Final

from ketrag_fast._core import lowered_text, raised_text
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.office.charts import PAGE_NUMBER, comment_line
from ketrag_fast.readers.office.symbol_fonts import symbol
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import TextWriter
from ketrag_fast.records import dataclass, replace
from ketrag_fast.types import Failure
from ketrag_fast.types.documents import EMBEDDED

LARGEST: Final = 200_000_000
"""Maximum size of a file in bytes."""
_DEEPEST: Final = 10_000
_SIGNS: Final = 2
"""The character set of fonts of signs."""
_LONGEST_NAME: Final = 100
_TOKEN: Final = re.compile(
    r"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|([^\\{}\r\n]+)|[\r\n]+|\\"
)
_SKIPPED: Final = frozenset(
    (
        *(
            "fonttbl",
            "colortbl",
            "stylesheet",
            "listtable",
            "listoverridetable",
            "revtbl",
            "rsidtbl",
            "generator",
        ),
        *(
            "objdata",
            "objclass",
            "objname",
            "themedata",
            "colorschememapping",
            "datastore",
            "latentstyles",
            "xmlnstbl",
        ),
        *("filetbl",),
        *(
            "fldinst",
            "bkmkstart",
            "bkmkend",
            "pgptbl",
            "mmathPr",
            "template",
            "atnid",
        ),
        *("atrfstart", "atrfend", "listtext", "pntext", "wgrffmtfilter", "shpinst", "sp", "do"),
    )
)
"""Destinations without text of the document."""
_PARTS: Final = {
    **dict.fromkeys(("header", "headerl", "headerr", "headerf"), "header"),
    **dict.fromkeys(("footer", "footerl", "footerr", "footerf"), "footer"),
    "annotation": "comment",
    "atnauthor": "author",
}
"""Destinations whose text follows that of the document."""
_SHOWN: Final = frozenset(("shptxt", "dptxbxtext", "result"))
"""Destinations inside skipped ones that have text of the document: text boxes, and what an object shows."""
_SYMBOLS: Final = {
    "tab": "\t",
    "line": "\n",
    "emdash": "—",
    "endash": "–",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "bullet": "•",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
}
_MARKS: Final = {"~": "\xa0", "_": "-", "\\": "\\", "{": "{", "}": "}"}
_BREAKS: Final = frozenset(("par", "sect", "page", "column"))
_CHARSETS: Final = {
    0: "cp1252",
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gbk",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    255: "cp437",
}
_ABOUT: Final = {"title": "title", "author": "author", "subject": "subject", "keywords": "keywords"}


def read_rtf(file: SourceFile) -> Iterator[Item]:
    """Yield the text as one document."""
    if file.size() > LARGEST:
        raise DocumentError(f"the file is larger than {LARGEST:,} bytes")
    text = file.read_bytes().decode("latin-1")
    if not text.startswith("{\\rtf"):
        raise DocumentError("not RTF: it does not begin with {\\rtf")
    writer = TextWriter()
    reading = _RtfText(writer)
    reading.read(text)
    title = str(reading.about.pop("title", ""))
    if not writer.text():
        yield file.failure("the document has no text")
        return
    yield writer.document(file, title, reading.about)
    unread = {"picture": reading.pictures, "embedded object": reading.objects}
    named = [f"{count:,} {what}{'s' * (count > 1)}" for what, count in unread.items() if count]
    if named:
        yield Failure(file.id, EMBEDDED, f"not read: {'; '.join(named)}")


def rtf_text(data: bytes) -> str:
    """Return the text of RTF inside another file."""
    writer = TextWriter()
    _RtfText(writer).read(data.decode("latin-1"))
    return writer.text()


@dataclass(slots=True)
class _State:
    """What a group inherits from the group around it."""

    skips: bool = False
    about: str = ""
    in_info: bool = False
    in_fonts: bool = False
    hidden: bool = False
    deleted: bool = False
    script: int = 0
    """1 for a superscript, -1 for a subscript."""
    after_unicode: int = 1
    """Characters after a Unicode character that repeat it for readers without Unicode."""
    encoding: str = ""
    symbols: str = ""
    """Name of a font of signs."""
    part: str = ""
    """A header, a footer, a comment or its author."""
    is_copy: bool = False
    """In a picture or a text box that repeats another one."""


class _RtfText:
    """Reads tokens and writes paragraphs and rows."""

    def __init__(self, writer: TextWriter) -> None:
        self.about: dict[str, Any] = {}
        self._writer = writer
        self._state = _State()
        self._stack: list[_State] = []
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._page = "cp1252"
        self._bytes = bytearray()
        self._left = 0  # characters that repeat a Unicode character
        self._high = 0  # the first half of a character beyond the basic plane
        self._paragraph: list[str] = []
        self._cells: list[str] = []
        self._rows: list[list[str]] = []
        self._in_table = False
        self._level: int | None = None
        self._script = (-1, "", 0)  # where the last script begins in the paragraph, its text and kind
        self._is_new = False  # nothing of the group was read yet
        self._symbol_fonts: dict[int, str] = {}
        self._font_name: list[str] = []
        self._others: list[tuple[str, list[str]]] = []  # headers, footers and comments
        self.pictures = self.objects = 0
        """Numbers of pictures and embedded objects, which are not read."""

    def read(self, text: str) -> None:
        """Read a whole file."""
        at = 0
        while (found := _TOKEN.match(text, at)) is not None:
            at = found.end()
            word, number, byte, mark, brace, plain = found.groups()
            if byte is not None:
                self._put_bytes(bytes.fromhex(byte))
            elif plain is not None:
                self._put_bytes(plain.encode("latin-1"))
            elif word == "bin":
                at += max(int(number or 0), 0)
            elif word is not None:
                self._word(word, None if number is None else int(number))
            elif brace is not None:
                self._flush()
                self._brace(brace)
            elif mark is not None:
                self._mark(mark)
        self._end_paragraph()
        self._end_table()
        self._write_others()

    def _write_others(self) -> None:
        """Write comments, and each text of headers and footers once, unless the document has it."""
        known = {line.strip() for line in self._writer.text().split("\n")}
        author = ""
        for part, texts in self._others:
            lines = [" ".join(line.split()) for line in "".join(texts).split("\n")]
            mark = self._writer.mark()
            if part == "author":
                author = " ".join(filter(None, lines))
            elif part == "comment":
                text = "\n".join(filter(None, lines))
                self._writer.paragraph(comment_line(author, text) if text else "")
                author = ""
            else:
                for line in lines:
                    if line not in known and not PAGE_NUMBER.fullmatch(line):
                        known.add(line)
                        self._writer.paragraph(line)
            self._writer.located(mark, "part", part)

    def _brace(self, brace: str) -> None:
        if brace == "{":
            if len(self._stack) >= _DEEPEST:
                raise DocumentError(f"groups are nested more than {_DEEPEST:,} deep")
            self._stack.append(self._state)
            self._state = replace(self._state)
        elif self._stack:
            self._state = self._stack.pop()
        self._left = 0
        self._is_new = brace == "{"

    def _mark(self, mark: str) -> None:
        if mark == "*":  # a destination that readers may skip if they do not know it
            self._state.skips = True
        elif mark in "\r\n":
            self._word("par", None)
        else:
            self._put(_MARKS.get(mark, ""))

    def _word(self, word: str, number: int | None) -> None:
        state = self._state
        is_first, self._is_new = self._is_new, False
        if word == "u" and number is not None:
            self._unicode(number % 65536)
            return
        self._flush()
        if word in _SYMBOLS:
            self._put(_SYMBOLS[word])
        elif word in _PARTS:
            state.part, state.skips = _PARTS[word], False
            self._others.append((state.part, []))
        elif word in _SHOWN:
            state.skips = state.is_copy
            if word != "result" and not (state.skips or state.part or self._in_table):
                self._end_paragraph()
        elif word in ("pict", "object"):
            state.skips = True
            self.pictures += word == "pict" and not state.is_copy
            self.objects += word == "object"
        elif word in ("nonshppict", "shprslt"):
            state.skips = state.is_copy = True
        elif word in _SKIPPED:
            state.skips = True
            state.in_fonts = state.in_fonts or word == "fonttbl"
        elif word == "info":
            state.skips = state.in_info = True
        elif state.in_info and is_first and word in _ABOUT:
            state.about = _ABOUT[word]
        elif word == "uc":
            state.after_unicode = max(number or 0, 0)
        elif word == "ansicpg":
            self._page = _codec(f"cp{number}", self._page)
        elif word == "mac":
            self._page = "mac_roman"
        elif word == "f" and number is not None:
            self._font = number
            self._font_name = []
            state.encoding = self._fonts.get(number, "")
            state.symbols = self._symbol_fonts.get(number, "")
        elif word == "fcharset" and state.in_fonts:
            if number == _SIGNS:
                self._symbol_fonts[self._font] = "symbol"
            self._fonts[self._font] = _codec(_CHARSETS.get(number or 0, ""), "")
        elif word == "plain":
            state.hidden, state.encoding, state.script, state.symbols = False, "", 0, ""
        elif word in ("super", "sub", "nosupersub", "up", "dn"):
            sign = {"super": 1, "up": 1, "sub": -1, "dn": -1}.get(word, 0)
            state.script = sign if number is None or number > 0 else 0
        elif word == "v":
            state.hidden = number != 0
        elif word == "deleted":
            state.deleted = number != 0
        elif not state.skips:
            self._layout(word, number)

    def _layout(self, word: str, number: int | None) -> None:
        if self._state.part:
            if word in _BREAKS or word == "cell":
                self._others[-1][1].append("\n")
        elif word == "pard":
            self._in_table, self._level = False, None
        elif word == "intbl":
            self._in_table = True
        elif word == "outlinelevel":
            self._level = min(max(number or 0, 0), 8) + 1
        elif word in ("cell", "nestcell"):
            self._cells.append(" ".join("".join(self._paragraph).split()))
            self._paragraph.clear()
        elif word in ("row", "nestrow"):
            self._rows.append(self._cells)
            self._cells = []
        elif word in _BREAKS:
            if self._in_table:
                self._paragraph.append("\n")
            else:
                self._end_paragraph()

    def _unicode(self, code: int) -> None:
        self._flush()
        if 0xD800 <= code < 0xDC00:
            self._high = code
        elif 0xDC00 <= code < 0xE000:
            if self._high:
                self._put(chr(0x10000 + ((self._high - 0xD800) << 10) + code - 0xDC00))
            self._high = 0
        elif 0xF000 <= code < 0xF100 and (sign := symbol(self._state.symbols or "symbol", code)):
            self._put(sign)
        else:
            self._put(chr(code))
        self._left = self._state.after_unicode

    def _put_bytes(self, data: bytes) -> None:
        cut = min(self._left, len(data))
        self._left -= cut
        if not self._state.skips or self._state.about or self._state.in_fonts:
            self._bytes += data[cut:]

    def _flush(self) -> None:
        if self._bytes:
            data = bytes(self._bytes)
            self._bytes.clear()
            if name := self._state.symbols:
                text = "".join(symbol(name, byte) or "" for byte in data)
            else:
                text = data.decode(self._state.encoding or self._page, "replace")
            self._put(text)

    def _put(self, text: str) -> None:
        self._flush()
        state = self._state
        if state.about:
            self.about[state.about] = f"{self.about.get(state.about, '')}{text}"[:2000]
        elif state.in_fonts:
            self._name_font(text)
        elif state.part and not (state.skips or state.hidden or state.deleted):
            self._others[-1][1].append(text)
        elif not (state.skips or state.hidden or state.deleted):
            if self._rows and not self._in_table and not self._cells and text.strip():
                self._end_table()
            if state.script:
                self._put_script(text, state.script)
            else:
                self._paragraph.append(text)

    def _name_font(self, text: str) -> None:
        """Note which of the fonts of signs a font is: Symbol or Wingdings."""
        if self._font in self._symbol_fonts and len(self._font_name) < _LONGEST_NAME:
            self._font_name.append(text)
            self._symbol_fonts[self._font] = "".join(self._font_name).partition(";")[0].strip()

    def _put_script(self, text: str, script: int) -> None:
        """Write raised or lowered text, with what was raised before it."""
        begin, before, kind = self._script
        if begin != len(self._paragraph) - 1 or kind != script or begin < 0:
            begin, before = len(self._paragraph), ""
        whole = before + text
        base = "".join(self._paragraph[max(begin - 8, 0) : begin])[-60:]
        written = raised_text(base, whole) if script > 0 else lowered_text(base, whole)
        self._paragraph[begin:] = [written if whole.strip() else whole]
        self._script = (begin, whole, script)

    def _end_paragraph(self) -> None:
        self._flush()
        text = "".join(self._paragraph)
        self._paragraph.clear()
        if text.strip():
            self._end_table()
            self._writer.paragraph(text, level=self._level)

    def _end_table(self) -> None:
        if self._cells:
            self._rows.append(self._cells)
            self._cells = []
        if self._rows:
            self._writer.table(self._rows)
            self._rows = []


def _codec(name: str, default: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        return default
