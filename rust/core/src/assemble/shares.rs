//! The join `shares`: each channel prints a section within its share of the budget (KET-RAG, Algorithm 4).

use super::join::{Join, Task};
use super::recipe::{Recipe, Rollover};
use crate::channels::{Channel, Options, Printed, Room, Scratch, Section};
use crate::error::Result;
use crate::progress::Progress;
use crate::search::render::Row;

/// The empty line between two sections, which is one token.
const GAP: (&str, u64) = ("\n\n", 1);

pub struct Shares;

impl Join for Shares {
    fn name(&self) -> &'static str {
        "shares"
    }

    fn check(&self, recipe: &Recipe, channel: &dyn Channel, options: &Options) -> Result<()> {
        channel.check(options, recipe.shares().len() == 1)
    }

    fn print(&self, task: &Task<'_, '_>, scratch: &mut Scratch, progress: &Progress) -> Result<Vec<Printed>> {
        if let [channel] = task.channels {
            return alone(task, *channel, scratch, progress);
        }
        task.budgets.iter().map(|&budget| several(task, budget, scratch, progress)).collect()
    }
}

/// A single channel ranks once for all budgets.
fn alone(
    task: &Task<'_, '_>,
    channel: &dyn Channel,
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<Vec<Printed>> {
    let rollover = task.recipe.rollover() == Rollover::Last;
    let size = |&budget: &u64| if rollover { budget } else { task.recipe.sizes(budget)[0] };
    let budgets: Vec<u64> = task.budgets.iter().map(size).collect();
    let room =
        Room { budgets: &budgets, units: task.most, without: &[], alone: true, joined: true, rollover };
    channel.print(task.query, &room, scratch, progress)
}

fn several(task: &Task<'_, '_>, budget: u64, scratch: &mut Scratch, progress: &Progress) -> Result<Printed> {
    let sizes = sizes(task, budget)?;
    // Channels in the order in which they are filled.
    let mut filled: Vec<usize> = (0..sizes.len()).filter(|&i| sizes[i] > 0).collect();
    let rollover = task.recipe.rollover();
    if rollover == Rollover::First {
        filled.reverse();
    }
    let mut sections: Vec<Printed> = vec![Printed::default(); sizes.len()];
    let (mut used, mut units) = (0, 0);
    for (place, &i) in filled.iter().enumerate() {
        let last = place + 1 == filled.len();
        let gets_the_rest = match rollover {
            Rollover::None => false,
            Rollover::Last => last,
            Rollover::First => last && place > 0,
        };
        let gap = if used > 0 { GAP.1 } else { 0 };
        let room = if gets_the_rest { budget.saturating_sub(used) } else { sizes[i] }.saturating_sub(gap);
        if room == 0 {
            continue;
        }
        let rest = gets_the_rest && rollover == Rollover::Last;
        let without = if rest { units_of(&sections) } else { Vec::new() };
        let room = Room {
            budgets: &[room],
            units: task.most.saturating_sub(units),
            without: &without,
            alone: false,
            joined: false,
            rollover: rest,
        };
        let printed = task.channels[i].print(task.query, &room, scratch, progress)?.pop().unwrap_or_default();
        if !printed.context.text.is_empty() {
            used += printed.context.tokens + gap;
            units += printed.context.rows.len();
        }
        sections[i] = printed;
    }
    let no_match = !filled.is_empty() && filled.iter().all(|&i| sections[i].no_match);
    let mut whole = Printed { no_match, ..Printed::default() };
    sections.into_iter().for_each(|section| append(&mut whole, section));
    Ok(whole)
}

/// Return the tokens of each channel. The share of an empty channel goes to the last of the others.
fn sizes(task: &Task<'_, '_>, budget: u64) -> Result<Vec<u64>> {
    let mut sizes = task.recipe.sizes(budget);
    let parts = task.query.parts;
    let empty = task.channels.iter().map(|channel| channel.is_empty(parts)).collect::<Result<Vec<bool>>>()?;
    if let Some(heir) = empty.iter().rposition(|empty| !empty) {
        for i in 0..sizes.len() {
            if empty[i] {
                sizes[heir] += std::mem::take(&mut sizes[i]);
            }
        }
    }
    Ok(sizes)
}

/// Return the printed units, ascending and distinct (tables in the style of the reference implementation
/// print a source repeatedly).
fn units_of(sections: &[Printed]) -> Vec<u32> {
    let rows = sections.iter().flat_map(|section| &section.context.rows);
    let mut units: Vec<u32> = rows.map(|row| row.unit).collect();
    units.sort_unstable();
    units.dedup();
    units
}

/// Append a channel's sections. The first of them pays for the gap.
fn append(whole: &mut Printed, section: Printed) {
    if section.context.text.is_empty() {
        return;
    }
    let mut gap = 0;
    if !whole.context.text.is_empty() {
        whole.context.text.push_str(GAP.0);
        gap = GAP.1;
    }
    let base = whole.context.text.len();
    whole.context.text.push_str(&section.context.text);
    whole.context.tokens += section.context.tokens + gap;
    let rows = section.context.rows.iter();
    whole.context.rows.extend(rows.map(|r| Row { start: r.start + base, end: r.end + base, ..*r }));
    whole.scores.extend(section.scores);
    whole.copies.extend(section.copies);
    if !section.nodes.is_empty() || !whole.nodes.is_empty() {
        // Rows without a node are units.
        whole.nodes.resize(whole.context.rows.len() - section.context.rows.len(), u32::MAX);
        whole.nodes.extend(section.nodes);
        whole.nodes.resize(whole.context.rows.len(), u32::MAX);
    }
    whole.sections.extend(section.sections.into_iter().enumerate().map(|(i, s)| Section {
        tokens: s.tokens + if i == 0 { gap } else { 0 },
        start: s.start + base,
        end: s.end + base,
        ..s
    }));
}
