"""Questions made from a corpus by rules: sentences cut out of passages, and names that join two passages."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from ketrag_fast.kernels import sentence_spans, tokenise
from ketrag_fast.types import Document

Kind = Literal["direct", "linked"]
KINDS: Final[tuple[Kind, ...]] = ("direct", "linked")

MOST_DOCUMENTS: Final = 20_000
"""Documents that are looked at; of a larger corpus those of smallest hash."""
RARE: Final = 5
"""A name joins passages if at most this number of places have it."""
_APART: Final = 1_000  # code points between two places of one document that count as different passages
_WORDS = range(6, 41)  # words of a sentence that can become a question
_KEPT_WORDS: Final = 4  # words of the second passage's sentence in a linked question
_NAME = re.compile(r"[^\W\d_a-z][\w'’.-]+(?: (?:(?:of|the|de|von|van|and) )?[^\W\d_a-z][\w'’.-]+){0,4}")


@dataclass(frozen=True, slots=True)
class Place:
    """A position of a corpus: a document and an offset in code points into its text."""

    document: str
    offset: int


@dataclass(frozen=True, slots=True)
class Probe:
    """A question made by a rule, and the place where its sentence was cut out.

    A `direct` probe asks with the sentence itself. A `linked` probe asks with what another passage (`via`)
    says of a name, without the name, and with some words of a sentence of the passage that has the name too.
    """

    kind: Kind
    text: str
    target: Place
    via: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Probes:
    """Questions, the documents without the sentences that they ask for, and how linked the corpus is.

    `joined` of `looked_at` documents share a rare name with another place.
    """

    probes: tuple[Probe, ...]
    documents: tuple[Document, ...]
    joined: int
    looked_at: int
    total: int

    def of(self, kind: Kind) -> list[Probe]:
        """Return the probes of one kind."""
        return [probe for probe in self.probes if probe.kind == kind]


@dataclass(frozen=True, slots=True)
class _Sentence:
    document: int
    start: int
    end: int


def make_probes(documents: Iterable[Document], *, count: int = 400, seed: int = 0) -> Probes:
    """Return up to `count` probes of each kind, equal for equal documents and seed.

    Sentences are cut out of different documents, or at least 1,000 code points apart. At most
    `MOST_DOCUMENTS` documents are looked at.
    """
    every = list(documents)
    chosen = sorted(every, key=lambda document: _rank(document.id, seed))[:MOST_DOCUMENTS]
    sentences = _sentences(chosen)
    names = _rare_names(chosen, sentences)
    joined = {place.document for places in names.values() for place in places}
    taken = _Taken(chosen, sentences)
    cuts: list[_Cut] = []
    most = min(count, sum(1 + len(document.text) // _APART for document in chosen) // 3)
    for name in sorted(names, key=lambda name: _rank(name, seed)):
        if len(cuts) >= most:
            break
        pair = taken.pair(name, names[name])
        if pair is not None:
            cuts.append(_Cut(pair[1], pair[0], name))
    linked = len(cuts)
    candidates = [one for own in sentences for one in own]
    for one in sorted(candidates, key=lambda one: _rank(f"{chosen[one.document].id} {one.start}", seed)):
        if len(cuts) - linked >= count:
            break
        if taken.can_be_cut(one) and taken.is_free(one):
            taken.take(one)
            cuts.append(_Cut(one))
    probes, kept = _cut_out(chosen, cuts)
    return Probes(tuple(probes), tuple(kept), len(joined), len(chosen), len(every))


@dataclass(frozen=True, slots=True)
class _Cut:
    sentence: _Sentence
    via: _Sentence | None = None
    name: str = ""


@dataclass(slots=True)
class _Taken:
    """The sentences that were cut out, and those that lead to one."""

    documents: Sequence[Document]
    sentences: Sequence[Sequence[_Sentence]]
    _places: dict[int, list[int]] = field(default_factory=dict)
    _cut: set[_Sentence] = field(default_factory=set)
    _sources: set[_Sentence] = field(default_factory=set)

    def take(self, sentence: _Sentence) -> None:
        self._cut.add(sentence)
        self._places.setdefault(sentence.document, []).append(sentence.start)

    def is_free(self, sentence: _Sentence) -> bool:
        return all(abs(sentence.start - place) >= _APART for place in self._places.get(sentence.document, ()))

    def can_be_cut(self, sentence: _Sentence) -> bool:
        enough = len(self.sentences[sentence.document]) >= 3
        return enough and sentence not in self._sources and self._words(sentence) in _WORDS

    def pair(self, name: str, places: Sequence[_Sentence]) -> tuple[_Sentence, _Sentence] | None:
        """Take and return a sentence with the name, and one near another place of it that can be cut out."""
        for target in places:
            if not self.is_free(target):
                continue
            for source in places:
                if source == target or source in self._cut or self._words(source) not in _WORDS:
                    continue
                for one in self.sentences[target.document]:
                    near = abs(one.start - target.start) < _APART
                    far = one.document != source.document or abs(one.start - source.start) >= _APART
                    if (
                        near
                        and far
                        and self.can_be_cut(one)
                        and name not in self._text(one)
                        and self.is_free(one)
                    ):
                        self.take(one)
                        self._sources.add(source)
                        return source, one
        return None

    def _text(self, sentence: _Sentence) -> str:
        return self.documents[sentence.document].text[sentence.start : sentence.end]

    def _words(self, sentence: _Sentence) -> int:
        return len(self._text(sentence).split())


def _rank(text: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _sentences(documents: Sequence[Document]) -> list[list[_Sentence]]:
    found = []
    for number, document in enumerate(documents):
        spans = sentence_spans(document.text) if document.text.strip() else ()
        found.append([_Sentence(number, int(start), int(end)) for start, end in spans])
    return found


def _rare_names(
    documents: Sequence[Document], sentences: Sequence[Sequence[_Sentence]]
) -> dict[str, list[_Sentence]]:
    """Return names that 2 to `RARE` places have, with the first sentence at each place."""
    places: dict[str, list[_Sentence]] = defaultdict(list)
    for document, own in zip(documents, sentences, strict=True):
        for sentence in own:
            said = document.text[sentence.start : sentence.end]
            for match in _NAME.finditer(said):
                name = match.group().rstrip(".'’-")
                single = " " not in name
                if len(name) < 4 or (single and (match.start() == 0 or not name[1:].islower())):
                    continue
                known = places[name]
                if len(known) > RARE:
                    continue
                last = known[-1] if known else None
                if last and last.document == sentence.document and sentence.start - last.start < _APART:
                    continue
                known.append(sentence)
    return {name: known for name, known in places.items() if 2 <= len(known) <= RARE}


def _without(text: str, name: str) -> str:
    return " ".join(text.replace(name, " ").split())


def _what_it_says(text: str) -> str:
    """Return the first words of a sentence that are neither names nor stop words."""
    plain = re.sub(r"[^\W\d_a-z]\w+", " ", text)
    found: list[str] = []
    for word, _ in tokenise(plain):
        if word not in found and len(word) > 2:
            found.append(word)
    return " ".join(found[:_KEPT_WORDS])


def _cut_out(documents: Sequence[Document], cuts: Sequence[_Cut]) -> tuple[list[Probe], list[Document]]:
    """Return the probes, and the documents without the sentences that they ask for."""
    by_document: dict[int, list[_Cut]] = defaultdict(list)
    for cut in cuts:
        by_document[cut.sentence.document].append(cut)
    probes: list[Probe] = []
    kept = list(documents)
    for number, own in sorted(by_document.items()):
        document = documents[number]
        parts: list[str] = []
        end = length = 0
        for cut in sorted(own, key=lambda cut: cut.sentence.start):
            one = cut.sentence
            parts.append(document.text[end : one.start])
            length += len(parts[-1])
            end = one.end
            target = Place(document.id, length)
            said = document.text[one.start : one.end]
            if cut.via is None:
                probes.append(Probe("direct", " ".join(said.split()), target))
                continue
            source = documents[cut.via.document]
            text = _without(source.text[cut.via.start : cut.via.end], cut.name)
            probes.append(Probe("linked", f"{text} {_what_it_says(said)}", target, source.id, cut.name))
        kept[number] = Document(
            document.id, "".join(parts) + document.text[end:], document.title, document.metadata
        )
    return probes, kept
