//! Punkt sentence boundary detection (Kiss and Strunk 2006), with the same decisions as NLTK 3.10.
//!
//! This module only applies a model; the caller supplies its parameters from the `punkt_tab` data that NLTK
//! downloads.

use super::classes::{is_decimal, is_space, is_word};
use crate::error::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Parameters learnt from a corpus. Word types are in lower case.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    pub abbreviations: HashSet<String>,
    pub collocations: HashSet<(String, String)>,
    pub starters: HashSet<String>,
    /// Contexts in which a word type was seen: bits as in NLTK (2 to 64).
    pub contexts: HashMap<String, u32>,
}

const MIDDLE_UPPER: u32 = 1 << 2;
const BEGIN_LOWER: u32 = 1 << 4;
const UPPER: u32 = (1 << 1) | MIDDLE_UPPER | (1 << 3);
const LOWER: u32 = BEGIN_LOWER | (1 << 5) | (1 << 6);
const NUMBER: &str = "##number##";

impl Parameters {
    /// Parse the contents of NLTK's files `abbrev_types.txt`, `collocations.tab`, `sent_starters.txt` and
    /// `ortho_context.tab`.
    pub fn parse(abbreviations: &str, collocations: &str, starters: &str, contexts: &str) -> Result<Self> {
        let set = |text: &str| text.lines().map(str::to_owned).collect();
        let pairs = |text: &str, name: &str| -> Result<Vec<(String, String)>> {
            let pair = |(i, line): (usize, &str)| match line.split_once('\t') {
                Some((a, b)) => Ok((a.to_owned(), b.to_owned())),
                None => Err(Error::input(format!("{name}, line {}: the tab is missing", i + 1))),
            };
            text.lines().enumerate().map(pair).collect()
        };
        let contexts = pairs(contexts, "ortho_context")?.into_iter().map(|(word, bits)| {
            let bits = bits.parse::<u32>();
            bits.map(|bits| (word.clone(), bits))
                .map_err(|e| Error::input(format!("ortho_context, word {word:?}: {e}")))
        });
        Ok(Self {
            abbreviations: set(abbreviations),
            collocations: pairs(collocations, "collocations")?.into_iter().collect(),
            starters: set(starters),
            contexts: contexts.collect::<Result<_>>()?,
        })
    }

    /// Return the byte spans of the sentences of `text`, in order, with NLTK's realignment of closing quotes.
    pub fn sentences(&self, text: &str) -> Vec<Range<usize>> {
        realign(text, self.slices(text))
    }

    fn slices(&self, text: &str) -> Vec<Range<usize>> {
        let mut slices = Vec::new();
        let mut last = 0;
        for candidate in candidates(text) {
            let context = &text[candidate.word_start..candidate.after.end];
            if self.breaks(context) {
                slices.push(last..candidate.end);
                last = candidate.next.unwrap_or(candidate.end);
            }
        }
        slices.push(last..text.trim_end_matches(is_space).len());
        slices
    }

    /// Return whether a sentence ends inside `context` and another word follows.
    fn breaks(&self, context: &str) -> bool {
        let lines = context.split('\n').filter(|line| !line.trim_matches(is_space).is_empty());
        let tokens: Vec<Token> =
            lines.flat_map(words).map(|word| Token::new(word, &self.abbreviations)).collect();
        tokens.windows(2).any(|pair| self.decide(&pair[0], &pair[1]))
    }

    /// Return whether a sentence ends with `token`, given the word that follows.
    fn decide(&self, token: &Token, next: &Token) -> bool {
        if !token.text.ends_with('.') {
            return token.ends;
        }
        let kind = without_period(&token.kind);
        let next_kind = if next.ends { without_period(&next.kind) } else { &next.kind };
        // 4.1.2: the two words are a known collocation.
        if self.collocations.contains(&(kind.to_owned(), next_kind.to_owned())) {
            return false;
        }
        let initial = token.is_initial();
        let starts = self.starts_sentence(next, next_kind);
        if (token.abbreviation || token.ellipsis) && !initial {
            // 4.2: an abbreviation or an ellipsis may end a sentence too.
            let starter = next.first_upper() && self.starters.contains(next_kind);
            if starts == Some(true) || starter {
                return true;
            }
        }
        if initial || kind == NUMBER {
            // 4.3: initials and ordinals may not.
            let always_upper =
                starts.is_none() && initial && next.first_upper() && self.context(next_kind) & LOWER == 0;
            if starts == Some(false) || always_upper {
                return false;
            }
        }
        token.ends
    }

    /// 4.1.1: whether the case of a word shows that it starts a sentence; `None` if undecided.
    fn starts_sentence(&self, token: &Token, kind: &str) -> Option<bool> {
        if matches!(token.text, ";" | ":" | "," | "." | "!" | "?") {
            return Some(false);
        }
        let seen = self.context(kind);
        if token.first_upper() && seen & LOWER != 0 && seen & MIDDLE_UPPER == 0 {
            return Some(true);
        }
        if token.first_lower() && (seen & UPPER != 0 || seen & BEGIN_LOWER == 0) {
            return Some(false);
        }
        None
    }

    fn context(&self, kind: &str) -> u32 {
        self.contexts.get(kind).copied().unwrap_or(0)
    }
}

struct Token<'a> {
    text: &'a str,
    /// The word type: lower case, numbers all alike.
    kind: String,
    /// Whether the word by itself ends a sentence.
    ends: bool,
    abbreviation: bool,
    ellipsis: bool,
}

impl<'a> Token<'a> {
    fn new(text: &'a str, abbreviations: &HashSet<String>) -> Self {
        let lower = text.to_lowercase();
        let kind = if is_number(&lower) { NUMBER.to_owned() } else { lower };
        let mut token = Self { text, kind, ends: false, abbreviation: false, ellipsis: false };
        if matches!(text, "." | "?" | "!") {
            token.ends = true;
        } else if text.len() > 1 && text.bytes().all(|b| b == b'.') {
            token.ellipsis = true;
        } else if text.ends_with('.') && !text.ends_with("..") {
            let word = text[..text.len() - 1].to_lowercase();
            let last = word.rsplit('-').next().unwrap_or(&word);
            token.abbreviation = abbreviations.contains(&word) || abbreviations.contains(last);
            token.ends = !token.abbreviation;
        }
        token
    }

    fn first_upper(&self) -> bool {
        self.text.chars().next().is_some_and(char::is_uppercase)
    }

    fn first_lower(&self) -> bool {
        self.text.chars().next().is_some_and(char::is_lowercase)
    }

    /// One letter and a period.
    fn is_initial(&self) -> bool {
        let mut chars = self.text.chars();
        chars.next().is_some_and(|c| is_word(c) && !is_decimal(c)) && chars.as_str() == "."
    }
}

fn without_period(kind: &str) -> &str {
    match kind.strip_suffix('.') {
        Some("") | None => kind,
        Some(rest) => rest,
    }
}

/// ^-?[.,]?\d[\d,.-]*\.?$
fn is_number(word: &str) -> bool {
    let word = word.strip_prefix('-').unwrap_or(word);
    let word = word.strip_prefix(['.', ',']).unwrap_or(word);
    word.starts_with(is_decimal) && word.chars().all(|c| is_decimal(c) || matches!(c, ',' | '.' | '-'))
}

/// Characters that cannot occur inside a word.
fn is_non_word(c: char) -> bool {
    matches!(
        c,
        ')' | '"'
            | ';'
            | '}'
            | ']'
            | '*'
            | ':'
            | '@'
            | '\''
            | '('
            | '{'
            | '['
            | '?'
            | '!'
            | '‘'
            | '’'
            | '“'
            | '”'
            | '«'
            | '»'
    )
}

/// Split one line into Punkt's words: punctuation separated, periods attached.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(char::is_whitespace);
        let first = rest.chars().next()?;
        let length = match punctuation_run(rest) {
            0 if opens_word(first) => word_length(rest, first),
            0 => first.len_utf8(),
            run => run,
        };
        let (word, later) = rest.split_at(length);
        rest = later;
        Some(word)
    })
}

fn opens_word(c: char) -> bool {
    !matches!(
        c,
        '(' | '"' | '`' | '{' | '[' | ':' | ';' | '&' | '#' | '*' | '@' | ')' | '}' | ']' | '-' | ','
    )
}

/// Return the bytes of the word that begins `text`, up to the first position where a word can end.
fn word_length(text: &str, first: char) -> usize {
    let ends = |rest: &str| match rest.chars().next() {
        None => true,
        Some(c) => c.is_whitespace() || is_non_word(c) || punctuation_run(rest) > 0,
    };
    let places = text.char_indices().map(|(i, _)| i).filter(|&i| i >= first.len_utf8());
    let mut places = places.filter(|&i| {
        let rest = &text[i..];
        ends(rest) || rest.strip_prefix(',').is_some_and(ends)
    });
    places.next().unwrap_or(text.len())
}

/// -{2,} or \.{2,} or (\.\s){2,}\. at the start of `text`: its length, or 0.
fn punctuation_run(text: &str) -> usize {
    for mark in [b'-', b'.'] {
        let run = text.bytes().take_while(|&b| b == mark).count();
        if run > 1 {
            return run;
        }
    }
    // Spaced periods: the end of the last period that has two pairs of period and space before it.
    let (mut end, mut at, mut pairs) = (0, 0, 0);
    while text[at..].starts_with('.') {
        if pairs >= 2 {
            end = at + 1;
        }
        match text[at + 1..].chars().next() {
            Some(space) if space.is_whitespace() => at += 1 + space.len_utf8(),
            _ => break,
        }
        pairs += 1;
    }
    end
}

/// A position where a sentence may end.
struct Candidate {
    word_start: usize,
    /// After the mark.
    end: usize,
    /// The text that follows and that the decision examines.
    after: Range<usize>,
    /// Start of the next word, if white space comes first.
    next: Option<usize>,
}

/// Find the marks `.?!` before white space and a word, or before punctuation, each with the word before it;
/// of those that share a word only the last (NLTK `_match_potential_end_contexts`).
fn candidates(text: &str) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut previous = 0..0;
    for (start, _) in text.match_indices(['.', '?', '!']) {
        let Some((after, next)) = following(text, start + 1) else { continue };
        let before = &text[previous.end..start];
        // The first character does not count, even if it is a space, as in NLTK.
        let space = before.rfind([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']).unwrap_or(0);
        let word_start = if space > 0 { previous.end + space + 1 } else { previous.start };
        if !found.is_empty() && previous.end > word_start {
            found.pop();
        }
        previous = word_start..start;
        found.push(Candidate { word_start, end: start + 1, after, next });
    }
    found
}

fn following(text: &str, at: usize) -> Option<(Range<usize>, Option<usize>)> {
    let rest = &text[at..];
    let first = rest.chars().next()?;
    if is_non_word(first) {
        return Some((at..at + first.len_utf8(), None));
    }
    let word = rest.trim_start_matches(char::is_whitespace);
    if word.len() == rest.len() || word.is_empty() {
        return None;
    }
    let start = text.len() - word.len();
    let length = word.find(char::is_whitespace).unwrap_or(word.len());
    Some((at..start + length, Some(start)))
}

/// Move closing quotes and brackets that begin a sentence to the previous one.
fn realign(text: &str, slices: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut sentences = Vec::with_capacity(slices.len());
    let mut moved = 0;
    for (i, slice) in slices.iter().enumerate() {
        let start = slice.start + moved;
        moved = 0;
        if let Some(later) = slices.get(i + 1) {
            let closers = closing(text.get(later.clone()).unwrap_or(""));
            if let Some((length, with_space)) = closers {
                sentences.push(start..later.start + length);
                moved = with_space;
                continue;
            }
        }
        if start < slice.end {
            sentences.push(start..slice.end);
        }
    }
    sentences
}

/// Match ["')\]}‘’“”«»]+? before white space, `--` or the end: length without and with the white space.
fn closing(text: &str) -> Option<(usize, usize)> {
    let closes = |c| matches!(c, '"' | '\'' | ')' | ']' | '}' | '‘' | '’' | '“' | '”' | '«' | '»');
    let rest = text.trim_start_matches(closes);
    let length = text.len() - rest.len();
    let later = rest.trim_start_matches(char::is_whitespace);
    let ends = rest.is_empty() || later.len() < rest.len() || rest.starts_with("--");
    (length > 0 && ends).then_some((length, text.len() - later.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parameters() -> Parameters {
        let contexts = "the\t106\nhe\t98\nbach\t4\nsmith\t4\nwas\t32\n";
        Parameters::parse("dr\np.m\n", "##number##\tinternational\n", "he\n", contexts).unwrap()
    }

    #[test]
    fn broken_parameters_are_named() {
        let text = |r: Result<Parameters>| r.unwrap_err().to_string();
        assert!(text(Parameters::parse("", "a b\n", "", "")).contains("collocations, line 1"));
        assert!(text(Parameters::parse("", "", "", "a\tx\n")).contains("word \"a\""));
    }

    proptest! {
        #[test]
        fn spans_are_ordered_and_whole(text in r#"([a-zA-Z]|[.?!]|[ \n]|["')\]]|\PC|Dr\. |-){0,60}"#) {
            let mut last = 0;
            for span in parameters().sentences(&text) {
                prop_assert!(last <= span.start && span.start <= span.end && text.get(span.clone()).is_some());
                last = span.end;
            }
        }
    }
}
