//! The join `vote` (G2ConS): prints tables of the first channel and units of the second. Units that both
//! channels propose come first.
//!
//! Each channel proposes units for the whole budget. Common units are ordered by the sum of their ranks. They
//! use the second channel's share first, then half of the first channel's share. The other half is reserved
//! for tables. The rest of each share goes to the tables and remaining units of the first channel, and to the
//! remaining units of the second.

use crate::assemble::Recipe;
use crate::assemble::{Join, Task};
use crate::channels::{Channel, Options, Printed, Room, Scratch, Section};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::search::fill::{FillPolicy, OversizePolicy};
use crate::search::render::{Context, Row, Style};
use std::collections::BTreeMap;

/// The empty line between two sections, which is one token.
const GAP: (&str, u64) = ("\n\n", 1);

pub struct Vote;

impl Join for Vote {
    fn name(&self) -> &'static str {
        "vote"
    }

    fn check(&self, recipe: &Recipe, channel: &dyn Channel, options: &Options) -> Result<()> {
        if recipe.shares().len() != 2 {
            let (name, count) = (recipe.name(), recipe.shares().len());
            return Err(Error::input(format!("mode {name}: join vote takes two channels, not {count}")));
        }
        channel.check(options, false)
    }

    fn print(&self, task: &Task<'_, '_>, scratch: &mut Scratch, progress: &Progress) -> Result<Vec<Printed>> {
        task.budgets.iter().map(|&budget| one(task, budget, scratch, progress)).collect()
    }
}

/// A list of units, best first, with their scores.
struct Proposed {
    units: Vec<u32>,
    scores: Vec<f64>,
    /// (unit, its copy that is not printed).
    copies: Vec<(u32, u32)>,
    /// Whether nothing was printed, not even a table.
    nothing: bool,
}

fn one(task: &Task<'_, '_>, budget: u64, scratch: &mut Scratch, progress: &Progress) -> Result<Printed> {
    let (tables, texts) = (task.channels[0], task.channels[1]);
    let sizes = task.recipe.sizes(budget);
    if tables.is_empty(task.query.parts)? || sizes[0] == 0 {
        return alone(task, texts, (budget, true), scratch, progress);
    }
    if sizes[1] == 0 {
        return alone(task, tables, (budget, true), scratch, progress);
    }
    let (first, _) = proposed(task, tables, budget, scratch, progress)?;
    if first.nothing {
        return alone(task, texts, (budget, true), scratch, progress);
    }
    let (mut second, no_match) = proposed(task, texts, budget, scratch, progress)?;
    without_copies(task, &first, &mut second)?;
    if first.units.is_empty() && second.units.is_empty() {
        return Ok(Printed { no_match, ..Printed::default() });
    }
    let costs = Costs::new(task)?;
    let mut room = Purse { tables: sizes[0], texts: sizes[1].saturating_sub(costs.head) };
    // The units that both channels propose.
    let place = |list: &Proposed| -> BTreeMap<u32, usize> {
        list.units.iter().enumerate().map(|(at, &unit)| (unit, at)).collect()
    };
    let (in_first, in_second) = (place(&first), place(&second));
    let mut common: Vec<(usize, u32)> = in_second
        .iter()
        .filter_map(|(unit, at)| in_first.get(unit).map(|other| (at + other, *unit)))
        .collect();
    common.sort_unstable();
    let half = sizes[0] - sizes[0] / 2;
    let mut chosen: Vec<u32> = Vec::new();
    for &(_, unit) in &common {
        let cost = costs.of(unit)?;
        if cost <= room.texts {
            room.texts -= cost;
        } else if cost <= room.tables.saturating_sub(half) {
            room.tables -= cost;
        } else {
            continue;
        }
        chosen.push(unit);
    }
    let is_common = |unit: u32| in_first.contains_key(&unit) && in_second.contains_key(&unit);
    // The tables, and the remaining units of the first channel.
    let space = Room { budgets: &[room.tables], ..Room::default() };
    let mut whole = tables.print(task.query, &space, scratch, progress)?.pop().unwrap_or_default();
    without_units(&mut whole);
    let gap = if whole.context.text.is_empty() { 0 } else { GAP.1 };
    room.tables = room.tables.saturating_sub(whole.context.tokens + gap);
    let policy = task.query.policy;
    let others = first.units.iter().copied().filter(|&unit| !is_common(unit));
    room.tables -= costs.fill(others, room.tables, policy, &mut chosen)?;
    room.texts += room.tables;
    let others: Vec<u32> = second.units.iter().copied().filter(|&unit| !is_common(unit)).collect();
    // A unit of the first channel that did not fit into its share may still fit into the second channel's
    // share.
    costs.fill(others.into_iter(), room.texts, policy, &mut chosen)?;
    chosen.truncate(task.most);
    let left = budget.saturating_sub(whole.context.tokens + gap);
    let renderer = task.query.printers.rows(Style::Ket)?;
    let rows = renderer.render(task.query.parts.units()?, &chosen, left, policy, OversizePolicy::Drop)?;
    let nothing = rows.rows.is_empty();
    if nothing && whole.context.text.is_empty() {
        return alone(task, texts, (budget, true), scratch, progress);
    }
    if nothing {
        return Ok(whole);
    }
    let score = |unit: u32| {
        let found = in_second.get(&unit).map(|&at| second.scores[at]);
        found.or_else(|| in_first.get(&unit).map(|&at| first.scores[at])).unwrap_or(f64::NAN)
    };
    append(&mut whole, &rows, gap, task.recipe.name(), score);
    whole.copies = printed_copies(&rows, [&first, &second]);
    Ok(whole)
}

/// Return the copies of printed units. They are not printed themselves.
fn printed_copies(rows: &Context, lists: [&Proposed; 2]) -> Vec<(u32, u32)> {
    let is_printed = |unit: u32| rows.rows.iter().any(|row| row.unit == unit);
    let copies = lists.into_iter().flat_map(|list| list.copies.iter().copied());
    let mut copies: Vec<_> = copies.filter(|&(unit, copy)| is_printed(unit) && !is_printed(copy)).collect();
    copies.sort_unstable();
    copies.dedup();
    copies
}

/// Replace units of the second list by their copies in the first list, because both propose the same text.
fn without_copies(task: &Task<'_, '_>, first: &Proposed, second: &mut Proposed) -> Result<()> {
    let Some(copies) = task.query.parts.copies()?.filter(|_| task.query.once) else { return Ok(()) };
    for unit in &mut second.units {
        let key = copies.key(*unit);
        let own = first.units.iter().copied().find(|&own| copies.key(own).is_copy(key));
        if let Some(own) = own.filter(|own| own != unit) {
            second.copies.push((own, std::mem::replace(unit, own)));
        }
    }
    Ok(())
}

/// Append the section of texts after the tables; `gap` is the cost of the empty line between them.
fn append(whole: &mut Printed, rows: &Context, gap: u64, channel: &str, score: impl Fn(u32) -> f64) {
    if gap > 0 {
        whole.context.text.push_str(GAP.0);
    }
    let base = whole.context.text.len();
    whole.context.text.push_str(&rows.text);
    whole.context.tokens += rows.tokens + gap;
    whole.scores.extend(rows.rows.iter().map(|row| score(row.unit)));
    let moved = rows.rows.iter().map(|r| Row { start: r.start + base, end: r.end + base, ..*r });
    whole.context.rows.extend(moved);
    whole.sections.push(Section {
        name: "text",
        channel: channel.to_owned(),
        tokens: rows.tokens + gap,
        start: base,
        end: whole.context.text.len(),
    });
}

/// Remaining budget of each channel.
struct Purse {
    tables: u64,
    texts: u64,
}

/// Cost of printing a unit.
struct Costs<'a, 'p> {
    task: &'a Task<'a, 'p>,
    /// Cost of the header before the units and of the gap before the header.
    head: u64,
}

impl<'a, 'p> Costs<'a, 'p> {
    fn new(task: &'a Task<'a, 'p>) -> Result<Self> {
        let empty = Self { task, head: 0 };
        let (tokens, cost) = empty.printed(0)?;
        Ok(Self { task, head: tokens - cost + GAP.1 })
    }

    /// Return (tokens of a context with only this unit, tokens of its row). Row numbers up to 999 cost the
    /// same. With more rows the context still stays within the budget.
    fn printed(&self, unit: u32) -> Result<(u64, u64)> {
        let renderer = self.task.query.printers.rows(Style::Ket)?;
        let (units, policy) = (self.task.query.parts.units()?, FillPolicy::FirstOverflowStops);
        let made = renderer.render(units, &[unit], u64::MAX, policy, OversizePolicy::Drop)?;
        let row =
            made.rows.first().ok_or_else(|| Error::Internal("a unit without a printable text".into()))?;
        Ok((made.tokens, row.tokens))
    }

    fn of(&self, unit: u32) -> Result<u64> {
        Ok(self.printed(unit)?.1)
    }

    /// Take units in order while they fit into `room`, and return their total cost.
    fn fill(
        &self,
        units: impl Iterator<Item = u32>,
        room: u64,
        policy: FillPolicy,
        chosen: &mut Vec<u32>,
    ) -> Result<u64> {
        let mut used = 0;
        for unit in units {
            if chosen.contains(&unit) {
                continue;
            }
            let cost = self.of(unit)?;
            if used + cost <= room {
                used += cost;
                chosen.push(unit);
            } else if policy == FillPolicy::FirstOverflowStops {
                break;
            }
        }
        Ok(used)
    }
}

/// A single channel with the whole budget. Neighbouring units are joined if `joined`, except for proposals.
fn alone(
    task: &Task<'_, '_>,
    channel: &dyn Channel,
    (budget, joined): (u64, bool),
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<Printed> {
    let room =
        Room { budgets: &[budget], units: task.most, without: &[], alone: true, joined, rollover: true };
    Ok(channel.print(task.query, &room, scratch, progress)?.pop().unwrap_or_default())
}

/// Return the distinct units that a channel prints for the whole budget, and whether nothing matched.
fn proposed(
    task: &Task<'_, '_>,
    channel: &dyn Channel,
    budget: u64,
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<(Proposed, bool)> {
    let printed = alone(task, channel, (budget, false), scratch, progress)?;
    let nothing = printed.context.text.is_empty();
    let copies = printed.copies;
    let mut list = Proposed { units: Vec::new(), scores: Vec::new(), copies, nothing };
    for (row, score) in printed.context.rows.iter().zip(printed.scores) {
        if !list.units.contains(&row.unit) {
            list.units.push(row.unit);
            list.scores.push(score);
        }
    }
    Ok((list, printed.no_match))
}

/// Keep only tables: a channel without room for units prints none.
fn without_units(printed: &mut Printed) {
    debug_assert!(printed.context.rows.is_empty());
    printed.scores.clear();
    printed.context.rows.clear();
}
