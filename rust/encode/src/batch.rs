//! Batches of text windows, concatenated.
//!
//! Each window is processed by one thread. Splitting its tokens between two cores, which synchronise once per
//! layer, was measured. A query of 20 tokens did not gain (0.96 to 1.1 times as fast, from f32 to tiles).
//! From 65 tokens on, it was 1.5 to 1.9 times as fast without tiles and slower with tiles. It was up to twice
//! as slow when another process needed a core.

use super::tokens::Windows;
use std::ops::Range;

/// Maximum number of tokens of a batch (at least one window) that pass through the layers together: without
/// tiles, and with tiles.
pub const BY_ROWS: usize = 256;
pub const BY_TILES: usize = 512;

/// A window of a text.
pub struct Piece<'a> {
    pub ids: &'a [u32],
    pub weight: u64,
    pub prompt: usize,
    /// The numbers of the spans in this window, among the spans of all texts, and their rows.
    pub spans: Vec<(usize, Range<usize>)>,
}

/// Return all windows of all texts.
pub fn pieces(windows: &[Windows]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    for own in windows {
        let mut rest = own.ids.as_slice();
        for (&length, &weight) in own.lengths.iter().zip(&own.weights) {
            let (ids, after) = rest.split_at(length);
            pieces.push(Piece { ids, weight, prompt: own.prompt, spans: Vec::new() });
            rest = after;
        }
    }
    pieces
}

/// Return the start of each batch of at most `most` tokens or a single window, followed by the end. `lengths`
/// are the window lengths.
pub fn batches(lengths: impl IntoIterator<Item = usize>, most: usize) -> Vec<usize> {
    let mut starts = vec![0];
    let (mut tokens, mut count) = (0, 0);
    for length in lengths {
        if tokens > 0 && tokens + length > most {
            starts.push(count);
            tokens = 0;
        }
        tokens += length;
        count += 1;
    }
    if count > 0 {
        starts.push(count);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_whole_windows() {
        let starts = |lengths: &[usize]| batches(lengths.iter().copied(), BY_ROWS);
        assert_eq!(starts(&[]), [0]);
        assert_eq!(starts(&[600]), [0, 1]);
        assert_eq!(starts(&[100, 156, 1]), [0, 2, 3]);
        assert_eq!(starts(&[600, 1, 1, 600]), [0, 1, 3, 4]);
    }
}
