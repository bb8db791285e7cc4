"""Stems of the core against those of the Snowball project's C code."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import lexical as oracle
from tests.oracles import text as plain

from ketrag_fast import _core
from ketrag_fast.kernels import text as kernel

# Words of texts, most of them inflected.
WORDS = {
    "russian": "новый нового новые города городов России российский исследования исследований её чай",
    "arabic": "الكتاب كتابها المدرسة والمدارس يكتبون كاتبة مُعَلِّم الجامعات بالمدينة القرن",
    "hindi": "लड़का लड़के लड़कियों हिन्दी किताबें किताबों सरकार सरकारों दुनिया विद्यालयों",
    "greek": "βιβλίο βιβλία βιβλίων άνθρωπος ανθρώπους ΑΝΘΡΩΠΟΣ πόλεις πόλης",
    "armenian": "գիրք գրքեր գրքերի քաղաքներ քաղաքում Հայաստանի",
    "tamil": "புத்தகம் புத்தகங்கள் வீடு வீடுகளில் மரங்கள் தமிழ்நாட்டில்",
}
# Letters of one script, and of none with a stemmer.
ALPHABETS = {
    "russian": "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїўј",
    "arabic": "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيپچگکیہ\u064b\u0651\u0640",
    "hindi": "अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसहािीुूेैोौंः़्",
    "greek": "αβγδεζηθικλμνξοπρστυφχψως",
    "armenian": "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ",
    "tamil": "அஆஇஈஉஊஎஏஐஒஓககஙசஞடணதநபமயரலவழளறனாிீுூெேைொோௌ்",
}


@pytest.mark.parametrize("language", WORDS)
def test_inflected_words_have_the_stems_of_snowball(language: str) -> None:
    text = WORDS[language]
    found = _core.lexical_keywords(text)
    assert found == oracle.keywords(text)
    assert len(found) == len(text.split()) and found != [oracle.fold(word).lower() for word in text.split()]


@pytest.mark.parametrize("language", ALPHABETS)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_word_has_the_stem_of_snowball(language: str, data: st.DataObject) -> None:
    text = data.draw(st.text(ALPHABETS[language] + " ", max_size=24))
    assert _core.lexical_keywords(text) == oracle.keywords(text)


MIXED = [*"yq 7é日本ไทй", "ที่", "เป็", "ກັ", "ក្រុ", "မြန်"]
MIXED += ["мир", "и\u0306", "كتب", "कि", "வ்", "\u200f", "\u0301", "🙂"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(MIXED)))
def test_mixed_scripts_equal_the_plain_version(parts: list[str]) -> None:
    text = "".join(parts)
    assert _core.lexical_keywords(text) == oracle.keywords(text)


TEXTS = {
    "german": "Die Häuser der Städte wurden 1158 gegründet; größere Straßen und Flüsse",
    "french": "Les élèves étudiés à l'école continuèrent l'étude générale des théâtres",
    "spanish": "Las ciudades fueron fundadas por los duques; la nación y las canciones",
    "italian": "Le città furono fondate; le nazioni e l'università della società",
    "portuguese": "As cidades foram fundadas; nações, canções e não educação",
    "dutch": "De steden werden gesticht; grote huizen en geschiedenissen",
    "swedish": "Städerna grundades; människorna och häusen är större",
    "turkish": "Şehirler kuruldu; büyük köprüler ve öğrencilerin kitapları",
    "finnish": "Kaupungit perustettiin; suuret talot ja järvien rannat",
    "russian": "Города были основаны в XII веке, и улицы этого города rings",
    "arabic": "والكتاب في المدينة من الجامعات والطلاب على الطريق rings",
}


@pytest.mark.parametrize("language", TEXTS)
def test_texts_in_a_language_have_its_stems_and_not_its_function_words(language: str) -> None:
    text = TEXTS[language]
    found = _core.lexical_keywords(text, language)
    assert found == oracle.keywords(text, language)
    kept = [word for word in oracle.spelled_words(text) if oracle.keywords_of_word(word, language)]
    assert 0 < len(kept) < len(oracle.spelled_words(text))


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([*TEXTS, "norwegian", "romanian", "hungarian"]),
    st.text("abcdefghijklmnopqrstuvwxyzäöüßéèêçñãõåøıİşğIÅ\u0301 '-бы", max_size=30),
)
def test_any_latin_word_has_the_stem_of_its_language(language: str, text: str) -> None:
    assert _core.lexical_keywords(text, language) == oracle.keywords(text, language)


SYLLABLES = {
    "ภาษาไทยที่ดี": ["ภาษา", "ษาไท", "ไทย", "ยที่", "ที่ดี"],
    "น้ำตก": ["น้\u0e4d\u0e32ต", "ตก"],
    "ປະເທດລາວ": ["ປະເທ", "ເທດ", "ດລາ", "ລາວ"],
    "ភាសាខ្មែរ": ["ភាសា", "សាខ្", "ខ្មែ", "មែរ"],
    "မြန်မာ": ["မြန်", "န်မာ"],
    "東京都": ["東京", "京都"],
}


@pytest.mark.parametrize("text", SYLLABLES)
def test_scripts_without_spaces_give_pairs_of_what_a_reader_sees(text: str) -> None:
    assert _core.lexical_keywords(text) == oracle.keywords(text) == SYLLABLES[text]


@pytest.mark.parametrize("language", ["turkish", "german", "french", "romanian"])
def test_a_stem_has_no_capital_of_a_compatibility_character(language: str) -> None:
    text = "Oxygen™ ℡ №5"
    found = _core.lexical_keywords(text, language)
    assert found == oracle.keywords(text, language)
    assert all(word == word.lower() for word in found)


# What numbers, names, symbols and elided words consist of, next to letters with marks.
SIGNS = [
    *("½", "⁄", "/", "1", "12", "0", "75", "1920", "x", "×", "10", "^", "6", "⁶", ".", ",", "%", " %"),
    *("#", "°", "C", "F", "μm", "µm", "um", "GB", "us", "№", "00", "1A", "ff", ":", "-", "&", " & ", "P"),
    *("'", "’", '"', "l", "d", "L", "dell", "eau", "Oréal", "Qur", "an", "s", "U", "S", "Ph", "D", "e"),
    *("g", "Đà", "Nẵng", "ạ", "ă", "ệ", "đ", "צ", "ד", "״", "علی", "ک", "ʻ", "ʼ", "й", "日", "é"),
    *(" ", " ", " ", " ", "a", "RFC", "2616"),
]


@pytest.mark.parametrize("language", ["english", "vietnamese", "french"])
@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(SIGNS), max_size=14))
def test_signs_and_numbers_next_to_any_letters_equal_the_plain_version(
    language: str, parts: list[str]
) -> None:
    text = "".join(parts)
    assert _core.lexical_keywords(text, language) == oracle.keywords(text, language)


VIETNAMESE = st.text("aăâđeêoơuưyăđĐcmnÁàảãạốệ\u0300\u0301\u0302\u0309\u0323 -日", max_size=24)


@settings(max_examples=200, deadline=None)
@given(VIETNAMESE)
def test_any_vietnamese_word_has_its_marks_and_a_form_without(text: str) -> None:
    assert _core.lexical_keywords(text, "vietnamese") == oracle.keywords(text, "vietnamese")
    found = [word for word, _ in kernel.tokenise(text, "vietnamese")]
    assert found == plain.keywords(text, "vietnamese", ())


def test_vietnamese_words_differ_by_their_marks() -> None:
    assert _core.lexical_keywords("má mà ma hoà hòa", "vietnamese") == [
        *("ma\u0301@vi", "ma@vi", "ma\u0300@vi", "ma@vi", "ma@vi"),
        *("hoa\u0300@vi", "hoa@vi", "hoa\u0300@vi", "hoa@vi"),
    ]


def test_a_word_of_two_scripts_is_not_stemmed() -> None:
    # The first letter of the first word is Latin.
    assert _core.lexical_keywords("Pоссии России") == ["pоссии", "росс"]


@pytest.mark.parametrize("language", TEXTS)
def test_the_keyword_graph_has_the_stems_of_the_oracle(language: str) -> None:
    text = TEXTS[language]
    found = [word for word, _ in kernel.tokenise(text, language)]
    assert found == plain.keywords(text, language, ())
    assert 0 < len(found) < len(plain.words(text, ()))


GRAPH_TEXT = st.text("abßéüns' ’.5дйوالह日本ไท語ーที่เป็ກັក្រុမြန်", max_size=24)


@settings(max_examples=300, deadline=None)
@given(GRAPH_TEXT, st.sampled_from(("german", "french", "russian", "arabic", "none")))
def test_any_word_of_the_keyword_graph_equals_the_plain_version(text: str, language: str) -> None:
    assert [word for word, _ in kernel.tokenise(text, language)] == plain.keywords(text, language, ())
