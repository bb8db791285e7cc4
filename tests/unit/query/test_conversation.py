"""Questions that continue a conversation: what they refer to, what they take, and what stands alone."""

from __future__ import annotations

import gzip
import json
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Query, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.base.user_records import state_folder
from ketrag_fast.errors import InputError
from ketrag_fast.index.indexes import Indexes
from ketrag_fast.query.anaphora import find_reference
from ketrag_fast.query.conversation import continue_question
from ketrag_fast.types import Turn
from tests.support.chat import Chat

pytestmark = pytest.mark.usefixtures("loopback")
POLAR = Path("examples/polar/articles")
SAMPLES = Path("benches/data")
BUILT = Turn(
    "Who built the Fram in 1892?", "Fram was built by Colin Archer in Larvik.", ("Colin Archer", "Fram")
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.build([POLAR], tmp_path_factory.mktemp("talk") / "index", settings=Settings(threads=1)) as own:
        yield own


@pytest.mark.parametrize(
    ("question", "kind", "taken"),
    [
        ("And where was he born?", "person", ("Colin Archer", "Fram")),
        ("Who was his wife?", "person", ("Colin Archer", "Fram")),
        ("What year did he die?", "person", ("Colin Archer", "Fram")),
        ("When did Nansen meet him?", "person", ("Colin Archer", "Fram")),
        ("When was it launched?", "thing", ("Fram", "Colin Archer")),
        ("What is its length?", "thing", ("Fram", "Colin Archer")),
        ("Who else was on it?", "thing", ("Fram", "Colin Archer")),
        ("How many died?", "subject", ("Fram", "Colin Archer")),
        ("What was the outcome?", "subject", ("Fram", "Colin Archer")),
        ("And who was the captain?", "subject", ("Fram", "Colin Archer")),
        ("And the Gjøa?", "ellipsis", ("built", "1892")),
        ("What about 1901?", "ellipsis", ("built", "Fram")),
        ("and the second one?", "ellipsis", ("built", "Fram", "1892")),
        ("Why?", "ellipsis", ("built", "Fram", "1892", "Colin Archer")),
        ("Tell me more", "ellipsis", ("built", "Fram", "1892", "Colin Archer")),
        ("Wann wurde er geboren?", "person", ("Colin Archer", "Fram")),
        ("Où est-il né ?", "person", ("Colin Archer", "Fram")),
        ("¿Dónde nació él?", "person", ("Colin Archer", "Fram")),
    ],
)
def test_a_follow_up_takes_what_it_leaves_out(question: str, kind: str, taken: tuple[str, ...]) -> None:
    reference = find_reference(question)
    assert reference is not None
    assert reference.kind == kind
    assert continue_question(question, [BUILT]).taken == taken
    assert continue_question(question, []).taken == ()


@pytest.mark.parametrize(
    "question",
    [
        "Where was Amundsen born?",
        "What is photosynthesis?",
        "Which company changed its name?",
        "Who sold his house?",
        "What did the man do with his horse?",
        "When did the captain who lost his ship die?",
        "What does Nate feel he could do?",
        "When did the director of film It Happened Out West die?",
        "Is it true that cats sleep?",
        "How long does it take to boil an egg?",
        "What time is it in Oslo?",
        "How many chloroplast lineages are there?",
        "expense report march",
        "and",
        "?",
        "Wo ist der Bahnhof?",
        "Wie lange dauert es, bis Öl gefördert wird?",
    ],
)
def test_a_question_that_stands_alone_takes_nothing(question: str) -> None:
    if question == "and":
        assert continue_question(question, [Turn("?")]).taken == ()
        return
    assert find_reference(question) is None
    assert continue_question(question, [BUILT]).taken == ()


def test_questions_of_the_samples_stand_alone() -> None:
    """Of questions that people wrote without a conversation at most one in 200 takes anything; of XQuAD,
    whose questions were written next to a paragraph, one in fifty.

    LiHua-World is left out: some of its questions do refer ("What time do they plan to meet?").
    """
    for folder in ("2wiki", "hotpotqa", "musique", "xquad-en", "cosqa"):
        with gzip.open(SAMPLES / folder / "queries.jsonl.gz", "rt", encoding="utf-8") as lines:
            questions = [json.loads(line)["text"] for line in lines]
        taking = [question for question in questions if find_reference(question) is not None]
        assert len(taking) <= max(
            1, len(questions) // 50 if folder == "xquad-en" else len(questions) // 200
        ), taking


def test_quotes_answer_a_second_question(index: Index) -> None:
    first = index.ask("Who built the Fram?")
    alone, second = index.ask("And where was he born?"), index.ask("And where was he born?", history=[first])
    assert second.taken[0] == "Colin Archer"
    assert second.asked == "And where was Colin Archer born?"
    assert "Colin Archer was born" in second.quotes[0].text
    assert "Archer was born" not in alone.quotes[0].text
    assert (alone.taken, alone.asked) == ((), None)
    third = index.ask("When did he die?", history=[first, second])
    assert third.taken == ("Colin Archer",)
    assert any("1921" in quote.text for quote in third.quotes), third.quotes
    assert "Colin Archer" in second.context.notes[-1]


def test_history_in_every_form_finds_the_same(index: Index) -> None:
    first = index.ask("Who built the Fram?")
    question = "And where was he born?"
    expected = index.retrieve(question, history=[first]).text
    for history in ([first.turn], [first.turn.to_json()], [Turn("Who?", "", ()), first]):
        assert index.retrieve(question, history=history).text == expected
    query = Query(question, history=[first])
    assert index.retrieve(query).text == expected
    assert index.retrieve_many([query, "Where is Larvik?"])[0].text == expected
    many = index.retrieve_many([question, "Where is the Gjøa now?"], history=[first])
    assert [context.text for context in many] == [expected, index.retrieve("Where is the Gjøa now?").text]
    both = Indexes({"a": index, "b": index}).ask(question, history=[first])
    assert both.taken == index.ask(question, history=[first]).taken
    for wrong in ("Who?", {"question": "Who?"}, [3], [{"answer": "no question"}], [{"question": 1}]):
        with pytest.raises(InputError, match="history"):
            index.retrieve(question, history=wrong)  # type: ignore[arg-type]


def test_a_long_conversation_is_bounded(index: Index) -> None:
    """Only the last turns are read: 500 of them take the time of eight."""
    turn = index.ask("Who built the Fram?").turn
    long = Turn("Who? " * 4000, "Anna Berg " * 4000, tuple(f"Title {n}" for n in range(2000)))
    assert len(Turn.from_json(long.to_json()).titles) == 20
    query = Query("And where was he born?", history=[long] * 499 + [turn])
    assert len(query.history) == 8
    begun = time.process_time()
    for _ in range(20):
        Query("And where was he born?", history=[turn.to_json()] * 500)
    assert time.process_time() - begun < 2
    begun = time.process_time()
    continue_question("And he?" + " and he" * 5000, [long])
    assert time.process_time() - begun < 2


def _answers(body: dict[str, Any]) -> str:
    if "rewrite" in body["messages"][0]["content"]:
        return "<think>He is Archer.</think>\nQuestion: Where was Colin Archer born?"
    return "In Larvik [1]."


def test_a_model_rewrites_only_a_question_that_needs_it(index: Index) -> None:
    with Chat(_answers) as chat:
        spec = f"openai:mini@{chat.url}"
        first = index.ask("Who built the Fram?", llm=spec)
        whole = index.ask("Where was Roald Amundsen born?", llm=spec, history=[first])
        assert (len(chat.requests), whole.read_as) == (2, None)
        second = index.ask("And where was he born?", llm=spec, history=[first])
    assert len(chat.requests) == 4
    assert second.read_as == second.context.question == "Where was Colin Archer born?"
    assert (second.question, second.taken) == ("And where was he born?", ())
    assert second.turn.question == "Where was Colin Archer born?"
    assert second.tokens_in == 14
    rewriting = chat.requests[2]["messages"][-1]["content"]
    assert "Who built the Fram?" in rewriting
    assert rewriting.rstrip().endswith("And where was he born?")
    assert "Where was Colin Archer born?" in chat.requests[3]["messages"][-1]["content"]


@pytest.mark.parametrize("reply", ["<think>endless", "…", "x" * 700])
def test_a_useless_rewriting_leaves_the_question_with_its_names(index: Index, reply: str) -> None:
    def answers(body: dict[str, Any]) -> str:
        return reply if "rewrite" in body["messages"][0]["content"] else "In Larvik [1]."

    with Chat(answers) as chat:
        first = index.ask("Who built the Fram?")
        second = index.ask("And where was he born?", llm=f"openai:mini@{chat.url}", history=[first])
    assert second.read_as is None
    assert second.taken[0] == "Colin Archer"
    assert second.text.startswith("In Larvik")


def test_the_command_continues_the_last_conversation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Index.build([POLAR], tmp_path / "index", settings=Settings(threads=1)).close()

    def ask(*words: str) -> tuple[str, str]:
        assert main(["ask", "-i", str(tmp_path / "index"), *words]) == 0
        return tuple(capsys.readouterr())  # type: ignore[return-value]

    assert "no conversation" in ask("--continue", "And where was he born?")[1]
    ask("Who built the Fram?")
    out, err = ask("--continue", "And where was he born?")
    assert "Colin Archer was born in 1832 at Larvik" in out
    assert "continues the conversation: searched with Colin Archer" in err
    assert json.loads(ask("--continue", "When did he die?", "--json")[0])["taken"] == ["Colin Archer"]
    (file,) = state_folder("conversations").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(json.loads(file.read_text())["turns"]) == 3
    for _ in range(10):
        ask("--continue", "When did he die?")
    assert len(json.loads(file.read_text())["turns"]) == 8
    ask("Who was Louise Boyd?")  # a new conversation
    assert len(json.loads(file.read_text())["turns"]) == 1
    file.write_text("{")
    assert "no conversation" in ask("--continue", "And where was he born?")[1]


def test_a_state_folder_that_cannot_be_written_stops_no_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("a file")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Index.build([Document("fram", "The Fram was built by Colin Archer.")], tmp_path / "index"):
        pass
    assert main(["ask", "-i", str(tmp_path / "index"), "Who built the Fram?"]) == 0
    assert "conversation" not in capsys.readouterr().err
    assert main(["ask", "-i", str(tmp_path / "index"), "--continue", "Who built the Fram?"]) == 0
    assert "the conversation cannot be stored" in capsys.readouterr().err
