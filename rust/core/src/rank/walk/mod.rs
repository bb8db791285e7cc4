//! The walk: multi-hop ranking without an LLM, in two rounds with chains of three units.
//!
//! Round 1 finds candidates through items that units share outside the query (`pool`) and ranks them by the
//! best linked pair that they form (`pairs`). The score of a pair depends on which unit mentions the other's
//! subject and on whether the query names the partner. Round 2 removes from the query the keywords that the
//! best pair covers, and walks again from the matches of the remaining keywords. It also walks one more step
//! from the best units of round 1. Both walks add candidates and partners. The final score is a weighted sum
//! of the best pair, the best chain, the direct matches, the step, and the comparison of the query with the
//! candidate's subject; with vectors the query is then moved towards the best sentences (`dense`). The direct
//! match has more weight at the first two ranks. Both units of a pair have the pair's score, so for a query
//! that one unit answers, only the direct match distinguishes them.
//!
//! A second hop is recognised by subjects: a unit has a subject, and other units mention it. In chats, code,
//! web pages and manuals, units have no subject or share a few subjects, so the items that candidates share
//! are coincidental. If the documents of the candidates of round 1 have few distinct subjects, the direct match
//! therefore replaces the pairs, partly or wholly; sooner if the subjects that they mention occur everywhere. Nothing changes for a collection in which each unit has its own
//! subject. The direct match also counts more if the query names no subject and few candidates mention one.
//! Abstracts are an example, because their titles do not occur in other texts. In such collections the
//! document is better evidence: a unit gains if other units of its document match (`company`).
//! There it also gains if it is what the author of the query wrote.
//!
//! All scores are rounded before sorting (`ties`), so candidates, pairs, the best units of both rounds and
//! the final scores have the same order on every processor. Ties are decided by the smaller id in stage 1,
//! and by the order of stage 1 later; where the walk starts and which units pass mass on, by the content of the units.
//!
//! The direct match is a necessary term: without it, half of the questions that a single passage answers no
//! longer have that passage at rank 1.

mod bridges;
mod chains;
mod code;
mod collection;
mod company;
mod dense;
pub mod explain;
mod pairs;
mod partners;
pub mod plan;
mod pool;
mod step;
mod subjects;
mod ties;
mod units;
pub mod words_first;
mod worth;

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::rank::links_view::LinksView;
use crate::rank::question::Question;
use crate::rank::terms::Weighed;
use crate::sparse::{leaves, rank_order, Leaders, Mask, Scored};
use crate::text::conversation::{begins_with_person, is_in_first_person};
use chains::Chains;
pub use code::Files;
use collection::Collection;
use company::Company;
use dense::move_question;
pub use dense::Dense;
use explain::Trace;
use pairs::Pairs;
pub(crate) use partners::{asked_keywords, saturation};
use partners::{saturations, PairScratch};
pub use plan::Plan;
use pool::ask_ahead;
use pool::{reach, step_from, stepped, Near, PoolScratch, Reach, TINY};
use subjects::Subjects;
use ties::round_score;
pub use units::{Lengths, Units};

/// Subtracted from the score of units that are not candidates.
const OUTSIDE_POOL: f64 = 1e4;

/// Buffers of one thread, reused from query to query.
#[derive(Debug, Default)]
pub struct Scratch {
    question: Question,
    subjects: Subjects,
    first: PoolScratch,
    rest: PoolScratch,
    step: PoolScratch,
    pairs: PairScratch,
    pub trace: Trace,
    /// The share of each of the query's keywords that the best pair of round 1 leaves uncovered.
    pub uncovered: Vec<f64>,
}

/// One candidate and the terms of its score.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    unit: u32,
    stage1: f64,
    rest: f64,
    step: f64,
    named: f64,
    subject: f64,
    length: f64,
    pair: f64,
    chain: f64,
    company: f64,
    /// 1 if it begins with what the author of the query wrote.
    own: f64,
}

/// Return the best `top` units, best first.
///
/// `lengths`: log(1 + length) of each unit. The units at the first two ranks are chosen by a sum that gives
/// the direct match more weight. Their reported score is the ordinary sum, raised if necessary to just above
/// the scores that follow. Units that are not candidates follow in the order of stage 1, with their stage-1
/// score minus 10,000. Without vectors, a query without known keywords finds nothing; with vectors it is
/// ranked by them alone. Learned term weights, if given, are the direct match of round 1; pairs and round 2
/// still use keywords. Only units that pass `mask` are returned, and the usual number of candidates is taken
/// from them. The best of the other units still serve as partners and bridges.
#[allow(clippy::too_many_arguments)] // the index, the question and the ranking parameters
pub fn rank(
    links: &LinksView<'_>,
    units: Units<'_>,
    dense: Option<Dense<'_>>,
    weighed: Option<Weighed<'_>>,
    question: &str,
    top: usize,
    mask: Option<&Mask>,
    plan: &Plan,
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    if let Some(dense) = &dense {
        dense.check(links)?;
    }
    units.check(links)?;
    let Units { lengths, documents, files } = units;
    let depth = plan.code_depth_of(dense.is_some());
    let (wanted, files) = (top, documents.zip(files).filter(|_| top > 0 && depth > 0));
    let top = if files.is_some() { top.max(depth) } else { top };
    progress.check()?;
    let Scratch { question: known, subjects, first, rest, step, pairs: buffers, trace, uncovered } = scratch;
    known.read(links, question);
    let (dense, known) = (dense.as_ref(), &*known);
    let blind = dense.is_none_or(Dense::is_blind);
    let wordless = known.keywords.is_empty() && weighed.is_none_or(|weighed| weighed.query.terms.is_empty());
    if links.units() == 0 || top == 0 || (blind && wordless) {
        return Ok(Vec::new());
    }
    if let (Some(dense), true) = (dense, wordless) {
        return by_vectors(links, dense, wanted, mask, progress);
    }
    subjects.read(links, known);
    let task = Task { links, lengths, question: known, mask, plan, progress };

    // Round 1.
    let most = plan.pool + plan.rest_pool + plan.step_pool;
    let stage1 = reach(
        links,
        dense.map(|dense| Near { dense, files }),
        known,
        weighed,
        None,
        plan.options(plan.steps),
        first,
        progress,
    )?;
    let order = stage1.best_of(top.max(most), mask);
    if order.is_empty() {
        return Ok(Vec::new());
    }
    let pool = task.candidates(&stage1, &order);
    let early: Vec<u32> = pool.iter().take(plan.partners).map(|p| p.id).collect();
    let plan = plan.among(&Collection::of(links, known, documents, &pool));
    let (plan, task) = (&plan, Task { plan: &plan, ..task });
    let mut rows: Vec<Row> = Vec::with_capacity(most);
    rows.extend(pool.iter().map(|p| task.row(subjects, p.id, p.score)));
    let mut pairs = Pairs::new(links, dense, known, &early, plan.worth(), buffers);
    let best = task.round_one(&pool, early.len(), &mut rows, &mut pairs)?;

    // Round 2: matches of the uncovered keywords, and one step from the best units.
    let winner = rows[best[0]].unit;
    *uncovered = task.uncovered(winner, best_partner(&mut pairs, winner, &early));
    let after = task.reach_rest(uncovered, rest)?;
    let seeds: Vec<u32> = best.iter().take(plan.seeds).map(|&at| rows[at].unit).collect();
    let stepped_to = step_from(links, known, &seeds, plan.step_pool, plan.options(1), step);
    let rest_order = after.best(plan.rest_pool);
    let mut columns = early.clone();
    let of_best = best.iter().take(plan.best_partners).map(|&at| rows[at].unit);
    for unit in of_best.chain(rest_order.iter().take(plan.rest_partners).map(|found| found.id)) {
        if !columns.contains(&unit) {
            columns.push(unit);
        }
    }
    let in_pool = rows.len();
    for unit in rest_order.iter().chain(&stepped_to).map(|found| found.id) {
        if !rows.iter().any(|row| row.unit == unit) {
            rows.push(task.row(subjects, unit, stage1.value(unit)));
        }
    }
    for row in &mut rows {
        row.rest = after.value(row.unit);
        row.step = (stepped(step, row.unit) + TINY).ln();
    }
    pairs.extend(&columns[early.len()..]);
    let chains = task.round_two(&columns, early.len(), in_pool, &mut rows, &mut pairs)?;
    if let Some(documents) = documents.filter(|_| plan.company > 0.0) {
        let units: Vec<u32> = rows.iter().map(|row| row.unit).collect();
        let (fitted, repeated) = (plan.company_length, plan.company_repeated);
        let company = Company { links, question: known, documents, fitted, repeated };
        let company = company.of(|unit| stage1.f(unit), &units);
        rows.iter_mut().zip(company).for_each(|(row, company)| row.company = company);
    }
    if let Some((_, files)) = files.filter(|_| plan.own_words > 0.0 && is_in_first_person(question)) {
        let is_own = |unit: u32| begins_with_person(files.texts.get(unit as usize));
        rows.iter_mut().for_each(|row| row.own = f64::from(u8::from(is_own(row.unit))));
    }
    rows.retain(|row| leaves(mask, row.unit));
    trace.keep(&columns, &pairs.bonus, plan.worth(), || chains.kept());
    trace.chain_cover = plan.chain_cover;
    let mut found = finish(links, dense, plan, &rows, &order, top)?;
    if let Some(files) = files {
        found = code::arrange(links, dense, files, (question, known), found, plan);
    }
    found.truncate(wanted);
    Ok(found)
}

/// Return the keywords, names and subjects through which one step of the walk leaves units of these masses (ids
/// ascending), each with its mass.
pub fn leading(links: &LinksView<'_>, question: &Question, mass: &[Scored]) -> [Vec<Scored>; 3] {
    step::leading(links, question, mass, Plan::new(false).options(1))
}

/// The input of a ranking.
struct Task<'a> {
    links: &'a LinksView<'a>,
    lengths: Lengths<'a>,
    question: &'a Question,
    mask: Option<&'a Mask>,
    plan: &'a Plan,
    progress: &'a Progress,
}

impl<'a> Task<'a> {
    /// Create a candidate with the terms that depend only on the query and the candidate.
    fn row(&self, subjects: &mut Subjects, unit: u32, stage1: f64) -> Row {
        let length = match self.lengths {
            Lengths::Given(lengths) => lengths[unit as usize],
            Lengths::Keywords => f64::from(self.links.unit_length[unit as usize]).ln_1p(),
            Lengths::Spans(spans) => {
                let [start, end] = spans.pair(2 * unit as usize);
                f64::from(end.saturating_sub(start)).ln_1p()
            }
        };
        let (named, subject) = (subjects.named(self.links, unit), subjects.share(self.links, unit));
        Row { unit, stage1, named, subject, length, ..Row::default() }
    }

    /// Return the candidates of round 1: the best of `order`. With a filter, also return the partners of
    /// round 1.
    fn candidates(&self, stage1: &Reach<'_>, order: &[Scored]) -> Vec<Scored> {
        let mut pool = order[..order.len().min(self.plan.pool)].to_vec();
        if let Some(mask) = self.mask {
            // The best units overall are the partners of round 1, whether or not they pass the filter.
            let bridges = stage1.best(self.plan.partners);
            pool.extend(bridges.iter().filter(|one| !mask.has(one.id)));
            pool.sort_unstable_by(rank_order);
        }
        pool
    }

    /// Compute the best pair of each candidate with the first `partners`. Returns the indices of the rows,
    /// best first.
    fn round_one(
        &self,
        pool: &[Scored],
        partners: usize,
        rows: &mut [Row],
        pairs: &mut Pairs<'_>,
    ) -> Result<Vec<usize>> {
        let plan = self.plan;
        rows.iter()
            .zip(&mut pairs.bonus)
            .take(partners)
            .for_each(|(row, bonus)| *bonus = 2.0 * plan.named_partner * row.subject);
        for (at, row) in rows.iter_mut().enumerate() {
            ask_ahead(self.links, pool, at);
            row.pair = pairs.best(row.unit, 0.0, 0..partners, self.progress)?;
        }
        let shown = |row: &Row| {
            row.pair + plan.stage1 * row.stage1 + plan.named * row.named + plan.length_early * row.length
        };
        Ok(ordered(rows.iter().map(shown)))
    }

    /// Return the share of each keyword of the query that two units leave uncovered.
    fn uncovered(&self, winner: u32, partner: u32) -> Vec<f64> {
        let mine = saturations(self.links, self.question, winner);
        let other = saturations(self.links, self.question, partner);
        let left = |(a, b): (&f64, &f64)| 1.0 - (self.plan.saturated * a.max(*b)).min(1.0);
        mine.iter().zip(&other).map(left).collect()
    }

    /// Run stage 1 again for the uncovered part of the query.
    fn reach_rest<'s>(&self, left: &[f64], scratch: &'s mut PoolScratch) -> Result<Reach<'s>> {
        let (links, plan) = (self.links, self.plan);
        reach(
            links,
            None,
            self.question,
            None,
            Some(left),
            plan.options(plan.rest_steps),
            scratch,
            self.progress,
        )
    }

    /// Compute the best pair and the best chain of each candidate. `columns` are all partners; the first
    /// `early` of them are the partners of round 1. The first `in_pool` rows are the candidates of round 1.
    fn round_two(
        &self,
        columns: &'a [u32],
        early: usize,
        in_pool: usize,
        rows: &mut [Row],
        pairs: &mut Pairs<'_>,
    ) -> Result<Chains<'a>> {
        let plan = self.plan;
        let mut chains = Chains::new(columns, plan);
        let place = |unit: u32| columns.iter().position(|&column| column == unit);
        let places: Vec<Option<usize>> = rows.iter().map(|row| place(row.unit)).collect();
        for (row, place) in rows.iter().zip(&places) {
            place.iter().for_each(|&at| pairs.bonus[at] = 2.0 * plan.named_partner * row.subject);
        }
        for (row, place) in rows.iter_mut().zip(&places) {
            if let Some(partner) = *place {
                self.progress.check()?;
                row.pair = chains.pairs_of(pairs, partner, plan.stage1 * row.stage1);
            }
        }
        chains.close(pairs);
        for (k, (row, place)) in rows.iter_mut().zip(&places).enumerate() {
            if place.is_some() {
                pairs.at_most(row.unit);
            } else if !leaves(self.mask, row.unit) {
                continue; // neither a partner nor returned
            } else {
                // Pairs of round-1 candidates with the partners of round 1 are already computed.
                let from = if k < in_pool { early } else { 0 };
                row.pair = pairs.best(row.unit, row.pair, from..columns.len(), self.progress)?;
            }
            row.chain = chains.best(pairs, row.unit);
        }
        Ok(chains)
    }
}

/// Return the weighted sum of the terms of a candidate.
fn weighted_sum(plan: &Plan, is_dense: bool, r: &Row) -> f64 {
    let (length, chain) =
        if is_dense { (plan.length_dense, plan.chain_dense) } else { (plan.length, plan.chain) };
    let direct = plan.stage1 * r.stage1 + plan.rest * r.rest + plan.step * r.step;
    plan.pair * r.pair
        + direct
        + plan.named * r.named
        + plan.subject * r.subject
        + length * r.length
        + chain * r.chain
        + plan.company * r.company
        + plan.own_words * r.own
}

/// Compute the weighted sums, add stage 3 if there are vectors, and return the final order.
fn finish(
    links: &LinksView<'_>,
    dense: Option<&Dense<'_>>,
    plan: &Plan,
    rows: &[Row],
    order: &[Scored],
    top: usize,
) -> Result<Vec<Scored>> {
    let mut scores: Vec<f64> =
        rows.iter().map(|row| round_score(weighted_sum(plan, dense.is_some(), row))).collect();
    if let Some(dense) = dense.filter(|_| !rows.is_empty()) {
        let units: Vec<Scored> = rows.iter().map(|r| Scored { id: r.unit, score: 0.0 }).collect();
        move_question(links, dense, &units, &mut scores)?;
        scores.iter_mut().for_each(|score| *score = round_score(*score));
    }
    let more = (plan.first_stage1 - plan.stage1).max(0.0);
    let direct = rows.iter().zip(&scores).map(|(r, score)| score + more * r.stage1);
    let first: Vec<usize> = ordered(direct).into_iter().take(plan.first).collect();
    let others = ordered(scores.iter().copied()).into_iter().filter(|at| !first.contains(at));
    let places = first.iter().copied().chain(others);
    let mut found: Vec<Scored> = places.map(|at| Scored { id: rows[at].unit, score: scores[at] }).collect();
    lift(&mut found, plan.first);
    found.truncate(top);
    let is_row = |unit: u32| rows.iter().any(|row| row.unit == unit);
    let outside = order.iter().filter(|o| !is_row(o.id));
    let room = top - found.len();
    found.extend(outside.take(room).map(|o| Scored { id: o.id, score: o.score - OUTSIDE_POOL }));
    Ok(found)
}

/// Make the scores consistent with the order: raise the score of a unit that the other sum moved to a first
/// rank to the least score that keeps it there.
fn lift(found: &mut [Scored], first: usize) {
    for at in (1..found.len().min(first + 1)).rev() {
        let below = found[at].score;
        let place = &mut found[at - 1].score;
        *place = if *place <= below { below.next_up() } else { *place };
    }
}

/// Return the indices of the scores, greatest first. Scores that are equal after rounding keep their order.
fn ordered(scores: impl Iterator<Item = f64>) -> Vec<usize> {
    let mut all: Vec<Scored> =
        scores.map(round_score).zip(0..).map(|(score, id)| Scored { id, score }).collect();
    all.sort_unstable_by(rank_order);
    all.iter().map(|s| s.id as usize).collect()
}

/// Return the partner of a unit's best pair, the first one if several are equal. A pair of a unit with itself
/// scores 0.
fn best_partner(pairs: &mut Pairs<'_>, unit: u32, partners: &[u32]) -> u32 {
    pairs.at_most(unit);
    let worth = |i: usize| if partners[i] == unit { 0.0 } else { pairs.exactly(unit, i) };
    let all: Vec<f64> = (0..partners.len()).map(worth).collect();
    partners[ordered(all.into_iter())[0]]
}

/// Rank every unit by its vector alone.
fn by_vectors(
    links: &LinksView<'_>,
    dense: &Dense<'_>,
    top: usize,
    mask: Option<&Mask>,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    let mut best = Leaders::new(top);
    for unit in 0..links.units() as u32 {
        if unit % 4096 == 0 {
            progress.check()?;
        }
        let score = dense.unit(unit);
        if !score.is_finite() {
            return Err(Error::input(format!("the vector of unit {unit} is not finite")));
        }
        if leaves(mask, unit) {
            best.push(Scored { id: unit, score });
        }
    }
    Ok(best.finish())
}

#[cfg(test)]
mod tests;
