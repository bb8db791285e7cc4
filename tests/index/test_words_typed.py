"""Words as people type them find the text that has another form of them, before texts with their parts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ketrag_fast import Document, Index, Settings

# Texts with parts of the words of the queries.
OTHERS = [
    *("Room 45 is at the end of the hall.", "There were 21 people at dinner.", "Vitamin C helps with colds."),
    *("The letter x marks the spot.", "In 1920 they moved to Vienna.", "At 1080 metres the snow begins."),
    *("A total of 75 boxes arrived.", "Only 10 of 6 were left.", "P is before L in the alphabet."),
    *("BMW sold 34 cars.", "Channel 5 is closed."),
    *("Page 1 of 2 is missing.", "Da Vinci painted it.", "L'air est doux.", "J'ai vu l'avion dans le ciel."),
    *("L'homme et l'enfant marchent.", "The team of us won.", "A book about birds."),
    *(
        "오늘 날씨가 좋다.",
        "기차가 늦었다.",
        "나이 많은 사람.",
        "Ovi on auki.",
        "Juna on myöhässä.",
        "Kapı açık.",
    ),
    *("RFC is short.", "An RFC.", "Lot 31 of 2", "The 5 of us met.", "Port of call", "Parcels 1, 23, 456."),
    *("Send me an e-mail about the lease.", "A T-shirt is on sale.", "The cheque bounced once."),
    *("Der Zug hat Verspätung.", "De trein is te laat.", "Nyitva van az ajtó."),
]
PAIRS = {
    "letters and digits": [
        ("The header is defined by RFC2616 for clients.", "RFC 2616"),
        ("The header follows RFC 9110 today.", "RFC9110"),
        ("The car BMW1234 was seen.", "BMW 1234"),
        ("A small MP3 player.", "MP 3"),
        ("The PS/2 socket is violet.", "PS2"),
    ],
    "numbers in groups": [
        ("The journal has ISSN 2434-561X.", "2434561X"),
        ("The yearbook has ISSN 1050-124X.", "1050124x"),
        ("The ISBN 0-19-852663-X is out.", "019852663X"),
        ("A loan of 1,23,456 rupees.", "123456"),
        ("A loan of 98,76,54,321 rupees.", "987654321"),
    ],
    "numbers in scripts without blanks": [
        ("5月の予定は未定です。", "5月"),
        ("第3回大会を開く。", "3回"),
        ("他住在8号楼。", "8号"),
        ("เดินทาง2ชั่วโมง", "2ชั่ว"),
    ],
    "words divided at the end of a line": [
        ("The baro-\nmeter fell.", "barometer"),
        ("Das Wetter-\nhäuschen steht.", "Wetterhäuschen"),
        ("La foto-\r\nsíntesis es lenta.", "fotosíntesis"),
    ],
    "sizes": [
        ("The monitor shows 1920 x 1080 at sixty.", "1920x1080"),
        ("The tablet shows 2560x1600 at sixty.", "2560 x 1600"),
        ("The phone shows 1290×2796 at sixty.", "1290x2796"),
        ("The watch shows 410x502 at sixty.", "410×502"),
    ],
    "addresses of network cards": [
        ("The card has 00:1A:2B:3C:4D:5E on its label.", "001A2B3C4D5E"),
        ("The router has AC87A3150B21 on its label.", "ac:87:a3:15:0b:21"),
    ],
    "units": [
        ("Keep the room at 21C over night.", "21 °C"),
        ("Keep the cellar at 12 °C over night.", "12C"),
        ("The filter has 5 µm pores.", "5 um"),
        ("The mesh has 7μm holes.", "7 µm"),
        ("Growth of 45% was seen.", "45 %"),
        ("Losses of 32 % were seen.", "32%"),
    ],
    "fractions and powers": [
        ("Add ½ cup of sugar.", "½"),
        ("Add ¾ cup of flour.", "3/4 cup"),
        ("A disk of 3½ inches.", "3 1/2"),
        ("There are 10^6 cells.", "10⁶"),
        ("The value of alpha was .75 at noon.", "0.75"),
        ("The value of beta was 0.82 at noon.", ".82"),
        ("The value of gamma was 0,64 at noon.", "0.64"),
    ],
    "names": [
        ("A page of the Qur'an was found.", "quran"),
        ("They flew to Xian in spring.", "Xi'an"),
        ("The P & L was sent.", "P&L"),
        ("The U.S.A. team won.", "USA"),
        ("Her Ph.D. thesis was long.", "PhD"),
        ("The xray image is blurred.", "x-ray"),
        ('צה"ל הודיע', "צהל"),
        ("Об'єкт закрито.", "обєкт"),
        ("نامه را علی نوشت.", "علي"),
    ],
    "elision": [
        ("Il faut boire de l'eau chaque jour.", "l'eau"),
        ("Nous dormons à l’hôtel de la gare.", "l'hotel"),
    ],
    "Korean nouns of one syllable": [("이 책이 재미있다.", "책"), ("꽃이 피었다", "꽃")],
    "a Thai syllable": [("น้ำเย็น", "น้ำ")],
    "short texts in other languages": [
        ("Talossa oli kylmä.", "talo"),
        ("Ostin kirjoja.", "kirja"),
        ("Könyveket vettem.", "könyv"),
        ("Kitapları aldım.", "kitap"),
        ("Ich kaufte Bücher.", "Buch"),
        ("Les chevaux courent.", "cheval"),
    ],
    "forms of English words": [
        ("She was running.", "run"),
        ("He studied maps.", "study"),
        ("Three wolves howled.", "wolf"),
        ("The mouse ate cheese.", "mice"),
        ("All analyses were late.", "analysis"),
    ],
    "letters with a symbol that are function words in French": [
        ("The driver is C++ code from 2009.", "C++"),
        ("Our backend is written in C# since spring.", "C#"),
    ],
    "a compound of a letter next to another word": [
        ("His email bounced twice.", "e-mail bounced"),
        ("The tshirt shrank in the wash.", "T-shirt shrank"),
    ],
    "words apart": [("Back up the disk.", "backup")],
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    texts = [*OTHERS, *(text for pairs in PAIRS.values() for text, _ in pairs)]
    documents = [Document(text, text) for text in texts]
    folder = tmp_path_factory.mktemp("typed") / "index"
    with Index.build(documents, folder, settings=Settings(modes="walk,bm25")) as built:
        yield built


@pytest.mark.parametrize("mode", ["walk", "bm25"])
@pytest.mark.parametrize("kind", PAIRS)
def test_the_text_is_first(index: Index, kind: str, mode: str) -> None:
    for text, query in PAIRS[kind]:
        hits = index.search(query, mode=mode)
        assert hits and hits[0].document == text, (query, hits.notes, [hit.document for hit in hits])
