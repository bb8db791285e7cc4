//! Prints as many of NodeRAG's nodes as fit into the budget, grouped by type. The search order decides which
//! nodes are printed, regardless of their section.

use super::{Blocks, Kind};
use crate::error::Result;
use crate::search::fill::{Count, FillPolicy, OversizePolicy};
use crate::search::render::{Context, Row, Units};
use crate::sparse::Scored;
use crate::text::strings::Strings;
use std::ops::Range;

/// The sections in order, each with its name.
const SECTIONS: [(Kind, &str, &str); 5] = [
    (Kind::Element, "high_level_elements", "------------high_level_element-------------\n"),
    (Kind::Attribute, "attributes", "------------attribute-------------\n"),
    (Kind::Unit, "semantic_units", "------------semantic_unit-------------\n"),
    (Kind::Relation, "relationships", "------------relationship-------------\n"),
    (Kind::Chunk, "text", "------------text-------------\n"),
];
const END: &str = "\n";
const GAP: &str = "\n";

/// The texts of the nodes and their token counts.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    pub units: (Strings<'a>, &'a [u32]),
    pub attributes: (Strings<'a>, &'a [u32]),
    pub elements: (Strings<'a>, &'a [u32]),
    pub relations: (Strings<'a>, &'a [u32]),
}

impl<'a> Texts<'a> {
    fn of(&self, kind: Kind) -> Option<(Strings<'a>, &'a [u32])> {
        match kind {
            Kind::Unit => Some(self.units),
            Kind::Attribute => Some(self.attributes),
            Kind::Element => Some(self.elements),
            Kind::Relation => Some(self.relations),
            Kind::Chunk | Kind::Entity | Kind::Title => None,
        }
    }
}

/// Limits of printing: tokens, units, and the policy for a row that does not fit.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub budget: u64,
    pub most: usize,
    pub policy: FillPolicy,
    pub oversize: OversizePolicy,
}

/// A printed table: a byte range of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    pub name: &'static str,
    pub tokens: u64,
    pub start: usize,
    pub end: usize,
}

/// The printed context. `rows` are in search order. A row that is a unit has the node [`NO_NODE`]; any other
/// row has the unit [`NO_UNIT`] and its node in `nodes`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Printed {
    pub context: Context,
    pub sections: Vec<Section>,
    pub nodes: Vec<u32>,
    pub scores: Vec<f64>,
}

pub const NO_UNIT: u32 = u32::MAX;
pub const NO_NODE: u32 = u32::MAX;

/// A row before it is printed: a unit of a chunk, or another kind of node.
#[derive(Debug, Clone, Copy)]
struct Item {
    section: usize,
    node: u32,
    unit: u32,
    score: f64,
    tokens: u64,
    /// The number of the row within its section.
    number: usize,
    /// If the row was truncated: the number of bytes of its text that are printed, including the title.
    cut: Option<usize>,
}

/// Print `found`, best first. `units_of` returns the units of a chunk.
pub fn print<C: Count>(
    count: &C,
    blocks: Blocks,
    texts: &Texts<'_>,
    units: &Units<'_>,
    units_of: impl Fn(usize) -> Range<u32>,
    found: &[Scored],
    room: Room,
) -> Result<Printed> {
    let Room { budget, most, policy, oversize } = room;
    let rows = candidates(blocks, units_of, found);
    let first = rows.first().copied();
    let mut numbers = [0usize; SECTIONS.len()];
    let (mut used, mut printed) = (0u64, 0usize);
    let mut taken: Vec<Item> = Vec::new();
    for mut row in rows {
        if row.node == NO_NODE && printed >= most {
            continue;
        }
        let own = body_tokens(texts, blocks, units, &row);
        let number = numbers[row.section] + 1;
        row.tokens = count.count(&mark(number)) as u64 + own + count.count(END) as u64;
        let opening = if number == 1 { opening(count, row.section, taken.is_empty()) } else { 0 };
        if used + row.tokens + opening <= budget {
            used += row.tokens + opening;
            row.number = number;
            numbers[row.section] = number;
            printed += usize::from(row.node == NO_NODE);
            taken.push(row);
        } else if policy == FillPolicy::FirstOverflowStops {
            break;
        }
    }
    if let (true, Some(row), OversizePolicy::Truncate) = (taken.is_empty(), first, oversize) {
        if let Some(row) = cut(count, texts, blocks, units, row, budget) {
            used = row.tokens + opening(count, row.section, true);
            taken.push(row);
        }
    }
    Ok(written(count, blocks, texts, units, taken, used))
}

/// Return the first row, truncated to `budget`; `None` if none of its text fits.
fn cut<C: Count>(
    count: &C,
    texts: &Texts<'_>,
    blocks: Blocks,
    units: &Units<'_>,
    row: Item,
    budget: u64,
) -> Option<Item> {
    let around = opening(count, row.section, true) + (count.count(&mark(1)) + count.count(END)) as u64;
    let room = budget.checked_sub(around)?;
    let mut body = String::new();
    push_body(&mut body, texts, blocks, units, &row);
    let bytes = count.cut(&body, usize::try_from(room).unwrap_or(usize::MAX));
    let own = count.count(&body[..bytes]) as u64;
    let tokens = own + around - opening(count, row.section, true);
    (bytes > 0 && own <= room).then_some(Item { tokens, number: 1, cut: Some(bytes), ..row })
}

/// Return the cost of a section's header line and of the empty line before it. The first printed section has
/// no empty line, but which section is first is known only at the end, so every row except the first pays for
/// an empty line.
fn opening<C: Count>(count: &C, section: usize, first: bool) -> u64 {
    let gap = if first { 0 } else { count.count(GAP) };
    (count.count(SECTIONS[section].2) + gap) as u64
}

fn mark(number: usize) -> String {
    format!("{number}. ")
}

/// Return the rows of the nodes. A chunk is replaced by its units, in order.
fn candidates(blocks: Blocks, units_of: impl Fn(usize) -> Range<u32>, found: &[Scored]) -> Vec<Item> {
    let mut rows = Vec::with_capacity(found.len());
    for node in found {
        let (kind, number) = blocks.place(node.id);
        let Some(section) = SECTIONS.iter().position(|s| s.0 == kind) else { continue };
        let item = Item {
            section,
            node: node.id,
            unit: NO_UNIT,
            score: node.score,
            tokens: 0,
            number: 0,
            cut: None,
        };
        match kind {
            Kind::Chunk => rows.extend(units_of(number).map(|unit| Item { node: NO_NODE, unit, ..item })),
            _ => rows.push(item),
        }
    }
    rows
}

fn body_tokens(texts: &Texts<'_>, blocks: Blocks, units: &Units<'_>, row: &Item) -> u64 {
    if row.node == NO_NODE {
        return units.tokens().value(row.unit as usize).map_or(0, |&tokens| u64::from(tokens));
    }
    let (kind, number) = blocks.place(row.node);
    let counted = texts.of(kind).and_then(|(_, tokens)| tokens.get(number));
    counted.map_or(0, |&tokens| u64::from(tokens))
}

fn written<C: Count>(
    count: &C,
    blocks: Blocks,
    texts: &Texts<'_>,
    units: &Units<'_>,
    taken: Vec<Item>,
    used: u64,
) -> Printed {
    let mut out = Printed::default();
    let mut places = vec![(0, 0); taken.len()];
    for (section, (_, name, line)) in SECTIONS.iter().enumerate() {
        let mut own: Vec<usize> = (0..taken.len()).filter(|&at| taken[at].section == section).collect();
        if own.is_empty() {
            continue;
        }
        own.sort_unstable_by_key(|&at| taken[at].number);
        let text = &mut out.context.text;
        let gap = if text.is_empty() { "" } else { GAP };
        text.push_str(gap);
        let start = text.len();
        text.push_str(line);
        let mut tokens = (count.count(gap) + count.count(line)) as u64;
        for at in own {
            let row = &taken[at];
            text.push_str(&mark(row.number));
            let row_start = text.len();
            let begin = push_body(text, texts, blocks, units, row);
            text.truncate(row.cut.map_or(text.len(), |bytes| row_start + bytes));
            places[at] = (begin.min(text.len()), text.len());
            text.push_str(END);
            tokens += row.tokens;
        }
        out.sections.push(Section { name, tokens, start, end: text.len() });
    }
    for (row, (start, end)) in taken.iter().zip(places) {
        out.context.rows.push(Row { start, end, ..Row::of(row.unit, row.tokens) });
        out.nodes.push(row.node);
        out.scores.push(row.score);
    }
    out.context.tokens = used;
    out
}

/// Append the text of a row and return the offset at which its text begins, after the title of a unit.
fn push_body(out: &mut String, texts: &Texts<'_>, blocks: Blocks, units: &Units<'_>, row: &Item) -> usize {
    if row.node == NO_NODE {
        return units.push(out, row.unit as usize);
    }
    let start = out.len();
    let (kind, number) = blocks.place(row.node);
    if let Some((strings, _)) = texts.of(kind) {
        out.push_str(strings.get(number));
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::strings::StringsBuf;

    fn count(text: &str) -> usize {
        text.chars().count()
    }

    #[test]
    fn rows_go_into_sections_and_the_best_come_first() {
        let strings = |texts: &[&str]| texts.iter().collect::<StringsBuf>();
        let (chunks, said, about, high, joined) = (
            strings(&["chunk one", "chunk two"]),
            strings(&["unit"]),
            strings(&["portrait"]),
            strings(&["high"]),
            strings(&["a b c"]),
        );
        let blocks = Blocks::new([2, 1, 1, 1, 1, 1, 1]);
        let tokens = [9u32, 9];
        let units = Units::new(chunks.view(), None, &tokens).unwrap();
        let texts = Texts {
            units: (said.view(), &[4]),
            attributes: (about.view(), &[8]),
            elements: (high.view(), &[4]),
            relations: (joined.view(), &[5]),
        };
        let found: Vec<Scored> = [1u32, 2, 3, 4, 5, 7, 0]
            .iter()
            .zip([0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
            .map(|(&id, score)| Scored { id, score })
            .collect();
        let with = |budget| {
            let one = |chunk: usize| chunk as u32..chunk as u32 + 1;
            let room = Room {
                budget,
                most: 9,
                policy: FillPolicy::FirstOverflowStops,
                oversize: OversizePolicy::Drop,
            };
            print(&count, blocks, &texts, &units, one, &found, room)
        };
        let whole = with(10_000).unwrap();
        assert_eq!(whole.context.tokens, whole.context.text.chars().count() as u64);
        assert!(whole
            .context
            .text
            .starts_with("------------high_level_element-------------\n1. high\n\n---"));
        assert!(whole.context.text.ends_with("text-------------\n1. chunk two\n2. chunk one\n"));
        // The entity (5) is never printed.
        assert_eq!(whole.nodes, [NO_NODE, 2, 3, 4, 7, NO_NODE]);
        for (row, node) in whole.context.rows.iter().zip(&whole.nodes) {
            let text = &whole.context.text[row.start..row.end];
            assert_eq!(text.starts_with("chunk"), *node == NO_NODE);
        }
        let one = |chunk: usize| chunk as u32..chunk as u32 + 1;
        for budget in 0..40 {
            let room = Room {
                budget,
                most: 9,
                policy: FillPolicy::FirstOverflowStops,
                oversize: OversizePolicy::Truncate,
            };
            let part = print(&count, blocks, &texts, &units, one, &found, room).unwrap();
            let kept = (budget as usize).saturating_sub(34).min(9);
            assert!(part.context.tokens <= budget && part.context.rows.len() == usize::from(kept > 0));
            assert_eq!(part.context.tokens, part.context.text.chars().count() as u64);
            for row in &part.context.rows {
                assert_eq!(part.context.text[row.start..row.end], "chunk two"[..kept]);
            }
        }
        for budget in 0..400 {
            let part = with(budget).unwrap();
            assert!(part.context.tokens <= budget);
            assert_eq!(part.context.tokens, part.context.text.chars().count() as u64);
            assert_eq!(part.nodes[..], whole.nodes[..part.nodes.len()]);
        }
    }
}
