//! The documents of a generation by number: their ids, rows, units and texts. A text is restored from the texts of its
//! units and from the gaps between them. A document with sections has one row per section, all with its id.

use super::arrays::Arrays;
use crate::error::{Error, Result};
use crate::items::Items;
use crate::text::grep::{Line, Pattern};
use crate::text::strings::{restore, Strings, StringsBuf};
use std::ops::Range;

/// Size in bytes of the texts that are restored and searched at once.
const BLOCK: u64 = 2 << 20;
/// Number of lines that a search of one document may return.
const ENDLESS: usize = usize::MAX;

pub struct Documents<'a> {
    /// The first row of each document and the number of rows; `None` if each document has one row.
    first_row: Option<Vec<u32>>,
    count: usize,
    owner: Items<'a, u32>,
    span: Items<'a, u32>,
    bytes: Items<'a, u32>,
    /// The first and the last line of each unit in its source; 0 if the source has no lines.
    lines: Option<Items<'a, u32>>,
    texts: Strings<'a>,
    gaps: Strings<'a>,
    ids: Strings<'a>,
}

/// A matching line of a document, and its number in the source if that has lines.
pub struct Found {
    pub document: usize,
    pub line: Line,
    pub number: Option<usize>,
}

impl<'a> Documents<'a> {
    pub(super) fn new(arrays: &'a Arrays) -> Result<Self> {
        let ids = arrays.strings("units.document_ids")?;
        let count = arrays.values::<u64>("units.document_count")?.iter().sum::<u64>() as usize;
        let first_row = (ids.len() != count).then(|| first_rows(ids));
        if first_row.as_ref().is_some_and(|rows| rows.len() != count + 1) {
            return Err(Error::damaged(format!("units: the ids are not those of {count} documents")));
        }
        let lines = match arrays.has("units.unit_lines") {
            true => Some(arrays.lazy("units.unit_lines")?),
            false => None,
        };
        let texts = arrays.strings("units.unit_texts")?;
        let units = texts.len();
        Ok(Self {
            first_row,
            count,
            owner: arrays.lazy_exactly("units.unit_document", units)?,
            span: arrays.lazy_exactly("units.unit_span", 2 * units)?,
            bytes: arrays.lazy_exactly("units.unit_bytes", 2 * units)?,
            lines,
            texts,
            gaps: arrays.strings("units.document_gaps")?,
            ids,
        })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn require(&self, document: usize) -> Result<()> {
        match document < self.count {
            true => Ok(()),
            false => Err(Error::input(format!("document {document} of {} does not exist", self.count))),
        }
    }

    fn first_row(&self, document: usize) -> usize {
        self.first_row.as_ref().map_or(document, |rows| rows[document] as usize)
    }

    /// Return the rows of a document.
    pub fn rows(&self, document: usize) -> Result<Range<usize>> {
        self.require(document)?;
        Ok(self.first_row(document)..self.first_row(document + 1))
    }

    /// Return the units of some rows.
    fn units(&self, rows: &Range<usize>) -> Range<usize> {
        let find =
            |start, row| self.owner.partition_point(start..self.owner.len(), |&own| (own as usize) < row);
        let start = find(0, rows.start);
        start..find(start, rows.end)
    }

    /// Return the ids of the documents.
    pub fn ids(&self) -> Vec<String> {
        (0..self.count).map(|document| self.ids.get(self.first_row(document)).to_owned()).collect()
    }

    /// Return the texts of consecutive documents.
    pub fn texts(&self, documents: Range<usize>) -> Result<StringsBuf> {
        if documents.is_empty() {
            return Ok(StringsBuf::default());
        }
        self.require(documents.end - 1)?;
        let rows = self.first_row(documents.start)..self.first_row(documents.end);
        let units = self.units(&rows);
        let pieces: StringsBuf = units.clone().map(|unit| self.texts.get(unit)).collect();
        let owners: Vec<u32> = self.owner[units.clone()].iter().map(|own| own - rows.start as u32).collect();
        let gaps: StringsBuf = rows.clone().map(|row| self.gaps.get(row)).collect();
        let texts =
            restore(pieces.view(), &owners, &self.bytes[2 * units.start..2 * units.end], gaps.view())?;
        if self.first_row.is_none() {
            return Ok(texts);
        }
        let ends = documents.clone().chain([documents.end]);
        let offsets = ends.map(|at| texts.offsets[self.first_row(at) - rows.start]).collect();
        Ok(StringsBuf { blob: texts.blob, offsets })
    }

    /// Return the line of the source at which a document's text begins; `None` if its source has no lines.
    pub fn first_line(&self, document: usize, text: &str) -> Result<Option<usize>> {
        let units = self.units(&self.rows(document)?);
        let Some(lines) = self.lines.filter(|_| !units.is_empty()) else { return Ok(None) };
        let first = lines[2 * units.start] as usize;
        let before = self.bytes[2 * units.start] as usize;
        let skipped = text.bytes().take(before).filter(|&byte| byte == b'\n').count();
        Ok(if first == 0 { None } else { first.checked_sub(skipped) })
    }

    /// Return the row of a document that has a position in code points; between units, that of the unit before.
    pub fn row_at(&self, document: usize, start: u32) -> Result<usize> {
        let rows = self.rows(document)?;
        let units = self.units(&rows);
        let (mut low, mut high) = (units.start, units.end);
        while low < high {
            let middle = (low + high) / 2;
            match self.span[2 * middle] <= start {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(match units.is_empty() {
            true => rows.start,
            false => self.owner[low.saturating_sub(1).max(units.start)] as usize,
        })
    }

    /// Return the documents of a mask in ranges of about two megabytes of text.
    pub fn blocks(&self, wanted: impl Fn(usize) -> Result<bool>) -> Result<Vec<Range<usize>>> {
        let offsets = self.texts.offsets();
        let (mut blocks, mut unit, mut last) = (Vec::<Range<usize>>::new(), 0, None);
        for document in 0..self.count {
            let row = self.first_row(document) as u32;
            while unit < self.owner.len() && self.owner[unit] < row {
                unit += 1;
            }
            let block = offsets[unit] / BLOCK;
            if !wanted(document)? {
                continue;
            }
            match blocks.last_mut() {
                Some(range) if last == Some(block) => range.end = document + 1,
                _ => blocks.push(document..document + 1),
            }
            last = Some(block);
        }
        Ok(blocks)
    }

    /// Return the runs of documents in a range that a mask selects.
    fn runs(&self, range: Range<usize>, wanted: impl Fn(usize) -> Result<bool>) -> Result<Vec<Range<usize>>> {
        let mut runs = Vec::<Range<usize>>::new();
        for document in range {
            if wanted(document)? {
                match runs.last_mut() {
                    Some(run) if run.end == document => run.end += 1,
                    _ => runs.push(document..document + 1),
                }
            }
        }
        Ok(runs)
    }

    /// Return at most `most` lines of the wanted documents of a range that match a pattern, in order.
    pub fn lines(
        &self,
        pattern: &Pattern,
        range: Range<usize>,
        wanted: impl Fn(usize) -> Result<bool>,
        most: usize,
    ) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        for run in self.runs(range, wanted)? {
            let (first, texts) = (run.start, self.texts(run)?);
            let mut begin = (ENDLESS, None);
            for line in pattern.lines(texts.view(), ENDLESS, most - found.len()) {
                if begin.0 != line.string {
                    begin = (line.string, self.first_line(first + line.string, texts.get(line.string))?);
                }
                let number = begin.1.map(|begin| begin + line.line);
                found.push(Found { document: first + line.string, line, number });
            }
            if found.len() == most {
                break;
            }
        }
        Ok(found)
    }

    /// Return the wanted documents of a range that have matching lines, with the number of these lines.
    pub fn counts(
        &self,
        pattern: &Pattern,
        range: Range<usize>,
        wanted: impl Fn(usize) -> Result<bool>,
    ) -> Result<Vec<(usize, u32)>> {
        let mut found = Vec::new();
        for run in self.runs(range, wanted)? {
            let counts = pattern.counts(self.texts(run.clone())?.view(), ENDLESS);
            found.extend(run.zip(counts).filter(|&(_, count)| count > 0));
        }
        Ok(found)
    }

    /// Return, for each unit, whether a mask of documents selects its document.
    pub fn units_of(&self, wanted: impl Fn(usize) -> Result<bool>) -> Result<Vec<u8>> {
        let mut document = 0;
        let all = self.owner.all().iter().map(|&own| {
            while document + 1 < self.count && self.first_row(document + 1) <= own as usize {
                document += 1;
            }
            wanted(document).map(u8::from)
        });
        all.collect()
    }

    /// Return, for each document, whether it has units and a mask selects all of them.
    pub fn documents_of(&self, wanted: impl Fn(usize) -> Result<bool>) -> Result<Vec<u8>> {
        let mut unit = 0;
        (0..self.count)
            .map(|document| {
                let (first, stop) = (unit, self.first_row(document + 1));
                let mut all = true;
                while unit < self.owner.len() && (self.owner[unit] as usize) < stop {
                    all &= wanted(unit)?;
                    unit += 1;
                }
                Ok(u8::from(all && unit > first))
            })
            .collect()
    }

    /// Return, for each unit, whether it is wanted and a line of its text matches a pattern.
    pub fn units_matching(
        &self,
        pattern: &Pattern,
        range: Range<usize>,
        wanted: impl Fn(usize) -> Result<bool>,
    ) -> Result<Vec<u8>> {
        range.map(|unit| Ok(u8::from(wanted(unit)? && pattern.is_in(self.texts.get(unit))))).collect()
    }
}

/// Return the first row of each document, and the number of rows. The rows of a document have its id.
pub(super) fn first_rows(ids: Strings<'_>) -> Vec<u32> {
    let is_first = |&at: &usize| at == 0 || ids.bytes(at) != ids.bytes(at - 1);
    (0..ids.len()).filter(is_first).chain([ids.len()]).map(|at| at as u32).collect()
}
