"""The sections of benches/BENCHMARKS.md: what each shows, and the commands that measure it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PREFACE: Final = """# Benchmarks

`make figures` makes this page: it runs the commands of each section, stores the rows in `benches/results`, and renders the tables
from there; `make figures ONLY=NAME` measures one section. The figures belong to a release: those of a section are of the version,
the commit, the date and the machine that are named below it, and are not measured again when the code changes.

**Quality** does not depend on the load of a machine. With MiniLM the last digits can differ between processors, because the
encoder chooses its arithmetic (four cells of hotpotqa-dev differ by at most 0.3 between an EPYC with AVX2 and a Xeon with AMX).
`recall@k` is the share of a question's supporting passages among the first k documents, `all gold in k` the share of questions
whose supporting passages are all among them, and `answer at N` the share of questions with an answer in a context of N tokens
(questions answered by yes or no left out). All are percent; `±` is half of a 95 % bootstrap interval over the questions (seeded;
both ends are in the result files). The model is all-MiniLM-L6-v2 in the built-in encoder; `none` uses vectors fitted on the
corpus. The weights of `walk` and of the vectors without a model were chosen on MuSiQue, 2WikiMultihopQA and HotpotQA, so expect
less on your own data.

**Times** depend on the machine and on what else it did: each section names both. A column `target` has the project's goal.
"""


@dataclass(frozen=True)
class Run:
    """One command whose result is stored under its name."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A section of the page. `make figures ONLY=NAME` measures it alone."""

    name: str
    title: str
    text: str
    runs: tuple[Run, ...]
    is_time: bool = False


def _quality(name: str, title: str, text: str, *, rules: bool = True) -> Section:
    """Return the section of a question set: without a model, with MiniLM, and the modes that rules can build."""
    runs = [
        Run(name, ("quality.py", "modes", name)),
        Run(f"{name}-minilm", ("quality.py", "modes", name, "--model")),
    ]
    if rules:
        runs.append(Run(f"{name}-rules", ("quality.py", "modes", name, "--rules")))
    return Section(name, title, text, tuple(runs))


def _time(name: str, title: str, text: str, *command: str) -> Section:
    return Section(name, title, text, (Run(name, command),), is_time=True)


_RULES: Final = (
    " Modes of reader `rules` work on entities, relations and NodeRAG's units that the built-in rules extract (`--llm heuristic`);"
    " an LLM extracts better ones."
)

SECTIONS: Final = (
    _quality(
        "musique-dev",
        "MuSiQue",
        "776 questions of two to four hops of MuSiQue's dev split over a pool of 9,329 passages. The questions were chosen by"
        " whether their supporting passages could be found in public copies, and the pool was made from these copies, so it is"
        " **easier than the original pool**: do not compare with figures of papers." + _RULES,
    ),
    _quality(
        "2wiki-dev",
        "2WikiMultihopQA",
        "1,103 dev and train questions over their own paragraphs, 7,034 passages. Papers use other pools.",
    ),
    _quality(
        "hotpotqa-dev",
        "HotpotQA",
        "789 dev questions over the paragraphs of twice as many, 15,858 passages. Papers use other pools.",
    ),
    _quality(
        "2wiki-101",
        "2Wiki's published pool",
        "101 questions over the 6,119 passages that HippoRAG published. HippoRAG 2 (NV-Embed-v2 and an LLM) reports a recall@5 of 90.4"
        " over the same pool, with 1,000 questions. These 101 are those of fast-graphrag, so the pool is equal and the questions"
        " are not. They have no answers, only supporting passages.",
    ),
    _quality(
        "cacm",
        "CACM",
        "52 queries with relevance judgements over 3,204 abstracts with 2,720 citation links; about 15 abstracts are relevant to a"
        " query, so recall@5 cannot be high. Nothing was tuned on this set.",
    ),
    _quality(
        "xquad",
        "Languages: XQuAD",
        "The same 1,190 questions over 240 paragraphs in six languages, one paragraph per question, with default settings."
        " MiniLM was trained on English. Nothing was tuned on this set.",
        rules=False,
    ),
    _quality(
        "polar",
        "The example in this repository",
        "`examples/polar`: 56 articles, of which questions combine up to four. Small and clean: a check, not evidence.",
    ),
    Section(
        "ranking",
        "The default on every kind of collection",
        "`auto`, which is `walk`, next to the other modes on the sets that its rule was chosen on: paragraphs of Wikipedia for several"
        " hops, single paragraphs in six languages, chats, code, abstracts and web pages. `ahead` is the difference to the best of the"
        " other modes, paired by question. [The walk](../docs/concepts/walk.md#when-there-is-no-second-hop) has the rule.",
        (
            Run("ranking", ("ranking.py", "sets")),
            Run("ranking-minilm", ("ranking.py", "sets", "--model")),
        ),
    ),
    Section(
        "technical",
        "Technical documentation",
        "Questions on 1,859 pages of documentation of eleven Debian packages (Apache httpd, APT, BIND, D-Bus, Exim, HAProxy, Lua, Postfix,"
        " PostgreSQL, SQLite, zsh), no model. `python benches/technical.py --fetch` gets the packages; this repository has only the"
        " questions and where their answers are. `plain` questions avoid the terms of the text, so few are found; `expert` questions"
        " use the terms of the field. Some need two sections: their answer is in the context if both passages are. The rank is"
        " that of the first right passage, `recall@5` counts passages. Nothing was chosen by the questions `aside`.",
        (Run("technical", ("technical.py",)),),
    ),
    Section(
        "agents",
        "Tokens to evidence",
        "What an assistant has read when the first passage with the answer is complete, no model: the reply of the tool `search` and the"
        " passages that it reads then, against eight results of BM25 with two lines each, and whole files after a `grep` for each word."
        " A reply is read whole, and passages in the order of the ranking. On HotpotQA a file is a paragraph; of the technical"
        " questions about half are answered by none of the first 32 passages.",
        (Run("agents", ("agents.py",)),),
    ),
    Section(
        "technical-links",
        "Links as citations",
        "CG-RAG takes the links between the pages of the technical documentation for citations, next to `text` and `fused`, which it"
        " starts from, and next to itself without them (`citation_direction=none`), without messages (`lesegr_share=0`), and with the"
        " numbers of the paper. Vectors are fitted on the corpus, or MiniLM's.",
        tuple(
            Run(f"technical-links{suffix}", ("technical.py", "--links", *option))
            for suffix, option in (("", ()), ("-minilm", ("--model",)))
        ),
    ),
    Section(
        "recorded",
        "KET-RAG with a recorded extraction, and its reference implementation",
        "100 questions of MuSiQue's train split over 1,890 passages. The entities and relations were extracted by GPT-3.5 and"
        " recorded by HippoRAG's authors, so no LLM runs. `parity` compares the preset `ket-rag:reference` with the reference functions"
        " (KET-RAG at c632ff4) on the passages as one shuffled document: questions of 100 with an answer in the context.",
        (
            Run("recorded", ("quality.py", "recorded", "musique-train100")),
            Run("parity", ("parity.py",)),
        ),
    ),
    Section(
        "hops",
        "By the number of hops",
        "MuSiQue's questions by the number of hops that they name, over the pool of the section MuSiQue, with its caveat.",
        (
            Run("hops", ("quality.py", "hops", "musique-dev")),
            Run("hops-minilm", ("quality.py", "hops", "musique-dev", "--model")),
        ),
    ),
    Section(
        "systems",
        "Every system at equal tokens",
        "Each system's best mode next to `text`, `fused` and `walk`, with entities and relations by rules, or as GPT-3.5 extracted them"
        " (`musique-train100`, recorded by HippoRAG's authors). NodeRAG's reference prints a fixed number of nodes;"
        " `noderag` fills the rest of the budget with chunks in the order of its walk.",
        tuple(
            Run(f"systems-{name}{suffix}", ("quality.py", "systems", name, *option))
            for name in ("musique-dev", "2wiki-dev", "hotpotqa-dev", "musique-train100")
            for suffix, option in (("", ("--model",)), ("-plain", ()))
        ),
    ),
    _time(
        "build",
        "Builds",
        "Wall clock of a whole build in a fresh process from sources to a published index, and its peak memory. `default` are the"
        " modes that need nothing extra.",
        "build.py",
    ),
    _time(
        "retrieval",
        "Questions a second: the library",
        "Contexts of 4,000 tokens, no embedding model. `bm25s` is the Python package with its numba backend off; it returns the ten"
        " best passages and prints no context.",
        "retrieval.py",
        "modes",
    ),
    _time(
        "serving",
        "Questions a second: the service",
        "`ketrag serve` with one worker on the same machine as the load, contexts of 1,500 tokens. With the reply cache (the"
        " default) a repeated question is answered without a search.",
        "serving.py",
    ),
    Section(
        "serving-memory",
        "The service during minutes at twice its capacity",
        "Default options, with the reply cache on and every question new. Replies are 200 or 429; anything else is an error.",
        (Run("serving-memory", ("serving.py", "--endurance", "10")),),
        is_time=True,
    ),
    _time(
        "encoder",
        "The encoder and sentence-transformers",
        "all-MiniLM-L6-v2 on the same texts in the same process, taking turns. Rates are tokens a second of text, without padding.",
        "encoder.py",
    ),
    _time(
        "ann",
        "Vector search and hnswlib",
        "Nearest 10 of made-up unit vectors of 384 dimensions in 1,000 clusters, one question at a time on one core.",
        "kernels.py",
        "vectors",
    ),
    _time(
        "changes",
        "Changes",
        "One document of many is changed or removed: seconds until the new generation is published. `equal`: the index has the"
        " digest of a build of the same documents with every stage run.",
        "changes.py",
    ),
    _time(
        "filters",
        "Filters",
        "Milliseconds of a question with a filter that leaves a share of the documents, without a model, and the median ratio to"
        " the same question without a filter.",
        "retrieval.py",
        "filters",
    ),
    Section(
        "scale",
        "Growing corpora, next to tantivy and bm25s",
        "`auto` without a model (`bm25`, `walk`) over generated passages of 90 words, which are read from JSON lines; tantivy stores"
        " the texts, too, and bm25s saves them with its index. `own MB` is the peak without pages of mapped files. `KETRAG_PEERS` may"
        " name another interpreter that has them.",
        (Run("scale", ("scale.py", "--passages", "100000,300000", "--scaling")),),
        is_time=True,
    ),
    _time(
        "vector-stores",
        "An index with a model, next to LanceDB, FAISS and LEANN",
        "The same passages and vectors of all-MiniLM-L6-v2 for all but LEANN's questions, which it encodes itself. Questions are asked one at"
        " a time on one core. `search` leaves out the encoding of the question. `index` is the build without encoding. ketrag-fast and"
        " LanceDB keep texts and a word index, LEANN the texts, FAISS vectors alone; ketrag-fast has one index for all its modes.",
        "vector_stores.py",
    ),
    _time(
        "opening",
        "Opening an index",
        "A fresh process opens an index of generated documents and asks a question; files are in the page cache. `blocks`, the"
        " default of `verify`, checks each block when it is first read.",
        "retrieval.py",
        "opening",
    ),
    _time(
        "documents",
        "Documents: PDF",
        "Pages are generated from the demo's articles, so that their text is known. Order is the F1 of the longest common subsequence"
        " of words. PDFium is not safe in threads: one process reads one page at a time.",
        "documents.py",
    ),
    Section(
        "pdf-tables",
        "Tables of PDFs",
        "Real files. A cell is right if its text is in the row and the column of the hand-made truth: 7 tables of filings and 25"
        " of a competition. Of pdfplumber both ways to find tables are shown; pymupdf4llm finds tables with a model.",
        (Run("pdf-tables", ("pdf_tables.py",)),),
    ),
    Section(
        "web-pages",
        "Main text of saved web pages",
        "Two public collections of pages with a hand-made truth, which this repository does not have; one is that on which trafilatura"
        " was developed. A page of the first has one article; the scores are of runs of four words. Of the second, parts that"
        " belong to the text and parts that do not are counted. The differences are paired, by page, with a 95 % interval."
        " The rules of ketrag-fast were written with both in sight; no page was set aside.",
        (Run("web-pages", ("web_pages.py",)),),
    ),
    _time(
        "web-documentation",
        "Web documentation",
        "The documentation of Python and Git, and Debian's policy and references, as their packages install them"
        " (`python benches/web_documentation.py --fetch` gets them). The true links were read by another parser.",
        "web_documentation.py",
    ),
    Section(
        "themes",
        "Themes and questions about the whole",
        "[Themes and surveys](../docs/concepts/themes.md). Labels, stability and speed are measured on the technical documentation"
        " (`python benches/technical.py --fetch` gets it), surveys on questions with at least three gold documents. The constants of"
        " `survey` were chosen on all of these questions.",
        (
            Run("themes-labels", ("themes.py", "labels")),
            Run("themes-survey", ("themes.py", "survey")),
            Run("themes-survey-minilm", ("themes.py", "survey", "--model")),
            Run("themes-stability", ("themes.py", "stability")),
            Run("themes-speed", ("themes.py", "speed")),
            Run("themes-rule", ("themes.py", "rule")),
        ),
    ),
    _time(
        "interchange",
        "Export and import",
        "Exports of a skeleton, and an import of a working directory of LightRAG, each in a separate process.",
        "interchange.py",
    ),
    _time(
        "kernels",
        "Kernels and other libraries",
        "The same result from this package's kernels and from public libraries, on graphs of made-up texts with the word"
        " statistics of real ones.",
        "kernels.py",
        "graphs",
    ),
)
"""In the order of the page."""


def runs() -> dict[str, tuple[Section, Run]]:
    """Return every run by its name, with its section."""
    return {run.name: (section, run) for section in SECTIONS for run in section.runs}
