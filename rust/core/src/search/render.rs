//! The printed context: the ranked units that fit the budget, each with a mark by which it can be cited.
//!
//! The size of a context is the sum of the token counts of its rows: prefix, stored count of the text, and
//! line end. Only the short prefixes are tokenised here.

use super::fill::{fill, Count, FillPolicy, OversizePolicy};
use crate::error::{Error, Result};
use crate::items::Items;
use crate::text::strings::Strings;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};

mod joined;

pub use joined::Locations;

/// The format of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The default format: `[rank]`, the title if there is one, the text, and an empty line between rows. The
    /// line break after the mark forms one token with the bracket. A space would not.
    Cited,
    /// KET-RAG's text section: a title line, `id|text`, rows `chunk_{rank}|text`.
    Ket,
    /// [`Style::Ket`] as the reference implementation prints and counts it: with two line breaks first, and
    /// each row counted as a whole. Only for parity: it tokenises every row again.
    Published,
    /// The sources of local search, printed after its other tables: rows `{unit}|text`.
    Sources,
    /// [`Style::Sources`] as the reference implementation prints and counts them.
    PublishedSources,
}

const SOURCES_HEADER: &str = "\n\n-----Sources-----\nid|text\n";
const KET_HEADER: &str = "-----Text source that may be relevant-----\nid|text\n";
const PUBLISHED_HEADER: &str = "\n\n-----Text source that may be relevant-----\nid|text\n";

impl Style {
    fn header(self) -> &'static str {
        match self {
            Self::Cited => "",
            Self::Ket => KET_HEADER,
            Self::Published => PUBLISHED_HEADER,
            Self::Sources => SOURCES_HEADER,
            Self::PublishedSources => SOURCES_HEADER.trim_start(),
        }
    }

    /// Return the mark of `unit` as the `rank`-th row.
    fn prefix(self, rank: usize, unit: u32) -> String {
        match self {
            Self::Cited => format!("[{rank}]\n"),
            Self::Ket | Self::Published => format!("chunk_{rank}|"),
            Self::Sources | Self::PublishedSources => format!("{unit}|"),
        }
    }

    /// Return the line end of a row. The second line break of the last row is not printed.
    fn end(self) -> &'static str {
        match self {
            Self::Cited => "\n\n",
            _ => "\n",
        }
    }

    /// Return whether rows are counted as a whole.
    fn recounts(self) -> bool {
        matches!(self, Self::Published | Self::PublishedSources)
    }
}

/// The printable units. The text of a row is `title + "
/// " + text`, or just the text if untitled, with the context of the text before and after it.
#[derive(Debug, Clone, Copy)]
pub struct Units<'a> {
    texts: Strings<'a>,
    context: Option<[Strings<'a>; 2]>,
    titles: Option<(Strings<'a>, Items<'a, u32>)>,
    tokens: Items<'a, u32>,
    /// The positions of units in their texts, and the text that they do not cover.
    gaps: Option<(Items<'a, u32>, Strings<'a>)>,
    locations: Option<Locations<'a>>,
}

impl<'a> Units<'a> {
    /// `tokens[u]` is the token count of the whole row text of unit `u`, including the title. `titles` are
    /// the documents' titles (empty if a document has none), with the document of each unit.
    pub fn new(
        texts: Strings<'a>,
        titles: Option<(Strings<'a>, Items<'a, u32>)>,
        tokens: impl Into<Items<'a, u32>>,
    ) -> Result<Self> {
        if let Some((titles, of)) = &titles {
            if let Some(u) = of.all().iter().position(|&d| d as usize >= titles.len()) {
                return Err(Error::input(format!(
                    "title_of[{u}] is {}, but there are {} titles",
                    of[u],
                    titles.len()
                )));
            }
        }
        Self::stored(texts, titles, tokens)
    }

    /// Like `new`, for titles that were checked before they were written. Only the lengths are checked.
    pub fn stored(
        texts: Strings<'a>,
        titles: Option<(Strings<'a>, Items<'a, u32>)>,
        tokens: impl Into<Items<'a, u32>>,
    ) -> Result<Self> {
        let (n, tokens) = (texts.len(), tokens.into());
        if tokens.len() != n {
            return Err(Error::input(format!("there are {} token counts for {n} texts", tokens.len())));
        }
        if let Some((_, of)) = titles.filter(|(_, of)| of.len() != n) {
            return Err(Error::input(format!("title_of has {} entries for {n} texts", of.len())));
        }
        Ok(Self { texts, context: None, titles, tokens, gaps: None, locations: None })
    }

    /// Print `before` and `after` around each text. `tokens` must include them.
    pub fn with_context(mut self, before: Strings<'a>, after: Strings<'a>) -> Result<Self> {
        let n = self.texts.len();
        if [before.len(), after.len()] != [n, n] {
            return Err(Error::input(format!("there are contexts of {} units for {n} texts", before.len())));
        }
        self.context = Some([before, after]);
        Ok(self)
    }

    /// Return the number of units.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Return the token count of each unit's text, including the title.
    pub fn tokens(&self) -> Items<'a, u32> {
        self.tokens
    }

    /// Append a unit as it is printed and return the offset at which its text begins, after the title.
    pub fn push(&self, out: &mut String, unit: usize) -> usize {
        let body = self.body(unit);
        body.push(out);
        out.len() - body.after.len() - body.text.len()
    }

    fn body(&self, unit: usize) -> Body<'a> {
        let title = self.titles.map_or("", |(titles, of)| titles.get(of[unit] as usize));
        let [before, after] = self.context.map_or([""; 2], |context| context.map(|texts| texts.get(unit)));
        Body { title, before, text: self.texts.get(unit), after }
    }
}

/// The printed parts of a unit.
#[derive(Debug, Clone, Copy)]
struct Body<'a> {
    title: &'a str,
    before: &'a str,
    text: &'a str,
    after: &'a str,
}

impl Body<'_> {
    fn push(&self, out: &mut String) {
        if !self.title.is_empty() {
            out.push_str(self.title);
            out.push('\n');
        }
        for part in [self.before, self.text, self.after] {
            out.push_str(part);
        }
    }
}

/// One printed unit, or several neighbouring units printed as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The best of the units.
    pub unit: u32,
    pub first: u32,
    pub count: u32,
    /// The token count of the whole row: prefix, title, text and line end.
    pub tokens: u64,
    /// Offset in the context at which the unit's text begins, after mark and title.
    pub start: usize,
    pub end: usize,
}

impl Row {
    /// Return the row of one unit.
    pub fn of(unit: u32, tokens: u64) -> Self {
        Self { unit, first: unit, count: 1, tokens, start: 0, end: 0 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Context {
    pub text: String,
    /// The sum of the token counts of the rows and of the header, at most the budget.
    pub tokens: u64,
    pub rows: Vec<Row>,
}

/// Number of ranks whose prefix count is cached.
const REMEMBERED: usize = 4096;

/// Prints contexts of one style in one encoding; reuse it between queries.
pub struct Renderer<C> {
    count: C,
    style: Style,
    header: u64,
    end: u64,
    /// Token counts of the prefixes of ranks 1, 2, ..; 0 if not counted yet.
    prefixes: Vec<AtomicU32>,
}

impl<C: Count> Renderer<C> {
    pub fn new(count: C, style: Style) -> Self {
        let header = count.count(style.header()) as u64;
        let end = count.count(style.end()) as u64;
        let prefixes = (0..REMEMBERED).map(|_| AtomicU32::new(0)).collect();
        Self { count, style, header, end, prefixes }
    }

    fn prefix_tokens(&self, rank: usize, unit: u32) -> u64 {
        let fresh = || self.count.count(&self.style.prefix(rank, unit)) as u64;
        if self.style == Style::Sources {
            return fresh();
        }
        let Some(slot) = rank.checked_sub(1).and_then(|i| self.prefixes.get(i)) else {
            return fresh();
        };
        match slot.load(Ordering::Relaxed) {
            0 => {
                let count = fresh();
                // A race is harmless: another thread can only store the same number.
                slot.store(count as u32, Ordering::Relaxed);
                count
            }
            count => u64::from(count),
        }
    }

    /// Print the first of `candidates` (unit ids, best first) that fit `budget`. Without candidates, or
    /// without room for the header and one token, the context is empty.
    pub fn render(
        &self,
        units: &Units<'_>,
        candidates: &[u32],
        budget: u64,
        policy: FillPolicy,
        oversize: OversizePolicy,
    ) -> Result<Context> {
        if let Some(i) = candidates.iter().position(|&u| u as usize >= units.texts.len()) {
            return Err(Error::input(format!(
                "candidate {} at position {i}: there are {} units",
                candidates[i],
                units.texts.len()
            )));
        }
        let Some(room) = budget.checked_sub(self.header) else { return Ok(Context::default()) };
        let taken =
            fill(candidates.len(), room, policy, |i, place| self.row_tokens(units, candidates[i], place + 1));
        if !taken.is_empty() {
            return Ok(self.print(units, taken.into_iter().map(|(i, cost)| (candidates[i], cost))));
        }
        match candidates.first() {
            Some(&unit) if oversize == OversizePolicy::Truncate => Ok(self.print_cut(units, unit, room)),
            _ => Ok(Context::default()),
        }
    }

    fn row_tokens(&self, units: &Units<'_>, unit: u32, rank: usize) -> u64 {
        if self.style.recounts() {
            let mut row = self.style.prefix(rank, unit);
            units.body(unit as usize).push(&mut row);
            row.push_str(self.style.end());
            return self.count.count(&row) as u64;
        }
        self.prefix_tokens(rank, unit) + u64::from(units.tokens[unit as usize]) + self.end
    }

    fn print(&self, units: &Units<'_>, rows: impl Iterator<Item = (u32, u64)>) -> Context {
        let mut context = self.begin();
        for (unit, tokens) in rows {
            self.push_row(&mut context, Row::of(unit, tokens), units.body(unit as usize));
        }
        self.finish(context)
    }

    /// Print the first row, truncated so that it fits into `room`.
    fn print_cut(&self, units: &Units<'_>, unit: u32, room: u64) -> Context {
        let (mut body, parts) = (String::new(), units.body(unit as usize));
        parts.push(&mut body);
        let text_end = body.len() - parts.after.len();
        let text_at = text_end - parts.text.len();
        // The count of a whole row may exceed the sum of its parts by one or two.
        let mut most = room.saturating_sub(self.prefix_tokens(1, unit) + self.end) as usize;
        while most > 0 {
            let kept = &body[..self.count.cut(&body, most)];
            let tokens = if self.style.recounts() {
                let row = [&self.style.prefix(1, unit), kept, self.style.end()].concat();
                self.count.count(&row) as u64
            } else {
                self.prefix_tokens(1, unit) + self.count.count(kept) as u64 + self.end
            };
            if kept.is_empty() {
                break;
            }
            if tokens <= room {
                // If the cut is inside the title or context, no text remains, and the beginning of title and
                // context is printed instead.
                let in_title = kept.len() <= text_at;
                let cut = if in_title {
                    Body { title: "", before: "", text: kept.trim_end_matches('\n'), after: "" }
                } else {
                    let (text, after) = kept[text_at..].split_at(kept.len().min(text_end) - text_at);
                    Body { text, after, ..parts }
                };
                let mut context = self.begin();
                self.push_row(&mut context, Row::of(unit, tokens), cut);
                if in_title {
                    context.rows[0].start = context.rows[0].end;
                }
                return self.finish(context);
            }
            most -= 1;
        }
        Context::default()
    }

    fn begin(&self) -> Context {
        Context { text: self.style.header().to_owned(), tokens: self.header, rows: Vec::new() }
    }

    fn push_row(&self, context: &mut Context, row: Row, body: Body<'_>) {
        context.text.push_str(&self.style.prefix(context.rows.len() + 1, row.unit));
        let Body { title, before, text, after } = body;
        if self.style == Style::Cited {
            let plain = [title, before, text, after].map(unmarked);
            let [title, before, text, after] = [&*plain[0], &*plain[1], &*plain[2], &*plain[3]];
            Body { title, before, text, after }.push(&mut context.text);
        } else {
            body.push(&mut context.text);
        }
        let end = context.text.len() - after.len();
        context.text.push_str(self.style.end());
        context.tokens += row.tokens;
        context.rows.push(Row { start: end - text.len(), end, ..row });
    }

    fn finish(&self, mut context: Context) -> Context {
        if self.style == Style::Cited {
            context.text.pop();
        }
        context
    }
}

/// Return a text in which no line begins like a row mark: `[2]` becomes `(2)`, with the same number of bytes
/// and tokens. Otherwise a document could present a part of itself as another document.
fn unmarked(text: &str) -> Cow<'_, str> {
    if !text.as_bytes().contains(&b'[') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut made: Option<String> = None;
    let mut done = 0;
    for (open, _) in text.match_indices('[') {
        let before = text[..open].trim_end_matches(|c: char| c.is_whitespace() && !breaks(c));
        let digits = bytes[open + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        let close = open + 1 + digits;
        let begins = before.chars().next_back().is_none_or(breaks);
        let after = text.get(close + 1..).and_then(|rest| rest.chars().next());
        let ends = after.is_none_or(|c| c.is_whitespace() || breaks(c));
        if digits == 0 || bytes.get(close) != Some(&b']') || !begins || !ends {
            continue;
        }
        let out = made.get_or_insert_with(|| String::with_capacity(text.len()));
        out.push_str(&text[done..open]);
        out.push('(');
        out.push_str(&text[open + 1..close]);
        out.push(')');
        done = close + 1;
    }
    match made {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(&text[done..]);
            Cow::Owned(out)
        }
    }
}

/// Return whether readers may treat this character as a line break.
fn breaks(c: char) -> bool {
    c.is_control() && c != '\t' || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests;
