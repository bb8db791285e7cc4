//! Searches texts for lines that match a pattern, in time linear in the size of the texts for every pattern.
//!
//! A pattern is applied to each line by itself, as grep does: `^` and `$` are the ends of a line, and no part
//! of it matches a line end. The whole text is searched for the next match, so lines without a match cost
//! only a scan for the pattern's literals, not one call per line.

use crate::error::{Error, Result};
use crate::strings::Strings;
use regex_automata::meta::{Config, Regex};
use regex_automata::Input;
use regex_syntax::hir::{Capture, Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition};
use regex_syntax::ParserBuilder;

/// Maximum size in bytes of a compiled pattern.
const LARGEST: usize = 10 << 20;
/// Maximum number of bytes returned of a long line, around its first match.
const WIDEST: usize = 2_000;
/// Number of bytes before the first match in a truncated line.
const BEFORE: usize = 200;
/// Maximum number of matches of a line that are located.
const MARKED: usize = 100;

/// A compiled pattern.
pub struct Pattern {
    regex: Regex,
}

/// Options of a pattern.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading {
    /// Ignore case.
    pub any_case: bool,
    /// Match only whole words.
    pub words: bool,
    /// The pattern is a literal string.
    pub literal: bool,
}

/// A line that matches. Positions are in code points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The index of the string that contains the line.
    pub string: usize,
    /// The number of the line within its string, from 0.
    pub line: usize,
    /// Start and end of the line within the string.
    pub span: (usize, usize),
    /// The text of the line without its line end; for a long line, the part around its first match.
    pub text: String,
    /// Number of code points of the line before `text`.
    pub cut: usize,
    /// The matches in `text`.
    pub marks: Vec<(usize, usize)>,
}

impl Pattern {
    /// Compile a pattern. Returns an input error that names the wrong character or reports that the pattern
    /// is too large.
    pub fn new(pattern: &str, reading: Reading) -> Result<Self> {
        let escaped = reading.literal.then(|| regex_syntax::escape(pattern));
        let source = escaped.as_deref().unwrap_or(pattern);
        let parse = |source: &str| {
            let mut parser = ParserBuilder::new();
            let parser = parser.multi_line(true).crlf(true).case_insensitive(reading.any_case);
            parser.build().parse(source).map_err(|error| Error::input(refusal(&error)))
        };
        let mut parsed = parse(source)?; // compile it alone first, so that errors show the pattern as written
        if reading.words {
            parsed = parse(&format!(r"\b{{start-half}}(?:{source})\b{{end-half}}"))?;
        }
        let built = Regex::builder()
            .configure(Config::new().nfa_size_limit(Some(LARGEST)))
            .build_from_hir(&within_lines(&parsed));
        let regex = built.map_err(|error| Error::input(format!("the pattern is too large: {error}")))?;
        Ok(Self { regex })
    }

    /// Return the matching lines of the strings in order, at most `each` per string and `most` in total.
    pub fn lines(&self, strings: Strings<'_>, each: usize, most: usize) -> Vec<Line> {
        let mut found = Vec::new();
        for string in 0..strings.len() {
            let text = strings.get(string);
            let (mut byte, mut line, mut point) = (0, 0, 0);
            let left = most - found.len();
            for (start, end) in self.matching(text).take(each.min(left)) {
                let before = &text[byte..start];
                line += before.bytes().filter(|&b| b == b'\n').count();
                point += before.chars().count();
                byte = start;
                found.push(self.located(string, line, point, &text[start..end]));
            }
            if found.len() == most {
                break;
            }
        }
        found
    }

    /// Return whether a line of a text matches.
    pub fn is_in(&self, text: &str) -> bool {
        self.matching(text).next().is_some()
    }

    /// Return the number of matching lines of each string, counted up to `each`.
    pub fn counts(&self, strings: Strings<'_>, each: usize) -> Vec<u32> {
        let count = |text| self.matching(text).take(each).count().min(u32::MAX as usize) as u32;
        strings.iter().map(count).collect()
    }

    /// Return the start and end of each matching line of a text.
    fn matching<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < text.len() {
                let found = self.regex.find(Input::new(text).span(at..text.len()))?;
                if found.start() == text.len() && text.ends_with('\n') {
                    at = text.len(); // behind the last line
                    return None;
                }
                let start = text[..found.start()].rfind('\n').map_or(0, |end| end + 1);
                let stop = text[found.start()..].find('\n').map_or(text.len(), |end| found.start() + end);
                at = stop + 1;
                let end = start + text[start..stop].trim_end_matches('\r').len();
                // A match of only half of a line end does not count.
                if found.end() <= end || self.regex.is_match(&text[start..end]) {
                    return Some((start, end));
                }
            }
            None
        })
    }

    /// Return a line with its matches. `point` is the start of the line in code points.
    fn located(&self, string: usize, line: usize, point: usize, whole: &str) -> Line {
        let first = self.regex.find(whole).map_or(0, |found| found.start());
        let (mut start, mut stop) = (0, whole.len());
        if whole.len() > WIDEST {
            start = floor(whole, first.saturating_sub(BEFORE));
            stop = floor(whole, start + WIDEST);
        }
        let text = &whole[start..stop];
        let mut marks = Vec::new();
        let (mut byte, mut points) = (0, 0);
        for found in self.regex.find_iter(text).filter(|found| !found.is_empty()).take(MARKED) {
            points += text[byte..found.start()].chars().count();
            let length = text[found.range()].chars().count();
            marks.push((points, points + length));
            points += length;
            byte = found.end();
        }
        Line {
            string,
            line,
            span: (point, point + whole.chars().count()),
            text: text.to_owned(),
            cut: whole[..start].chars().count(),
            marks,
        }
    }
}

/// Return the start of the character that contains byte `at`, at most the length.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Return the reason why a pattern is invalid, in one line.
fn refusal(error: &regex_syntax::Error) -> String {
    let (kind, at) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start.column),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span().start.column),
        _ => return "the pattern is not a regular expression".into(),
    };
    format!("the pattern is not a regular expression: {kind} (character {at})")
}

/// Return a pattern that matches the same text within a line and never matches a line end.
fn within_lines(pattern: &Hir) -> Hir {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => pattern.clone(),
        HirKind::Literal(literal) => match literal.0.contains(&b'\n') {
            true => Hir::fail(),
            false => pattern.clone(),
        },
        HirKind::Class(Class::Unicode(class)) => {
            let mut class = class.clone();
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(class)) => match class.to_unicode_class() {
            Some(class) => within_lines(&Hir::class(Class::Unicode(class))),
            None => Hir::fail(), // not text
        },
        HirKind::Repetition(one) => {
            Hir::repetition(Repetition { sub: Box::new(within_lines(&one.sub)), ..one.clone() })
        }
        HirKind::Capture(one) => {
            Hir::capture(Capture { sub: Box::new(within_lines(&one.sub)), ..one.clone() })
        }
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(within_lines).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(within_lines).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strings::StringsBuf;

    fn lines(pattern: &str, reading: Reading, texts: &[&str]) -> Vec<(usize, usize, String)> {
        let strings: StringsBuf = texts.iter().collect();
        let found = Pattern::new(pattern, reading).unwrap().lines(strings.view(), 100, 100);
        found.into_iter().map(|one| (one.string, one.line, one.text)).collect()
    }

    #[test]
    fn each_line_is_matched_by_itself() {
        let texts = ["one\ntwo fsync\r\nthree\n", "fsync", "a\nab"];
        let plain = Reading::default();
        assert_eq!(lines("fsync", plain, &texts), [(0, 1, "two fsync".into()), (1, 0, "fsync".into())]);
        assert_eq!(lines("fsync$", plain, &texts).len(), 2);
        assert_eq!(lines("a[^b]*b", plain, &texts), [(2, 1, "ab".into())]);
        assert_eq!(lines("^", plain, &texts).len(), 6);
        assert!(lines(r"e\s+t", plain, &texts).is_empty());
    }

    #[test]
    fn words_cases_and_literals() {
        let texts = ["Fsyncs\nfsync.\nf.ync"];
        let numbers = |pattern: &str, reading| {
            lines(pattern, reading, &texts).iter().map(|one| one.1).collect::<Vec<_>>()
        };
        assert_eq!(numbers("FSYNC", Reading { any_case: true, ..Reading::default() }), [0, 1]);
        assert_eq!(numbers("fsync", Reading { words: true, ..Reading::default() }), [1]);
        assert_eq!(numbers("f.ync", Reading { literal: true, ..Reading::default() }), [2]);
    }

    #[test]
    fn long_lines_are_cut_around_the_first_match() {
        let text = format!("{}é needle {}", "x".repeat(5_000), "y".repeat(5_000));
        let strings: StringsBuf = [text.as_str()].into_iter().collect();
        let found = &Pattern::new("needle", Reading::default()).unwrap().lines(strings.view(), 9, 9)[0];
        assert_eq!(found.cut + found.marks[0].0, 5_002);
        assert!(found.text.len() <= WIDEST && found.span == (0, 10_009));
    }

    #[test]
    fn bad_patterns_are_refused() {
        for pattern in ["(", "a{9999}{9999}{9999}", "(?P<", r"\"] {
            assert!(Pattern::new(pattern, Reading::default()).is_err(), "{pattern}");
        }
    }
}
