//! The previous index, or the indexes to merge, for [`super::links_update`].

use crate::error::{Error, Result};
use crate::graph::links_pass::Rows;
use crate::rank::links_view::{LinksView, NONE};
use crate::text::languages::Language;

/// A previous index.
pub struct Part<'a> {
    pub links: LinksView<'a>,
    /// The language of each unit.
    pub language: &'a [Language],
}

/// The previous index, or the indexes to merge. `row` maps each current unit to its previous number, counting
/// the units of one part after another, or to [`NONE`]. A unit with a previous number has an unchanged title,
/// text and sentences.
pub struct Earlier<'a> {
    pub(crate) parts: &'a [Part<'a>],
    pub(crate) row: &'a [u32],
    /// The number of the first unit of each part, and the total number of units.
    pub(crate) starts: Vec<usize>,
}

impl<'a> Earlier<'a> {
    pub fn new(parts: &'a [Part<'a>], row: &'a [u32]) -> Self {
        let mut starts = vec![0];
        parts.iter().for_each(|part| starts.push(starts[starts.len() - 1] + part.links.units()));
        Self { parts, row, starts }
    }

    /// Return an error if the number of rows differs from the number of current units, or the number of
    /// languages from the number of units of a part.
    pub(crate) fn check(&self, count: usize) -> Result<()> {
        if self.row.len() != count {
            return Err(Error::input(format!(
                "{count} units, but {} rows of the previous index",
                self.row.len()
            )));
        }
        for Part { links, language } in self.parts {
            if language.len() != links.units() {
                return Err(Error::input(format!(
                    "{} units, but {} languages of the previous index",
                    links.units(),
                    language.len()
                )));
            }
        }
        Ok(())
    }

    pub(crate) fn units(&self) -> usize {
        self.starts[self.parts.len()]
    }

    /// Return the part of a previous unit, and its row in that part.
    #[inline]
    pub(crate) fn find(&self, row: u32) -> (usize, usize) {
        let part = self.starts.partition_point(|&start| start <= row as usize) - 1;
        // An empty part starts at the same unit as the next part, which is the one that has the unit.
        (part, row as usize - self.starts[part])
    }

    /// Iterate over unchanged units and their previous numbers.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.row.iter().enumerate().filter(|(_, &row)| row != NONE).map(|(unit, &row)| (unit, row))
    }

    /// Reserve memory for the rows of all previous units. Memory that is not written is not used.
    pub(crate) fn reserve(&self, rows: &mut Rows) {
        let views = || self.parts.iter().map(|part| &part.links);
        let words: usize = views().map(|was| was.unit_keywords.nnz()).sum();
        rows.tf.reserve(words);
        rows.unit_keywords.reserve(self.units(), words);
        rows.unit_names.reserve(self.units(), views().map(|was| was.unit_names.nnz()).sum());
        let sentences = views().map(|was| was.sentence_keywords.rows()).sum();
        let words = views().map(|was| was.sentence_keywords.stored.nnz()).sum();
        rows.sentence_keywords.reserve(sentences, words);
        rows.sentence_names.reserve(sentences, views().map(|was| was.sentence_names.stored.nnz()).sum());
    }

    /// Mark the items of each part that unchanged units have.
    pub(crate) fn marked<R: IntoIterator<Item = u32>>(
        &self,
        count: impl Fn(&LinksView<'a>) -> usize,
        row_of: impl Fn(&LinksView<'a>, usize) -> R,
    ) -> Vec<Vec<u8>> {
        let mut marks: Vec<Vec<u8>> = self.parts.iter().map(|part| vec![0; count(&part.links)]).collect();
        for (_, row) in self.kept() {
            let (part, row) = self.find(row);
            row_of(&self.parts[part].links, row).into_iter().for_each(|id| marks[part][id as usize] = 1);
        }
        marks
    }
}

/// The current units, divided into new and unchanged ones.
pub(crate) struct Kinds {
    /// New units, whose texts are read.
    pub read: Vec<u32>,
    /// For each unit its index in `read`, or [`NONE`].
    pub place: Vec<u32>,
    /// For each previous unit its current number, or [`NONE`].
    pub now: Vec<u32>,
}

impl Kinds {
    pub(crate) fn of(earlier: &Earlier<'_>) -> Result<Self> {
        let mut now = vec![NONE; earlier.units()];
        let mut kinds = Self { read: Vec::new(), place: vec![NONE; earlier.row.len()], now: Vec::new() };
        for (unit, &row) in earlier.row.iter().enumerate() {
            if row != NONE {
                let there = now.get_mut(row as usize);
                let there = there.ok_or_else(|| {
                    Error::input(format!("unit {unit} is not a unit of the previous index"))
                })?;
                if *there != NONE {
                    return Err(Error::input(format!(
                        "units {there} and {unit} are the same unit of the previous index"
                    )));
                }
                *there = unit as u32;
            } else {
                kinds.place[unit] = kinds.read.len() as u32;
                kinds.read.push(unit as u32);
            }
        }
        kinds.now = now;
        Ok(kinds)
    }
}
