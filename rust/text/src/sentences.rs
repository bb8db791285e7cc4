//! Split text into sentences: byte spans, trimmed, never empty, in order, without overlap.
//!
//! A sentence may end at a line break, or after a mark with the closing quotes, brackets, emphasis and
//! references that follow it, if a blank comes next. Marks of scripts that are written without blanks need no
//! blank. A sentence never ends inside a code span. The surrounding text then decides: after abbreviations
//! and list markers, before words in lower case and at wrapped lines, the sentence continues.

use super::abbreviations::goes_on_after;
use super::ascii_sentences::each_ascii_stretch;
use super::folding::is_unspaced;
use super::pieces::char_floor;
use super::sentence_signs::{
    begins_lower, begins_with_marker, closes, continues, is_break, is_emphasis, is_ignored, is_mark,
    is_marker, is_no_break_space, is_stop, is_wide_mark, opens_a_word, opens_an_item, reference, run,
    shorter, CLOSES_OR_OPENS, FAR,
};
use crate::error::{Error, Result};
use crate::progress::Progress;
use unicode_segmentation::UnicodeSegmentation;

/// The rules by which sentences are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Splitter {
    /// Only the boundaries of UAX #29.
    Uax29,
    /// The end of a line, or a mark before a blank, except in code spans, after abbreviations, initials, ordinals
    /// and list markers, before a word in lower case, and at a wrapped line. Fragments shorter than 15
    /// characters are merged with a neighbour in their paragraph. Blank lines always separate.
    #[default]
    Standard,
}

/// A line of at least this length that ends without a full stop is assumed to be wrapped.
const WRAPPED: usize = 50;
/// Maximum length of a code span in bytes: a backtick that is never closed protects nothing, and costs little.
const CODE: usize = 400;
/// Maximum number of runs of backticks inside a code span.
const TICKS: usize = 16;
/// A sentence ends after this many characters without letter or digit. This also keeps the search for boundaries of
/// UAX #29 linear, since it looks ahead from each blank after a full stop.
const JUNK: usize = 64;
/// Bytes searched for boundaries between two checks of the progress. A longer sentence is cut.
const STEP: usize = 1 << 20;

impl Splitter {
    pub fn by_name(name: &str) -> Result<Self> {
        match name {
            "uax29" => Ok(Self::Uax29),
            "standard" => Ok(Self::Standard),
            _ => Err(Error::input(format!("the sentence splitter must be standard or uax29, not {name:?}"))),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Uax29 => "uax29",
            Self::Standard => "standard",
        }
    }

    /// Append the spans of the sentences of `text` to `out`.
    pub fn split(self, text: &str, progress: &Progress, out: &mut Vec<(usize, usize)>) -> Result<()> {
        if self == Self::Uax29 {
            return each_stretch(text, progress, |start, end| out.extend(trimmed(text, start, end)));
        }
        let mut start = 0;
        while start < text.len() {
            let end = paragraph_end(text, start);
            Paragraph(&text[start..end]).split(start, progress, out)?;
            start = end;
        }
        Ok(())
    }
}

/// Return `start..end` without blanks at its ends, or `None` if it is blank.
pub(crate) fn trimmed(text: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let part = &text[start..end];
    let start = start + (part.len() - part.trim_start().len());
    let part = part.trim();
    (!part.is_empty()).then_some((start, start + part.len()))
}

/// Return the end of the paragraph that begins at `start`: after the next blank line.
fn paragraph_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while let Some(line) = bytes[at..].iter().position(|&b| b == b'\n') {
        at += line + 1;
        let next = bytes[at..].iter().position(|b| !matches!(b, b' ' | b'\t' | b'\r'));
        match next {
            Some(blank) if bytes[at + blank] == b'\n' => return at + blank + 1,
            Some(blank) => at += blank,
            None => break,
        }
    }
    text.len()
}

/// Call `see` with the stretches between boundaries of UAX #29, untrimmed.
fn each_stretch(text: &str, progress: &Progress, mut see: impl FnMut(usize, usize)) -> Result<()> {
    let (mut from, mut junk) = (0, 0);
    for (at, c) in text.char_indices() {
        if c.is_ascii_alphanumeric() || (!c.is_ascii() && c.is_alphanumeric()) {
            junk = 0;
            continue;
        }
        junk += 1;
        if junk >= JUNK {
            let to = at + c.len_utf8();
            within(text, from, to, progress, &mut see)?;
            (from, junk) = (to, 0);
        }
    }
    within(text, from, text.len(), progress, &mut see)
}

/// Like [`each_stretch`] for a part without junk, 1 MiB at a time, so that a cancellation is noticed.
fn within(
    text: &str,
    mut from: usize,
    to: usize,
    progress: &Progress,
    see: &mut impl FnMut(usize, usize),
) -> Result<()> {
    while to - from > STEP {
        progress.check()?;
        let part = &text[from..char_floor(text, from + STEP)];
        let mut ends: Vec<usize> = Vec::new();
        each_bound(part, |_, end| ends.push(from + end));
        // The end of the part may have hidden the text that decides on the last two.
        let sure = if ends.len() > 2 { ends.len() - 2 } else { ends.len() };
        for &end in &ends[..sure] {
            see(from, end);
            from = end;
        }
    }
    each_bound(&text[from..to], |start, end| see(from + start, from + end));
    Ok(())
}

/// Call `see` with the stretches of a text between boundaries of UAX #29.
fn each_bound(text: &str, mut see: impl FnMut(usize, usize)) {
    if text.is_ascii() {
        return each_ascii_stretch(text.as_bytes(), see);
    }
    for (at, part) in text.split_sentence_bound_indices() {
        see(at, at + part.len());
    }
}

/// A position where a sentence may end.
#[derive(Debug, Clone, Copy)]
struct End {
    at: usize,
    mark: Option<Mark>,
}

/// The last mark before an end.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// The offset after it.
    at: usize,
    /// Whether a quote, bracket or reference follows it, so that a full stop is not part of an abbreviation.
    closed: bool,
}

/// The text between two ends, without blanks around it.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: usize,
    end: usize,
    mark: Option<Mark>,
}

/// Sentences of a paragraph, while it is read.
struct Found<'a> {
    paragraph: Paragraph<'a>,
    sentences: Vec<Stretch>,
    current: Option<Stretch>,
}

impl Found<'_> {
    fn add(&mut self, stretch: Stretch) {
        if let Some(current) = self.current {
            if self.belong(&current, &stretch) {
                self.current = Some(Stretch { start: current.start, ..stretch });
                return;
            }
            self.merge(current);
        }
        self.current = Some(stretch);
    }

    /// Return whether a stretch continues the current sentence, including after a list marker or a short
    /// start of a line.
    fn belong(&self, current: &Stretch, stretch: &Stretch) -> bool {
        if self.paragraph.goes_on(current, stretch) {
            return true;
        }
        if self.paragraph.is_broken(current.end, stretch.start) {
            return false;
        }
        let begins = self.sentences.last().is_none_or(|s| self.paragraph.is_broken(s.end, current.start));
        let text = &self.paragraph.0[current.start..current.end];
        (begins && shorter(text)) || is_marker(text)
    }

    /// Append a sentence, or merge it with the one before if one of them is too short.
    fn merge(&mut self, sentence: Stretch) {
        let is_short = |s: &Stretch| shorter(&self.paragraph.0[s.start..s.end]);
        match self.sentences.last_mut() {
            Some(last) if is_short(&sentence) || is_short(last) => {
                *last = Stretch { start: last.start, ..sentence };
            }
            _ => self.sentences.push(sentence),
        }
    }
}

#[derive(Clone, Copy)]
struct Paragraph<'a>(&'a str);

impl Paragraph<'_> {
    /// Append the sentences of the paragraph, which begins at `offset`.
    fn split(self, offset: usize, progress: &Progress, out: &mut Vec<(usize, usize)>) -> Result<()> {
        let mut found = Found { paragraph: self, sentences: Vec::new(), current: None };
        let mut start = 0;
        self.each_end(progress, |end| {
            if let Some((from, to)) = trimmed(self.0, start, end.at) {
                found.add(Stretch { start: from, end: to, mark: end.mark });
            }
            start = end.at;
        })?;
        if let Some(current) = found.current {
            found.merge(current);
        }
        out.extend(found.sentences.iter().map(|s| (s.start + offset, s.end + offset)));
        Ok(())
    }

    /// Call `see` with the positions where a sentence may end, in order.
    fn each_end(self, progress: &Progress, mut see: impl FnMut(End)) -> Result<()> {
        let bytes = self.0.as_bytes();
        let (mut at, mut checked, mut junk) = (0, 0, 0);
        while let Some(&byte) = bytes.get(at) {
            if at - checked >= STEP {
                progress.check()?;
                checked = at;
            }
            if byte.is_ascii_alphanumeric() {
                (at, junk) = (at + 1, 0);
                continue;
            }
            let Some(c) = self.0[at..].chars().next() else { break };
            if c == '`' {
                (at, junk) = (self.code_end(at), 0);
            } else if is_mark(c) {
                (at, junk) = (self.mark_end(at, &mut see), 0);
            } else {
                at += c.len_utf8();
                junk = if c.is_alphanumeric() { 0 } else { junk + 1 };
                if is_break(c) || junk == JUNK {
                    junk = 0;
                    see(End { at, mark: None });
                }
            }
        }
        see(End { at: self.0.len(), mark: None });
        Ok(())
    }

    /// Call `see` if a sentence may end after the mark at `first`, and return where to look on.
    fn mark_end(self, first: usize, see: &mut impl FnMut(End)) -> usize {
        let text = self.0;
        let (mut at, mut mark) = (first, Mark { at: first, closed: false });
        // Skip marks and characters that only close, and remember the last character there.
        let mut near = End { at: first, mark: Some(mark) };
        let (mut last, mut is_wide, mut is_near, mut beyond) = (' ', false, true, 0);
        while beyond < FAR {
            let Some(c) = text[at..].chars().next() else { break };
            let reference = if c == '[' { reference(&text[at..]) } else { None };
            if is_mark(c) {
                mark = Mark { at: at + c.len_utf8(), closed: false };
            } else if reference.is_some() {
                mark.closed = true;
            } else if !closes(c) && !CLOSES_OR_OPENS.contains(&c) {
                break;
            } else if !is_ignored(c) && !is_emphasis(c) {
                mark.closed = true;
            }
            is_near = is_near && reference.is_none() && !CLOSES_OR_OPENS.contains(&c);
            at += reference.unwrap_or(c.len_utf8());
            if is_near {
                near = End { at, mark: Some(mark) };
                last = c;
                is_wide |= is_wide_mark(c);
            }
            beyond += usize::from(!is_near || !is_mark(c));
        }
        let rest = text[at..].trim_start_matches(is_no_break_space);
        if rest.chars().next().is_none_or(char::is_whitespace) {
            see(End { at, mark: Some(mark) });
            return at;
        }
        let Some(after) = text[near.at..].chars().next() else { return at };
        let between = || text[..first].chars().next_back().is_some_and(is_unspaced) && is_unspaced(after);
        let is_number = is_stop(last) && after.is_numeric();
        let is_quoted = matches!(last, '」' | '』') && matches!(after, 'ぁ'..='ん');
        if (is_wide || between()) && !is_number && !is_quoted && !continues(after) {
            see(near);
            return near.at;
        }
        at
    }

    /// Return the end of the code span that opens at `at`, or of its backticks if there is none.
    fn code_end(self, at: usize) -> usize {
        let text = self.0;
        let inner = at + run(&text[at..]);
        let line = text[..at].trim_end_matches([' ', '\t']);
        let is_fence = inner - at > 2 && line.chars().next_back().is_none_or(is_break);
        let before = text[..at].chars().next_back();
        if is_fence || before.is_some_and(|c| c.is_alphanumeric() || c == '\\') {
            return inner;
        }
        let (mut end, mut previous, mut ticks) = (inner, '`', 0);
        while end - inner < CODE && ticks < TICKS {
            let Some(c) = text[end..].chars().next() else { break };
            if c == '`' {
                let after = end + run(&text[end..]);
                // As in `this' and ``that'', quotes of TeX.
                let opens = (previous.is_whitespace() || opens_a_word(previous))
                    && text[after..].chars().next().is_some_and(char::is_alphanumeric);
                if after - end == inner - at && !opens {
                    return after;
                }
                end = after;
                ticks += 1;
            } else if inner - at == 2 && text[end..].starts_with("''") {
                break;
            } else if is_break(c) {
                let following = text[end..].trim_start();
                if opens_an_item(following) {
                    break;
                }
                end = text.len() - following.len();
                previous = ' ';
                continue;
            } else {
                end += c.len_utf8();
            }
            previous = c;
        }
        inner
    }

    fn is_broken(self, from: usize, to: usize) -> bool {
        self.0[from..to].contains(is_break)
    }

    /// Return whether a stretch continues the preceding one.
    fn goes_on(self, before: &Stretch, stretch: &Stretch) -> bool {
        let after = &self.0[stretch.start..stretch.end];
        let opening = after.trim_start_matches(opens_a_word);
        let (Some(first), Some(next)) = (after.chars().next(), opening.chars().next()) else { return false };
        let is_broken = self.is_broken(before.end, stretch.start);
        let whole = &self.0[before.start..before.end];
        let bare = whole.trim_end_matches(|c| closes(c) || CLOSES_OR_OPENS.contains(&c));
        if is_broken
            && (before.mark.is_some() || bare.is_empty() || bare.ends_with([',', ':', ';']))
            && begins_with_marker(after)
        {
            return false;
        }
        let stem = before.mark.and_then(|mark| self.0[before.start..mark.at].strip_suffix('.'));
        let is_closed = before.mark.is_some_and(|mark| mark.closed);
        if stem.is_some_and(|stem| !is_closed && goes_on_after(stem, opening)) {
            return true;
        }
        if next.is_lowercase() {
            return before.mark.is_none() || !is_marker(after);
        }
        if before.mark.is_some() {
            return !is_broken
                && (continues(first) || (stem.is_some() && first != '`' && begins_lower(after)));
        }
        if !is_broken {
            return false;
        }
        if bare.is_empty() || bare.ends_with(['…', ':', ';']) {
            return false;
        }
        let line = self.0[..before.end].rsplit(is_break).next().unwrap_or("").trim_start();
        line.len() >= WRAPPED && !opens_an_item(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_splitters() {
        for splitter in [Splitter::Uax29, Splitter::Standard] {
            assert_eq!(Splitter::by_name(splitter.name()), Ok(splitter));
        }
        assert!(Splitter::by_name("punkt").is_err());
    }

    #[test]
    fn hostile_runs_take_linear_time() {
        for text in [
            " ", ")", ". ", "a.) ", "\n", "\u{3000}", "x", "1. ", "\u{301}", ".\u{301} ", "`", " `a", "\r`",
            "`\r ", "。“", "。[a]", ".\u{a0}", "!*", "*\n", "1\n", "a. b", "`` `",
        ] {
            let text = format!("An end.{}", text.repeat(100_000));
            let mut spans = Vec::new();
            Splitter::Standard.split(&text, &Progress::none(), &mut spans).unwrap();
            Splitter::Uax29.split(&text, &Progress::none(), &mut spans).unwrap();
            assert!(!spans.is_empty());
        }
    }

    #[test]
    fn long_texts_are_cut_where_short_ones_are() {
        let text = "Mr. A. said (no?) 1 2 3. And so it went on for a while. ".repeat(2 * STEP / 50);
        let mut spans = Vec::new();
        Splitter::Uax29.split(&text, &Progress::none(), &mut spans).unwrap();
        let plain: Vec<&str> = text.split_sentence_bounds().map(str::trim).collect();
        assert!(spans.iter().map(|&(a, b)| &text[a..b]).eq(plain));
        let progress = Progress::none();
        progress.stop();
        assert_eq!(Splitter::Standard.split(&text, &progress, &mut spans), Err(Error::Cancelled));
    }

    proptest! {
        #[test]
        fn spans_hold_all_but_blanks(text in "(Mr\\. |[A-Z][a-z]{0,9}|[.!?]|[\n ]|\n\n|\\)|“|é|中。|`|👩‍👧|\u{0}|\u{85}|.){0,60}") {
            for splitter in [Splitter::Standard, Splitter::Uax29] {
                let mut spans = Vec::new();
                splitter.split(&text, &Progress::none(), &mut spans).unwrap();
                let mut at = 0;
                for &(a, b) in &spans {
                    prop_assert!(a >= at && b > a);
                    prop_assert_eq!(text[a..b].trim(), &text[a..b]);
                    prop_assert_eq!(text[at..a].trim(), "");
                    at = b;
                }
                prop_assert_eq!(text[at..].trim(), "");
            }
        }
    }
}
