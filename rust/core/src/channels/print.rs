//! Printing of a channel: one section per budget, from a single ranking of the units.

use super::query::{evidence, Query};
use crate::error::Result;
use crate::progress::Progress;
use crate::rank::relevance::falling;
use crate::search::copies::{distinct, Distinct};
use crate::search::render::{Context, Row, Style};
use crate::sparse::Scored;

/// One table of a context: its byte range in the text, and the channel that filled it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub name: &'static str,
    pub channel: String,
    pub tokens: u64,
    pub start: usize,
    pub end: usize,
}

/// The space that a channel may print into.
#[derive(Debug, Clone, Copy, Default)]
pub struct Room<'a> {
    /// Token budgets. One section is printed for each.
    pub budgets: &'a [u64],
    /// Maximum number of units.
    pub units: usize,
    /// Units that are already printed, strictly ascending.
    pub without: &'a [u32],
    /// Whether the channel has the whole context.
    pub alone: bool,
    /// Whether neighbouring units may be printed as one passage.
    pub joined: bool,
    /// Whether unused tokens of one table may be used by another table of the channel.
    pub rollover: bool,
}

/// A printed section with the score of each row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Printed {
    pub context: Context,
    pub scores: Vec<f64>,
    /// The relevance of each row, from 0 to 1, never rising.
    pub relevance: Vec<f64>,
    /// Passages were found, but none is relevant enough to answer the query.
    pub nothing_fits: bool,
    pub sections: Vec<Section>,
    /// For a channel that prints nodes of a graph: the node of each row, or `u32::MAX` if the row is a unit.
    /// A row that is not a unit has the unit `u32::MAX`. Empty if all rows are units.
    pub nodes: Vec<u32>,
    /// (printed unit, an equal or nearly equal unit that is omitted).
    pub copies: Vec<(u32, u32)>,
    /// Nothing matches the query, regardless of the budget.
    pub no_match: bool,
    /// Units were ranked, but none reaches the requested relevance.
    pub below_min_score: bool,
}

/// How a ranked list is printed.
#[derive(Debug, Clone, Copy)]
pub struct List<'a> {
    pub channel: &'a str,
    pub style: Style,
    /// Whether the ranking depends on the budget.
    pub each_budget: bool,
}

/// Number of units ranked at first. It is enough for most budgets, because most units cost more tokens than
/// this.
const LEAST_RANKED: u64 = 64;
const USUAL_TOKENS: u64 = 40;

/// Print the units that `rank(wanted, budget)` returns for each budget. If a list is used up before the
/// budget, `rank` is called again with a larger `wanted`.
pub fn print_ranked(
    query: &Query<'_, '_>,
    room: &Room<'_>,
    list: List<'_>,
    progress: &Progress,
    rank: &mut dyn FnMut(usize, u64) -> Result<Vec<Scored>>,
) -> Result<Vec<Printed>> {
    if !list.each_budget {
        return one_ranking(query, room, room.budgets, list, progress, rank);
    }
    let mut all = Vec::with_capacity(room.budgets.len());
    for budget in room.budgets.chunks(1) {
        all.extend(one_ranking(query, room, budget, list, progress, rank)?);
    }
    Ok(all)
}

fn one_ranking(
    query: &Query<'_, '_>,
    room: &Room<'_>,
    budgets: &[u64],
    list: List<'_>,
    progress: &Progress,
    rank: &mut dyn FnMut(usize, u64) -> Result<Vec<Scored>>,
) -> Result<Vec<Printed>> {
    let parts = query.parts;
    let renderer = query.printers.rows(list.style)?;
    let units = parts.units()?;
    let copies = if query.once { parts.copies()? } else { None };
    let is_joined = query.once && room.joined && list.style == Style::Cited;
    let largest = budgets.iter().copied().max().unwrap_or(0);
    let there = query.mask.map_or(parts.len(), |mask| mask.count()).saturating_sub(room.without.len());
    // Copies are not counted.
    let most = if copies.is_some() { there } else { there.min(room.units) };
    let mut wanted = (largest / USUAL_TOKENS).max(LEAST_RANKED).min(most as u64) as usize;
    loop {
        progress.check()?;
        let asked = wanted + room.without.len();
        let mut ranked = rank(asked, largest)?;
        // If the budget determines the pool, an empty budget does not show whether the query matches.
        let no_match = ranked.is_empty() && most.min(room.units) > 0 && largest > 0;
        let exhausted = ranked.len() < asked;
        ranked.retain(|s| room.without.binary_search(&s.id).is_err());
        ranked.truncate(wanted);
        let found = match copies {
            Some(copies) => distinct(ranked, room.without, copies),
            None => Distinct { ranked, copies: Vec::new() },
        };
        let mut ids: Vec<u32> = found.ranked.iter().take(room.units).map(|s| s.id).collect();
        let (mut exhausted, mut below_min_score) = (exhausted, false);
        if query.min_score > 0.0 {
            let relevance = falling(evidence(query.parts, query.question, &ids)?);
            let kept = relevance.partition_point(|&relevance| relevance >= query.min_score);
            exhausted |= kept < ids.len();
            below_min_score = kept == 0 && !ids.is_empty();
            ids.truncate(kept);
        }
        let (policy, oversize) = (query.policy, query.oversize);
        let printed = budgets.iter().map(|&budget| match is_joined {
            true => renderer.render_joined(units, &ids, budget, policy, oversize),
            false => renderer.render(units, &ids, budget, policy, oversize),
        });
        let printed = printed.collect::<Result<Vec<_>>>()?;
        // If a list was used up although more units exist, rank again for a longer list.
        let used = |context: &Context| context.rows.iter().map(|row| row.count as usize).sum::<usize>();
        let wants_more = |context| used(context) == ids.len() && ids.len() < room.units;
        if wanted < most && !exhausted && printed.iter().any(wants_more) {
            wanted = wanted.saturating_mul(8).min(most);
            continue;
        }
        let section = |context| Printed {
            no_match,
            below_min_score,
            ..with_scores(context, &found, room, list.channel)
        };
        return Ok(printed.into_iter().map(section).collect());
    }
}

fn with_scores(context: Context, found: &Distinct, room: &Room<'_>, channel: &str) -> Printed {
    // Rows are in the order of the ranking, so one pass finds their scores.
    let mut rest = found.ranked.iter();
    let score = |row: &Row| rest.find(|s| s.id == row.unit).map_or(f64::NAN, |s| s.score);
    let scores = context.rows.iter().map(score).collect();
    let is_printed = |unit: u32| {
        let holds = |row: &Row| row.first <= unit && unit - row.first < row.count;
        room.without.binary_search(&unit).is_ok() || context.rows.iter().any(holds)
    };
    let copies = found.copies.iter().copied().filter(|&(unit, _)| is_printed(unit)).collect();
    let (tokens, end) = (context.tokens, context.text.len());
    let name = if room.alone { "sources" } else { "text" };
    let whole = Section { name, channel: channel.to_owned(), tokens, start: 0, end };
    let sections = if end == 0 { Vec::new() } else { vec![whole] };
    Printed { context, scores, sections, copies, ..Printed::default() }
}
