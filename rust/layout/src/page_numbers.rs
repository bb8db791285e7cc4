//! Lines with the number of their page.

use ketrag_text::classes::{is_decimal, is_letter, is_space, is_word_re};
use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};
use std::sync::OnceLock;

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
pub struct PageNumber {
    pub rest: String,
    pub value: i64,
}

/// Return a constant pattern.
fn pattern(cell: &'static OnceLock<Option<Regex>>, text: &str) -> Option<&'static Regex> {
    cell.get_or_init(|| Regex::new(text).ok()).as_ref()
}

/// Return whether a line with `#` for each number consists of the number of its page.
pub fn is_page_number(folded: &str) -> bool {
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
pub fn fold_numbers(text: &str) -> String {
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
pub fn page_numbers(text: &str) -> Vec<PageNumber> {
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
