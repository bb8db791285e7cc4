"""PDF files written by hand: text at given places in a given order, outlines, pictures, encryption.

The letters are Courier's, whose widths are all 0.6 of their size: a test knows where each one stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 595, 842


@dataclass
class Page:
    """Operators of one page, in the order of drawing; y counts from the top."""

    operators: list[str] = field(default_factory=list)
    image: bool = False
    rotate: int = 0

    def text(self, x: float, y: float, text: str, size: float = 10, *, angle: int = 0) -> Page:
        escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        turn = {0: "1 0 0 1", 90: "0 1 -1 0", 180: "-1 0 0 -1", 270: "0 -1 1 0"}[angle]
        self.operators.append(f"BT /F1 {size} Tf {turn} {x} {HEIGHT - y} Tm ({escaped}) Tj ET")
        return self

    def raw(self, operators: str) -> Page:
        self.operators.append(operators)
        return self


def pdf(
    pages: Sequence[Page],
    *,
    outline: Sequence[tuple[int, int, str]] = (),
    info: dict[str, str] | None = None,
    font: str = "/Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding",
    count: int | None = None,
) -> bytes:
    """`outline` has (level, page, title); `count` is what the page tree claims."""
    objects: list[bytes] = [b"", b""]  # catalogue and page tree come last

    def add(body: str | bytes) -> int:
        objects.append(body.encode("cp1252") if isinstance(body, str) else body)
        return len(objects)

    font_number = add(f"<< {font} >>")
    image = "<< /Type /XObject /Subtype /Image /Width 8 /Height 8 /ColorSpace /DeviceGray"
    image_number = add(f"{image} /BitsPerComponent 8 /Length 64 >>\nstream\n{'x' * 64}\nendstream")
    kids = []
    for page in pages:
        body = "\n".join([*page.operators, *(["q 500 0 0 700 40 60 cm /Im1 Do Q"] if page.image else [])])
        data = body.encode("cp1252")
        content = add(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(data), data))
        kids.append(
            add(
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Rotate {page.rotate} "
                f"/Resources << /Font << /F1 {font_number} 0 R >> /XObject << /Im1 {image_number} 0 R >> >> "
                f"/Contents {content} 0 R >>"
            )
        )
    marks = _outline(outline, kids, add) if outline else ""
    listed = " ".join(f"{kid} 0 R" for kid in kids)
    objects[0] = f"<< /Type /Catalog /Pages 2 0 R {marks} >>".encode()
    objects[1] = (
        f"<< /Type /Pages /Kids [{listed}] /Count {len(kids) if count is None else count} >>".encode()
    )
    about = "".join(f"/{name} ({value}) " for name, value in (info or {}).items())
    info_number = add(f"<< {about}>>")
    return _file(objects, f"/Root 1 0 R /Info {info_number} 0 R")


def _outline(outline: Sequence[tuple[int, int, str]], kids: Sequence[int], add: object) -> str:
    """One list of entries; levels are nested by their parents."""
    assert callable(add)
    first = None
    numbers: list[int] = []
    root = add("<< >>")
    base = root + 1
    entries = list(outline)
    children: dict[int, list[int]] = {-1: []}
    parents: list[int] = []
    for at, (level, _, _) in enumerate(entries):
        parent = next((b for b in range(at - 1, -1, -1) if entries[b][0] < level), -1)
        parents.append(parent)
        children.setdefault(parent, []).append(at)
        children.setdefault(at, [])
    for at, (_, page, title) in enumerate(entries):
        own = children[parents[at]]
        place = own.index(at)
        parts = [f"/Title ({title}) /Dest [{kids[page]} 0 R /XYZ 0 {HEIGHT} 0]"]
        parts.append(f"/Parent {root if parents[at] < 0 else base + parents[at]} 0 R")
        if place:
            parts.append(f"/Prev {base + own[place - 1]} 0 R")
        if place + 1 < len(own):
            parts.append(f"/Next {base + own[place + 1]} 0 R")
        if children[at]:
            parts.append(f"/First {base + children[at][0]} 0 R /Last {base + children[at][-1]} 0 R")
        numbers.append(add(f"<< {' '.join(parts)} >>"))
    first, last = children[-1][0], children[-1][-1]
    again = add(f"<< /First {base + first} 0 R /Last {base + last} 0 R /Count {len(entries)} >>")
    return f"/Outlines {again} 0 R"


def _file(objects: Sequence[bytes], trailer: str) -> bytes:
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += f"trailer << /Size {len(objects) + 1} {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def simple(*texts: str) -> bytes:
    """A page for each text, its lines below each other."""
    pages = []
    for text in texts:
        page = Page()
        for number, line in enumerate(text.split("\n")):
            page.text(60, 80 + 14 * number, line)
        pages.append(page)
    return pdf(pages)


def encrypted() -> bytes:
    """A file that names an encryption whose password nobody gives."""
    plain = simple("secret")
    owner, user, number = b"28" * 32, b"5e" * 32, b"00" * 16
    entry = (
        b"/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -44 /O <%s> /U <%s> >> /ID [<%s> <%s>] >>"
        b"\nstartxref" % (owner, user, number, number)
    )
    return plain.replace(b">>\nstartxref", entry)
