from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.errors import DocumentError
from ketrag_fast.eval.datasets import load_dataset

HEADER = "query-id\tcorpus-id\tscore\n"


def jsonl(*entries: object) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def write(folder: Path, *, queries: str, corpus: str | None = None, qrels: str | None = None) -> Path:
    (folder / "queries.jsonl").write_text(queries, encoding="utf-8")
    if corpus is not None:
        (folder / "corpus.jsonl").write_text(corpus, encoding="utf-8")
    if qrels is not None:
        (folder / "qrels.tsv").write_text(qrels, encoding="utf-8")
    return folder


CORPUS = jsonl({"_id": "p", "title": "P", "text": "x"}, {"_id": 2, "title": "Q", "text": "y"})
QUERIES = jsonl(
    {"_id": "q1", "text": "Who?", "metadata": {"answers": ["Ann", "", "  "], "hops": "2hop"}},
    {"_id": "q2", "text": "When?", "metadata": {}},
    {"_id": "q3", "text": "Where?"},
)


def test_questions_answers_and_gold(tmp_path: Path) -> None:
    data = load_dataset(
        write(tmp_path, queries=QUERIES, corpus=CORPUS, qrels=HEADER + "q1\tp\t1\nq1\t2\t1\nq2\tp\t0\n")
    )
    assert data.corpus == tmp_path / "corpus.jsonl"
    assert [q.id for q in data.questions] == ["q1", "q2", "q3"]
    first, second, third = data.questions
    assert first.answers == ("Ann",)
    assert first.gold == {"p", "2"}
    assert first.metadata["hops"] == "2hop"
    assert second.answers == third.answers == ()
    assert second.gold == third.gold == frozenset()  # a score of 0 is no support
    assert data.warnings == ("2 gold answers are empty and were left out",)


def test_a_single_answer_may_be_a_string(tmp_path: Path) -> None:
    data = load_dataset(
        write(tmp_path, queries=jsonl({"_id": 1, "text": "Who?", "metadata": {"answers": "Ann"}}))
    )
    assert data.questions[0].answers == ("Ann",)
    assert data.questions[0].id == "1"


def test_corpus_and_judgements_may_be_missing(tmp_path: Path) -> None:
    data = load_dataset(write(tmp_path, queries=QUERIES))
    assert data.corpus is None
    assert all(not question.gold for question in data.questions)


def test_judgements_of_unknown_ids_are_counted_and_told(tmp_path: Path) -> None:
    qrels = HEADER + "q1\tp\t1\nq1\tlost\t1\nq9\tp\t1\n"
    data = load_dataset(write(tmp_path, queries=QUERIES, corpus=CORPUS, qrels=qrels))
    assert data.questions[0].gold == {"p"}
    passages, questions, *_ = data.warnings
    assert passages.startswith("qrels.tsv: 1 judgements name passages")
    assert questions.startswith("qrels.tsv: 1 judgements name questions")


def test_without_a_corpus_no_judgement_is_unknown(tmp_path: Path) -> None:
    data = load_dataset(write(tmp_path, queries=QUERIES, qrels=HEADER + "q1\tanything\t1\n"))
    assert not any("qrels" in warning for warning in data.warnings)
    assert data.questions[0].gold == {"anything"}


def test_line_ends_blank_lines_and_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_bytes(b'\xef\xbb\xbf{"_id": "q", "text": "Who?"}\r\n\r\n')
    (tmp_path / "qrels.tsv").write_bytes(b"query-id\tcorpus-id\tscore\r\nq\tp\t1\r\n\r\n")
    data = load_dataset(tmp_path)
    assert data.questions[0].gold == {"p"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"text": "x"}', "no _id"),
        ('{"_id": true, "text": "x"}', "no _id"),
        ('{"_id": "", "text": "x"}', "no _id"),
        ('{"_id": "z"}', "needs a text"),
        ('{"_id": "z", "text": " "}', "needs a text"),
        ('{"_id": "z", "text": "x", "metadata": 3}', "metadata"),
        ('{"_id": "z", "text": "x", "metadata": {"answers": [1]}}', "metadata.answers"),
        ('{"_id": "z", "text": "x", "metadata": {"answers": 7}}', "metadata.answers"),
        ('{"_id": "q1", "text": "again"}', "used before"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_broken_question_is_named_by_file_and_line(tmp_path: Path, line: str, said: str) -> None:
    write(tmp_path, queries=QUERIES + line + "\n")
    with pytest.raises(DocumentError, match=r"queries\.jsonl:4: ") as caught:
        load_dataset(tmp_path)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("qrels", "place"),
    [
        ("q1\tp\t1\n", "qrels.tsv:1: the header is missing"),
        (HEADER + "q1 p 1\n", "qrels.tsv:2: expected"),
        (HEADER + "q1\tp\t1\nq1\tp\tx\n", "qrels.tsv:3: 'x' is not a score"),
        (HEADER + "\tp\t1\n", "qrels.tsv:2: expected"),
    ],
)
def test_a_broken_judgement_is_named_by_file_and_line(tmp_path: Path, qrels: str, place: str) -> None:
    write(tmp_path, queries=QUERIES, corpus=CORPUS, qrels=qrels)
    with pytest.raises(DocumentError) as caught:
        load_dataset(tmp_path)
    assert place in str(caught.value)


def test_invalid_utf8_is_named_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_bytes(b'{"_id": "q", "text": "x"}\n\xff\n')
    with pytest.raises(DocumentError, match=r"queries\.jsonl:2: not UTF-8"):
        load_dataset(tmp_path)


def test_a_missing_folder_or_question_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="does not exist"):
        load_dataset(tmp_path / "nowhere")
    with pytest.raises(DocumentError, match=r"queries\.jsonl"):
        load_dataset(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["_id", "text", "metadata", "answers"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=4), st.text(max_size=30))
def test_any_content_is_read_or_refused_with_the_typed_error(
    tmp_path_factory: pytest.TempPathFactory, entries: list[object], qrels: str
) -> None:
    folder = tmp_path_factory.mktemp("set")
    (folder / "queries.jsonl").write_text(jsonl(*entries), encoding="utf-8")
    (folder / "qrels.tsv").write_bytes(qrels.encode("utf-8", "surrogatepass"))
    try:
        data = load_dataset(folder)
    except DocumentError as error:
        assert str(folder) in str(error)
    else:
        assert all(question.id and question.text.strip() for question in data.questions)
        assert len({question.id for question in data.questions}) == len(data.questions)
