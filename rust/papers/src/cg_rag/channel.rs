//! The channel of CG-RAG: propagates vector similarity along citations, references and neighbouring texts,
//! and combines it with keyword matches.

use super::cited::{Buffers, CitedGraph, CitedIndex, Options as Search};
use super::messages::{Graph, Settings, ADJACENT, CITED, CITING, REFERENCE};
use crate::channels::{need, silent, Channel, Options, Query, Scratch};
use crate::error::{Error, Result};
use crate::generation::{damaged, once, Arrays, Parts};
use crate::progress::Progress;
use crate::rank::walk::explain::{Bridge, Kind, Reason, Step};
use crate::sparse::{CsrView, Scored};
use std::sync::OnceLock;

/// The channel over the graph of citations, references and neighbours.
pub struct Cited<'a> {
    arrays: &'a Arrays,
    graph: OnceLock<CitedGraph<'a>>,
}

/// Rounds of message passing, as in the paper.
const LAYERS: usize = 2;
/// The weight of a text without any keyword of the query: with a model's vectors, and with vectors fitted to
/// the corpus, which are weaker evidence. Chosen on the development half of the technical documentation.
const EPSILON: f64 = 0.6;
const EPSILON_FITTED: f64 = 0.1;
const DIRECTIONS: [&str; 4] = ["cited_to_citing", "citing_to_cited", "both", "none"];

impl<'a> Cited<'a> {
    pub fn new(arrays: &'a Arrays) -> Self {
        Self { arrays, graph: OnceLock::new() }
    }

    fn options(&self, options: &Options, parts: Option<&Parts<'_>>) -> Result<Search> {
        let name = self.name();
        let between = match options.choice(name, "citation_direction", &DIRECTIONS)? {
            "cited_to_citing" => CITED,
            "citing_to_cited" => CITING,
            "both" => CITED | CITING,
            _ => 0,
        };
        let usual = if parts.is_some_and(Parts::has_space) { EPSILON_FITTED } else { EPSILON };
        Ok(Search {
            epsilon: options.real_or_none(name, "lesegr_epsilon")?.unwrap_or(usual),
            messages: Settings { share: options.real(name, "lesegr_share")?, layers: LAYERS },
            kinds: ADJACENT | REFERENCE | between,
        })
    }

    fn index<'q>(&'q self, query: &'q Query<'_, '_>) -> Result<CitedIndex<'q>> {
        let parts = query.parts;
        let graph = once(&self.graph, || cited_graph(self.arrays, parts.len()))?;
        CitedIndex::new(need(parts.unit_vectors()?)?, need(parts.links()?)?, graph)
    }
}

impl Channel for Cited<'_> {
    fn name(&self) -> &str {
        "cg-rag"
    }

    fn missing(&self, parts: &Parts<'_>) -> Option<&'static str> {
        let vectors = (!parts.has_vectors()).then_some("vectors of the units (stage vectors)");
        let words = (!parts.has_links()).then_some("the word index (stage links)");
        let graph = (!self.arrays.has("citation_graph.edges_indptr"))
            .then_some("the graph of citations (stage citation_graph)");
        vectors.or(words).or(graph)
    }

    fn check(&self, options: &Options, _alone: bool) -> Result<()> {
        self.options(options, None).map(drop)
    }

    fn rank(
        &self,
        query: &Query<'_, '_>,
        wanted: usize,
        _budget: u64,
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Scored>> {
        let vector = query.vector()?;
        if silent(vector) {
            return Ok(Vec::new());
        }
        let options = self.options(query.options, Some(query.parts))?;
        let buffers = scratch.of::<Buffers>();
        self.index(query)?
            .search(query.question.text, vector, &options, wanted, query.mask, buffers, progress)
    }

    /// Return the neighbour that sends the strongest message.
    fn explain(&self, query: &Query<'_, '_>, units: &[u32], progress: &Progress) -> Result<Vec<Reason>> {
        let vector = query.vector()?;
        if silent(vector) {
            return Ok(Vec::new());
        }
        let options = self.options(query.options, Some(query.parts))?;
        let text = query.question.text;
        let mut buffers = Buffers::default();
        let sent = self.index(query)?.senders((text, vector), &options, units, 1, &mut buffers, progress)?;
        let reason = |sent: Vec<(u8, Scored)>| {
            let strongest = sent.into_iter().next().filter(|(_, s)| s.score > 0.0);
            let partner =
                strongest.map(|(kinds, s)| Step { unit: s.id, worth: s.score, bridges: told(kinds) });
            Reason { partner, chain: None }
        };
        Ok(sent.into_iter().map(reason).collect())
    }
}

/// Return the links between a text and its neighbour, as seen from the text.
fn told(kinds: u8) -> Vec<Bridge> {
    let all =
        [(CITED, Kind::Cites), (CITING, Kind::Cited), (REFERENCE, Kind::Refers), (ADJACENT, Kind::Follows)];
    let held = all.into_iter().filter(|(bit, _)| kinds & bit != 0);
    held.map(|(_, kind)| Bridge { kind, text: String::new(), units: 0, rarity: 0.0 }).collect()
}

/// A query reads the whole graph, so it is verified in full.
fn cited_graph(arrays: &Arrays, units: usize) -> Result<CitedGraph<'_>> {
    let indptr = arrays.exactly::<u64>("citation_graph.edges_indptr", units + 1)?;
    let indices = arrays.values::<u32>("citation_graph.edges_indices")?;
    let edges = match arrays.by_blocks() {
        true => CsrView::stored(indptr.into(), indices.into(), units),
        false => CsrView::new(indptr, indices, units),
    };
    let edges = edges.map_err(|e| damaged("citation_graph.edges", e))?;
    let kinds = arrays.exactly::<u8>("citation_graph.edge_kind", indices.len())?;
    let alphas = arrays.exactly::<f32>("citation_graph.edge_alpha", indices.len())?;
    if !arrays.by_blocks() && alphas.iter().any(|alpha| !(0.0..=1.0).contains(alpha)) {
        return Err(Error::damaged("citation_graph.edge_alpha is not between 0 and 1"));
    }
    let graph = Graph::new(edges, kinds, alphas).map_err(|e| damaged("citation_graph", e))?;
    Ok(CitedGraph::new(graph))
}
