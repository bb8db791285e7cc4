"""What belongs to a place in a repository, and the map of a repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import InputError, UnknownName
from ketrag_fast.index.indexes import Indexes
from ketrag_fast.kernels import count_tokens
from tests.process import ketrag

FILES = {
    "src/reader.py": (
        "from src.errors import ParseFailure\n\n\n"
        "class JsonReader:\n"
        '    """Reads documents and raises an error for those that are broken."""\n\n'
        "    def read_all(self, path):\n"
        "        return [self.parse_line(line) for line in open(path)]\n\n"
        "    def parse_line(self, line):\n"
        "        if not line:\n"
        "            raise ParseFailure(line)\n"
        "        return split_fields(line)\n"
    ),
    "src/errors.py": 'class ParseFailure(Exception):\n    """A broken document."""\n',
    "src/fields.py": (
        "def split_fields(line):\n    return line.split(',')\n\n\ndef unused_helper():\n    return 1\n"
    ),
    "src/main.py": (
        "from src.reader import JsonReader\n\n\ndef main(paths):\n"
        "    return [JsonReader().read_all(path) for path in paths]\n"
    ),
    "tests/test_reader.py": (
        "from src.reader import JsonReader\n\n\n"
        "def test_reader():\n    assert JsonReader().parse_line('a') == ['a']\n"
    ),
    "src/colours.py": "RED = 1\n\n\ndef mix(first, second):\n    return first + second\n",
    "docs/guide.md": "# Guide\n\nThe broken documents that a JsonReader meets are printed.\n",
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("related")
    for name, text in FILES.items():
        (folder / "code" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "code" / name).write_text(text, "utf-8")
    Index.build(folder / "code", folder / "index", settings=Settings(modes="walk,bm25")).close()
    return folder


@pytest.fixture
def index(repository: Path) -> Index:
    return Index.open(repository / "index")


def relations(index: Index, place: str, **how: object) -> dict[str, str | None]:
    return {hit.document: hit.relation for hit in index.search(related=place, **how)}  # type: ignore[arg-type]


def test_a_place_finds_definitions_uses_and_tests(index: Index) -> None:
    found = relations(index, "src/reader.py:12")
    assert found["src/errors.py"] == "defines ParseFailure"
    assert found["src/fields.py"] == "defines split_fields"
    assert (found["tests/test_reader.py"] or "").startswith("tests ")
    assert (found["src/main.py"] or "").startswith("uses ")
    assert "src/colours.py" not in found


def test_a_name_finds_its_definition_first(index: Index) -> None:
    hits = index.search(related="JsonReader")
    assert (hits[0].document, hits[0].relation) == ("src/reader.py", "defines JsonReader")
    assert {hit.document for hit in hits} == {
        "src/reader.py",
        "src/main.py",
        "tests/test_reader.py",
        "docs/guide.md",
    }
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[0].score == 1.0 and hits.mode == "related"


def test_words_of_comments_do_not_link_source_code(index: Index) -> None:
    # "broken" and "documents" are in the docstring and in the guide; only the name links them.
    assert relations(index, "src/reader.py:5")["docs/guide.md"] == "uses JsonReader"
    assert relations(index, "src/errors.py:2").get("docs/guide.md") is None
    assert relations(index, "docs/guide.md:3")["src/errors.py"] == "shares broken"


def test_filters_apply_to_related_passages(index: Index) -> None:
    assert set(relations(index, "JsonReader", only="tests")) == {"tests/test_reader.py"}
    assert set(relations(index, "JsonReader", glob="docs/*")) == {"docs/guide.md"}
    assert set(relations(index, "JsonReader", grep="read_all")) == {"src/reader.py", "src/main.py"}
    assert len(index.search(related="JsonReader", limit=2)) == 2


def test_unknown_places_and_two_requests_are_errors(index: Index) -> None:
    with pytest.raises(UnknownName, match=r"src/reeder\.py:3 is not in the index") as unknown:
        index.search(related="src/reeder.py:3")
    assert unknown.value.hint == "did you mean src/reader.py?"
    with pytest.raises(UnknownName, match="has no line 99"):
        index.search(related="src/reader.py:99")
    with pytest.raises(InputError, match="either a query or related"):
        index.search("reader", related="JsonReader")
    assert index.search(related="NoSuchName").reason == "no_match"


def test_documents_that_a_caller_may_not_see_are_not_related(tmp_path: Path) -> None:
    own = [
        Document(id=name, text=text, metadata={"team": "docs" if name.endswith(".md") else "code"})
        for name, text in FILES.items()
    ]
    with Index.build(own, tmp_path / "index", settings=Settings(modes="walk")) as whole:
        allow = {"team": "docs"}
        with pytest.raises(UnknownName) as unknown:
            whole.search(related="src/reader.py:12", allow=allow)
        assert "reader" not in (unknown.value.hint or "")
        assert [hit.document for hit in whole.search(related="JsonReader", allow=allow)] == ["docs/guide.md"]


def test_several_indexes_use_the_one_that_has_the_place(
    repository: Path, index: Index, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note.md").write_text("A note about boats.")
    with Index.build(tmp_path / "other", tmp_path / "index") as other:
        both = Indexes({"notes": other, "code": index})
        hits = both.search(related="src/reader.py:12")
        assert {hit.index for hit in hits} == {"code"}
        with pytest.raises(UnknownName):
            both.search(related="src/nowhere.py:1")


def test_the_command_prints_relations(repository: Path) -> None:
    reply = ketrag("search", "--related", "JsonReader", "-i", "index", "--json", cwd=repository)
    rows = json.loads(reply.out)["hits"]
    assert rows[0]["relation"] == "defines JsonReader" and rows[0]["lines"][0] <= 4 <= rows[0]["lines"][1]
    plain = ketrag("search", "--related", "JsonReader", "-i", "index", cwd=repository)
    assert "defines JsonReader" in plain.out


def test_the_map_lists_the_most_used_files_and_their_definitions(index: Index) -> None:
    outline = index.inspect.outline()
    assert outline.folders == (("docs", 1), ("src", 5), ("tests", 1))
    assert outline.files[0].document == "src/reader.py" and outline.files[0].users == 1
    assert outline.files[0].definitions[0] == (4, "JsonReader")
    fields = next(file for file in outline.files if file.document == "src/fields.py")
    assert fields.definitions == ((1, "split_fields"), (5, "unused_helper"))
    assert index.inspect.outline() == outline
    assert index.inspect.outline("docs/*").files == ()


@pytest.mark.parametrize("tokens", [30, 80, 1000])
def test_the_map_has_at_most_the_tokens_that_are_given(repository: Path, index: Index, tokens: int) -> None:
    text = index.inspect.outline().text(tokens)
    assert int(count_tokens([text])[0]) <= tokens and text.endswith("files of code in 3 folders]")
    arguments = ("documents", "--outline", "--tokens", str(tokens), "-i", "index")
    assert ketrag(*arguments, cwd=repository).out.rstrip("\n") == text
