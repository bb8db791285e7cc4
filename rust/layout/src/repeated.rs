//! Headers, footers and page numbers: lines that repeat at the same height and may differ in their numbers.
//!
//! The first or the last line of a page is a page number at any height if it is a number or ends with one, and the
//! numbers of several pages grow with the pages.

use crate::page::{larger, Line, Page};
use ketrag_text::classes::{is_decimal, is_letter, is_space, is_word_re};
use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

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

/// Remove repeated lines and page numbers from the pages. A page that would have no text keeps its lines.
pub fn remove_repeated_lines(pages: &mut [Page]) {
    let mut removed: Vec<Vec<Line>> = vec![Vec::new(); pages.len()];
    peel_edges(pages, &mut removed);
    let has_letters = |line: &Line| line.text.chars().filter(|&c| is_letter(c)).nth(2).is_some();
    for (page, own) in pages.iter_mut().zip(removed) {
        if page.lines.is_empty() && own.iter().any(has_letters) {
            page.lines = own;
        }
    }
}

fn peel_edges(pages: &mut [Page], removed: &mut [Vec<Line>]) {
    for _ in 0..DEEP {
        let mut is_changed = false;
        for peel in [peel_lines, peel_numbers] {
            for side in [Side::Top, Side::Bottom] {
                is_changed |= peel(pages, side, removed);
            }
        }
        if !is_changed {
            return;
        }
    }
}

/// Return the positions of the lines at the height of the first or the last line of a page.
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

/// Move the lines at the given positions to `removed`. Returns whether there were any.
fn remove_lines(page: &mut Page, gone: &HashSet<usize>, removed: &mut Vec<Line>) -> bool {
    if gone.is_empty() {
        return false;
    }
    let lines = std::mem::take(&mut page.lines);
    for (at, line) in lines.into_iter().enumerate() {
        if gone.contains(&at) {
            removed.push(line);
        } else {
            page.lines.push(line);
        }
    }
    true
}

/// Remove the outermost line of each page if it contains the page number. Returns whether any line was
/// removed.
fn peel_numbers(pages: &mut [Page], side: Side, removed: &mut [Vec<Line>]) -> bool {
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
    for ((page, own), removed) in pages.iter_mut().zip(numbered).zip(removed) {
        let is_repeated = |key: &(String, i64)| seen.get(key).is_some_and(|&count| count >= LEAST);
        let gone = own.into_iter().filter(|(_, key)| is_repeated(key)).map(|(at, _)| at).collect();
        is_changed |= remove_lines(page, &gone, removed);
    }
    is_changed
}

/// Remove the outermost line of each page if it repeats. Returns whether any line was removed.
fn peel_lines(pages: &mut [Page], side: Side, removed: &mut [Vec<Line>]) -> bool {
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
    for ((page, own), removed) in pages.iter_mut().zip(&outermost).zip(removed) {
        let gone = own.iter().filter(|(_, key)| repeated.contains(key)).map(|(at, _)| *at).collect();
        is_changed |= remove_lines(page, &gone, removed);
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

// Lines with the number of their page.

/// The longest line, in characters, that is compared with those of other pages.
const LONGEST: usize = 200;
/// The longest line that may contain the number of its page.
const LONGEST_NUMBERED: usize = 150;
const FOLDED: &str =
    r"(?i)^(?:[-–—\s|·]*(?:(?:page|seite|p\.?)\s*)?#(?:\s*(?:/|of|von)\s*#)?[-–—\s|·.]*|[ivxlc]{1,7})$";
const NUMBERED: &str = concat!(
    r"(?i)^[-–—|·.\s]*(?:(?:page|seite|p\.)\s*)?(?:[A-Z]{1,2}\s?[-–.]\s?)?(\d{1,4})",
    r"(?:\s*(?:/|of|von)\s*\d{1,4})?[-–—|·.\s]*$"
);

/// A number in a line that may be that of its page, and the line without it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PageNumber {
    pub rest: String,
    pub value: i64,
}

/// Return a constant pattern.
fn pattern(cell: &'static OnceLock<Option<Regex>>, text: &str) -> Option<&'static Regex> {
    cell.get_or_init(|| Regex::new(text).ok()).as_ref()
}

/// Return whether a line with `#` for each number consists of the number of its page.
fn is_page_number(folded: &str) -> bool {
    static PATTERN: OnceLock<Option<Regex>> = OnceLock::new();
    let may_be = folded.contains('#') || folded.len() <= 7;
    may_be && pattern(&PATTERN, FOLDED).is_some_and(|own| own.is_match(folded))
}

/// Return the words of a text in lower case with single spaces.
fn plain(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    for word in text.to_lowercase().split(is_space).filter(|word| !word.is_empty()) {
        if !found.is_empty() {
            found.push(' ');
        }
        found.push_str(word);
    }
    found
}

/// Return a line in a form that is the same on all pages: a number inside a line distinguishes headings, those at its
/// ends are that of the page and become `#`.
fn fold_numbers(text: &str) -> String {
    let plain = plain(text);
    let page = fold_all(&plain);
    if is_page_number(&page) {
        return page;
    }
    let chars: Vec<char> = plain.chars().collect();
    let head = chars.iter().take_while(|&&c| is_decimal(c)).count();
    let tail = chars.iter().rev().take_while(|&&c| is_decimal(c)).count();
    let is_apart = |c: Option<&char>| c.is_none_or(|&c| !is_word_re(c));
    let begin = if is_apart(chars.get(head)) { head } else { 0 };
    let mut end = chars.len() - tail;
    if end <= begin || !is_apart(chars.get(end - 1)) {
        end = chars.len();
    }
    let mut found = String::with_capacity(plain.len());
    found.extend((begin > 0).then_some('#'));
    found.extend(&chars[begin..end]);
    found.extend((end < chars.len()).then_some('#'));
    found.chars().take(LONGEST).collect()
}

/// Return a text with `#` for each number.
fn fold_all(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    let mut is_inside = false;
    for c in text.chars() {
        if !is_decimal(c) {
            found.push(c);
        } else if !is_inside {
            found.push('#');
        }
        is_inside = is_decimal(c);
    }
    found
}

/// Return each number of a line that may be that of its page.
fn page_numbers(text: &str) -> Vec<PageNumber> {
    static PATTERN: OnceLock<Option<Regex>> = OnceLock::new();
    let plain = plain(text);
    if plain.contains(is_decimal) {
        if let Some(own) = pattern(&PATTERN, NUMBERED) {
            let mut captures = own.create_captures();
            own.captures(Input::new(&plain).anchored(Anchored::Yes), &mut captures);
            if let Some(group) = captures.get_group(1) {
                return vec![PageNumber { rest: String::new(), value: value(&plain[group.range()]) }];
            }
        }
    }
    let chars: Vec<char> = plain.chars().collect();
    if chars.len() > LONGEST_NUMBERED {
        return Vec::new();
    }
    let mut found = Vec::new();
    let head = chars.iter().take_while(|&&c| is_decimal(c)).count();
    if (1..=4).contains(&head) && chars.get(head).copied().is_some_and(is_separator) {
        found.push((chars[head + 1..].iter().collect(), chars[..head].iter().collect()));
    }
    let tail = chars.iter().rev().take_while(|&&c| is_decimal(c)).count();
    if (1..=4).contains(&tail) && tail < chars.len() && is_separator(chars[chars.len() - tail - 1]) {
        let at = chars.len() - tail - 1;
        found.push((chars[..at].iter().collect(), chars[at + 1..].iter().collect()));
    }
    found
        .into_iter()
        .filter(|(rest, _): &(String, String)| rest.chars().filter(|&c| is_letter(c)).count() >= 3)
        .map(|(rest, digits)| PageNumber { rest, value: value(&digits) })
        .collect()
}

fn is_separator(c: char) -> bool {
    matches!(c, ' ' | '|' | '·' | '–' | '—' | '-')
}

/// Return the value of decimal digits.
fn value(digits: &str) -> i64 {
    digits.chars().fold(0, |value, digit| 10 * value + i64::from(digit_value(digit)))
}

/// Return the value of a decimal digit. Unicode has the digits of a script in a row, some rows after each other.
fn digit_value(c: char) -> u32 {
    (1..=c as u32).take_while(|&back| char::from_u32(c as u32 - back).is_some_and(is_decimal)).count() as u32
        % 10
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

    fn numbers(text: &str) -> Vec<(String, i64)> {
        page_numbers(text).into_iter().map(|own| (own.rest, own.value)).collect()
    }

    #[test]
    fn lines_that_are_page_numbers() {
        for text in ["12", "- 12 -", "Page 3 of 120", "p. 4", "F-12", "seite 7 / 9", "A.3"] {
            assert_eq!(numbers(text).len(), 1, "{text}");
            assert_eq!(numbers(text)[0].0, "", "{text}");
        }
        assert_eq!(value("\u{661}\u{669}\u{660}7"), 1907);
        assert_eq!(value("\u{1d7ce}\u{1d7d9}\u{1d7ff}"), 19);
        assert_eq!(numbers("F-12"), [(String::new(), 12)]);
        assert_eq!(numbers("Annual Report | 12"), [("annual report |".to_string(), 12)]);
        assert_eq!(numbers("12 Annual Report"), [("annual report".to_string(), 12)]);
        assert_eq!(numbers("in 2012"), []);
        assert_eq!(numbers("Report 12345"), []);
        assert!(numbers(&format!("{} 12", "word ".repeat(40))).is_empty());
    }

    #[test]
    fn numbers_at_the_ends_of_lines_are_folded() {
        assert_eq!(fold_numbers("Page  12"), "page #");
        assert_eq!(fold_numbers("12 On the Voyage 34"), "# on the voyage #");
        assert_eq!(fold_numbers("Part 12 of it"), "part 12 of it");
        assert_eq!(fold_numbers("12th of May5"), "12th of may5");
        assert_eq!(fold_numbers("- 12 / 34 -"), "- # / # -");
        assert!(is_page_number("# of #") && is_page_number("xii") && !is_page_number("part #"));
    }
}
