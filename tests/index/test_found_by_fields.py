"""Documents are found by the names of files and folders and the people of mails, which count as found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index

FILES = {
    "clients/brandt/2024-03-05.md": "Call about the roof. They want slate, not tile.\n",
    "clients/brandt/offer.txt": "The sum is 12,400 euro. Valid for six weeks.\n",
    "kayak-rental-contract.txt": "This agreement is made between the owner and the tenant.\n",
    "walrus_counts_2021.csv": "month,count\njan,12\nfeb,19\n",
    "HeatPumpManual.txt": "Press and hold the button for five seconds to reset the unit.\n",
    "Steuererklärung 2022.txt": "Anlage N. Werbungskosten 1.230 Euro.\n",
    "code/small.md": "C is a language. In C you manage memory yourself. C programs are small.\n",
    **{f"notes/{day:02}.md": f"The ladder is near the window. Page {day}.\n" for day in range(30)},
}
MAILS = [
    (
        "Jonas Peeters <jonas@example.org>",
        "thomas@example.org",
        "new address",
        "It is Sint-Pietersnieuwstraat 41.",
    ),
    ('"Okafor, Ada" <ada.okafor@clinic.example>', "thomas@example.org", "results", "All values are normal."),
    (
        "Thomas Berg <thomas@example.org>",
        "Priya Raman <priya@raman.example>",
        "lesson",
        "Friday at six works.",
    ),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("fields") / "docs"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    for number, (sender, recipient, subject, text) in enumerate(MAILS):
        head = (
            f"From: {sender}\nTo: {recipient}\nSubject: {subject}\nDate: Thu, 12 Sep 2024 09:12:00 +0200\n\n"
        )
        (folder / f"{number}.eml").write_text(head + text, "utf-8")
    with Index.build(folder, folder.parent / "index") as built:
        yield built


@pytest.mark.parametrize("mode", ["walk", "bm25"])
@pytest.mark.parametrize(
    ("query", "file"),
    [
        ("brandt", "brandt/"),
        ("brandt offer", "offer.txt"),
        ("kayak rental contract", "kayak-rental-contract.txt"),
        ('"kayak rental"', "kayak-rental-contract.txt"),
        ("walrus_counts_2021.csv", "walrus_counts_2021.csv"),
        ("walrus counts", "walrus_counts_2021.csv"),
        ("heat pump manual", "HeatPumpManual.txt"),
        ("heatpump", "HeatPumpManual.txt"),
        ("pumpmanuals", "HeatPumpManual.txt"),
        ("steuererklarung 2022", "Steuererkl"),
        ("Jonas Peeters", "0.eml"),
        ('"Jonas Peeters"', "0.eml"),
        ("jonas@example.org", "0.eml"),
        ("mail from Jonas", "0.eml"),
        ("okafor results", "1.eml"),
        ("clinic.example", "1.eml"),
        ("Priya", "2.eml"),
        ("brant", "brandt/"),
    ],
)
def test_fields_find_documents_and_count_as_found(index: Index, mode: str, query: str, file: str) -> None:
    hits = index.search(query, mode=mode)
    assert file in hits[0].document
    assert not hits.nothing_fits
    assert hits[0].score > 0.3


def test_words_of_a_file_are_not_in_other_files(index: Index) -> None:
    assert {hit.document.rsplit("/", 1)[-1] for hit in index.search("okafor", mode="bm25")} == {"1.eml"}
    assert not index.search("-brandt offer", mode="bm25")


def test_a_word_with_symbols_that_is_nowhere_is_named(index: Index) -> None:
    hits = index.search("C#")
    assert list(hits.replaced) == ["C#"]
    assert hits.notes == ('no "C#": searched for c',)
    assert not index.search("What is C?").notes
    assert index.search("F#").unknown == ("F#",)


def test_a_changed_sender_is_found_after_an_update(tmp_path: Path) -> None:
    def of(sender: str) -> list[Document]:
        others = [
            Document(str(at), f"The ladder is near window {at}.", metadata={"from": "Ines"})
            for at in range(40)
        ]
        return [*others, Document("m", "The boat is free.", "boat", {"from": sender, "date": "2024-09-12"})]

    with Index.build(of("Mireille Lukasz"), tmp_path / "index") as index:
        assert [hit.document for hit in index.search("lukasz")] == ["m"]
        index.update(add=of("Ada Okafor"))
        assert [hit.document for hit in index.search("okafor")] == ["m"]
        assert not index.search("lukasz", mode="bm25")
        digest = index.digest
    with Index.build(of("Ada Okafor"), tmp_path / "again") as again:
        assert again.digest == digest
