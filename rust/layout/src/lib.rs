//! The layout of pages: from the characters of a page and their boxes to paragraphs in reading order.
//!
//! Each page is read once ([`lines::lines_of`]); running heads and page numbers are found by comparing the pages
//! ([`repeated`]), and then each page is put into rows ([`columns`], [`tables`], [`ruled`]) and these into paragraphs.
//! Coordinates are data of a file: infinite and undefined ones are clamped, and nothing here panics because of them.

mod accents;
pub mod characters;
pub mod columns;
mod continued;
pub mod direction;
pub mod grids;
mod levels;
pub mod lines;
mod matching;
mod merging;
pub mod packed;
pub mod page;
pub mod paragraphs;
pub mod repeated;
mod reversed;
mod ruled;
mod segments;
mod stripes;
mod tables;
pub mod unmapped;
mod unseen;

use ketrag_base::error::Result;
use ketrag_base::progress::Progress;
use page::Page;
use paragraphs::{paragraphs_of, Compounds, Paragraph};

/// Return the paragraphs of each page in reading order, and the hyphenated words of the document. The lines of the
/// pages are used up.
pub fn paragraphs_of_pages(
    pages: &mut [Page],
    progress: &Progress,
) -> Result<(Vec<Vec<Paragraph>>, Compounds)> {
    repeated::remove_repeated_lines(pages);
    let mut compounds = Compounds::default();
    let mut rows = Vec::with_capacity(pages.len());
    for page in pages {
        progress.check()?;
        let own = columns::rows_of(page);
        own.iter().for_each(|row| compounds.add(&row.text));
        rows.push(own);
        (page.lines, page.grids) = (Vec::new(), Vec::new());
    }
    continued::repeat_heads(&mut rows);
    let mut found = Vec::with_capacity(rows.len());
    for own in rows {
        progress.check()?;
        found.push(paragraphs_of(&own, &compounds));
    }
    Ok((found, compounds))
}
