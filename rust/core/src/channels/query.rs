//! One query as the channels see it, with lazily computed parts that they share.

use super::options::Options;
use crate::error::{Error, Result};
use crate::generation::Parts;
use crate::rank::function_words;
use crate::rank::relevance::{Evidence, Judge};
use crate::rank::terms::{QueryTerms, Weighed};
use crate::search::fill::{FillPolicy, OversizePolicy};
use crate::search::render::{Renderer, Style};
use crate::sparse::Mask;
use crate::text::bpe::Encoding;
use crate::vector::reference_dot;
use std::cell::OnceCell;
use std::sync::LazyLock;

/// Printers of rows for one encoding. They are reused between queries because they count the
/// tokens of row marks only once.
pub struct Printers {
    encoding: Encoding,
    cited: Renderer<Encoding>,
    ket: Renderer<Encoding>,
    published: Renderer<Encoding>,
}

impl Printers {
    /// Return the printers of an encoding. They hold only numbers of tokens, so all indexes share them.
    pub fn of(encoding: Encoding) -> &'static Self {
        static CL100K: LazyLock<Printers> = LazyLock::new(|| Printers::new(Encoding::Cl100k));
        static O200K: LazyLock<Printers> = LazyLock::new(|| Printers::new(Encoding::O200k));
        match encoding {
            Encoding::Cl100k => &CL100K,
            Encoding::O200k => &O200K,
        }
    }

    fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            cited: Renderer::new(encoding, Style::Cited),
            ket: Renderer::new(encoding, Style::Ket),
            published: Renderer::new(encoding, Style::Published),
        }
    }

    /// Return the encoding in which tokens are counted.
    pub fn encoding(&self) -> &Encoding {
        &self.encoding
    }

    /// Return the printer of ranked units. Styles of sources belong to the printer of tables.
    pub fn rows(&self, style: Style) -> Result<&Renderer<Encoding>> {
        match style {
            Style::Cited => Ok(&self.cited),
            Style::Ket => Ok(&self.ket),
            Style::Published => Ok(&self.published),
            Style::Sources | Style::PublishedSources => {
                Err(Error::Internal("sources are printed with their tables only".into()))
            }
        }
    }
}

/// Units, best first, ranked by a function of the caller that replaces the channel with this name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranking<'a> {
    pub channel: &'a str,
    pub ids: &'a [u32],
    pub scores: &'a [f64],
}

/// A query and the optional inputs from the caller. The lists are short, so lookups are linear.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question<'a> {
    pub text: &'a str,
    /// The query's vector from the index's embedder; `None` if the embedder is the built-in one.
    pub vector: Option<&'a [f32]>,
    /// The query's terms, if the index has learned weights.
    pub terms: Option<QueryTerms<'a>>,
    /// Candidates of approximate searches by list name, strictly ascending. They are scored exactly. If they
    /// are not enough, all vectors are scored.
    pub near: &'a [(&'a str, &'a [u32])],
    /// Rankings supplied by the caller.
    pub given: &'a [Ranking<'a>],
}

/// A query to one index, with everything that its channels need.
pub struct Query<'a, 'p> {
    /// The mode's name, for messages.
    pub mode: &'a str,
    pub question: Question<'a>,
    pub parts: &'a Parts<'p>,
    pub printers: &'a Printers,
    pub options: &'a Options,
    pub policy: FillPolicy,
    pub oversize: OversizePolicy,
    /// If set, only these units may be printed. Other units may still lead to them.
    pub mask: Option<&'a Mask>,
    /// Whether only one of several copies is printed and neighbouring units are printed as one passage.
    pub once: bool,
    /// Units that are less relevant are not printed.
    pub min_score: f64,
    fitted: OnceCell<Vec<f32>>,
}

impl<'a, 'p> Query<'a, 'p> {
    pub fn new(
        mode: &'a str,
        question: Question<'a>,
        parts: &'a Parts<'p>,
        printers: &'a Printers,
        options: &'a Options,
        (policy, oversize): (FillPolicy, OversizePolicy),
        mask: Option<&'a Mask>,
    ) -> Self {
        let (once, min_score, fitted) = (false, 0.0, OnceCell::new());
        Self { mode, question, parts, printers, options, policy, oversize, mask, once, min_score, fitted }
    }

    /// Return the query's vector, from the caller or from the vectors fitted on the corpus.
    pub fn vector(&self) -> Result<&[f32]> {
        if let Some(vector) = self.question.vector {
            return Ok(vector);
        }
        if let Some(vector) = self.fitted.get() {
            return Ok(vector);
        }
        let space = self.parts.space()?;
        let missing = || Error::input(format!("mode {} needs the question's vector", self.mode));
        let vector = space.ok_or_else(missing)?.embed(self.question.text)?;
        Ok(self.fitted.get_or_init(|| vector))
    }

    /// Return the learned weights of the index and of the query, if the index has them. Errors: the caller
    /// did not supply the weights of the query's terms.
    pub fn weighed(&self) -> Result<Option<Weighed<'_>>> {
        let Some(postings) = self.parts.terms()? else { return Ok(None) };
        let missing =
            || Error::input(format!("mode {} needs the weights of the question's terms", self.mode));
        let query = self.question.terms.ok_or_else(missing)?;
        query.check(postings.units.rows())?;
        Ok(Some(Weighed { postings, query }))
    }

    /// Return the candidates of an approximate search in the list `name`.
    pub fn near(&self, name: &str) -> Option<&'a [u32]> {
        self.question.near.iter().find(|near| near.0 == name).map(|near| near.1)
    }
}

/// Return the evidence about a query and each of the given units. It is `None` for a unit that does not
/// exist, such as a graph node, and for all units if the index has neither links nor vectors of a model.
pub fn evidence(parts: &Parts<'_>, question: Question<'_>, units: &[u32]) -> Result<Vec<Option<Evidence>>> {
    let judge = parts.links()?.filter(|links| !function_words::are_all(question.text, links.languages()));
    let judge = judge.map(|links| Judge::new(links, question.text));
    let rows = question.vector.map_or(Ok(None), |_| parts.unit_vectors())?;
    let near = match rows.zip(question.vector) {
        Some((rows, query)) => Some((rows.ask(query)?, reference_dot(query, query).sqrt())),
        None => None,
    };
    let is_known = judge.is_some() || near.is_some();
    let one = |&unit: &u32| {
        let words = || judge.as_ref().map_or_else(Evidence::default, |judge| judge.evidence(unit));
        let cosine = || near.as_ref().map(|(asked, length)| asked.near(unit) / length.max(f64::MIN_POSITIVE));
        (is_known && (unit as usize) < parts.len()).then(|| Evidence { cosine: cosine(), ..words() })
    };
    Ok(units.iter().map(one).collect())
}

/// Return whether a vector is zero. A zero vector is not similar to anything, so nothing matches. Ranking by
/// it would return the first ids.
pub fn silent(vector: &[f32]) -> bool {
    vector.iter().all(|&x| x == 0.0)
}

/// Return a part that was checked to exist before the channel ran.
pub fn need<T>(part: Option<T>) -> Result<T> {
    part.ok_or_else(|| Error::Internal("a channel ran without a part of the index that it needs".into()))
}
