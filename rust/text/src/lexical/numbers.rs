//! Forms of numbers: groups of digits that are also written as one (1,250,000, an ISBN, an IBAN, a phone number, the address
//! of a network card), sizes, fractions, powers, versions, numbers with a unit, and long hexadecimal words.

use super::Lexer;
use std::borrow::Cow;
use std::ops::Range;

/// Units that are written next to their number, with or without a blank.
const UNITS: [&str; 55] = [
    "b", "kb", "mb", "gb", "tb", "pb", "kib", "mib", "gib", "tib", "bit", "mm", "cm", "m", "km", "nm", "ft",
    "in", "mi", "mg", "g", "kg", "lb", "oz", "ml", "cl", "dl", "l", "w", "kw", "mw", "gw", "kwh", "wh", "v",
    "kv", "mv", "a", "ma", "mah", "hz", "khz", "mhz", "ghz", "ms", "min", "h", "fps", "dpi", "am", "pm",
    "um", "ug", "ul", "us",
];
/// Units that do not count after a blank: function words, as in "born in 1945 in Oslo" and "5 US dollars", and times of day. "10am" has the
/// number 10, so it is found by "10 am" all the same; with "10 am" as one word, walk finds 0.17 % less of lihua-world.
const ONLY_ATTACHED: [&str; 5] = ["a", "am", "in", "pm", "us"];
/// Numbers of digits of phone numbers, ISBNs and cards: shorter ones are often two numbers, longer ones tables.
const DIGITS: Range<usize> = 7..18;
/// Maximum size in bytes of what separates the groups of a number: a multiplication sign between blanks.
const MAX_GAP: usize = 4;
/// Maximum number of groups.
const MAX_GROUPS: usize = 9;
/// Minimum length of a hexadecimal word, and lengths of the beginnings by which it is found.
pub(super) const HEXADECIMAL: usize = 8;
const BEGINNINGS: Range<usize> = 7..13;
const MAX_HEXADECIMAL: usize = 128;

/// The forms of a run of words that is a number.
pub(super) struct Number {
    pub end: usize,
    pub wholes: Vec<String>,
}

pub(super) fn is_digits(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Return a unit in lower case in letters that every keyboard has: "um" for "μm".
fn plain_unit(unit: &str) -> Cow<'_, str> {
    match unit.strip_prefix('μ') {
        Some(rest) => Cow::Owned(format!("u{rest}")),
        None => Cow::Borrowed(unit),
    }
}

impl Lexer {
    /// Return the forms of the number that begins at word `at`, if it has several words.
    pub(super) fn number_forms(&self, at: usize) -> Option<Number> {
        let first = self.raw(at);
        let next = self.words.get(at + 1)?;
        if next.start - self.words[at].end > MAX_GAP {
            return None;
        }
        if let Some(number) = self.hardware_address(at).or_else(|| self.power(at)) {
            return Some(number);
        }
        if !first.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.iban(at)
            .or_else(|| self.groups(at))
            .or_else(|| self.size(at))
            .or_else(|| self.fraction(at))
            .or_else(|| self.thousands(at))
            .or_else(|| self.lakhs(at))
            .or_else(|| self.decimal_comma(at))
            .or_else(|| self.version(at))
            .or_else(|| self.measure(at))
    }

    /// 512 GB, 5 µm, 21 °C
    fn measure(&self, at: usize) -> Option<Number> {
        let first = self.raw(at);
        if !is_digits(first) {
            return None;
        }
        let unit = self.lower(at + 1);
        let is_unit = match self.gap(at + 1) {
            " " if matches!(self.raw(at + 1), "C" | "F") => true,
            " " => UNITS.contains(&&*plain_unit(unit)) && !ONLY_ATTACHED.contains(&unit),
            "°" | " °" | "° " => matches!(unit, "c" | "f"),
            _ => false,
        };
        let whole = || format!("{first}{}", plain_unit(unit));
        is_unit.then(|| Number { end: at + 2, wholes: vec![whole()] })
    }

    /// 00:1A:2B:3C:4D:5E
    fn hardware_address(&self, at: usize) -> Option<Number> {
        let separator = self.gap(at + 1);
        let is_pair = |word: &str| word.len() == 2 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !matches!(separator, ":" | "-") || !is_pair(self.raw(at)) {
            return None;
        }
        let end = self.run(at, is_pair, |gap| gap == separator);
        matches!(end - at, 6 | 8).then(|| Number { end, wholes: vec![self.joined(at..end)] })
    }

    /// 10^6 and x^2, which are found like 10⁶ and x²
    fn power(&self, at: usize) -> Option<Number> {
        let is_power = self.gap(at + 1) == "^" && is_digits(self.raw(at + 1));
        is_power.then(|| Number { end: at + 2, wholes: vec![self.joined(at..at + 2)] })
    }

    /// 1920 x 1080 and 1920×1080, which are found like 1920x1080
    fn size(&self, at: usize) -> Option<Number> {
        let is_number = |k: usize| k < self.words.len() && is_digits(self.raw(k));
        let mut end = at + 1;
        while is_number(at) && end < at + MAX_GROUPS {
            if is_number(end) && matches!(self.gap(end), "\u{d7}" | " \u{d7} ") {
                end += 1;
            } else if is_number(end + 1)
                && self.lower(end) == "x"
                && self.gap(end) == " "
                && self.gap(end + 1) == " "
            {
                end += 2;
            } else {
                break;
            }
        }
        let numbers: Vec<&str> = (at..end).map(|k| self.raw(k)).filter(|word| is_digits(word)).collect();
        (end > at + 1).then(|| Number { end, wholes: vec![numbers.join("x")] })
    }

    /// 1/2 and ½; not the parts of a date
    fn fraction(&self, at: usize) -> Option<Number> {
        let is_slash = |k: usize| k < self.words.len() && matches!(self.gap(k), "/" | "\u{2044}");
        let is_short = |k: usize| self.raw(k).len() < 3 && is_digits(self.raw(k));
        let is_fraction = is_slash(at + 1) && is_short(at) && is_short(at + 1) && !is_slash(at + 2);
        (is_fraction && !(at > 0 && is_slash(at)))
            .then(|| Number { end: at + 2, wholes: vec![format!("{}/{}", self.raw(at), self.raw(at + 1))] })
    }

    /// 12,50 and 0,125; not a list
    fn decimal_comma(&self, at: usize) -> Option<Number> {
        let is_comma = |k: usize| k < self.words.len() && self.gap(k) == ",";
        let [whole, part] = [at, at + 1].map(|k| self.raw(k));
        let is_number = is_digits(whole) && is_digits(part) && (part.len() < 3 || whole == "0");
        let is_alone = is_comma(at + 1) && !is_comma(at + 2) && !(at > 0 && is_comma(at));
        (is_number && is_alone).then(|| Number { end: at + 2, wholes: vec![format!("{whole}.{part}")] })
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

    /// 978-3-16-148410-0, 555-867-5309, 555.867.5309, +49 30 1234567, (555) 867-5309, 4111 1111 1111 1111. A phone number
    /// that begins with "+" or a bracket is also found without its first group, and with a zero instead of a country.
    fn groups(&self, at: usize) -> Option<Number> {
        if !is_digits(self.raw(at)) {
            return None;
        }
        let before = &self.folded[..self.words[at].start];
        let is_marked = before.ends_with(['+', '(']);
        let is_phone = is_marked || self.raw(at).starts_with('0');
        let is_card = |end: usize| end == at + 4 && (at..end).all(|k| self.raw(k).len() == 4);
        let hyphened = self.run(
            at,
            |word| is_digits(word.strip_suffix(['X', 'x']).unwrap_or(word)),
            |gap| gap == "-" || gap == "\u{2010}",
        );
        let spaced = self.run(at, is_digits, |gap| matches!(gap, " " | "-" | ") " | " (" | "/"));
        let dotted = self.run(at, is_digits, |gap| gap == ".");
        let is_dotted_phone = dotted == at + 3 && (at..dotted).map(|k| self.raw(k).len()).eq([3, 3, 4]);
        let end = match (is_phone && spaced > hyphened) || is_card(spaced) {
            true => spaced,
            false if is_dotted_phone => dotted,
            false => hyphened,
        };
        let is_year = |word: &str| word.len() == 4 && is_digits(word) && word.starts_with(['1', '2']);
        let is_years = end == at + 2 && (at..end).all(|k| is_year(self.raw(k)));
        let whole = self.joined(at..end);
        if end == at + 1 || is_years || !DIGITS.contains(&whole.len()) {
            return None;
        }
        let mut wholes = vec![whole];
        let rest = self.joined(at + 1..end);
        if is_marked && DIGITS.contains(&rest.len()) {
            if before.ends_with('+') && !rest.starts_with('0') {
                wholes.push(format!("0{rest}"));
            }
            wholes.push(rest);
        }
        Some(Number { end, wholes })
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

    /// 1,23,456 and 12,34,56,789
    fn lakhs(&self, at: usize) -> Option<Number> {
        let first = self.raw(at);
        let is_group = |k: usize, digits: usize| {
            let word = self.words.get(k).map_or("", |_| self.raw(k));
            word.len() == digits && is_digits(word) && self.gap(k) == ","
        };
        let pairs = self.run(at, |word| word.len() == 2 && is_digits(word), |gap| gap == ",");
        let is_list = self.words.get(pairs + 1).is_some() && self.gap(pairs + 1) == ",";
        let is_number = first.len() < 3 && is_digits(first) && !first.starts_with('0');
        (is_number && pairs > at + 1 && is_group(pairs, 3) && !is_list)
            .then(|| Number { end: pairs + 1, wholes: vec![self.joined(at..pairs + 1)] })
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

    /// Return "5um" for the word "5μm".
    pub(super) fn plain_measure(&self, k: usize) -> Option<String> {
        let (number, unit) = self.lower(k).split_once('μ')?;
        let unit = format!("u{unit}");
        (is_digits(number) && UNITS.contains(&unit.as_str())).then(|| format!("{number}{unit}"))
    }

    /// Call `each` with the parts of "512gb", and with the beginnings of a long hexadecimal word.
    pub(super) fn each_part_of_number<'a>(&'a self, k: usize, mut each: impl FnMut(&'a str)) {
        let word = self.lower(k);
        let is_mixed = word.bytes().any(|byte| byte.is_ascii_digit())
            && word.chars().any(|c| c.is_ascii_alphabetic() || c == 'μ');
        if !is_mixed || !(word.is_ascii() || word.contains('μ')) {
            return;
        }
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = word.split_at(digits);
        if digits > 0 && UNITS.contains(&&*plain_unit(unit)) {
            each(number);
            each(unit);
        }
        let lengths = HEXADECIMAL..=MAX_HEXADECIMAL;
        if lengths.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            BEGINNINGS.filter(|&length| length < word.len()).for_each(|length| each(&word[..length]));
        }
    }
}
