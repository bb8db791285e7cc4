//! Bindings of the reference implementations' tokenisers. They are for parity, not for speed: plain lists are
//! passed.

use super::door::{long, quick, to_python};
use ketrag_base::parallel::map_ranges;
use ketrag_text::published as profiles;
use ketrag_text::punkt::Parameters;
use pyo3::prelude::*;
use std::collections::HashSet;

/// Learnt parameters of Punkt, from the contents of NLTK's four files.
#[pyclass(frozen, module = "ketrag_fast._core")]
struct Punkt(Parameters);

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
        report: Option<&Bound<'_, PyAny>>,
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
    #[allow(clippy::type_complexity)]
    fn keywords(
        &self,
        py: Python<'_>,
        stop_words: Vec<String>,
        texts: Vec<String>,
        threads: usize,
        report: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Vec<(String, Vec<String>)>>> {
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

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Punkt>()?;
    Ok(())
}
