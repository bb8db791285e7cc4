//! Prints neighbouring units of a document as one row, in the order of the document, at the rank of the best
//! unit.
//!
//! Title and context are printed once, and the text between the units is copied from the document, so that
//! the row is a span of the document. Only units of one page and section are merged, so that a row has the
//! same location as its units. Such a row costs less than separate rows, which leaves room for more units.

use super::{Body, Context, Renderer, Row, Units};
use crate::error::{Error, Result};
use crate::items::Items;
use crate::search::fill::{Count, FillPolicy, OversizePolicy};
use crate::text::strings::Strings;
use std::collections::HashMap;
use std::ops::Range;

/// Kinds of locations that all units of a row must share.
const SHARED: [&[u8]; 4] = [b"[\"page\",", b"[\"slide\",", HEADING, b"[\"symbol\","];
const HEADING: &[u8] = b"[\"heading\",";
/// Maximum number of locations before a unit's start that are read.
const NEAREST: usize = 256;

/// The positions of texts in their source documents, in the order of their starts.
#[derive(Debug, Clone, Copy)]
pub struct Locations<'a> {
    /// Start and end of each unit in its document.
    pub units: Items<'a, u32>,
    /// The locations of each text: start and end in its document, and the number of the label.
    pub indptr: Items<'a, u64>,
    pub spans: Items<'a, u32>,
    pub label: Items<'a, u32>,
    pub labels: Strings<'a>,
}

impl Locations<'_> {
    /// Return the range of the locations of a text, and the first of them that begins after an offset.
    fn after(&self, text: usize, at: u32) -> (Range<usize>, usize) {
        let [first, end] = self.indptr.pair(text).map(|at| (at as usize).min(self.label.len()));
        let (mut low, mut high) = (first, end);
        while low < high {
            let middle = (low + high) / 2;
            match self.spans[2 * middle] <= at {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        (first..end, low)
    }

    /// Return the names of the headings of the sections that begin within a unit of a text.
    fn headings_within(&self, text: usize, unit: usize) -> Vec<String> {
        let (start, end) = (self.units[2 * unit], self.units[2 * unit + 1]);
        let (all, mut at) = self.after(text, start);
        while at > all.start && self.spans[2 * (at - 1)] == start {
            at -= 1;
        }
        let within = (at..all.end).take_while(|&at| self.spans[2 * at] < end).map(|at| self.label[at]);
        let paths = within.filter_map(|label| {
            let label = self.labels.bytes(Some(label as usize).filter(|&label| label < self.labels.len())?);
            label.starts_with(HEADING).then(|| serde_json::from_slice::<(String, Vec<String>)>(label).ok())?
        });
        paths.filter_map(|(_, mut path)| path.pop()).collect()
    }

    /// Return the labels at the start of a unit of a text.
    fn at_start(&self, text: usize, unit: usize) -> Vec<u32> {
        let at = self.units[2 * unit];
        let (Range { start: first, .. }, low) = self.after(text, at);
        let near = (low.saturating_sub(NEAREST).max(first)..low).filter(|k| at < self.spans[2 * k + 1]);
        let labels = near.map(|k| self.label[k]);
        let is_shared = |label: &u32| {
            let label = *label as usize;
            label < self.labels.len() && SHARED.iter().any(|kind| self.labels.bytes(label).starts_with(kind))
        };
        labels.filter(is_shared).collect()
    }
}

/// Maximum number of bytes between two merged units. A longer gap is a part of the text that was not indexed.
const WIDEST: usize = 200;
/// Maximum number of units of a row, so that a citation refers to a passage and not to a whole table or
/// article.
pub(super) const LONGEST: u32 = 3;

impl<'a> Units<'a> {
    /// `bytes` are the start and end of each unit in its text. `gaps` are the parts of each text that no unit
    /// covers. Units must not overlap.
    pub fn with_gaps(mut self, bytes: Items<'a, u32>, gaps: Strings<'a>) -> Result<Self> {
        if bytes.len() != 2 * self.len() || self.titles.is_none_or(|(titles, _)| titles.len() != gaps.len()) {
            return Err(Error::input(format!("there are {} gaps for {} units", gaps.len(), self.len())));
        }
        self.gaps = Some((bytes, gaps));
        Ok(self)
    }

    /// Merge only units of the same page and section.
    pub fn with_locations(mut self, locations: Locations<'a>) -> Result<Self> {
        let texts = self.titles.map_or(0, |(titles, _)| titles.len());
        let sizes = [locations.units.len(), locations.indptr.len(), locations.spans.len()];
        if sizes != [2 * self.len(), texts + 1, 2 * locations.label.len()] {
            return Err(Error::input(format!("there are {} locations for {texts} texts", sizes[1])));
        }
        self.locations = Some(locations);
        Ok(self)
    }

    /// Return the names of the headings within a unit.
    pub fn headings_within(&self, unit: u32) -> Vec<String> {
        match (self.locations, self.titles) {
            (Some(all), Some((_, of))) => all.headings_within(of[unit as usize] as usize, unit as usize),
            _ => Vec::new(),
        }
    }

    /// Return the text between a unit and the next one. Returns `None` if the next unit is far away or
    /// belongs to another text, page or section.
    fn between(&self, unit: u32) -> Option<&'a str> {
        let ((bytes, gaps), (_, of)) = (self.gaps?, self.titles?);
        let (unit, next) = (unit as usize, unit as usize + 1);
        if next >= self.len() || of[unit] != of[next] {
            return None;
        }
        let (end, start) = (bytes[2 * unit + 1] as usize, bytes[2 * next] as usize);
        let width = start.checked_sub(end).filter(|&width| width <= WIDEST)?;
        let row = of[unit] as usize;
        if self.locations.is_some_and(|all| all.at_start(row, unit) != all.at_start(row, next)) {
            return None;
        }
        let (mut first, mut high) = (0, unit);
        while first < high {
            let middle = (first + high) / 2;
            match of[middle] < of[unit] {
                true => first = middle + 1,
                false => high = middle,
            }
        }
        let offsets = self.texts.offsets();
        let covered = offsets[next].checked_sub(offsets[first])? as usize;
        let stop = start.checked_sub(covered)?;
        gaps.get(row).get(stop.checked_sub(width)?..stop)
    }

    /// Return the text of several neighbouring units, including the text between them.
    pub fn joined(&self, first: u32, count: u32) -> String {
        let mut text = self.texts.get(first as usize).to_owned();
        for unit in first..first + count.saturating_sub(1) {
            text.push_str(self.between(unit).unwrap_or("\n"));
            text.push_str(self.texts.get(unit as usize + 1));
        }
        text
    }
}

/// Units that are printed as one row.
#[derive(Debug, Clone, Copy)]
struct Run {
    best: u32,
    first: u32,
    last: u32,
    /// Tokens of the texts with title and context.
    tokens: u64,
}

impl Run {
    fn len(&self) -> u32 {
        self.last - self.first + 1
    }
}

impl<C: Count> Renderer<C> {
    /// Like `render`, with neighbouring units merged.
    pub fn render_joined(
        &self,
        units: &Units<'_>,
        candidates: &[u32],
        budget: u64,
        policy: FillPolicy,
        oversize: OversizePolicy,
    ) -> Result<Context> {
        if candidates.iter().any(|&unit| unit as usize >= units.len()) {
            return Err(Error::input(format!("a candidate is not one of {} units", units.len())));
        }
        let runs = self.runs(units, candidates, budget, policy);
        if runs.is_empty() {
            return self.render(units, candidates, budget, policy, oversize);
        }
        let mut context = self.begin();
        for run in runs {
            let tokens = self.mark_tokens(context.rows.len() + 1, run.best) + run.tokens;
            let (one, last) = (units.body(run.first as usize), units.body(run.last as usize));
            let row = Row { unit: run.best, first: run.first, count: run.len(), tokens, start: 0, end: 0 };
            match run.len() {
                1 => self.push_row(&mut context, row, one),
                count => {
                    let text = units.joined(run.first, count);
                    self.push_row(&mut context, row, Body { text: &text, after: last.after, ..one });
                }
            }
        }
        Ok(self.finish(context))
    }

    /// Return the rows that fit, best first.
    fn runs(&self, units: &Units<'_>, candidates: &[u32], budget: u64, policy: FillPolicy) -> Vec<Run> {
        let mut runs: Vec<Option<Run>> = Vec::new();
        // The run of merged units that starts or ends at each unit.
        let mut ends: HashMap<u32, usize> = HashMap::new();
        let (mut rows, mut total) = (0, 0);
        for &unit in candidates {
            let own = Run { best: unit, first: unit, last: unit, tokens: units.tokens[unit as usize].into() };
            let find = |end: Option<u32>| {
                let at = *ends.get(&end?)?;
                runs[at].filter(|run| run.len() < LONGEST).map(|run| (at, run))
            };
            let left = find(unit.checked_sub(1)).filter(|(_, run)| run.last + 1 == unit);
            let left = left.filter(|(_, run)| units.between(run.last).is_some());
            let right = find(unit.checked_add(1)).filter(|(_, run)| run.first == unit + 1);
            let right = right.filter(|_| units.between(unit).is_some());
            let (left, right) = match (left, right) {
                (Some(one), Some(other)) if one.1.len() + other.1.len() >= LONGEST => match one.0 < other.0 {
                    true => (Some(one), None),
                    false => (None, Some(other)),
                },
                both => both,
            };
            let (mut run, mut now) = (own, total);
            for (_, part) in [left, right].into_iter().flatten() {
                now -= part.tokens;
            }
            if let Some((_, left)) = left {
                run = Run { best: left.best, ..self.concatenate(units, left, run) };
            }
            if let Some((at, right)) = right {
                let best = if left.is_some_and(|(other, _)| other < at) { run.best } else { right.best };
                run = Run { best, ..self.concatenate(units, run, right) };
            }
            now += run.tokens;
            match (left, right) {
                (None, None) => now += self.mark_tokens(rows + 1, unit),
                (Some(_), Some(_)) => now -= self.mark_tokens(rows, unit),
                _ => {}
            }
            if now > budget {
                match policy {
                    FillPolicy::FirstOverflowStops => break,
                    FillPolicy::SkipAndContinue => continue,
                }
            }
            total = now;
            let (left, right) = (left.map(|(at, _)| at), right.map(|(at, _)| at));
            let at = match (left, right) {
                (None, None) => {
                    rows += 1;
                    runs.push(None);
                    runs.len() - 1
                }
                (Some(left), Some(right)) => {
                    rows -= 1;
                    runs[left.max(right)] = None;
                    left.min(right)
                }
                (one, other) => one.or(other).unwrap_or_default(),
            };
            runs[at] = Some(run);
            ends.extend([(run.first, at), (run.last, at)]);
        }
        runs.into_iter().flatten().collect()
    }

    /// Return the tokens of a row's mark and of its line end.
    fn mark_tokens(&self, rank: usize, unit: u32) -> u64 {
        self.prefix_tokens(rank, unit) + self.end
    }

    /// Return two neighbouring rows merged into one. Its token count is the sum of the stored counts, minus
    /// the parts that are printed only once, plus the text between them.
    fn concatenate(&self, units: &Units<'_>, left: Run, right: Run) -> Run {
        let (end, start) = (units.body(left.last as usize), units.body(right.first as usize));
        let mut lead = String::new();
        Body { text: "", after: "", ..start }.push(&mut lead);
        let once = [end.after, &lead].map(|text| self.count.count(text) as u64).iter().sum::<u64>();
        let between = self.count.count(units.between(left.last).unwrap_or("\n")) as u64;
        let tokens = (left.tokens + right.tokens + between).saturating_sub(once);
        Run { best: left.best, first: left.first, last: right.last, tokens }
    }
}
