//! Search in a citation graph (LeSeGR, CG-RAG): the vector similarity between query and text is passed along
//! the edges and weighted by keyword matches.

use super::messages::{self, pass, Carried, Graph};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::rank::links_view::LinksView;
use crate::rank::matches::{Matches, Sought};
use crate::sparse::{leaves, Leaders, Mask, Scored};
use crate::text::lexical::Lexer;
use crate::vector::bytes;
use crate::vector::simd::Level;
use crate::vector::{reference_dots_with, Rows};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Number of rows of vectors that are multiplied together.
const BLOCK: usize = 256;
/// Number of subsets of the four kinds of edges.
const ALL_KINDS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Weight of the messages of a text without any keyword of the query.
    pub epsilon: f64,
    pub messages: messages::Settings,
    /// The kinds of edges that pass messages.
    pub kinds: u8,
}

/// The parts of an index that a query reads.
#[derive(Clone, Copy)]
pub struct CitedIndex<'a> {
    vectors: Rows<'a>,
    links: &'a LinksView<'a>,
    graph: &'a CitedGraph<'a>,
}

/// The graph, and the edges of each subset of kinds, computed when a query first needs them.
pub struct CitedGraph<'a> {
    graph: Graph<'a>,
    carried: [OnceLock<Carried>; ALL_KINDS],
}

impl<'a> CitedGraph<'a> {
    pub fn new(graph: Graph<'a>) -> Self {
        Self { graph, carried: Default::default() }
    }

    /// If two threads compute the edges, the first result is used.
    fn carried(&self, kinds: u8) -> Result<&Carried> {
        let kinds = usize::from(kinds) % ALL_KINDS;
        match self.carried[kinds].get() {
            Some(made) => Ok(made),
            None => {
                let made = Carried::new(self.graph, kinds as u8)?;
                Ok(self.carried[kinds].get_or_init(|| made))
            }
        }
    }
}

/// Buffers of one thread.
#[derive(Debug, Default)]
pub struct Buffers {
    codes: bytes::Query,
    products: Vec<i32>,
    lexer: Lexer,
    matches: Matches,
    weights: Vec<f64>,
    state: Vec<f64>,
    messages: messages::Buffers,
}

impl<'a> CitedIndex<'a> {
    /// Check that all parts have the same number of texts.
    pub fn new(vectors: Rows<'a>, links: &'a LinksView<'a>, graph: &'a CitedGraph<'a>) -> Result<Self> {
        let n = vectors.len();
        if links.units() != n || graph.graph.len() != n {
            return Err(Error::input(format!(
                "{n} vectors, {} texts with words and {} in the graph",
                links.units(),
                graph.graph.len()
            )));
        }
        Ok(Self { vectors, links, graph })
    }

    /// Return the best `wanted` texts that pass the filter, for a query and its vector, best first. All texts
    /// send messages, including those that do not pass.
    #[allow(clippy::too_many_arguments)] // the query, the selection and the buffers
    pub fn search(
        &self,
        question: &str,
        vector: &[f32],
        options: &Options,
        wanted: usize,
        mask: Option<&Mask>,
        buffers: &mut Buffers,
        progress: &Progress,
    ) -> Result<Vec<Scored>> {
        if !(0.0..=1.0).contains(&options.epsilon) {
            return Err(Error::input(format!("epsilon must be between 0 and 1, not {}", options.epsilon)));
        }
        self.near(vector, buffers)?;
        self.words(question, options.epsilon, buffers, progress)?;
        let Buffers { weights, state, messages, .. } = buffers;
        let carried = self.graph.carried(options.kinds)?;
        pass(carried, weights, state, &options.messages, messages, progress)?;
        let mut best = Leaders::new(wanted);
        for (id, &score) in (0u32..).zip(state.iter()).filter(|one| leaves(mask, one.0)) {
            best.push(Scored { id, score });
        }
        Ok(best.finish())
    }

    /// Compute `buffers.state`, the similarity of the query to each text. With byte codes these are integer
    /// products, the same on every machine, with an error of at most a few thousandths.
    fn near(&self, vector: &[f32], buffers: &mut Buffers) -> Result<()> {
        let Buffers { codes, products, state, .. } = buffers;
        let n = self.vectors.len();
        let length = self.vectors.check_query(vector)?;
        state.clear();
        state.resize(n, 0.0);
        match &self.vectors {
            Rows::Floats(vectors, None) => reference_dots_with(vectors.rows(0..n), vector, state),
            Rows::Floats(vectors, Some(quantised)) => {
                let coded = quantised.code_query(vector, length, vectors.norm(), codes);
                products.resize(BLOCK, 0);
                for (start, state) in (0..n).step_by(BLOCK).zip(state.chunks_mut(BLOCK)) {
                    let (rows, out) = (start..start + state.len(), &mut products[..state.len()]);
                    quantised.dots(Level::best(), codes, rows.clone(), out);
                    for ((state, &product), id) in state.iter_mut().zip(&*out).zip(rows) {
                        *state = quantised.bounds(&coded, id, product).0;
                    }
                }
            }
            Rows::Coded(_) => self.vectors.ask(vector)?.scores(0..n, state),
        }
        Ok(())
    }

    /// Compute `buffers.weights`, the factor of each text's messages. It is `epsilon` for a text without the
    /// query's keywords and 1 for the best BM25 match. All factors are 1 if no text matches.
    fn words(&self, question: &str, epsilon: f64, buffers: &mut Buffers, progress: &Progress) -> Result<()> {
        let Buffers { lexer, matches, weights, .. } = buffers;
        let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
        lexer.read(question);
        lexer.query_keywords(self.links.languages(), |word| {
            if let Some(id) = self.links.keywords.position(word) {
                *counts.entry(id as u32).or_default() += 1.0;
            }
        });
        let (ids, times): (Vec<u32>, Vec<f64>) = counts.into_iter().unzip();
        let sought = Sought::Keywords { links: self.links, keywords: &ids, shares: Some(&times) };
        matches.find(sought, progress)?;
        let most = matches.groups().fold(0.0f64, |most, group| most.max(group.0));
        weights.clear();
        if most <= 0.0 {
            weights.resize(self.vectors.len(), 1.0);
            return Ok(());
        }
        weights.resize(self.vectors.len(), epsilon);
        for (unit, score) in matches.iter() {
            weights[unit as usize] = epsilon + (1.0 - epsilon) * (score / most);
        }
        Ok(())
    }

    /// For each of `texts`, return at most `most` neighbours with the strongest messages in the last layer,
    /// with their kinds and shares, strongest first.
    pub fn senders(
        &self,
        (question, vector): (&str, &[f32]),
        options: &Options,
        texts: &[u32],
        most: usize,
        buffers: &mut Buffers,
        progress: &Progress,
    ) -> Result<Vec<Vec<(u8, Scored)>>> {
        if let Some(text) = texts.iter().find(|&&text| text as usize >= self.graph.graph.len()) {
            return Err(Error::input(format!("text {text} does not exist")));
        }
        self.near(vector, buffers)?;
        self.words(question, options.epsilon, buffers, progress)?;
        let Buffers { weights, state, messages, .. } = buffers;
        let before =
            messages::Settings { layers: options.messages.layers.saturating_sub(1), ..options.messages };
        let carried = self.graph.carried(options.kinds)?;
        pass(carried, weights, state, &before, messages, progress)?;
        let wanted = options.kinds;
        let of = |&text: &u32| {
            let edges = self.graph.graph.into_text(text as usize).filter(|edge| edge.1 & wanted != 0);
            let mut sent: Vec<(u8, Scored)> = edges
                .map(|(id, kind, alpha)| {
                    let score = alpha * state[id as usize];
                    (kind & wanted, Scored { id, score })
                })
                .collect();
            let count = (sent.len() + 1) as f64;
            sent.iter_mut().for_each(|(_, s)| s.score /= count);
            sent.sort_by(|a, b| crate::sparse::rank_order(&a.1, &b.1));
            sent.truncate(most);
            sent
        };
        Ok(texts.iter().map(of).collect())
    }
}
