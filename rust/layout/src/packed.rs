//! Serialised pages: several processes read parts of one document, and one of them combines the pages.

use crate::grids::Grid;
use crate::page::{Line, Page, State, Word};
use ketrag_base::error::{Error, Result};

/// Return pages as bytes.
pub fn pack(pages: &[Page]) -> Vec<u8> {
    let mut out = Vec::new();
    put_count(&mut out, pages.len());
    for page in pages {
        put_numbers(&mut out, &[page.width, page.height]);
        out.extend(page.turned.to_le_bytes());
        out.push(page.state as u8);
        out.extend(page.unseen.to_le_bytes());
        put_count(&mut out, page.lines.len());
        for line in &page.lines {
            put_numbers(&mut out, &[line.left, line.top, line.right, line.bottom, line.size]);
            out.push(u8::from(line.soft) | u8::from(line.upright) << 1);
            put_text(&mut out, &line.text);
            put_count(&mut out, line.words.len());
            for word in &line.words {
                put_numbers(&mut out, &[word.left, word.top, word.right, word.bottom]);
                put_text(&mut out, &word.text);
            }
        }
        put_count(&mut out, page.grids.len());
        for grid in &page.grids {
            put_count(&mut out, grid.xs.len());
            put_numbers(&mut out, &grid.xs);
            put_count(&mut out, grid.ys.len());
            put_numbers(&mut out, &grid.ys);
            for &(row, column) in &grid.first {
                out.extend(row.to_le_bytes());
                out.extend(column.to_le_bytes());
            }
        }
    }
    out
}

/// Return the pages in bytes, which must be those of [`pack`].
pub fn unpack(bytes: &[u8]) -> Result<Vec<Page>> {
    let mut input = Packed { rest: bytes };
    let pages = input.list(Packed::page);
    match pages {
        Some(pages) if input.rest.is_empty() => Ok(pages),
        _ => Err(Error::input("the bytes do not hold pages that `pack` wrote".to_string())),
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend((count as u64).to_le_bytes());
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[f64]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_count(out, text.len());
    out.extend(text.as_bytes());
}

struct Packed<'a> {
    rest: &'a [u8],
}

impl Packed<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (found, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*found)
    }

    /// Return a count of parts, of which each has at least one byte.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(u64::from_le_bytes(self.bytes()?)).ok()?;
        (count <= self.rest.len()).then_some(count)
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        (0..count).map(|_| read(self)).collect()
    }

    fn number(&mut self) -> Option<f64> {
        Some(f64::from_le_bytes(self.bytes()?))
    }

    fn numbers<const N: usize>(&mut self) -> Option<[f64; N]> {
        let mut found = [0.0; N];
        for number in &mut found {
            *number = self.number()?;
        }
        Some(found)
    }

    fn text(&mut self) -> Option<String> {
        let count = self.count()?;
        let (text, rest) = self.rest.split_at(count);
        self.rest = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn page(&mut self) -> Option<Page> {
        let [width, height] = self.numbers()?;
        let turned = u16::from_le_bytes(self.bytes()?);
        let state = match self.bytes()? {
            [0] => State::Text,
            [1] => State::Unmapped,
            [2] => State::Scanned,
            _ => return None,
        };
        let unseen = u32::from_le_bytes(self.bytes()?);
        let (lines, grids) = (self.list(Packed::line)?, self.list(Packed::grid)?);
        Some(Page { width, height, turned, state, unseen, lines, grids })
    }

    fn line(&mut self) -> Option<Line> {
        let [left, top, right, bottom, size] = self.numbers()?;
        let [flags] = self.bytes()?;
        let text = self.text()?;
        let words = self.list(Packed::word)?;
        let line = Line::new([left, top, right, bottom], size, text, flags & 1 > 0);
        Some(Line { upright: flags & 2 > 0, words, ..line })
    }

    fn word(&mut self) -> Option<Word> {
        let [left, top, right, bottom] = self.numbers()?;
        Some(Word { left, top, right, bottom, text: self.text()? })
    }

    fn grid(&mut self) -> Option<Grid> {
        let (xs, ys) = (self.list(Packed::number)?, self.list(Packed::number)?);
        let cells = xs.len().checked_sub(1)?.checked_mul(ys.len().checked_sub(1)?)?;
        let mut first = Vec::new();
        for _ in 0..cells {
            let cell = (u32::from_le_bytes(self.bytes()?), u32::from_le_bytes(self.bytes()?));
            let is_inside = (cell.0 as usize) < ys.len() - 1 && (cell.1 as usize) < xs.len() - 1;
            first.push(is_inside.then_some(cell)?);
        }
        Some(Grid { xs, ys, first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::word;

    fn pages() -> Vec<Page> {
        let mut line =
            Line::of_words(vec![word(1.0, 2.0, 3.0, "ice"), word(4.0, 5.0, 3.0, "Schnee ä")], 9.0, true);
        line.upright = false;
        let grid = Grid { xs: vec![0.0, 1.0, 2.0], ys: vec![0.0, 3.0], first: vec![(0, 0), (0, 1)] };
        let full = Page {
            width: 600.0,
            height: 800.0,
            turned: 90,
            lines: vec![line],
            grids: vec![grid],
            ..Page::default()
        };
        vec![full, Page { state: State::Scanned, ..Page::default() }]
    }

    #[test]
    fn pages_come_back() {
        assert_eq!(unpack(&pack(&pages())).unwrap(), pages());
        assert!(unpack(&pack(&[])).unwrap().is_empty());
    }

    #[test]
    fn cut_and_damaged_bytes_are_errors() {
        let bytes = pack(&pages());
        for end in 0..bytes.len() {
            assert!(unpack(&bytes[..end]).is_err());
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            let _ = unpack(&damaged); // an error or other pages, but no panic
        }
    }
}
