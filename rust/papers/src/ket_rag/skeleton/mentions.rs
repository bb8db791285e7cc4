//! Occurrences of names in the text, and the units to which entities and relations are linked.

use super::gather::Gathered;
use super::gather::{by_owner, ChunkUnits};
use crate::error::Result;
use crate::memory::filled;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::sparse::Csr;

/// An occurrence of an entity's name in a unit, in code points of the document's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mention {
    pub entity: u32,
    pub unit: u32,
    pub start: u32,
    pub end: u32,
}

#[derive(Debug, Default)]
pub struct Tied {
    pub entity_units: Csr,
    pub relation_units: Csr,
    pub mentions: Vec<Mention>,
}

#[derive(Default)]
struct Part {
    entity_units: Vec<(u32, u32)>,
    relation_units: Vec<(u32, u32)>,
    mentions: Vec<Mention>,
}

/// Link the entities and relations of each reply to the units of its chunk.
pub fn tie(
    chunks: &[u32],
    found: &Gathered<'_>,
    units: &ChunkUnits<'_>,
    threads: usize,
    progress: &Progress,
) -> Result<Tied> {
    let names = found.names.strings();
    let parts = map_ranges(chunks.len(), 32, threads, progress, |rows| {
        let mut part = Part::default();
        for row in rows {
            progress.check()?;
            let chunk = chunks[row] as usize;
            let range = units.units[chunk] as u32..units.units[chunk + 1] as u32;
            let folded: Vec<Folded> =
                range.clone().map(|unit| Folded::new(units.texts.get(unit as usize))).collect();
            let entities = of_row(&found.entity_rows, row as u32);
            let mut name = String::new();
            for &(entity, _) in entities {
                fold_into(names.get(entity as usize), &mut name);
                for (unit, text) in range.clone().zip(&folded) {
                    let at = units.spans[2 * unit as usize];
                    text.each(&name, |start, end| {
                        let (start, end) = (at.saturating_add(start), at.saturating_add(end));
                        part.mentions.push(Mention { entity, unit, start, end });
                    });
                }
                part.entity_units.extend(range.clone().map(|unit| (entity, unit)));
            }
            for &(relation, _) in of_row(&found.relation_rows, row as u32) {
                part.relation_units.extend(range.clone().map(|unit| (relation, unit)));
            }
        }
        Ok(part)
    })?;
    let columns = units.texts.len();
    let entities = parts.iter().flat_map(|p| p.entity_units.iter().copied());
    let relations = parts.iter().flat_map(|p| p.relation_units.iter().copied());
    Ok(Tied {
        entity_units: by_owner(entities, names.len(), columns),
        relation_units: by_owner(relations, found.pairs.len(), columns),
        mentions: by_entity(&parts, names.len())?,
    })
}

/// Return the mentions of all parts, sorted by entity. Mentions of the same entity keep their order.
fn by_entity(parts: &[Part], entities: usize) -> Result<Vec<Mention>> {
    let places = parts.iter().flat_map(|p| p.mentions.iter().map(|m| m.entity));
    let mut order = vec![0usize; entities + 1];
    places.for_each(|e| order[e as usize + 1] += 1);
    for e in 0..entities {
        order[e + 1] += order[e];
    }
    let blank = Mention { entity: 0, unit: 0, start: 0, end: 0 };
    let mut mentions = filled(blank, order[entities], "mentions of entities")?;
    for mention in parts.iter().flat_map(|p| &p.mentions) {
        let slot = &mut order[mention.entity as usize];
        mentions[*slot] = *mention;
        *slot += 1;
    }
    Ok(mentions)
}

/// Return the pairs (id, row) of one row. Pairs must ascend by row.
fn of_row(pairs: &[(u32, u32)], row: u32) -> &[(u32, u32)] {
    let start = pairs.partition_point(|p| p.1 < row);
    let length = pairs[start..].partition_point(|p| p.1 == row);
    &pairs[start..start + length]
}

/// Fold one character to upper, then lower case: `ß` and `SS` become equal.
fn fold_char(c: char) -> impl Iterator<Item = char> {
    c.to_uppercase().flat_map(char::to_lowercase)
}

fn fold_into(text: &str, out: &mut String) {
    out.clear();
    match text.is_ascii() {
        true => out.extend(text.chars().map(|c| c.to_ascii_lowercase())),
        false => out.extend(text.chars().flat_map(fold_char)),
    }
}

/// A case-folded text whose positions map back to the source characters.
struct Folded {
    text: String,
    /// For each byte of `text`: the code point that begins there, or `INSIDE` within a character, followed by
    /// the number of code points. Empty if every code point is one byte.
    place: Vec<u32>,
}

const INSIDE: u32 = u32::MAX;

impl Folded {
    fn new(text: &str) -> Self {
        if text.is_ascii() {
            return Self { text: text.to_ascii_lowercase(), place: Vec::new() };
        }
        let mut folded = Self { text: String::with_capacity(text.len()), place: Vec::new() };
        for (i, c) in text.chars().enumerate() {
            folded.place.resize(folded.text.len(), INSIDE);
            folded.place.push(i as u32);
            folded.text.extend(fold_char(c));
        }
        folded.place.resize(folded.text.len(), INSIDE);
        folded.place.push(text.chars().count() as u32);
        folded
    }

    fn at(&self, byte: usize) -> u32 {
        self.place.get(byte).copied().unwrap_or(byte as u32)
    }

    /// Call `take` with the start and end, in code points, of each whole-word occurrence of `name`, left to
    /// right without overlap.
    fn each(&self, name: &str, mut take: impl FnMut(u32, u32)) {
        if name.is_empty() {
            return;
        }
        let mut from = 0;
        while let Some(found) = self.text[from..].find(name) {
            let (start, end) = (from + found, from + found + name.len());
            let (first, last) = (self.at(start), self.at(end));
            if first != INSIDE && last != INSIDE && self.stands_free(start, end) {
                take(first, last);
                from = end;
            } else {
                from = start + self.text[start..].chars().next().map_or(1, char::len_utf8);
            }
        }
    }

    /// Return whether the name is not part of a longer word.
    fn stands_free(&self, start: usize, end: usize) -> bool {
        let (before, after) = self.text.split_at(start);
        let first = after.chars().next();
        let (inner, rest) = self.text.split_at(end);
        !(joined(before.chars().next_back(), first) || joined(inner.chars().next_back(), rest.chars().next()))
    }
}

fn joined(a: Option<char>, b: Option<char>) -> bool {
    a.is_some_and(spelt) && b.is_some_and(spelt)
}

/// Return whether `c` is a letter or digit of a script that separates words; in other scripts a word may
/// begin anywhere.
fn spelt(c: char) -> bool {
    let unspaced = matches!(c as u32, 0xe00..=0xeff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x2e80..=0xfaff)
        || c as u32 >= 0x20000;
    c.is_alphanumeric() && !unspaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, name: &str) -> Vec<(u32, u32)> {
        let mut folded = String::new();
        fold_into(name, &mut folded);
        let mut all = Vec::new();
        Folded::new(text).each(&folded, |a, b| all.push((a, b)));
        all
    }

    #[test]
    fn names_are_found_as_words_in_any_case() {
        assert_eq!(found("Nansen, nansen; Nansens NANSEN", "NANSEN"), [(0, 6), (8, 14), (24, 30)]);
        assert_eq!(found("house of US, bus", "US"), [(9, 11)]);
        assert_eq!(found("Die Straße, STRASSE", "STRASSE"), [(4, 10), (12, 19)]);
        assert_eq!(found("æß", "S"), []); // half of a folded ß is not an occurrence
        assert_eq!(found("東京都の東京", "東京"), [(0, 2), (4, 6)]);
        assert_eq!(found("ａé É", "É"), [(3, 4)]);
        assert_eq!(found("aa a", "A"), [(3, 4)]);
        assert_eq!(found("a", ""), []);
        assert_eq!(found("İstanbul", "İSTANBUL"), [(0, 8)]);
    }
}
