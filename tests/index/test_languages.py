"""Documents in several languages: detection, filters, queries, and text that no language explains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings, _core
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import ConfigError
from tests.oracles import walk_parts as oracle

GERMAN = "Die Häuser der Stadt wurden 1158 von einem Herzog gebaut und sind nicht groß."
ENGLISH = "The houses of the town were built by a duke in 1158 and they are not large."
RUSSIAN = "Дома этого города были построены в 1158 году, и они не очень большие."
CHINESE = "这座城市的房屋建于1158年。"
MIXED = [
    Document("de", GERMAN, "Stadt"),
    Document("en", ENGLISH, "Town"),
    Document("ru", RUSSIAN, "Город", {"group": "north"}),
    Document("zh", CHINESE, "城市"),
]
MODES = ("bm25", "walk")


EVERY = "bm25,walk,text,keyword,skeleton,g2cons,noderag"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an index in four languages with every graph."""
    folder = tmp_path_factory.mktemp("mixed")
    build(folder, MIXED, modes=EVERY, llm="heuristic", threads=1).close()
    return folder / "index"


@pytest.fixture(scope="module")
def mixed(place: Path) -> Iterator[Index]:
    with Index.open(place) as index:
        yield index


def build(path: Path, documents: list[Document], **settings: object) -> Index:
    own = Settings(**{"modes": MODES, **settings})
    return Index.build(documents, path / "index", settings=own)


def first(index: Index, query: str, mode: str = "bm25", filter: str | None = None) -> str | None:  # noqa: A002
    passages = index.retrieve(query, mode=mode, filter=filter).passages
    return passages[0].document if passages else None


@pytest.mark.parametrize("mode", MODES)
def test_each_language_finds_other_forms_of_its_words(tmp_path: Path, mode: str) -> None:
    with build(tmp_path, MIXED) as index:
        assert first(index, "Welches Haus?", mode) == "de"
        assert first(index, "Which house?", mode) == "en"
        assert first(index, "Какой дом построен?", mode) == "ru"
        assert first(index, "城市房屋", mode) == "zh"


def test_the_language_is_metadata(tmp_path: Path) -> None:
    with build(tmp_path, MIXED) as index:
        listed = {one.document: dict(one.metadata) for one in index.inspect.documents()}
        assert listed == {
            "de": {"language": "de"},
            "en": {"language": "en"},
            "ru": {"language": "ru", "group": "north"},
            "zh": {"language": "zh"},
        }
        assert index.stats()["languages"] == {"de": 1, "en": 1, "ru": 1, "zh": 1}
        assert first(index, "1158", filter="language=ru") == "ru"
        assert first(index, "1158", filter="language=de") == "de"
        assert {p.document for p in index.retrieve("1158", mode="bm25", filter="language!=en").passages} == {
            "de",
            "ru",
            "zh",
        }


def test_a_language_given_by_the_source_prevails(tmp_path: Path) -> None:
    documents = [Document("a", GERMAN, "", {"language": "Latin"}), Document("b", ENGLISH)]
    with build(tmp_path, documents) as index:
        assert first(index, "1158", filter="language=Latin") == "a"
        assert first(index, "1158", filter="language=en") == "b"


def test_an_english_index_has_no_languages(tmp_path: Path) -> None:
    with build(tmp_path, [MIXED[1]]) as index:
        assert "languages" not in index.stats()
        assert index.inspect.documents()[0].metadata == {}
    forced = Index.build([MIXED[1]], tmp_path / "forced", settings=Settings(modes=MODES, language="english"))
    with forced:
        assert first(forced, "house") == "en"


def test_none_stems_nothing_and_a_language_can_be_forced(tmp_path: Path) -> None:
    with build(tmp_path, [MIXED[2]], language="none") as index:
        assert first(index, "Какой дом?") is None
        assert first(index, "города") == "ru"
    forced = Index.build(
        [Document("x", "Häuser")], tmp_path / "forced", settings=Settings(modes=MODES, language="german")
    )
    with forced:
        assert first(forced, "Haus") == "x"


@pytest.mark.parametrize("name", ["germna", "klingon", "EN", "de,en"])
def test_a_wrong_language_is_refused_with_a_hint(name: str) -> None:
    with pytest.raises(ConfigError, match="language") as caught:
        Settings(language=name)
    assert name in str(caught.value) and caught.value.hint
    if name == "germna":
        assert "german" in caught.value.hint


def test_a_document_that_changes_language_is_found_by_both(tmp_path: Path) -> None:
    text = " ".join([ENGLISH] * 20) + "\n\n" + " ".join([GERMAN] * 20)
    with build(
        tmp_path, [Document("both", text), Document("other", "Nothing of this kind is here at all.")]
    ) as index:
        assert first(index, "Which house?") == "both"
        assert first(index, "Welches Haus?") == "both"


LOWER = [
    ("lorne", "ada lorne was born in the town of varenna and she made the film blue engine with her sister."),
    ("varenna", "varenna is a town by the lake of como and it belongs to the province of lecco since 1950."),
    *(
        (f"other {n}", f"this is number {n} of many texts about nothing at all, and it names no one.")
        for n in range(30)
    ),
]


def test_text_without_capitals_links_by_names(tmp_path: Path) -> None:
    documents = [Document(name, text, name) for name, text in LOWER]
    with build(tmp_path, documents) as index:
        context = index.retrieve(
            "by which lake is the town where the maker of blue engine was born?", mode="walk"
        )
        assert {p.document for p in context.passages[:2]} == {"lorne", "varenna"}
        names = oracle.vocabulary(index._opened.generation.stages["links"], "names")
        assert "ada lorne" in names and "province of lecco" in names


def test_chunks_hold_as_much_text_in_every_language(tmp_path: Path) -> None:
    def chunks(text: str, **settings: object) -> int:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        with build(folder, [Document("x", text)], **settings) as index:
            counted = index.stats()["counts"]["chunks"]
            assert isinstance(counted, int)
            return counted

    english, russian = " ".join([ENGLISH] * 60), " ".join([RUSSIAN] * 60)
    assert abs(chunks(russian) - chunks(english)) <= 2
    assert chunks(russian, language="english") > 1.5 * chunks(russian)
    assert chunks(english) == chunks(english, language="english")
    assert chunks(russian, cut="windows") > 1.5 * chunks(russian)


def test_english_is_detected_and_its_index_has_the_same_arrays(tmp_path: Path) -> None:
    documents = [Document(str(n), f"{ENGLISH} It is number {n}.", f"Town {n}") for n in range(9)]
    (tmp_path / "forced").mkdir()
    with (
        build(tmp_path, documents, modes="all") as index,
        build(tmp_path / "forced", documents, modes="all", language="english") as forced,
    ):
        assert Settings().language == "auto"
        assert index.digest == forced.digest


SYLLABLES = {
    "th": ("ประเทศไทยมีเมืองหลวงชื่อกรุงเทพมหานคร", "พม่ามีแม่น้ำสายยาวไหลผ่านที่ราบ", "เมืองหลวงชื่ออะไร"),
    "lo": ("ປະເທດລາວມີນະຄອນຫຼວງຊື່ວຽງຈັນ", "ແມ່ນໍ້າຂອງໄຫຼຜ່ານທົ່ງພຽງ", "ນະຄອນຫຼວງຊື່ຫຍັງ"),
    "km": ("ប្រទេសកម្ពុជាមានរាជធានីឈ្មោះភ្នំពេញ", "ទន្លេមេគង្គហូរកាត់វាលទំនាប", "រាជធានីឈ្មោះអ្វី"),
    "my": ("မြန်မာနိုင်ငံ၏ မြို့တော်မှာ နေပြည်တော် ဖြစ်သည်", "ဧရာဝတီမြစ်သည် လွင်ပြင်ကို ဖြတ်သန်းစီးဆင်းသည်", "မြို့တော်အမည်"),
}


@pytest.mark.parametrize("code", SYLLABLES)
def test_scripts_without_spaces_are_found_by_syllables(tmp_path: Path, code: str) -> None:
    right, wrong, query = SYLLABLES[code]
    documents = [Document("right", right), Document("wrong", wrong), Document("en", ENGLISH)]
    with build(tmp_path, documents, modes="bm25,walk,text,keyword") as index:
        assert index.stats()["languages"] == {code: 2, "en": 1}
        for mode in ("bm25", "walk", "text", "keyword"):
            passage = index.retrieve(query, mode=mode).passages[0]
            assert passage.document == "right", mode
            assert right[passage.start : passage.end] == passage.text


def test_vietnamese_words_are_told_apart_by_their_marks(tmp_path: Path) -> None:
    rest = "của thành phố được người dân trong vùng và những nơi khác nuôi từ nhiều năm nay"
    documents = [Document("dog", f"Con chó {rest}."), Document("market", f"Cái chợ {rest}.")]
    with build(tmp_path, [*documents, Document("en", ENGLISH)]) as index:
        assert index.stats()["languages"] == {"vi": 2, "en": 1}
        assert first(index, "chó") == "dog"
        assert first(index, "chợ") == "market"
        found = index.retrieve("con cho", mode="bm25", explain=True)
        assert {passage.document for passage in found.passages} == {"dog", "market"}
        assert found.passages[0].document == "dog"
        assert [(one["word"], one["forms"]) for one in found.passages[0].why] == [
            ("con", ["Con"]),
            ("cho", ["chó"]),
        ]


def test_a_passage_in_the_wrong_language_is_not_preferred(tmp_path: Path) -> None:
    """Its words have no stems, so that they are rare in an index that has stems."""
    documents = [Document(f"de{k}", f"{GERMAN} Haus {k} ist alt.") for k in range(60)]
    documents[7] = Document("right", f"{GERMAN} Ein Garten mit Zaun.")
    menu = "Garten Zaun Menü Datei Ansicht Bearbeiten Hilfe Fenster Format Tabelle Seite Druck Suche Ende"
    documents.append(Document("wrong", menu))
    with build(tmp_path, documents) as index:
        assert index.stats()["languages"] == {"de": 60, "en": 1}
        assert first(index, "Garten Zaun") == "right"
        assert first(index, "Menü Ansicht") == "wrong"


SCRIPTS = {
    "bn": "শহরটি 1158 সালে একজন ডিউক দ্বারা প্রতিষ্ঠিত হয়েছিল এবং এটি খুব বড় নয়। ",
    "ka": "ქალაქი 1158 წელს ჰერცოგმა დააარსა და ის არც ისე დიდია. ",
    "km": "ទីក្រុងនេះត្រូវបានបង្កើតឡើងក្នុងឆ្នាំ 1158 ដោយអ្នកឧកញ៉ា ហើយវាមិនធំពេកទេ។ ",
}


@pytest.mark.parametrize("code", SCRIPTS)
def test_a_script_without_a_stemmer_has_a_language_and_chunks_of_the_usual_size(
    tmp_path: Path, code: str
) -> None:
    text = SCRIPTS[code] * 60
    sizes = []
    for cut in ("sentences", "windows"):
        (tmp_path / cut).mkdir()
        with build(tmp_path / cut, [Document("x", text)], modes="bm25", cut=cut) as index:
            assert index.stats()["languages"] == {code: 1}
            counted = index.stats()["counts"]["chunks"]
            assert isinstance(counted, int)
            sizes.append(len(text) / counted)
    # English sentences like these give chunks of 720 characters.
    assert sizes[0] > 700 > 3 * sizes[1]


STRANGE = [
    "Pоссии Rоссия пaris",  # Cyrillic and Latin letters in one word
    "\u200fשלום\u200e العربية\u200f \u202b text \u202c",
    "\u0301\u0308 \u093f \u0bcd ़ \u064b",  # combining characters without a base
    "👩‍👩‍👧‍👦 🇩🇪 🏳️‍🌈 👍🏽",
    "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ⵜⴰⵎⴰⵣⵉⵖⵜ",  # languages without a row
    "рaypal pаypal paypаl",  # homoglyphs
    "ⅷ ⑴ ½ ﬁ ﷺ Ǆ İıſß",
    "ـــ ــــ و ال",
    "\x00\x01\ufeff\ufffd",
]


def test_a_lone_surrogate_is_a_failure_of_its_document_and_no_word_of_a_query(tmp_path: Path) -> None:
    with build(tmp_path, [*MIXED, Document("bad", "дом \ud800")]) as index:
        assert index.report is not None
        assert [failure.document for failure in index.report.failures] == ["bad"]
        assert first(index, "дом \ud800") == "ru"


def test_ten_megabytes_of_chinese_are_indexed(tmp_path: Path) -> None:
    text = "这座城市的房屋建于古代" * 303_031
    documents = [Document("long", text), *MIXED]
    with build(tmp_path, documents, modes="bm25", threads=1) as index:
        assert index.stats()["languages"] == {"de": 1, "en": 1, "ru": 1, "zh": 2}
        assert first(index, "古代", filter="language=zh") == "long"
        passage = index.retrieve("古代", mode="bm25").passages[0]
        assert text[passage.start : passage.end] == passage.text


QUERIES = [
    "Welches Haus wurde 1158 gebaut?",
    "Which house was built in 1158?",
    "Какой дом построен в 1158?",
    "这座城市的房屋建于1158年",
    "البيوت التي بنيت عام 1158",
    "1158 में कौन सा घर बना?",
    "ᏣᎳᎩ 1158",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_in_any_language_reads_a_mixed_index_in_every_mode(mixed: Index, query: str) -> None:
    for mode in mixed.modes:
        context = mixed.retrieve(query, mode=mode)
        for passage in context.passages:
            text = next(d.text for d in MIXED if d.id == passage.document)
            assert text[passage.start : passage.end] == passage.text
        restricted = mixed.retrieve(query, mode=mode, filter="language=ru").passages
        assert {passage.document for passage in restricted} <= {"ru"}, mode
    # The year is in all of them, whatever the language of the query.
    found = {passage.document for passage in mixed.retrieve(query, mode="bm25").passages}
    assert found >= {"de", "en", "ru"}


def test_strange_text_is_read_in_every_mode(mixed: Index, tmp_path: Path) -> None:
    strange = [Document(f"strange{n}", text, f"title{n}") for n, text in enumerate(STRANGE)]
    with build(tmp_path, [*MIXED, *strange], modes=EVERY, llm="heuristic", threads=1) as index:
        for document in strange:
            assert first(index, document.title) == document.id
            for mode in index.modes:
                index.retrieve(document.text, mode=mode)
                mixed.retrieve(document.text, mode=mode)


def test_the_command_prints_languages(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    assert main(["documents", "-i", str(place)]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[2:] for line in printed.splitlines()][:4] == [
        ["de", "Stadt"],
        ["en", "Town"],
        ["ru", "Город"],
        ["zh", "城市"],
    ]
    assert main(["documents", "-i", str(place), "--filter", "language=de"]) == 0
    assert "Город" not in capsys.readouterr().out
    assert main(["stats", "-i", str(place)]) == 0
    assert "ru" in capsys.readouterr().out


def test_names_and_codes_are_those_of_the_core() -> None:
    for code, name in _core.languages():
        assert Settings(language=code).language == code
        assert Settings(language=name).language == name
