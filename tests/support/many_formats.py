"""Twenty files of ten formats, each with a fact, and a question about each."""

from __future__ import annotations

import json

from tests.support.office_files import docx, epub, paragraph, text_row, xlsx
from tests.support.pdf_files import Page, pdf


def mail(subject: str, text: str) -> bytes:
    head = f"From: Ada Lorne <ada@example.org>\nSubject: {subject}\nDate: Mon, 6 May 2024 07:08:09 +0000\n"
    return f"{head}Content-Type: text/plain; charset=utf-8\n\n{text}\n".encode()


def event(summary: str, day: str) -> bytes:
    rows = ("BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", f"UID:{day}@x", f"DTSTART:{day}T090000Z")
    return "\r\n".join((*rows, f"SUMMARY:{summary}", "END:VEVENT", "END:VCALENDAR", "")).encode()


def printed(*pages: str) -> bytes:
    return pdf([Page().text(60, 80, text, 12) for text in pages])


FILES = {
    "quagga.pdf": printed("The quagga was last seen in Amsterdam.", "A second page about zebras."),
    "dodo.pdf": printed("The dodo lived on the island of Mauritius."),
    "auk.pdf": printed("The last great auk was caught on Eldey."),
    "prices.xlsx": xlsx({"Prices": [text_row(1, "item", "price"), text_row(2, "astrolabe", "4711 crowns")]}),
    "stock.xlsx": xlsx({"Stock": [text_row(1, "part", "number"), text_row(2, "sprocket", "88 pieces")]}),
    "treaty.docx": docx(paragraph("The treaty of Kalmar was signed by Margaret.")),
    "minutes.docx": docx(paragraph("The meeting chose Rosalind as chair of the orchard.")),
    "lunch.eml": mail("Lunch", "The lunch with Bartholomew is at the Copper Kettle."),
    "train.eml": mail("Train", "The train to Tromso leaves from platform nine."),
    "garden.md": b"# Garden\n\nThe wisteria was planted by Cordelia.\n",
    "tides.md": b"# Tides\n\nThe spring tide of Fundy reaches sixteen metres.\n",
    "owl.html": b"<title>Owls</title><p>The barn owl nests in the belfry of <b>Lund</b>.</p>",
    "bees.html": b"<title>Bees</title><p>The bumblebee winters below the hazel hedge.</p>",
    "novel.epub": epub(["<h2>One</h2><p>The lighthouse keeper was called Ptolemy.</p>"]),
    "cities.csv": b"city,river\nGhent,Scheldt\nSeville,Guadalquivir\n",
    "teams.csv": b"team,captain\nPetrels,Wilhelmina\nTerns,Octavian\n",
    "notes.jsonl": b"".join(
        json.dumps({"id": k, "title": k, "text": text}).encode() + b"\n"
        for k, text in (("n1", "The comet Halley returns in 2061."), ("n2", "The asteroid Vesta is bright."))
    ),
    "log.jsonl": json.dumps({"id": "l1", "title": "Log", "text": "The gyroscope failed at dawn."}).encode(),
    "dentist.ics": event("Dentist with Dr. Ignatius", "20270304"),
    "concert.ics": event("Concert of the Vespers by Monteverdi", "20270506"),
}
ASKED = {
    "Where was the quagga last seen?": "Amsterdam",
    "On which island did the dodo live?": "Mauritius",
    "Where was the last great auk caught?": "Eldey",
    "What is the price of the astrolabe?": "4711",
    "How many pieces of the sprocket are there?": "88",
    "Who signed the treaty of Kalmar?": "Margaret",
    "Who is chair of the orchard?": "Rosalind",
    "Where is the lunch with Bartholomew?": "Copper Kettle",
    "Which platform does the train to Tromso leave from?": "nine",
    "Who planted the wisteria?": "Cordelia",
    "How high is the spring tide of Fundy?": "sixteen",
    "Where does the barn owl nest?": "Lund",
    "Where does the bumblebee winter?": "hazel",
    "What was the lighthouse keeper called?": "Ptolemy",
    "Which river flows through Seville?": "Guadalquivir",
    "Who is captain of the Petrels?": "Wilhelmina",
    "When does the comet Halley return?": "2061",
    "When did the gyroscope fail?": "dawn",
    "When is the dentist with Ignatius?": "2027",
    "Which concert is by Monteverdi?": "Vespers",
}
