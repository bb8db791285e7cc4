//! One pass over the replies: ids by first appearance, weights, types, and the rows of each entity and
//! relation.

use super::input::Replies;
use crate::error::Result;
use crate::progress::Progress;
use crate::text::interner::Interner;
use std::collections::HashMap;

/// A line of a description: its owner, and the reply that contains it.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    pub owner: u32,
    pub row: u32,
    pub text: &'a str,
}

/// The numbered contents of the replies. Pairs (id, row) ascend by row, and an id occurs at most once per
/// row.
#[derive(Debug, Default)]
pub struct Gathered<'a> {
    pub names: Interner,
    pub types: Vec<String>,
    pub entity_rows: Vec<(u32, u32)>,
    pub entity_lines: Vec<Line<'a>>,
    /// Source and target, as in the first record of the relation.
    pub pairs: Vec<[u32; 2]>,
    pub weights: Vec<f64>,
    pub relation_rows: Vec<(u32, u32)>,
    pub relation_lines: Vec<Line<'a>>,
    pub nameless: u64,
    pub endless: u64,
    pub loops: u64,
}

pub fn gather<'a>(replies: &Replies<'a>, progress: &Progress) -> Result<Gathered<'a>> {
    let mut all = Gathered::default();
    // Only used for lookups, never iterated, so its order does not matter.
    let mut known: HashMap<[u32; 2], u32> = HashMap::new();
    // The last row in which each id occurred.
    let (mut entity_last, mut relation_last) = (Vec::new(), Vec::new());
    let (mut name, mut other) = (String::new(), String::new());
    for row in 0..replies.chunks.len() {
        progress.check()?;
        for i in replies.entities[row] as usize..replies.entities[row + 1] as usize {
            upper(replies.names.get(i), &mut name);
            if name.is_empty() {
                all.nameless += 1;
                continue;
            }
            let id = all.entity(&name, row, &mut entity_last);
            let kind = &mut all.types[id as usize];
            if kind.is_empty() {
                upper(replies.types.get(i), kind);
            }
            push_lines(&mut all.entity_lines, id, row, replies.descriptions.get(i));
        }
        for i in replies.relations[row] as usize..replies.relations[row + 1] as usize {
            upper(replies.sources.get(i), &mut name);
            upper(replies.targets.get(i), &mut other);
            if name.is_empty() || other.is_empty() {
                all.endless += 1;
                continue;
            }
            if name == other {
                all.loops += 1;
                continue;
            }
            let source = all.entity(&name, row, &mut entity_last);
            let target = all.entity(&other, row, &mut entity_last);
            let next = all.pairs.len() as u32;
            let id = *known.entry([source.min(target), source.max(target)]).or_insert(next);
            if id == next {
                all.pairs.push([source, target]);
                all.weights.push(0.0);
            }
            if came(&mut relation_last, id, row) {
                all.relation_rows.push((id, row as u32));
            }
            let strength = replies.strengths[i];
            let strength = if strength.is_finite() { strength } else { 1.0 };
            let weight = &mut all.weights[id as usize];
            *weight = (*weight + strength).clamp(f64::MIN, f64::MAX);
            push_lines(&mut all.relation_lines, id, row, replies.relation_descriptions.get(i));
        }
        progress.advance(1);
    }
    Ok(all)
}

impl Gathered<'_> {
    /// Return the id of an entity, and record that the entity occurs in this row.
    fn entity(&mut self, name: &str, row: usize, last: &mut Vec<u32>) -> u32 {
        let id = self.names.add(name);
        if id as usize == self.types.len() {
            self.types.push(String::new());
        }
        if came(last, id, row) {
            self.entity_rows.push((id, row as u32));
        }
        id
    }
}

/// Return whether this is the first occurrence of `id` in `row`.
fn came(last: &mut Vec<u32>, id: u32, row: usize) -> bool {
    if id as usize == last.len() {
        last.push(u32::MAX);
    }
    std::mem::replace(&mut last[id as usize], row as u32) != row as u32
}

/// Append `text` in upper case, trimmed and without control characters.
fn upper(text: &str, out: &mut String) {
    out.clear();
    out.extend(text.trim().chars().filter(|c| !c.is_control()).flat_map(char::to_uppercase));
}

fn push_lines<'a>(lines: &mut Vec<Line<'a>>, owner: u32, row: usize, text: &'a str) {
    let kept = text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty());
    lines.extend(kept.map(|text| Line { owner, row: row as u32, text }));
}
