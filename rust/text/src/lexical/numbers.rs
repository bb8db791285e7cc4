//! Forms of numbers: groups of digits that are also written as one (1,250,000, an ISBN, an IBAN, a phone number),
//! versions, numbers with a unit, and long hexadecimal words.

use super::Lexer;
use std::ops::Range;

/// Units that are written next to their number, with or without a blank.
const UNITS: [&str; 49] = [
    "b", "kb", "mb", "gb", "tb", "pb", "kib", "mib", "gib", "tib", "bit", "mm", "cm", "m", "km", "nm", "ft",
    "in", "mi", "mg", "g", "kg", "lb", "oz", "ml", "cl", "dl", "l", "w", "kw", "mw", "gw", "kwh", "wh", "v",
    "kv", "mv", "a", "ma", "mah", "hz", "khz", "mhz", "ghz", "ms", "min", "h", "fps", "dpi",
];
/// Numbers of digits of phone numbers, ISBNs and cards: shorter ones are often two numbers, longer ones tables.
const DIGITS: Range<usize> = 7..18;
/// Maximum number of groups.
const MAX_GROUPS: usize = 9;
/// Minimum length of a hexadecimal word, and lengths of the beginnings by which it is found.
const HEXADECIMAL: usize = 8;
const BEGINNINGS: Range<usize> = 7..13;
const MAX_HEXADECIMAL: usize = 128;

/// The forms of a run of words that is a number.
pub(super) struct Number {
    pub end: usize,
    pub wholes: Vec<String>,
}

fn is_digits(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

impl Lexer {
    /// Return the forms of the number that begins at word `at`, if it has several words.
    pub(super) fn number_forms(&self, at: usize) -> Option<Number> {
        let first = self.raw(at);
        let next = self.words.get(at + 1)?;
        if !first.bytes().any(|byte| byte.is_ascii_digit()) || next.start - self.words[at].end > 2 {
            return None;
        }
        self.iban(at)
            .or_else(|| self.groups(at))
            .or_else(|| self.thousands(at))
            .or_else(|| self.version(at))
            .or_else(|| {
                let unit = self.lower(at + 1);
                let has_unit = is_digits(first) && self.gap(at + 1) == " " && UNITS.contains(&unit);
                has_unit.then(|| Number { end: at + 2, wholes: vec![format!("{first}{unit}")] })
            })
    }

    /// Return the end of the run of words from `at` on that fit and have such a gap before them.
    fn run(&self, at: usize, fits: impl Fn(&str) -> bool, gap: impl Fn(&str) -> bool) -> usize {
        let mut end = at + 1;
        while end < self.words.len() && end < at + MAX_GROUPS && gap(self.gap(end)) && fits(self.raw(end)) {
            end += 1;
        }
        end
    }

    fn joined(&self, words: Range<usize>) -> String {
        words.map(|k| self.lower(k)).collect()
    }

    /// DE89 3704 0044 0532 0130 00
    fn iban(&self, at: usize) -> Option<Number> {
        let first = self.raw(at).as_bytes();
        let is_first = first.len() == 4
            && first[..2].iter().all(u8::is_ascii_uppercase)
            && first[2..].iter().all(u8::is_ascii_digit);
        if !is_first {
            return None;
        }
        let is_group = |word: &str| {
            word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
        };
        let mut end = self.run(at, is_group, |gap| gap == " ");
        let is_rest = |word: &str| word.len() < 4 && is_digits(word);
        if end < self.words.len() && self.gap(end) == " " && is_rest(self.raw(end)) {
            end += 1;
        }
        (end > at + 3).then(|| Number { end, wholes: vec![self.joined(at..end)] })
    }

    /// 978-3-16-148410-0, 555-867-5309, +49 30 1234567, (555) 867-5309, 4111 1111 1111 1111
    fn groups(&self, at: usize) -> Option<Number> {
        if !is_digits(self.raw(at)) {
            return None;
        }
        let before = &self.folded[..self.words[at].start];
        let is_phone = before.ends_with(['+', '(']) || self.raw(at).starts_with('0');
        let is_card = |end: usize| end == at + 4 && (at..end).all(|k| self.raw(k).len() == 4);
        let hyphened = self.run(
            at,
            |word| is_digits(word) || matches!(word, "X" | "x"),
            |gap| gap == "-" || gap == "\u{2010}",
        );
        let spaced = self.run(at, is_digits, |gap| matches!(gap, " " | "-" | ") " | " (" | "/"));
        let end = match (is_phone && spaced > hyphened) || is_card(spaced) {
            true => spaced,
            false => hyphened,
        };
        let is_years = end == at + 2 && (at..end).all(|k| self.raw(k).len() == 4);
        let whole = self.joined(at..end);
        (end > at + 1 && !is_years && DIGITS.contains(&whole.len()))
            .then(|| Number { end, wholes: vec![whole] })
    }

    /// 1,250,000 and 1 250 000; 1.250 may also be a fraction or a version.
    fn thousands(&self, at: usize) -> Option<Number> {
        let first = self.raw(at);
        let separator = self.gap(at + 1);
        if !is_digits(first) || first.len() > 3 || !matches!(separator, "," | "." | "'" | "\u{2019}" | " ") {
            return None;
        }
        let end = self.run(at, |word| word.len() == 3 && is_digits(word), |gap| gap == separator);
        let whole = self.joined(at..end);
        let wholes = match separator {
            "." => vec![self.dotted(at..end), whole],
            _ => vec![whole],
        };
        (end > at + 1 && !first.starts_with('0')).then_some(Number { end, wholes })
    }

    /// 3.14 and v1.2.3
    fn version(&self, at: usize) -> Option<Number> {
        let first = self.raw(at);
        let is_first = is_digits(first.strip_prefix(['v', 'V']).unwrap_or(first));
        let end = self.run(at, is_digits, |gap| gap == ".");
        let has_letter = !is_digits(first);
        (is_first && end > at + 1).then(|| {
            let whole = self.dotted(at..end);
            let bare = has_letter.then(|| whole[1..].to_owned());
            Number { end, wholes: std::iter::once(whole).chain(bare).collect() }
        })
    }

    fn dotted(&self, words: Range<usize>) -> String {
        words.map(|k| self.lower(k)).collect::<Vec<_>>().join(".")
    }

    /// Return whether [`Lexer::each_part_of_number`] finds parts of word `k`.
    pub(super) fn has_number_parts(&self, k: usize) -> bool {
        let mut has_parts = false;
        self.each_part_of_number(k, |_| has_parts = true);
        has_parts
    }

    /// Call `each` with the parts of "512gb", and with the beginnings of a long hexadecimal word.
    pub(super) fn each_part_of_number<'a>(&'a self, k: usize, mut each: impl FnMut(&'a str)) {
        let word = self.lower(k);
        let is_mixed = word.bytes().any(|byte| byte.is_ascii_digit())
            && word.bytes().any(|byte| byte.is_ascii_alphabetic());
        if !is_mixed || !word.is_ascii() {
            return;
        }
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = word.split_at(digits);
        if digits > 0 && UNITS.contains(&unit) {
            each(number);
            each(unit);
        }
        let lengths = HEXADECIMAL..=MAX_HEXADECIMAL;
        if lengths.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            BEGINNINGS.filter(|&length| length < word.len()).for_each(|length| each(&word[..length]));
        }
    }
}
