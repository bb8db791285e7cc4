//! A retrieval request without its query. It is checked once and used for many queries.

use crate::assemble::extensions::Extensions;
use crate::assemble::join::{not_one_list, Join, Task};
use crate::assemble::recipe::{Recipe, Rollover, Share};
use crate::channels::{find, print_ranked, Channel, List, Options, Printed, Room, Scratch, Section};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::search::fill::{FillPolicy, OversizePolicy};
use crate::search::fusion::fuse;
use crate::search::render::{Row, Style};
use crate::sparse::{Mask, Scored};
use std::sync::Arc;

/// The joins of the core. To add one, write a file with a [`Join`] and list it here.
static JOINS: &[&dyn Join] = &[&Shares, &Fuse];

pub struct Request {
    pub(super) recipe: Recipe,
    pub(super) join: &'static dyn Join,
    pub(super) budgets: Vec<u64>,
    pub(super) options: Options,
    /// Maximum number of units.
    pub(super) top: Option<usize>,
    pub(super) policy: (FillPolicy, OversizePolicy),
    /// If set, only these units may be printed.
    pub(super) mask: Option<Arc<Mask>>,
    pub(super) once: bool,
    pub(super) min_score: f64,
}

impl Request {
    /// Check everything that can be checked without an index.
    #[allow(clippy::too_many_arguments)] // one argument per field of a request
    pub fn new(
        mode: String,
        shares: Vec<Share>,
        (join, rollover): (&str, &str),
        budgets: Vec<u64>,
        options: Options,
        top: Option<usize>,
        policy: (FillPolicy, OversizePolicy),
        mask: Option<Arc<Mask>>,
        extensions: &Extensions,
    ) -> Result<Self> {
        let join = by_name(join, extensions)?;
        let recipe = Recipe::new(mode, shares, Rollover::by_name(rollover)?)?;
        let added = extensions.closed();
        for channel in recipe.shares().iter().filter_map(|share| find(&added, &share.channel)) {
            join.check(&recipe, channel, &options)?;
        }
        Ok(Self { recipe, join, budgets, options, top, policy, mask, once: false, min_score: 0.0 })
    }

    /// Print only one of several equal or nearly equal units, and print neighbouring units of one list as one
    /// passage.
    pub fn once(self, once: bool) -> Self {
        Self { once, ..self }
    }

    /// Do not print units with a lower relevance than this, from 0 to 1.
    pub fn min_score(self, min_score: f64) -> Result<Self> {
        match (0.0..=1.0).contains(&min_score) {
            true => Ok(Self { min_score, ..self }),
            false => Err(Error::input(format!("min_score must be from 0 to 1, got {min_score}"))),
        }
    }

    pub fn mode(&self) -> &str {
        self.recipe.name()
    }

    /// Return whether one of several equal or nearly equal units is printed.
    pub fn is_once(&self) -> bool {
        self.once
    }

    pub fn budgets(&self) -> &[u64] {
        &self.budgets
    }

    pub fn top(&self) -> Option<usize> {
        self.top
    }
}

fn by_name(name: &str, extensions: &Extensions) -> Result<&'static dyn Join> {
    let joins = || JOINS.iter().chain(extensions.joins).copied();
    let names: Vec<&str> = joins().map(|join| join.name()).collect();
    let found = joins().find(|join| join.name() == name);
    let listed = || match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    };
    found.ok_or_else(|| Error::input(format!("join must be {}, not {name:?}", listed())))
}

// The join `fuse`: merges the channels' lists by reciprocal rank. All channels with a share have equal
// weight, whatever their share. Channels without a share are ignored.

/// Minimum depth of the lists that are fused.
const DEPTH: usize = 1000;
/// Constant of reciprocal-rank fusion (Cormack, Clarke, Buettcher 2009, who use 60). A value of 10 gives top
/// ranks more weight. With vectors fitted on the corpus, recall@5 of `fused` gains 2.6 to 4.9 points on three
/// development sets; with MiniLM it gains 1.7. Coverage does not fall with the fitted vectors, and changes by
/// -1.0 to +2.2 points with MiniLM.
const CONSTANT: f64 = 10.0;

struct Fuse;

impl Join for Fuse {
    fn name(&self) -> &'static str {
        "fuse"
    }

    fn check(&self, _recipe: &Recipe, channel: &dyn Channel, options: &Options) -> Result<()> {
        channel.check(options, true)
    }

    fn print(&self, task: &Task<'_, '_>, scratch: &mut Scratch, progress: &Progress) -> Result<Vec<Printed>> {
        let voices = voices(task);
        let each_budget = voices.iter().any(|channel| channel.depends_on_budget());
        let list = List { channel: task.recipe.name(), style: Style::Cited, each_budget };
        let room =
            Room { budgets: task.budgets, units: task.most, alone: true, joined: true, ..Room::default() };
        print_ranked(task.query, &room, list, progress, &mut |wanted, budget| {
            fused(task, &voices, (wanted, budget), scratch, progress)
        })
    }

    fn rank(
        &self,
        task: &Task<'_, '_>,
        wanted: usize,
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Scored>> {
        fused(task, &voices(task), (wanted, 0), scratch, progress)
    }
}

/// Return the channels that have a share.
fn voices<'a>(task: &Task<'a, '_>) -> Vec<&'a dyn Channel> {
    let shares = task.channels.iter().zip(task.recipe.shares());
    shares.filter(|(_, share)| share.part > 0.0).map(|(channel, _)| *channel).collect()
}

fn fused(
    task: &Task<'_, '_>,
    voices: &[&dyn Channel],
    (wanted, budget): (usize, u64),
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    let ids = |channel: &&dyn Channel| {
        let ranked = channel.rank(task.query, wanted.max(DEPTH), budget, scratch, progress)?;
        Ok(ranked.iter().map(|s| s.id).collect())
    };
    let lists = voices.iter().map(ids).collect::<Result<Vec<Vec<u32>>>>()?;
    let lists: Vec<&[u32]> = lists.iter().map(Vec::as_slice).collect();
    let mut fused = fuse(&lists, CONSTANT)?;
    fused.truncate(wanted);
    Ok(fused)
}

// The join `shares`: each channel prints a section within its share of the budget (KET-RAG, Algorithm 4).

/// The empty line between two sections, which is one token.
const GAP: (&str, u64) = ("\n\n", 1);

struct Shares;

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

    fn rank(
        &self,
        task: &Task<'_, '_>,
        wanted: usize,
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Scored>> {
        match task.channels {
            [channel] => channel.rank(task.query, wanted, 0, scratch, progress),
            _ => Err(not_one_list(task)),
        }
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
    // Channels in the order in which their sections are filled.
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

/// Return the number of tokens of each channel. The share of an empty channel goes to the last channel that
/// is not empty.
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

/// Return the printed units, ascending and distinct. In the style of the reference implementation, tables
/// print a source repeatedly.
fn units_of(sections: &[Printed]) -> Vec<u32> {
    let rows = sections.iter().flat_map(|section| &section.context.rows);
    let mut units: Vec<u32> = rows.map(|row| row.unit).collect();
    units.sort_unstable();
    units.dedup();
    units
}

/// Append a channel's sections. The first section's cost includes the gap.
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
        // A row without a node is a unit.
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
