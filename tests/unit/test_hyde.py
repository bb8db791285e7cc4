"""Mode hyde with a real (tiny, random) model, and what it says where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import BackendError, ConfigError, ModeUnavailable
from ketrag_fast.lab.eval import DataSet, Question, evaluate
from ketrag_fast.models.llms import open_models as models_module
from ketrag_fast.models.llms.open_models import Models
from ketrag_fast.models.llms.protocol import LanguageModel, ModelReply
from ketrag_fast.models.llms.registry import ModelOptions
from ketrag_fast.query.hyde import Hyde, prompt_hash, task
from ketrag_fast.storage.journal import KeptReply

DOCUMENTS = [
    Document("fram", "The Fram was built by Colin Archer for the ice.", "Fram"),
    Document("bread", "Bread is baked from flour and water, and eaten with butter.", "Bread"),
    Document("archer", "Colin Archer was born in Larvik and built ships.", "Colin Archer"),
]
QUESTIONS = ["Who built the Fram?", "What is bread made of?"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hyde") / "index"
    Index.build(DOCUMENTS, folder, settings=Settings(modes="auto,text,hyde")).close()
    return folder


@pytest.fixture
def hyde(tiny_gguf: Path) -> Iterator[Hyde]:
    models = Models(Settings())
    yield Hyde(f"llama-cpp:{tiny_gguf}", models)
    models.close()


def test_a_question_is_ranked_by_the_passage_written_for_it(place: Path, tiny_gguf: Path, hyde: Hyde) -> None:
    texts, told = hyde.passages(QUESTIONS)
    assert told == ()
    assert texts != QUESTIONS
    assert len(set(texts)) == 2
    with Index.open(place, settings=Settings(answer_llm=f"llama-cpp:{tiny_gguf}")) as index:
        many = index.retrieve_many(QUESTIONS, mode="hyde", budgets=[200, 40])
        for text, question, contexts in zip(texts, QUESTIONS, many, strict=True):
            plain = index.retrieve_many([text], mode="text", budgets=[200, 40])[0]
            assert [c.text for c in contexts] == [c.text for c in plain]
            assert [c.reason for c in contexts] == [c.reason for c in plain]
            assert {c.mode for c in contexts} == {"hyde"}
            assert contexts[0].question == question
            assert contexts[0].timings_ms["embed"] > 0
            one = index.retrieve(question, mode="hyde", budget=200)
            assert one.text == contexts[0].text
            assert index.inspect.hyde_model() == hyde.about()
            assert all(text not in c.text for c in contexts)  # what a model wrote is never context


def test_passages_are_remembered_and_equal_again(hyde: Hyde, tiny_gguf: Path) -> None:
    first = hyde.passages(QUESTIONS)
    assert hyde.passages(QUESTIONS[::-1])[0] == first[0][::-1]
    models = Models(Settings())
    other = Hyde(f"llama-cpp:{tiny_gguf}", models)
    assert other.passages(QUESTIONS) == first
    about = other.about()
    assert about["prompt"] == prompt_hash()
    assert len(about["fingerprint"]) >= 32
    models.close()


def test_without_a_model_it_says_what_to_name(place: Path) -> None:
    with Index.open(place) as index, pytest.raises(ModeUnavailable) as caught:
        index.retrieve("Who?", mode="hyde")
    assert "language model" in caught.value.message
    assert "--llm" in (caught.value.hint or "")
    with pytest.raises(ModeUnavailable, match="needs a language model"):
        Index.open(place, settings=Settings(answer_llm="heuristic"))
    with Index.open(place, settings=Settings(answer_llm="none")) as index:
        assert index.inspect.hyde_model() is None
    with pytest.raises(ConfigError, match="must be one of"):
        Index.open(place, settings=Settings(answer_llm="what"))
    asked = DataSet(place, None, (Question("q", "Who?", ("x",), frozenset(), {}),), 0, 0, ())
    with Index.open(place) as index:
        assert index.inspect.hyde_model() is None
        row = evaluate(index, asked, ["hyde"], [100])[0]
    assert (row.status, row.coverage, row.n) == ("not run", None, 0)


def test_a_model_that_is_not_there_is_an_error_of_the_question_alone(place: Path, tmp_path: Path) -> None:
    with Index.open(place, settings=Settings(answer_llm=f"llama-cpp:{tmp_path / 'no.gguf'}")) as index:
        assert index.retrieve("Who built the Fram?", mode="text", budget=100).passages
        with pytest.raises(BackendError):
            index.retrieve("Who?", mode="hyde")


def written(reply: ModelReply) -> str | None:
    kept = KeptReply(0, 1, reply.text, reply.finish, reply.error, "unusable", 0, 0)
    return task().judged("Who?", kept)[1]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (ModelReply(0, " The\nFram ", "stop"), "The Fram"),
        (ModelReply(0, "cut sho", "length"), "cut sho"),
        (ModelReply(0, "so far", "time"), "so far"),
        (ModelReply(0, "", "stop"), None),
        (ModelReply(0, " \n", "stop"), None),
        (ModelReply(0, "x x x x", "repetition"), None),
        (ModelReply(0, "half", "error", error="no"), None),
        (ModelReply(0, "half", "cancelled"), None),
        (ModelReply(0, "a\ud800b", "stop"), "a?b"),
    ],
)
def test_what_counts_as_a_passage(reply: ModelReply, text: str | None) -> None:
    assert written(reply) == text


def test_an_endless_passage_is_cut() -> None:
    assert len(written(ModelReply(0, "word " * 100_000, "length")) or "") <= 4000


def test_an_index_opens_its_model_once(place: Path, tiny_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model that writes the passage writes the answer too, also after a refresh."""
    opened: list[str] = []
    real = models_module.open_model

    def counting(spec: str, options: ModelOptions) -> LanguageModel:
        opened.append(spec)
        return real(spec, options)

    monkeypatch.setattr(models_module, "open_model", counting)
    spec = f"llama-cpp:{tiny_gguf}"
    with Index.open(place, settings=Settings(answer_llm=spec)) as index:
        index.retrieve(QUESTIONS[0], mode="hyde", budget=200)
        assert index.ask(QUESTIONS[0], mode="text", budget=200, tokens=4).model is not None
        index.refresh()
        assert index.ask(QUESTIONS[1], mode="bm25", budget=200, tokens=4).model is not None
        index.retrieve(QUESTIONS[1], mode="hyde", budget=200)
    assert opened == [spec]


@pytest.mark.parametrize("command", ["ask", "retrieve"])
def test_none_is_no_model_whatever_read_the_chunks(
    command: str, place: Path, tiny_gguf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An index whose chunks a model has read writes passages with it, unless the user says `--llm none`."""
    folder, spec = tmp_path / "read", f"llama-cpp:{tiny_gguf}"
    settings = Settings(llm=spec, llm_tokens=32, on_barren="continue")
    with Index.build(DOCUMENTS[:1], folder, settings=settings) as index:
        assert index.inspect.hyde_model() is not None
    argv = [command, QUESTIONS[0], "-i", str(folder), "--mode", "hyde", "--budget", "100", "--json"]
    assert main([*argv, "--llm", "none"]) == 4
    assert "needs a language model that writes a passage" in capsys.readouterr().err
    assert main(argv) == 0
