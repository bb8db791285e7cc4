"""Words of the layout and the calendar, left out of pictures of graphs, where they link everything."""

from __future__ import annotations

from typing import Final

_LAYOUT: Final = """
abb abbildung abs abstract acknowledgements al anexo anhang annex appendix bibliography bild caption
capítulo chap chapitre chapter column columns contents copyright doi ed eds eq equation et etc fig
figs figura figure figures footer footnote footnotes header heading http https ibid index inhalt
isbn issn kapitel literatur no note notes nr num page pages paragraph part pdf pp preface página
quelle quellen references row rows sec section sections seite seiten sommaire source sources summary
supplementary tab tabelle tabla table tables teil title vol volume www
"""
_CALENDAR: Final = """
january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec
monday tuesday wednesday thursday friday saturday sunday
januar februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag
janvier février mars avril juin juillet août septembre octobre novembre décembre
lundi mardi mercredi jeudi vendredi samedi dimanche
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
lunes martes miércoles jueves viernes sábado domingo
"""
_WORDS: Final = frozenset((_LAYOUT + _CALENDAR).split())
_YEAR: Final = 4
"""Digits from which a number may be a year."""


def is_layout_word(name: str) -> bool:
    """Return whether a name is a word of the layout, a month or weekday, a letter, or a small number.

    A numbered one, such as "Figure 3" or "page 12", is one too.

    Examples:
        >>> [is_layout_word(name) for name in ("FIGURE", "Table 2", "March", "x", "17", "1906", "May Lorne")]
        [True, True, True, True, True, False, False]
    """
    words = [word.strip(".:,()") for word in name.casefold().split()]
    rest = [word for word in words if not _is_small(word)]
    return all(word in _WORDS for word in rest)


def _is_small(word: str) -> bool:
    """Return whether a word is a letter of an alphabet, or a number too short for a year."""
    is_letter = len(word) < 2 and word.isascii()  # a single Chinese character is a word
    return is_letter or (word.isdigit() and len(word) < _YEAR)
