//! Units that were ranked over several shards, printed as one context.
//!
//! Each shard prints its units, so that copies, neighbours and token counts are its own, and the rows are then
//! put in the order of the common ranking, within one budget.

use crate::assemble::{Reply, Request, Searcher};
use crate::channels::{Printed, Question, Ranking};
use crate::error::Result;
use crate::progress::Progress;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Ranked units of one shard, best first, and the request that prints them: a list of the ranking `channel`.
pub struct Sheet<'s> {
    pub searcher: &'s Searcher,
    pub request: &'s Request,
    pub channel: &'s str,
    pub units: &'s [u32],
    pub scores: &'s [f64],
    /// Minimum relevance of a printed row.
    pub min_score: f64,
}

/// The rows of all shards as one context.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Merged {
    pub text: String,
    /// The sum of the token counts of the rows.
    pub tokens: u64,
    /// The sheet of each row, its number in the reply there, and the place of its best unit in the common ranking.
    pub rows: Vec<(usize, usize, usize)>,
    /// The first sheet that has a row that is relevant enough, from which top and budget are.
    pub first: Option<usize>,
}

/// Print each sheet. The relevance of the rows is not computed.
pub fn print(sheets: &[Sheet<'_>], question: &str, progress: &Progress) -> Result<Vec<Reply>> {
    let one = |sheet: &Sheet<'_>| {
        let given = [Ranking { channel: sheet.channel, ids: sheet.units, scores: sheet.scores }];
        let question = Question { text: question, given: &given, ..Question::default() };
        sheet.searcher.print(sheet.request, question, progress)
    };
    sheets.iter().map(one).collect()
}

/// Merge the rows of the first context of each reply. `ranking` has the sheet and the unit of each place of the common
/// ranking, and `relevance` is parallel to it.
pub fn merge(sheets: &[Sheet<'_>], replies: &[Reply], ranking: &[(usize, u32)], relevance: &[f64]) -> Merged {
    let place_of: BTreeMap<(usize, u32), usize> =
        ranking.iter().enumerate().map(|(place, &key)| (key, place)).collect();
    let printed = |sheet: usize| replies[sheet].contexts.first();
    let mut rows = Vec::new();
    for (at, sheet) in sheets.iter().enumerate() {
        let Some(printed) = printed(at) else { continue };
        for (number, row) in printed.context.rows.iter().enumerate() {
            let own = (row.first..row.first + row.count).filter_map(|unit| place_of.get(&(at, unit)));
            let Some(&place) = own.min() else { continue };
            if relevance[place] >= sheet.min_score {
                rows.push((place, at, number));
            }
        }
    }
    let Some(first) = rows.iter().map(|&(_, at, _)| at).min() else { return Merged::default() };
    rows.sort_unstable();
    let request = sheets[first].request;
    rows.truncate(request.top().unwrap_or(usize::MAX));
    let budget = request.budgets().first().copied().unwrap_or(0);
    let blocks: Vec<Vec<&str>> =
        replies.iter().map(|reply| reply.contexts.first().map_or(Vec::new(), blocks)).collect();
    let mut merged = Merged { first: Some(first), ..Merged::default() };
    for (place, at, number) in rows {
        let Some(row) = printed(at).map(|printed| printed.context.rows[number]) else { continue };
        if merged.tokens + row.tokens > budget {
            break;
        }
        merged.tokens += row.tokens;
        if !merged.rows.is_empty() {
            merged.text.push('\n');
        }
        merged.rows.push((at, number, place));
        let _ = writeln!(merged.text, "[{}]{}", merged.rows.len(), blocks[at][number]);
    }
    merged
}

/// Return each row as it is printed, without its mark and the empty lines after it. No text has a line that looks like
/// a mark (see `unmarked` in search/render.rs), so that each mark is found.
fn blocks(printed: &Printed) -> Vec<&str> {
    let (text, rows) = (&printed.context.text, &printed.context.rows);
    let (mut blocks, mut rest) = (Vec::with_capacity(rows.len()), text.as_str());
    for number in 1..=rows.len() {
        let end = rest.find(&format!("\n[{}]\n", number + 1)).map_or(rest.len(), |found| found + 1);
        let (own, after) = rest.split_at(end);
        let mark = format!("[{number}]");
        blocks.push(own.strip_prefix(&mark).unwrap_or(own).trim_end_matches('\n'));
        rest = after;
    }
    blocks
}
