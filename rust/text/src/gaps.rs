//! Texts as the pieces that were cut from them, and the gaps between the pieces: each byte is stored once.

use crate::error::{Error, Result};
use crate::strings::{Strings, StringsBuf};

/// Return for each text what no span covers. `spans` holds the start and the end (bytes) of each piece, and
/// `owners` its text.
pub fn gaps(texts: Strings<'_>, owners: &[u32], spans: &[u32]) -> Result<StringsBuf> {
    let order = Order::new(texts.len(), owners, spans)?;
    let mut out = StringsBuf::default();
    let mut gap = String::new();
    for (text, pieces) in order.texts() {
        let text = texts.get(text);
        gap.clear();
        let mut at = 0;
        for &piece in pieces {
            let (start, end) = order.span(piece);
            if start > at {
                gap.push_str(text.get(at..start).ok_or_else(|| invalid(piece))?);
            }
            at = at.max(end);
        }
        gap.push_str(text.get(at..).ok_or_else(|| Error::input("a span ends after its text"))?);
        out.push(&gap);
    }
    Ok(out)
}

/// Return the texts from which [`gaps`] returned `gaps`, and whose pieces are given.
pub fn restore(pieces: Strings<'_>, owners: &[u32], spans: &[u32], gaps: Strings<'_>) -> Result<StringsBuf> {
    let order = Order::new(gaps.len(), owners, spans)?;
    if pieces.len() != owners.len() {
        return Err(Error::input("pieces and their owners must have the same length"));
    }
    let mut out = StringsBuf::default();
    let mut text = String::new();
    for (number, own) in order.texts() {
        let gap = gaps.get(number);
        text.clear();
        let mut taken = 0;
        for &piece in own {
            let (start, end) = order.span(piece);
            if let Some(missing) = start.checked_sub(text.len()) {
                text.push_str(gap.get(taken..taken + missing).ok_or_else(|| invalid(piece))?);
                taken += missing;
            }
            if end > text.len() {
                text.push_str(pieces.get(piece).get(text.len() - start..).ok_or_else(|| invalid(piece))?);
            }
        }
        text.push_str(gap.get(taken..).ok_or_else(|| Error::input(format!("gap {number} is too short")))?);
        out.push(&text);
    }
    Ok(out)
}

fn invalid(piece: usize) -> Error {
    Error::input(format!("the span of piece {piece} does not fit its text"))
}

/// The pieces of each text in the order of their starts.
struct Order<'a> {
    pieces: Vec<usize>,
    ends: Vec<usize>,
    spans: &'a [u32],
}

impl<'a> Order<'a> {
    fn new(texts: usize, owners: &[u32], spans: &'a [u32]) -> Result<Self> {
        if spans.len() != 2 * owners.len() {
            return Err(Error::input("spans must hold a start and an end for each owner"));
        }
        if owners.iter().any(|&owner| owner as usize >= texts) {
            return Err(Error::input(format!("the owner of a span is not one of {texts} texts")));
        }
        let mut pieces: Vec<usize> = (0..owners.len()).collect();
        pieces.sort_by_key(|&piece| (owners[piece], spans[2 * piece]));
        let mut ends = vec![0; texts];
        owners.iter().for_each(|&owner| ends[owner as usize] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        Ok(Self { pieces, ends, spans })
    }

    fn texts(&self) -> impl Iterator<Item = (usize, &[usize])> {
        let start = |text: usize| text.checked_sub(1).map_or(0, |before| self.ends[before]);
        (0..self.ends.len()).map(move |text| (text, &self.pieces[start(text)..self.ends[text]]))
    }

    fn span(&self, piece: usize) -> (usize, usize) {
        (self.spans[2 * piece] as usize, self.spans[2 * piece + 1] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strings::slices;

    fn round_trip(texts: &[&str], owners: &[u32], spans: &[u32]) -> Vec<String> {
        let texts: StringsBuf = texts.iter().collect();
        let pieces = slices(texts.view(), owners, spans).unwrap();
        let between = gaps(texts.view(), owners, spans).unwrap();
        assert_eq!(restore(pieces.view(), owners, spans, between.view()).unwrap(), texts);
        between.view().iter().map(str::to_owned).collect()
    }

    #[test]
    fn texts_come_back_from_pieces_and_gaps() {
        assert_eq!(round_trip(&["One. Two. "], &[0, 0], &[0, 4, 5, 9]), ["  "]);
        assert_eq!(round_trip(&["", "é b", "no piece"], &[1], &[2, 3]), ["", "éb", "no piece"]);
        // Overlapping pieces, one inside another, and pieces out of order.
        let spans = [4, 9, 0, 6, 1, 3, 12, 12];
        assert_eq!(round_trip(&["abcdefghijklmnop"], &[0, 0, 0, 0], &spans), ["jklmnop"]);
        assert_eq!(round_trip(&["ab", "cd"], &[1, 0], &[0, 1, 1, 2]), ["a", "d"]);
        assert!(round_trip(&[], &[], &[]).is_empty());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let text: StringsBuf = ["aéb"].into_iter().collect();
        let none: StringsBuf = [""].into_iter().collect();
        for (owners, spans) in
            [(vec![0], vec![2, 4]), (vec![0], vec![0, 9]), (vec![1], vec![0, 0]), (vec![0], vec![0])]
        {
            assert!(gaps(text.view(), &owners, &spans).is_err());
        }
        // Pieces shorter than their spans, and gaps that are too short.
        assert!(restore(text.view(), &[0], &[1, 9], none.view()).is_err());
        assert!(restore(StringsBuf::default().view(), &[0], &[0, 0], none.view()).is_err());
    }
}
