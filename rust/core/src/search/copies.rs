//! Deduplication: keeps one of each group of equal and nearly equal units of a ranking.

use crate::error::{Error, Result};
use crate::items::Items;
use crate::sparse::Scored;
use crate::text::copies::Key;
use crate::text::strings::Strings;
use serde_json::Value;
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

/// Metadata fields that hold the date of a document.
const DATES: [&str; 2] = ["modified", "date"];

/// The keys of all units, and the values that decide between copies with equal scores.
#[derive(Debug, Clone, Copy)]
pub struct Copies<'a> {
    keys: Items<'a, u64>,
    document: Items<'a, u32>,
    ids: Strings<'a>,
    metadata: Option<Strings<'a>>,
}

impl<'a> Copies<'a> {
    /// `keys` has two values per unit. `metadata` is the JSON of each row of `ids`.
    pub fn new(
        keys: Items<'a, u64>,
        document: Items<'a, u32>,
        ids: Strings<'a>,
        metadata: Option<Strings<'a>>,
    ) -> Result<Self> {
        let fits = keys.len() == 2 * document.len() && metadata.is_none_or(|rows| rows.len() == ids.len());
        match fits {
            true => Ok(Self { keys, document, ids, metadata }),
            false => Err(Error::input("the keys of units or the metadata of documents have another length")),
        }
    }

    pub fn key(&self, unit: u32) -> Key {
        let [facts, sketch] = self.keys.pair(2 * unit as usize);
        Key { facts, sketch }
    }

    /// Return whether `unit` is printed instead of `other`, which has the same score: because its document is
    /// newer, its path is shorter, or it comes first.
    pub fn is_preferred(&self, unit: u32, other: u32) -> bool {
        let rank = |unit: u32| {
            let row = self.document[unit as usize] as usize;
            (self.date(row), Reverse(self.ids.bytes(row).len()), Reverse(unit))
        };
        rank(unit).cmp(&rank(other)) == Ordering::Greater
    }

    /// Return the date of a row's document, or nothing if its metadata has none.
    fn date(&self, row: usize) -> String {
        let Some(metadata) = self.metadata else { return String::new() };
        // Only the first section of a document has the document's metadata.
        let first = (0..=row).rev().find(|&at| !metadata.bytes(at).is_empty());
        let found = first.and_then(|at| serde_json::from_str::<Value>(metadata.get(at)).ok());
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let dates = DATES.iter().filter_map(|name| found.as_ref()?.get(name)).map(text);
        dates.max().unwrap_or_default()
    }
}

/// Maximum number of units with a common part of the sketch that are compared with another unit. Beyond it,
/// comparing is not worth the time: thousands of passages then lack numbers and names and are almost
/// identical.
const MOST: usize = 64;
/// Number of parts of a sketch. Copies differ in at most three of 64 bits, so at least one of four parts is
/// equal.
const PARTS: u32 = 4;

/// Maximum number of copies listed for a unit.
const LISTED: u32 = 100;

/// A ranking from which copies were removed.
#[derive(Debug, Default)]
pub struct Distinct {
    pub ranked: Vec<Scored>,
    /// (unit, omitted copy), in the order of the ranking; only the first copies of each unit.
    pub copies: Vec<(u32, u32)>,
}

/// Return the best of each group of copies, unless it is a copy of a unit in `without`: those are printed
/// elsewhere in the context. Of copies with equal scores, the preferred one takes the rank of the first.
pub fn distinct(ranked: Vec<Scored>, without: &[u32], copies: &Copies<'_>) -> Distinct {
    let ahead = without.len();
    let unit_at = |at: usize| without.get(at).copied().unwrap_or_else(|| ranked[at - ahead].id);
    let keys: Vec<_> = (0..ahead + ranked.len()).map(|at| copies.key(unit_at(at))).collect();
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|&at| (keys[at].facts, at));
    // For each position, the position of which it is a copy; its own if it is the first of its group.
    let mut first: Vec<usize> = (0..keys.len()).collect();
    for run in order.chunk_by(|&a, &b| keys[a].facts == keys[b].facts).filter(|run| run.len() > 1) {
        let mut parts: HashMap<(u32, u64), Vec<usize>> = HashMap::new();
        for &at in run {
            let sketch = keys[at].sketch;
            let part = |k: u32| (k, sketch >> (16 * k) & 0xffff);
            let near = |k: u32| parts.get(&part(k)).into_iter().flatten().copied();
            let found = (0..PARTS).flat_map(near).filter(|&own| keys[own].is_copy(keys[at])).min();
            if let Some(own) = found.filter(|_| at >= ahead) {
                first[at] = own;
                continue;
            }
            for k in 0..PARTS {
                let own = parts.entry(part(k)).or_default();
                if own.len() < MOST {
                    own.push(at);
                }
            }
        }
    }
    if first.iter().enumerate().all(|(at, &own)| at == own) {
        return Distinct { ranked, copies: Vec::new() };
    }
    let mut printed: Vec<u32> = (0..keys.len()).map(unit_at).collect();
    for at in ahead..keys.len() {
        let own = first[at];
        let ties = own >= ahead && own != at && ranked[own - ahead].score == ranked[at - ahead].score;
        if ties && copies.is_preferred(unit_at(at), printed[own]) {
            printed[own] = unit_at(at);
        }
    }
    let mut out = Distinct::default();
    let mut listed: HashMap<usize, u32> = HashMap::new();
    for at in ahead..keys.len() {
        let own = first[at];
        if own == at {
            out.ranked.push(Scored { id: printed[at], ..ranked[at - ahead] });
        }
        let count = listed.entry(own).or_default();
        if printed[own] != unit_at(at) && *count < LISTED {
            *count += 1;
            out.copies.push((printed[own], unit_at(at)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::copies::Keys;
    use crate::text::strings::StringsBuf;

    fn run(
        texts: &[&str],
        ids: &[&str],
        metadata: &[&str],
        ranked: &[(u32, f64)],
        without: &[u32],
    ) -> Distinct {
        let mut made = Keys::default();
        let key = |text: &&str| made.of(["", text]);
        let keys: Vec<u64> = texts.iter().map(key).flat_map(|key| [key.facts, key.sketch]).collect();
        let document: Vec<u32> = (0..texts.len() as u32).collect();
        let (ids, metadata): (StringsBuf, StringsBuf) = (ids.iter().collect(), metadata.iter().collect());
        let metadata = (!metadata.is_empty()).then(|| metadata.view());
        let copies = Copies::new((&keys).into(), (&document).into(), ids.view(), metadata).unwrap();
        let ranked = ranked.iter().map(|&(id, score)| Scored { id, score }).collect();
        distinct(ranked, without, &copies)
    }

    fn ids(found: &Distinct) -> Vec<u32> {
        found.ranked.iter().map(|one| one.id).collect()
    }

    #[test]
    fn the_best_of_equal_units_stays_and_names_the_others() {
        let texts = ["paid in 14 days", "paid in 7 days", "paid in 14 days", "paid in 14 days."];
        let found = run(&texts, &["a"; 4], &[], &[(2, 3.0), (0, 2.0), (1, 1.0), (3, 0.5)], &[]);
        assert_eq!((ids(&found), &found.copies[..]), (vec![2, 1], &[(2, 0), (2, 3)][..]));
        let found = run(&texts, &["a"; 4], &[], &[(2, 3.0), (1, 1.0)], &[0]);
        assert_eq!((ids(&found), &found.copies[..]), (vec![1], &[(0, 2)][..]));
    }

    #[test]
    fn of_equal_scores_the_newest_or_the_shortest_path_stays() {
        let ranked = [(0, 1.0), (1, 1.0), (2, 1.0), (3, 0.5)];
        let found = run(&["x"; 4], &["long/a", "b", "cc", "d"], &[], &ranked, &[]);
        assert_eq!((ids(&found), &found.copies[..]), (vec![1], &[(1, 0), (1, 2), (1, 3)][..]));
        let dates =
            [r#"{"date":"2024-01-01"}"#, "{}", r#"{"modified":"2025-01-01"}"#, r#"{"date":"2026-01-01"}"#];
        let found = run(&["x"; 4], &["a"; 4], &dates, &ranked, &[]);
        assert_eq!((ids(&found), &found.copies[..]), (vec![2], &[(2, 0), (2, 1), (2, 3)][..]));
    }

    #[test]
    fn many_equal_units_take_linear_time() {
        let texts = vec!["Licensed under the terms of the licence"; 200_000];
        let ranked: Vec<(u32, f64)> = (0..200_000).map(|id| (id, 1.0)).collect();
        let found = run(&texts, &vec!["a"; texts.len()], &[], &ranked, &[]);
        assert_eq!((ids(&found), found.copies.len()), (vec![0], LISTED as usize));
    }
}
