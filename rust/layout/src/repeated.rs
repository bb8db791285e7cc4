//! Headers, footers and page numbers: lines that repeat at one height, up to their numbers.
//!
//! The first or the last line of a page is a page number at any height if it is a number or ends with one, and the
//! numbers of several pages grow with the pages.

use crate::page::{larger, Line, Page};
use crate::page_numbers::{fold_numbers, is_page_number, page_numbers, PageNumber};
use std::collections::{HashMap, HashSet};

/// How many heights from the top and the bottom are examined.
const DEEP: usize = 3;
/// The share of the page height that counts as its edge.
const EDGE: f64 = 0.14;
const SLACK: f64 = 4.0;
const LEAST: usize = 3;
/// A row of several cells with this many rows next to it that have the same columns is one of a table.
const ROWS: usize = 3;
/// The maximum distance of such rows, in letter heights, and of the edges of their cells.
const NEAR: f64 = 2.5;
const ALIGNED: f64 = 2.0;

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Top,
    Bottom,
}

/// Remove repeated lines and page numbers from the pages.
pub fn remove_repeated_lines(pages: &mut [Page]) {
    for _ in 0..DEEP {
        let mut is_changed = false;
        for peel in [peel_lines, peel_numbers] {
            for side in [Side::Top, Side::Bottom] {
                is_changed |= peel(pages, side);
            }
        }
        if !is_changed {
            return;
        }
    }
}

/// Return the places of the lines at the height of the first or the last line of a page.
fn extreme_lines(page: &Page, side: Side) -> Vec<usize> {
    let upright = || page.lines.iter().enumerate().filter(|(_, line)| line.upright);
    let first = upright().map(|(_, line)| line).reduce(|a, b| match side {
        Side::Top if b.top < a.top => b,
        Side::Bottom if b.bottom > a.bottom => b,
        _ => a,
    });
    let Some(first) = first else { return Vec::new() };
    let (middle, most) = (first.twice_middle() / 2.0, larger(first.size, 4.0) / 2.0);
    let is_level = |line: &Line| {
        let distance = line.twice_middle() / 2.0 - middle;
        -most < distance && distance < most
    };
    let found: Vec<usize> = upright().filter(|(_, line)| is_level(line)).map(|(at, _)| at).collect();
    if is_table_row(page, &found, side) {
        return Vec::new();
    }
    found
}

/// Return whether lines at one height are the cells of a table that goes on towards the middle of the page.
fn is_table_row(page: &Page, row: &[usize], side: Side) -> bool {
    let [first, _, ..] = row else { return false };
    let size = larger(page.lines[*first].size, 4.0);
    let inward = if side == Side::Top { 1.0 } else { -1.0 };
    let place = |line: &Line| inward * line.twice_middle() / 2.0;
    let mut at = place(&page.lines[*first]);
    for _ in 0..ROWS {
        let inner = || page.lines.iter().filter(|line| line.upright && place(line) - at > size / 2.0);
        let Some(next) = inner().map(place).reduce(f64::min).filter(|next| next - at < NEAR * size) else {
            return false;
        };
        let is_below = |cell: &Line| {
            inner().filter(|line| place(line) - next < size / 2.0).any(|line| {
                (line.left - cell.left).abs() < ALIGNED || (line.right - cell.right).abs() < ALIGNED
            })
        };
        if !row.iter().all(|&cell| is_below(&page.lines[cell])) {
            return false;
        }
        at = next;
    }
    true
}

/// Remove lines at given places; return whether there are any.
fn remove_lines(page: &mut Page, gone: &HashSet<usize>) -> bool {
    let mut at = 0;
    page.lines.retain(|_| {
        at += 1;
        gone.is_empty() || !gone.contains(&(at - 1))
    });
    !gone.is_empty()
}

/// Remove the outermost line of each page if it has the number of the page; return whether any has.
fn peel_numbers(pages: &mut [Page], side: Side) -> bool {
    let mut seen: HashMap<(String, i64), usize> = HashMap::new();
    let mut numbered: Vec<Vec<(usize, (String, i64))>> = Vec::with_capacity(pages.len());
    for (number, page) in pages.iter().enumerate() {
        let mut own = Vec::new();
        for at in extreme_lines(page, side) {
            for PageNumber { rest, value } in page_numbers(&page.lines[at].text) {
                own.push((at, (rest, value - number as i64)));
            }
        }
        let keys: HashSet<&(String, i64)> = own.iter().map(|(_, key)| key).collect();
        for key in keys {
            *seen.entry(key.clone()).or_default() += 1;
        }
        numbered.push(own);
    }
    let mut is_changed = false;
    for (page, own) in pages.iter_mut().zip(numbered) {
        let is_repeated = |key: &(String, i64)| seen.get(key).is_some_and(|&count| count >= LEAST);
        let gone = own.into_iter().filter(|(_, key)| is_repeated(key)).map(|(at, _)| at).collect();
        is_changed |= remove_lines(page, &gone);
    }
    is_changed
}

/// Remove the outermost line of each page if it repeats; return whether any did.
fn peel_lines(pages: &mut [Page], side: Side) -> bool {
    let mut seen: HashMap<(String, i64), Vec<usize>> = HashMap::new();
    let mut outermost: Vec<Vec<(usize, (String, i64))>> = Vec::with_capacity(pages.len());
    for (number, page) in pages.iter().enumerate() {
        let mut own = Vec::new();
        for at in edge_lines(page, side) {
            let line = &page.lines[at];
            let key = (fold_numbers(&line.text), (line.top / SLACK).round_ties_even() as i64);
            if !key.0.is_empty() {
                seen.entry(key.clone()).or_default().push(number);
                own.push((at, key));
            }
        }
        outermost.push(own);
    }
    let mut repeated: HashSet<&(String, i64)> = HashSet::new();
    for key in seen.keys() {
        let is_number = is_page_number(&key.0);
        let needed = if is_number || pages.len() == 2 { 2 } else { LEAST };
        let near = (key.1 - 1..=key.1 + 1).filter_map(|place| seen.get(&(key.0.clone(), place)));
        let numbers: HashSet<usize> = near.flatten().copied().collect();
        if numbers.len() >= needed && (is_number || key.0.chars().nth(3).is_some()) {
            repeated.insert(key);
        }
    }
    let mut is_changed = false;
    for (page, own) in pages.iter_mut().zip(&outermost) {
        let gone = own.iter().filter(|(_, key)| repeated.contains(key)).map(|(at, _)| *at).collect();
        is_changed |= remove_lines(page, &gone);
    }
    is_changed
}

/// Return the places of the lines at the height of the first or the last line, if that is at the page edge.
fn edge_lines(page: &Page, side: Side) -> Vec<usize> {
    let mut found = extreme_lines(page, side);
    found.retain(|&at| match side {
        Side::Top => page.lines[at].top <= EDGE * page.height,
        Side::Bottom => page.lines[at].bottom >= (1.0 - EDGE) * page.height,
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(lines: &[(f64, &str)]) -> Page {
        let line =
            |&(top, text): &(f64, &str)| Line::new([50.0, top, 200.0, top + 10.0], 10.0, text.into(), false);
        Page { width: 600.0, height: 800.0, lines: lines.iter().map(line).collect(), ..Page::default() }
    }

    fn texts(mut pages: Vec<Page>) -> Vec<String> {
        remove_repeated_lines(&mut pages);
        pages
            .iter()
            .map(|page| page.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("|"))
            .collect()
    }

    #[test]
    fn heads_and_numbers_are_removed() {
        let pages = ["ice", "snow", "sea"].iter().enumerate().map(|(at, text)| {
            page(&[
                (40.0, "On the Voyage"),
                (300.0, text),
                (400.0 + 30.0 * at as f64, &format!("Part | {}", at + 3)),
            ])
        });
        assert_eq!(texts(pages.collect()), ["ice", "snow", "sea"]);
    }

    #[test]
    fn lines_inside_the_page_and_other_numbers_stay() {
        let pages = [17, 4, 11].map(|number| page(&[(300.0, "On the Voyage"), (400.0, &number.to_string())]));
        assert_eq!(texts(pages.to_vec()), ["On the Voyage|17", "On the Voyage|4", "On the Voyage|11"]);
    }
}
