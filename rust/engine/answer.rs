//! From a question to printed contexts: rank once, fill each budget.

use super::combined::{combine, TableOptions};
use super::modes::{self, Mode, Scratch};
use super::Engine;
use crate::error::{Error, Result};
use crate::generation::Parts;
use crate::progress::Progress;
use crate::search::fill::{FillPolicy, OversizePolicy};
use crate::search::render::{Context, Row};

/// What approximate searches found near the question's vector, each strictly ascending. It is scored
/// exactly; where it does not suffice, everything is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Near<'a> {
    /// Units for `text` and `hybrid`, keywords for `keyword` and `ket`.
    pub texts: Option<&'a [u32]>,
    /// Entities, for the modes of the skeleton.
    pub entities: Option<&'a [u32]>,
}

/// One question. The ranking is made once and printed for each of `budgets`.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub question: &'a str,
    /// The question's vector from the index's embedder; `None` where that is the built-in one.
    pub vector: Option<&'a [f32]>,
    pub near: Near<'a>,
    pub mode: Mode,
    pub budgets: &'a [u64],
    /// At most so many passages.
    pub top: Option<usize>,
    pub policy: FillPolicy,
    pub oversize: OversizePolicy,
    /// At most so many keywords bring in units.
    pub most_seeds: Option<usize>,
    /// Rows are counted as a whole and printed as the published code does, where it prints that mode.
    pub published: bool,
    pub tables: TableOptions,
}

/// One table of a context: its bytes in the text, and the channel that filled it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    pub name: &'static str,
    pub channel: &'static str,
    pub tokens: u64,
    pub start: usize,
    pub end: usize,
}

/// What a question gets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// Why there is nothing: `empty_index` or `no_match`.
    pub reason: Option<&'static str>,
    /// One for each budget, in order.
    pub contexts: Vec<Context>,
    /// The score of each row of each context.
    pub scores: Vec<Vec<f64>>,
    /// The tables of each context, in order; none where it is empty.
    pub sections: Vec<Vec<Section>>,
    /// The skeleton is empty, and its share of the budget went to the other channel.
    pub no_skeleton: bool,
}

/// Rows asked for at first: enough for most budgets. Most units cost more than this many tokens.
const LEAST_RANKED: u64 = 64;
const USUAL_TOKENS: u64 = 40;

pub fn answer(
    engine: &Engine,
    parts: &Parts<'_>,
    request: &Request<'_>,
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<Reply> {
    if parts.is_empty() {
        return Ok(nothing(request, "empty_index"));
    }
    if let Some(missing) = request.mode.missing(parts) {
        return Err(Error::input(format!("mode {} needs {missing}", request.mode.name())));
    }
    let mut reply = Reply::default();
    if request.mode.is_combined() {
        for &budget in request.budgets {
            let combined = combine(engine, parts, request, budget, scratch, progress)?;
            if combined.context.text.is_empty() && budget > 0 && combined.silent {
                reply.reason = Some("no_match");
            }
            reply.no_skeleton |= combined.no_skeleton;
            reply.contexts.push(combined.context);
            reply.scores.push(combined.scores);
            reply.sections.push(combined.sections);
        }
    } else if request.mode.depends_on_budget() {
        for i in 0..request.budgets.len() {
            one_ranking(engine, parts, request, &request.budgets[i..=i], scratch, progress, &mut reply)?;
        }
    } else {
        one_ranking(engine, parts, request, request.budgets, scratch, progress, &mut reply)?;
    }
    Ok(reply)
}

/// Ranks once and prints a context for each of `budgets`.
#[allow(clippy::too_many_arguments)]
fn one_ranking(
    engine: &Engine,
    parts: &Parts<'_>,
    request: &Request<'_>,
    budgets: &[u64],
    scratch: &mut Scratch,
    progress: &Progress,
    reply: &mut Reply,
) -> Result<()> {
    let largest = budgets.iter().copied().max().unwrap_or(0);
    let most = request.top.unwrap_or(usize::MAX).min(parts.len());
    let mut wanted = (largest / USUAL_TOKENS).max(LEAST_RANKED).min(most as u64) as usize;
    loop {
        let ranked = modes::rank(parts, request, largest, wanted, scratch, progress)?;
        // Where the budget makes the pool, no budget at all says nothing about the question.
        if ranked.is_empty() && most > 0 && largest > 0 {
            reply.reason = Some("no_match");
        }
        let ids: Vec<u32> = ranked.iter().map(|s| s.id).collect();
        let renderer = engine.renderer(request.mode, request.published);
        let units = parts.units()?;
        let printed = budgets
            .iter()
            .map(|&budget| renderer.render(units, &ids, budget, request.policy, request.oversize))
            .collect::<Result<Vec<_>>>()?;
        // A list that was used up although more units exist is made anew, longer.
        let used_up = printed.iter().any(|context| context.rows.len() == ranked.len());
        if wanted < most && ranked.len() == wanted && used_up {
            wanted = wanted.saturating_mul(8).min(most);
            continue;
        }
        for context in printed {
            // Rows keep the order of the ranking, so one pass finds their scores.
            let mut rest = ranked.iter();
            let score = |row: &Row| rest.find(|s| s.id == row.unit).map_or(f64::NAN, |s| s.score);
            reply.scores.push(context.rows.iter().map(score).collect());
            let (tokens, end) = (context.tokens, context.text.len());
            let whole = Section { name: "sources", channel: request.mode.name(), tokens, start: 0, end };
            reply.sections.push(if end == 0 { Vec::new() } else { vec![whole] });
            reply.contexts.push(context);
        }
        return Ok(());
    }
}

fn nothing(request: &Request<'_>, reason: &'static str) -> Reply {
    let n = request.budgets.len();
    Reply {
        reason: Some(reason),
        contexts: vec![Context::default(); n],
        scores: vec![Vec::new(); n],
        sections: vec![Vec::new(); n],
        no_skeleton: false,
    }
}
