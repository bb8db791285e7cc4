//! Text processing: words, tokens, sentences, the corpus and its vocabulary, and the tokenisers of the reference
//! implementations.

use crate::arrays::{csr_out, strings_out, Array, Matrix, MatrixOut, Out, Packed, StringsOut};
use crate::door::{long, quick, to_python, wrong, Report};
use ketrag_base::error::{Error, Result};
use ketrag_base::parallel::{map_ranges, map_ranges_with};
use ketrag_base::progress::Progress;
use ketrag_text::blocks::{find_blocks, Mark};
use ketrag_text::bpe::{count_many, Encoding};
use ketrag_text::corpus::{build_corpus, Corpus, CorpusSettings};
use ketrag_text::cut::Cut;
use ketrag_text::detection::{detect, Choice};
use ketrag_text::languages::Language;
use ketrag_text::lexical::Lexer;
use ketrag_text::published as profiles;
use ketrag_text::punkt::Parameters;
use ketrag_text::query_language::{parse, Kind};
use ketrag_text::sentences::Splitter;
use ketrag_text::stopwords::StopWords;
use ketrag_text::strings::StringsBuf;
use ketrag_text::vocabulary::build_vocabulary;
use ketrag_text::words::Words;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashSet;

fn settled<T>(value: Result<T>) -> PyResult<T> {
    value.map_err(to_python)
}

fn pairs_out(pairs: Vec<[u32; 2]>) -> MatrixOut<u32> {
    let rows = pairs.len();
    MatrixOut(pairs.into_flattened(), [rows, 2])
}

/// Return (words, starts, indptr): the tokens of text i are words[indptr[i]..indptr[i+1]], each with the byte
/// of its first character. With `languages` (their numbers), the texts are read as queries to an index with these.
#[pyfunction]
#[pyo3(signature = (texts, stop="english", threads=0, *, languages=None, report=None))]
pub fn tokenise(
    py: Python<'_>,
    texts: Packed<'_>,
    stop: &str,
    threads: usize,
    languages: Option<Vec<u8>>,
    report: Report<'_, '_>,
) -> PyResult<(StringsOut, Out<u64>, Out<u64>)> {
    let stop = settled(StopWords::by_name(stop))?;
    let reader = match languages {
        Some(numbers) => Words::of_queries(stop, &settled(numbered(numbers))?),
        None => Words::new(stop),
    };
    let (words, starts, indptr) = long(py, report, |progress| {
        let texts = texts.view()?;
        progress.expect(texts.len() as u64);
        let parts = map_ranges_with(
            texts.len(),
            64,
            threads,
            progress,
            || reader.clone(),
            |words, range| {
                let (mut found, mut starts, mut ends) = (StringsBuf::default(), Vec::new(), Vec::new());
                for i in range {
                    words.for_each_word(texts.get(i), |word, at| {
                        found.push(word);
                        starts.push(at as u64);
                    });
                    ends.push(starts.len() as u64);
                }
                Ok((found, starts, ends))
            },
        )?;
        let (mut words, mut starts, mut indptr) = (StringsBuf::default(), Vec::new(), vec![0u64]);
        for (found, at, ends) in parts {
            let (bytes, before) = (words.blob.len() as u64, starts.len() as u64);
            words.blob.extend(found.blob);
            words.offsets.extend(found.offsets[1..].iter().map(|o| o + bytes));
            starts.extend(at);
            indptr.extend(ends.into_iter().map(|e| e + before));
        }
        Ok((words, starts, indptr))
    })?;
    Ok((strings_out(words), Out(starts), Out(indptr)))
}

/// Return (words, BLAKE3 of the list in hex) of a language's stop words.
#[pyfunction]
#[pyo3(signature = (language="english"))]
pub fn stop_words(language: &str) -> PyResult<(Vec<&'static str>, String)> {
    let stop = settled(StopWords::by_name(language))?;
    Ok((stop.list().to_vec(), stop.hash()))
}

#[pyfunction]
#[pyo3(signature = (texts, encoding="cl100k_base", threads=0, *, report=None))]
pub fn count_tokens(
    py: Python<'_>,
    texts: Packed<'_>,
    encoding: &str,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<Out<u32>> {
    let encoding = settled(Encoding::by_name(encoding))?;
    long(py, report, |progress| count_many(encoding, texts.view()?, threads, progress)).map(Out)
}

/// Splitting this many bytes into sentences takes less time than starting a thread.
const SHORT_TEXT: usize = 16_384;

#[pyfunction]
#[pyo3(signature = (text, splitter="standard", *, report=None))]
pub fn sentence_spans(
    py: Python<'_>,
    text: &str,
    splitter: &str,
    report: Report<'_, '_>,
) -> PyResult<MatrixOut<u64>> {
    let splitter = settled(Splitter::by_name(splitter))?;
    let split = |progress: &Progress| {
        let mut spans = Vec::new();
        splitter.split(text, progress, &mut spans)?;
        Ok(spans)
    };
    // A thread costs more than the sentences of a page.
    let spans: Vec<(usize, usize)> = if text.len() <= SHORT_TEXT {
        quick(py, || split(&Progress::none()))?
    } else {
        long(py, report, split)?
    };
    let ends = spans.iter().flat_map(|&(start, end)| [start as u64, end as u64]).collect();
    Ok(MatrixOut(ends, [spans.len(), 2]))
}

/// `cut` is "sentences" (at most `tokens` each, `overlap` unused) or "windows". If `language` is not english or none,
/// sentences hold as much text as `tokens` of English do.
#[pyfunction]
#[pyo3(signature = (titles, texts, cut="sentences", tokens=200, overlap=0, splits=0, encoding="cl100k_base", splitter="standard", threads=0, *, language="english", marks=None, report=None))]
pub fn corpus<'py>(
    py: Python<'py>,
    titles: Packed<'py>,
    texts: Packed<'py>,
    cut: &str,
    tokens: usize,
    overlap: usize,
    splits: u32,
    encoding: &str,
    splitter: &str,
    threads: usize,
    language: &str,
    marks: Option<Matrix<'py, u32>>,
    report: Report<'_, '_>,
) -> PyResult<Bound<'py, PyDict>> {
    let marks = marks_of(marks.as_ref())?;
    let settings = corpus_settings(cut, tokens, overlap, splits, encoding, splitter, language)?;
    let built = long(py, report, |progress| {
        build_corpus(titles.view()?, texts.view()?, marks, &settings, threads, progress)
    })?;
    let out = PyDict::new(py);
    out.set_item("chunk_doc", Out(built.chunk_doc))?;
    out.set_item("chunk_span", pairs_out(built.chunk_span))?;
    out.set_item("chunk_tokens", Out(built.chunk_tokens))?;
    out.set_item("unit_chunk", Out(built.unit_chunk))?;
    out.set_item("unit_span", pairs_out(built.unit_span))?;
    out.set_item("unit_chars", pairs_out(built.unit_chars))?;
    out.set_item("unit_tokens", Out(built.unit_tokens))?;
    out.set_item("unit_before", strings_out(built.unit_before))?;
    out.set_item("unit_after", strings_out(built.unit_after))?;
    out.set_item("unit_lines", pairs_out(built.unit_lines))?;
    let keys = built.unit_keys.len();
    out.set_item("unit_keys", MatrixOut(built.unit_keys.into_flattened(), [keys, 2]))?;
    out.set_item("sent_chunk", Out(built.sent_chunk))?;
    out.set_item("sent_unit", Out(built.sent_unit))?;
    out.set_item("sent_span", pairs_out(built.sent_span))?;
    out.set_item("sent_title", Out(built.sent_title))?;
    Ok(out)
}

/// Return the rows of `marks`: row, start, end, number of the kind, and value of each.
pub fn marks_of<'a>(marks: Option<&'a Matrix<'_, u32>>) -> PyResult<&'a [[u32; 5]]> {
    marks.map_or(Ok(&[][..]), |marks| marks.rows_of::<5>("marks"))
}

/// Return the settings by which texts are cut.
pub fn corpus_settings(
    cut: &str,
    tokens: usize,
    overlap: usize,
    splits: u32,
    encoding: &str,
    splitter: &str,
    language: &str,
) -> PyResult<CorpusSettings> {
    let language = settled(Choice::by_name(language))?;
    let cut = match cut {
        "sentences" => Cut::Sentences { max_tokens: tokens },
        "windows" => Cut::Windows { tokens, overlap },
        other => return Err(wrong(format!("cut must be sentences or windows, not {other:?}"))),
    };
    let encoding = settled(Encoding::by_name(encoding))?;
    let splitter = settled(Splitter::by_name(splitter))?;
    Ok(CorpusSettings { cut, splits, encoding, splitter, language })
}

type BlockOut = (&'static str, (usize, usize), u32, (usize, usize), (usize, usize));

/// Return the blocks of a text, those inside others after these: kind, bytes, the block around it (2^32 - 1: none), and the
/// bytes of what introduces it and of its header. Rows of `marks` are as for `corpus`, with the text 0 and offsets in bytes.
#[pyfunction]
#[pyo3(signature = (text, marks=None, *, report=None))]
pub fn text_blocks(
    py: Python<'_>,
    text: &str,
    marks: Option<Matrix<'_, u32>>,
    report: Report<'_, '_>,
) -> PyResult<Vec<BlockOut>> {
    let marks = marks.as_ref().map_or(Ok(&[][..]), |marks| marks.rows_of::<5>("marks"))?;
    let blocks = long(py, report, |progress| {
        let marks: Option<Vec<_>> = marks
            .iter()
            .map(|&[_, start, end, kind, value]| {
                let (start, end) = (start as usize, end as usize);
                let mark = Mark::numbered(kind, value)?;
                text.get(start..end).map(|_| ((start, end), mark))
            })
            .collect();
        let marks = marks.ok_or_else(|| Error::input("a mark is unknown or outside the text"))?;
        Ok(find_blocks(text, 0, &marks, progress))
    })?;
    Ok(blocks.into_iter().map(|b| (b.kind.name(), b.span, b.parent, b.lead, b.head)).collect())
}

/// Return the vocabulary of a corpus given by seven of its arrays.
#[pyfunction]
#[pyo3(signature = (titles, texts, chunk_doc, chunk_span, unit_chunk, unit_span, sent_chunk, sent_span, sent_title, stop="english", threads=0, *, report=None))]
pub fn vocabulary<'py>(
    py: Python<'py>,
    titles: Packed<'py>,
    texts: Packed<'py>,
    chunk_doc: Array<'py, u32>,
    chunk_span: Matrix<'py, u32>,
    unit_chunk: Array<'py, u32>,
    unit_span: Matrix<'py, u32>,
    sent_chunk: Array<'py, u32>,
    sent_span: Matrix<'py, u32>,
    sent_title: Array<'py, u8>,
    stop: &str,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<Bound<'py, PyDict>> {
    let stop = settled(StopWords::by_name(stop))?;
    let given = Corpus {
        chunk_doc: chunk_doc.to_vec(),
        chunk_span: chunk_span.rows_of("chunk_span")?.to_vec(),
        unit_chunk: unit_chunk.to_vec(),
        unit_span: unit_span.rows_of("unit_span")?.to_vec(),
        sent_chunk: sent_chunk.to_vec(),
        sent_span: sent_span.rows_of("sent_span")?.to_vec(),
        sent_title: sent_title.to_vec(),
        ..Corpus::default()
    };
    let built = long(py, report, |progress: &Progress| {
        build_vocabulary(titles.view()?, texts.view()?, &given, stop, threads, progress)
    })?;
    let out = PyDict::new(py);
    out.set_item("words", strings_out(built.words))?;
    out.set_item("unit_words", csr_out(built.unit_words))?;
    out.set_item("unit_counts", Out(built.unit_counts))?;
    match built.chunk_words {
        Some(own) => out.set_item("chunk_words", csr_out(own))?,
        // The same arrays: units are chunks.
        None => out.set_item("chunk_words", out.get_item("unit_words")?)?,
    }
    out.set_item("sent_words", csr_out(built.sent_words))?;
    let languages: Vec<u8> = built.chunk_language.into_iter().map(Language::number).collect();
    out.set_item("chunk_language", Out(languages))?;
    Ok(out)
}

fn numbered(languages: Vec<u8>) -> Result<Vec<Language>> {
    languages.into_iter().map(Language::numbered).collect()
}

/// Return the words of a text as the walk and BM25 see them, with repetitions: in a language, or as those of a query to
/// an index with these `languages` (their numbers).
#[pyfunction]
#[pyo3(signature = (text, language="english", *, languages=None))]
pub fn lexical_keywords(text: &str, language: &str, languages: Option<Vec<u8>>) -> PyResult<Vec<String>> {
    let language = settled(Language::by_name(language))?;
    let languages = settled(numbered(languages.unwrap_or_default()))?;
    let mut lexer = Lexer::default();
    lexer.read(text);
    let mut words = Vec::new();
    match languages.is_empty() {
        true => lexer.keywords_in(language, |word| words.push(word.to_owned())),
        false => lexer.query_keywords(&languages, |word| words.push(word.to_owned())),
    }
    Ok(words)
}

/// Return the code of the language of a text.
#[pyfunction]
pub fn detect_language(text: &str) -> &'static str {
    let mut lexer = Lexer::default();
    lexer.read(text);
    detect(lexer.lowers(0)).code()
}

/// Return codes and names of the languages, in the order of their numbers in an index.
#[pyfunction]
pub fn languages() -> Vec<(&'static str, &'static str)> {
    Language::all().collect()
}

/// A sentence and its keywords.
type Keywords = (String, Vec<String>);

/// Learnt parameters of Punkt (this class is for parity and not for speed: plain lists are passed), from the contents of NLTK's four files.
#[pyclass(frozen, module = "ketrag_fast._core")]
pub struct Punkt(Parameters);

#[pymethods]
impl Punkt {
    #[new]
    fn new(abbreviations: &str, collocations: &str, starters: &str, contexts: &str) -> PyResult<Self> {
        Parameters::parse(abbreviations, collocations, starters, contexts).map(Self).map_err(to_python)
    }

    /// Return the sentences of `text`.
    fn sentences(&self, py: Python<'_>, text: &str) -> PyResult<Vec<String>> {
        let cut = || self.0.sentences(text).into_iter().map(|s| text[s].to_owned()).collect();
        quick(py, || Ok(cut()))
    }

    /// Return the words of `text` by NLTK's `word_tokenize`.
    fn words(&self, py: Python<'_>, text: &str) -> PyResult<Vec<String>> {
        quick(py, || Ok(profiles::word_tokenize(&self.0, text)))
    }

    /// Return the words of each text by profile `published-cooccurrence`.
    #[pyo3(signature = (stop_words, texts, *, threads=0, report=None))]
    fn cooccurrence(
        &self,
        py: Python<'_>,
        stop_words: Vec<String>,
        texts: Vec<String>,
        threads: usize,
        report: Report<'_, '_>,
    ) -> PyResult<Vec<Vec<String>>> {
        let stop: HashSet<&str> = stop_words.iter().map(String::as_str).collect();
        long(py, report, |progress| {
            progress.expect(texts.len() as u64);
            map_ranges(texts.len(), 1, threads, progress, |range| {
                Ok(profiles::cooccurrence_words(&self.0, &stop, &texts[range.start]))
            })
        })
    }

    /// Return the sentences of each text by profile `published-keywords`, each with its keywords.
    #[pyo3(signature = (stop_words, texts, *, threads=0, report=None))]
    fn keywords(
        &self,
        py: Python<'_>,
        stop_words: Vec<String>,
        texts: Vec<String>,
        threads: usize,
        report: Report<'_, '_>,
    ) -> PyResult<Vec<Vec<Keywords>>> {
        let stop: HashSet<&str> = stop_words.iter().map(String::as_str).collect();
        long(py, report, |progress| {
            progress.expect(texts.len() as u64);
            map_ranges(texts.len(), 1, threads, progress, |range| {
                let sentences = profiles::keyword_sentences(&self.0, &stop, &texts[range.start]);
                Ok(sentences.into_iter().map(|s| (s.text, s.keywords)).collect())
            })
        })
    }
}

/// (kind, part as written, words or value, name of the field, excluded)
type PartOut<'a> = (&'static str, &'a str, &'a str, &'a str, bool);

/// Return the parts of a query with marks, in order; empty for plain text.
#[pyfunction]
pub fn query_parts(query: &str) -> Vec<PartOut<'_>> {
    let kind = |kind| match kind {
        Kind::Text => "text",
        Kind::Phrase => "phrase",
        Kind::Prefix => "prefix",
        Kind::Preferred => "preferred",
        Kind::Field => "field",
        Kind::Ignored => "ignored",
    };
    parse(query).into_iter().map(|one| (kind(one.kind), one.raw, one.text, one.field, one.excluded)).collect()
}
