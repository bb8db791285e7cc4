//! One pass over the replies: ids by first appearance, weights, types, and the rows of each entity and
//! relation.

use crate::error::Error;
use crate::error::Result;
use crate::progress::Progress;
use crate::sparse::Csr;
use crate::text::interner::Interner;
use crate::text::strings::Strings;
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

/// The replies of some chunks, one row each, in ascending order of chunk id. Records are already cleaned. The
/// remaining steps are upper-casing, merging, and dropping relations without two ends.
#[derive(Debug, Clone, Copy)]
pub struct Replies<'a> {
    pub chunks: &'a [u32],
    /// The entity records of row `r` are `entities[r]..entities[r + 1]`. Relations are stored in the same
    /// way.
    pub entities: &'a [u64],
    pub names: Strings<'a>,
    pub types: Strings<'a>,
    pub descriptions: Strings<'a>,
    pub relations: &'a [u64],
    pub sources: Strings<'a>,
    pub targets: Strings<'a>,
    pub relation_descriptions: Strings<'a>,
    pub strengths: &'a [f64],
}

/// The units into which chunks are cut.
#[derive(Debug, Clone, Copy)]
pub struct ChunkUnits<'a> {
    /// The units of chunk `c` are `units[c]..units[c + 1]`.
    pub units: &'a [u64],
    pub texts: Strings<'a>,
    /// Start and end of each unit in code points of its document's text.
    pub spans: &'a [u32],
}

/// Check that the sizes of replies and units match.
pub(super) fn check(replies: &Replies<'_>, units: &ChunkUnits<'_>) -> Result<()> {
    let rows = replies.chunks.len();
    let chunks = units.units.len().saturating_sub(1);
    if let Some(i) = replies.chunks.windows(2).position(|w| w[1] <= w[0]) {
        return Err(Error::input(format!("the chunks of the replies do not ascend after row {i}")));
    }
    if replies.chunks.last().is_some_and(|&last| last as usize >= chunks) {
        return Err(Error::input(format!("a reply names a chunk that is not below {chunks}")));
    }
    let (entities, relations) = (replies.names.len(), replies.sources.len());
    covers("entities", replies.entities, rows, entities)?;
    covers("relations", replies.relations, rows, relations)?;
    covers("chunk_units", units.units, chunks, units.texts.len())?;
    for (name, length, wanted) in [
        ("types", replies.types.len(), entities),
        ("descriptions", replies.descriptions.len(), entities),
        ("targets", replies.targets.len(), relations),
        ("relation descriptions", replies.relation_descriptions.len(), relations),
        ("strengths", replies.strengths.len(), relations),
        ("unit spans", units.spans.len(), 2 * units.texts.len()),
    ] {
        if length != wanted {
            return Err(Error::input(format!("there are {length} {name}, not {wanted}")));
        }
    }
    let most = u32::MAX as usize / 2;
    if entities > most || relations > most {
        return Err(Error::input(format!("more than {most} records in one fold")));
    }
    Ok(())
}

/// Check row offsets: from 0 to `items`, never decreasing.
fn covers(name: &str, offsets: &[u64], rows: usize, items: usize) -> Result<()> {
    let rising = offsets.windows(2).all(|w| w[0] <= w[1]);
    let whole = offsets.first() == Some(&0) && offsets.last() == Some(&(items as u64));
    if offsets.len() != rows + 1 || !rising || !whole {
        return Err(Error::input(format!("{name}: offsets must rise from 0 to {items} over {rows} rows")));
    }
    Ok(())
}

/// Convert pairs (owner, id) to rows of ids, in the order of the pairs.
pub(super) fn by_owner(
    pairs: impl Iterator<Item = (u32, u32)> + Clone,
    owners: usize,
    columns: usize,
) -> Csr {
    let mut indptr = vec![0u64; owners + 1];
    for (owner, _) in pairs.clone() {
        indptr[owner as usize + 1] += 1;
    }
    for owner in 0..owners {
        indptr[owner + 1] += indptr[owner];
    }
    let mut next = indptr.clone();
    let mut indices = vec![0u32; indptr[owners] as usize];
    for (owner, id) in pairs {
        let slot = &mut next[owner as usize];
        indices[*slot as usize] = id;
        *slot += 1;
    }
    Csr { indptr, indices, columns }
}
