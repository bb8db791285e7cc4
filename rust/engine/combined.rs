//! Contexts of several tables: local search over the skeleton, then a channel of texts (KET-RAG,
//! Alg. 4; 10-ketrag 1.5 and 1.6).

use super::answer::{Request, Section};
use super::modes::{by_vectors, need, pool, question_vector, silent, Mode, Scratch};
use super::Engine;
use crate::error::Result;
use crate::generation::Parts;
use crate::progress::Progress;
use crate::search::fill::split_budget;
use crate::search::local::{LocalContext, Options};
use crate::search::render::{Context, Row};
use crate::search::simd::Level;
use crate::search::vectors::{self, Filter};
use crate::sparse::{top_k, Scored};

/// Who gets what the other half leaves of the budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rollover {
    /// Nobody: each half keeps to its share, as the paper has it.
    None,
    /// The texts, which then print no unit that the tables printed.
    #[default]
    Texts,
    /// The skeleton: the texts come first, as in the published code.
    Graph,
}

/// How the tables of the skeleton are made.
#[derive(Debug, Clone, Copy)]
pub struct TableOptions {
    /// The graph's share of the budget, where a mode has two channels.
    pub share: f64,
    pub rollover: Rollover,
    /// Entities that local search begins with.
    pub entities: usize,
    /// Tables as the published code makes them.
    pub published: bool,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { share: 0.4, rollover: Rollover::default(), entities: 10, published: false }
    }
}

/// The empty lines between the two halves, which make one token.
const GAP: (&str, u64) = ("\n\n", 1);

/// A context with the score of each row and its tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Combined {
    pub context: Context,
    pub scores: Vec<f64>,
    pub sections: Vec<Section>,
    /// The skeleton is empty, and its share went to the texts.
    pub no_skeleton: bool,
    /// Nothing is near the question.
    pub silent: bool,
}

/// The context for one budget. Empty where nothing is near the question.
pub fn combine(
    engine: &Engine,
    parts: &Parts<'_>,
    request: &Request<'_>,
    budget: u64,
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<Combined> {
    let query = question_vector(parts, request)?;
    let mut out = Combined::default();
    if silent(&query) {
        out.silent = true;
        return Ok(out);
    }
    let alone = matches!(request.mode, Mode::Skeleton | Mode::MsGraph);
    let share = if alone { 1.0 } else { request.tables.share };
    let (mut graph_budget, mut text_budget) = split_budget(budget, share)?;
    let empty = need(parts.skeleton()?)?.graph.entities() == 0;
    if empty {
        out.no_skeleton = graph_budget > 0;
        if !alone {
            (graph_budget, text_budget) = (0, budget);
        }
    }
    let rollover = request.tables.rollover;
    let most = request.top.unwrap_or(usize::MAX);
    if rollover == Rollover::Graph && graph_budget > 0 && text_budget > 0 {
        let texts = texts(engine, parts, request, &query, text_budget, (most, &[]), scratch, progress)?;
        let used = texts.0.tokens + if texts.0.text.is_empty() { 0 } else { GAP.1 };
        let rows = most.saturating_sub(texts.0.rows.len());
        let graph = graph(engine, parts, request, &query, (budget - used, rows, false), scratch, progress)?;
        out.push_graph(graph);
        out.push_texts(request.mode, texts);
        return Ok(out);
    }
    if graph_budget > 0 && !empty {
        // With no texts after them, the sources are the texts.
        let sources = rollover == Rollover::Texts && text_budget == 0;
        let graph = graph(engine, parts, request, &query, (graph_budget, most, sources), scratch, progress)?;
        out.push_graph(graph);
    }
    if text_budget == 0 {
        return Ok(out);
    }
    let most = most.saturating_sub(out.context.rows.len());
    let gap = if out.context.text.is_empty() { 0 } else { GAP.1 };
    let mut printed: Vec<u32> = Vec::new();
    if rollover == Rollover::Texts {
        text_budget = budget.saturating_sub(out.context.tokens);
        printed = out.context.rows.iter().map(|row| row.unit).collect();
        printed.sort_unstable();
        printed.dedup(); // the published tables print a source more than once
    }
    if text_budget > gap {
        let texts =
            texts(engine, parts, request, &query, text_budget - gap, (most, &printed), scratch, progress)?;
        out.push_texts(request.mode, texts);
    }
    Ok(out)
}

/// The tables around the entities nearest to the question, and those entities.
fn graph(
    engine: &Engine,
    parts: &Parts<'_>,
    request: &Request<'_>,
    query: &[f32],
    (budget, most_sources, rollover): (u64, usize, bool),
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<(LocalContext, Vec<Scored>)> {
    let skeleton = need(parts.skeleton()?)?;
    let (vectors, codes) = (need(skeleton.vectors)?, skeleton.codes.as_ref());
    let (count, published) = (request.tables.entities, request.tables.published);
    let count = count.min(vectors.len());
    let nearest = match request.near.entities.filter(|near| near.len() >= count) {
        Some(near) => {
            vectors.check_query(query)?;
            Filter::Ids(near).check(vectors.len())?;
            top_k(vectors.score_many(near, query), count)
        }
        None => {
            let scratch = &mut scratch.vectors;
            vectors::top_k(&vectors, codes, query, count, Filter::All, Level::best(), scratch)?
        }
    };
    let selected: Vec<u32> = nearest.iter().map(|s| s.id).collect();
    let options = Options {
        most_sources,
        rollover,
        policy: request.policy,
        oversize: request.oversize,
        ..Options::default()
    };
    let local = engine.tables(published).search(
        &skeleton.graph,
        parts.units()?,
        &selected,
        budget,
        options,
        progress,
    )?;
    Ok((local, nearest))
}

/// The section of texts without the units `but` (ascending), with the score of each row.
fn texts(
    engine: &Engine,
    parts: &Parts<'_>,
    request: &Request<'_>,
    query: &[f32],
    budget: u64,
    (most, but): (usize, &[u32]),
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<(Context, Vec<f64>)> {
    let renderer = engine.renderer(Mode::Keyword, request.published);
    let most = most.min(parts.len() - but.len());
    let free = |s: &Scored| but.binary_search(&s.id).is_err();
    let mut wanted = most.min((budget / 40).max(64) as usize);
    loop {
        progress.check()?;
        let ranked: Vec<Scored> = if request.mode == Mode::Hybrid {
            let mut ranked = by_vectors(parts, query, request.near.texts, wanted + but.len(), scratch)?;
            ranked.retain(free);
            ranked.truncate(wanted);
            ranked
        } else {
            let pool = pool(&need(parts.keywords()?)?, query, budget, request, scratch)?;
            let ranked = pool.units.iter().map(|p| Scored { id: p.unit, score: p.score });
            ranked.filter(free).take(most).collect()
        };
        let ids: Vec<u32> = ranked.iter().map(|s| s.id).collect();
        let context = renderer.render(parts.units()?, &ids, budget, request.policy, request.oversize)?;
        if request.mode == Mode::Hybrid && wanted < most && context.rows.len() == ranked.len() {
            wanted = wanted.saturating_mul(8).min(most);
            continue;
        }
        let mut rest = ranked.iter();
        let score = |row: &Row| rest.find(|s| s.id == row.unit).map_or(f64::NAN, |s| s.score);
        let scores = context.rows.iter().map(score).collect();
        return Ok((context, scores));
    }
}

impl Combined {
    fn push_graph(&mut self, (local, nearest): (LocalContext, Vec<Scored>)) {
        self.context = Context { text: local.text, tokens: local.tokens, rows: local.sources };
        self.scores = local.brought_by.iter().map(|&place| nearest[place].score).collect();
        self.sections = local
            .sections
            .iter()
            .map(|s| Section { name: s.name, channel: "kg", tokens: s.tokens, start: s.start, end: s.end })
            .collect();
    }

    fn push_texts(&mut self, mode: Mode, (texts, scores): (Context, Vec<f64>)) {
        if texts.text.is_empty() {
            return;
        }
        let mut tokens = texts.tokens;
        if !self.context.text.is_empty() {
            self.context.text.push_str(GAP.0);
            tokens += GAP.1;
        }
        let start = self.context.text.len();
        self.context.text.push_str(&texts.text);
        self.context.tokens += tokens;
        let rows = texts.rows.iter().map(|r| Row { start: r.start + start, end: r.end + start, ..*r });
        self.context.rows.extend(rows);
        self.scores.extend(scores);
        let channel = if mode == Mode::Hybrid { "text" } else { "keyword" };
        self.sections.push(Section { name: "text", channel, tokens, start, end: self.context.text.len() });
    }
}
