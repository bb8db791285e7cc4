//! What the walk reads of the units besides their links: lengths, documents and files.

use super::code::Files;
use crate::error::{Error, Result};
use crate::items::Items;
use crate::rank::links_view::LinksView;

/// The units' lengths and documents.
#[derive(Debug, Clone, Copy)]
pub struct Units<'a> {
    pub lengths: Lengths<'a>,
    /// The document of each unit. Units of one document are adjacent. Without documents no unit has company.
    pub documents: Option<Items<'a, u32>>,
    /// The paths and the texts by which files of code are ranked; they need documents.
    pub files: Option<Files<'a>>,
}

impl<'a> From<Lengths<'a>> for Units<'a> {
    fn from(lengths: Lengths<'a>) -> Self {
        Self { lengths, documents: None, files: None }
    }
}

/// Unit lengths, in one of three forms.
#[derive(Debug, Clone, Copy)]
pub enum Lengths<'a> {
    /// The length is the number of keywords.
    Keywords,
    /// log(1 + length) of each unit.
    Given(&'a [f64]),
    /// The length is the number of characters, from the start and end of each unit.
    Spans(Items<'a, u32>),
}

impl Units<'_> {
    /// Check the numbers of lengths, documents and texts.
    pub(super) fn check(&self, links: &LinksView<'_>) -> Result<()> {
        check_lengths(links, self.lengths)?;
        check_documents(links, self.documents)?;
        self.files.map_or(Ok(()), |files| check_files(links, self.documents, files))
    }
}

fn check_lengths(links: &LinksView<'_>, lengths: Lengths<'_>) -> Result<()> {
    let (found, given) = match lengths {
        Lengths::Keywords => return Ok(()),
        Lengths::Given(lengths) => (lengths.len(), lengths),
        Lengths::Spans(spans) => (spans.len() / 2, &[][..]),
    };
    if found != links.units() {
        return Err(Error::input(format!("there are {found} lengths for {} units", links.units())));
    }
    match given.iter().position(|x| !x.is_finite()) {
        Some(at) => Err(Error::input(format!("the length of unit {at} is not finite"))),
        None => Ok(()),
    }
}

fn check_documents(links: &LinksView<'_>, documents: Option<Items<'_, u32>>) -> Result<()> {
    match documents {
        Some(documents) if documents.len() != links.units() => {
            Err(Error::input(format!("there are {} documents for {} units", documents.len(), links.units())))
        }
        _ => Ok(()),
    }
}

fn check_files(links: &LinksView<'_>, documents: Option<Items<'_, u32>>, files: Files<'_>) -> Result<()> {
    let Some(documents) = documents else {
        return Err(Error::input("paths of files need the document of each unit"));
    };
    let rows = documents.last().map_or(0, |&last| last as usize + 1);
    match files.texts.len() == links.units() && rows <= files.ids.len() {
        true => Ok(()),
        false => Err(Error::input(format!(
            "there are {} texts for {} units, and {} paths for {rows} documents",
            files.texts.len(),
            links.units(),
            files.ids.len()
        ))),
    }
}
