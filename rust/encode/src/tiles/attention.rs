//! Attention of one sequence by tiles: per head, scores of 32 queries against all keys, their powers of 2,
//! and the weighted sum of the values.
//!
//! At first no maximum is subtracted: shares are `2^score`, summed by a product with a tile of ones. A row
//! whose sum leaves [`LEAST`]`..=`[`MOST`] (too large, or so small that shares became zero) is computed again
//! with its maximum subtracted. That depends only on the row, so its bits do, too.

use super::block::{Idle, Tiles, STEP_WORDS, TILE_WORDS};
use super::{Panels, PanelsMut, PANEL, ROW, TILE};
use crate::attention::{Distances, Heads};
use crate::buffer::Buffer;
use crate::simd::wide::Wide;

/// Queries whose scores are computed together.
const QUERIES: usize = 2 * TILE;
/// Words between panels of the shares.
const SHARES: usize = QUERIES * ROW;
/// Sums of shares that are used as they are: shares below 2^-55 are zero, those of 2^60 and more of them
/// are far from infinity.
const LEAST: f32 = 1.0 / 1024.0;
const MOST: f32 = (1u64 << 60) as f32;

/// Scratch memory of one thread.
#[derive(Default)]
pub struct Scratch {
    keys: Buffer,
    values: Buffer,
    scores: Buffer,
    shares: Buffer,
    sums: Buffer,
}

impl Scratch {
    /// Return the number of words it holds.
    pub fn len(&self) -> usize {
        [&self.keys, &self.values, &self.scores, &self.shares, &self.sums].iter().map(|b| b.len()).sum()
    }
}

/// One head's sizes.
#[derive(Clone, Copy)]
struct Size {
    length: usize,
    /// Panels of a head.
    panels: usize,
    /// Keys by 32.
    steps: usize,
}

/// Attends within one sequence of `length` tokens. `projected` has the panels of the heads' queries, then
/// of the keys, then of the values, from the sequence's first row on; queries are already scaled, so that a
/// score is the exponent of 2. `out` has the heads' panels. What is in rows beyond `length` is read and
/// has no weight.
///
/// # Safety
/// The instructions of `M`.
///
/// # Panics
/// Where a slice is too short or a head is not whole panels.
#[inline(always)]
pub unsafe fn attend<M: Tiles>(
    heads: Heads,
    length: usize,
    projected: Panels<'_>,
    distances: Option<&Distances>,
    scratch: &mut Scratch,
    out: &mut PanelsMut<'_>,
) {
    assert!(heads.width.is_multiple_of(PANEL) && heads.count > 0 && length > 0);
    let size = Size { length, panels: heads.width / PANEL, steps: length.div_ceil(PANEL) };
    let all = heads.count * size.panels;
    assert!(projected.readable(3 * all, length) && out.writable(all, length));
    let Scratch { keys, values, scores, shares, sums } = scratch;
    keys.reserve(size.steps * size.panels * STEP_WORDS);
    values.reserve(size.steps * size.panels * STEP_WORDS);
    scores.reserve(QUERIES * size.steps * PANEL);
    shares.reserve(size.steps * SHARES);
    sums.reserve(TILE * (PANEL + 16));
    let wide = size.steps * PANEL;
    // SAFETY: `projected` has whole tiles of `length` rows in each of the three times `all` panels and `out`
    // has room for `length` rows, by the assert; the scratch has the room reserved above.
    unsafe {
        let _on = M::on();
        let at = |panel: usize| projected.words.as_ptr().add(panel * projected.stride);
        for head in 0..heads.count {
            let first = head * size.panels;
            for p in 0..size.panels {
                pack_keys::<M>(size, p, at(all + first + p), keys);
                pack_values::<M>(size, p, at(2 * all + first + p), values);
            }
            for query in (0..length).step_by(QUERIES) {
                let rows = QUERIES.min(length - query);
                for t in 0..size.steps {
                    let (a, b) =
                        (at(first).add(query * ROW), keys.as_ptr().add(t * size.panels * STEP_WORDS));
                    let c = scores.as_mut_ptr().add(t * PANEL);
                    M::block(rows, size.panels, a, projected.stride, b, c, wide, &mut Idle);
                }
                for r in 0..rows {
                    let line = scores.as_mut_ptr().add(r * wide);
                    if let Some(distances) = distances {
                        let bias = distances.of(head, query + r, length);
                        for j in (0..wide).step_by(16) {
                            let s = M::add(M::load(line.add(j)), M::load(bias.as_ptr().add(j)));
                            M::store(line.add(j), s);
                        }
                    }
                    share::<M>(size, line, None, shares.as_mut_ptr().add(r * ROW));
                }
                for from in (0..rows).step_by(TILE) {
                    let count = TILE.min(rows - from);
                    let mine = shares.as_mut_ptr().add(from * ROW);
                    let line = scores.as_ptr().add(from * wide);
                    // Twice at most: shares of which the highest is 1 have a sum within bounds, or are no
                    // numbers, which stay so.
                    for _ in 0..2 {
                        for p in 0..size.panels {
                            let to = (first + p) * out.stride + (query + from) * ROW;
                            let to = out.words.as_mut_ptr().add(to);
                            weigh::<M>(size, p, count, mine, values, sums, to);
                        }
                        if !redo::<M>(size, count, line, mine, sums.as_ptr()) {
                            break;
                        }
                    }
                }
            }
        }
    }
}

/// Panel `p` of the keys as columns: for each 32 keys and each panel two tiles of 16 keys.
///
/// # Safety
/// The instructions of `M`; whole tiles of the keys' rows, room for all keys.
#[inline(always)]
unsafe fn pack_keys<M: Tiles>(size: Size, p: usize, from: *const f32, keys: &mut Buffer) {
    for tile in 0..size.length.div_ceil(TILE) {
        let place = (tile / 2 * size.panels + p) * STEP_WORDS + tile % 2 * TILE_WORDS;
        M::transpose(from.add(tile * TILE_WORDS), keys.as_mut_ptr().add(place));
    }
}

/// Panel `p` of the values as pairs of rows, zero beyond the last, where the input may be NaN.
///
/// # Safety
/// The instructions of `M`; the values' rows, room for all values.
#[inline(always)]
unsafe fn pack_values<M: Tiles>(size: Size, p: usize, from: *const f32, values: &mut Buffer) {
    let zeros = [0u16; PANEL];
    let base = p * size.steps * STEP_WORDS;
    for pair in 0..size.steps * ROW {
        let row = |r: usize| {
            if r < size.length {
                from.add(r * ROW).cast::<u16>()
            } else {
                zeros.as_ptr()
            }
        };
        let (a, b) = (row(2 * pair), row(2 * pair + 1));
        let place = base + pair / ROW * STEP_WORDS + pair % ROW * 16;
        // SAFETY: rows have 32 bf16; the caller's promise.
        unsafe {
            let to = values.as_mut_ptr().add(place);
            M::pair(a, b, to);
            M::pair(a.add(16), b.add(16), to.add(TILE_WORDS));
        }
    }
}

/// The shares of one query: `2^score`, or `2^(score - highest)`; zero beyond the last key.
///
/// # Safety
/// The instructions of `M`; whole steps of scores, and room for as many shares.
#[inline(always)]
unsafe fn share<M: Wide>(size: Size, scores: *const f32, highest: Option<f32>, shares: *mut f32) {
    for t in 0..size.steps {
        // SAFETY: the caller's promise.
        unsafe {
            let [a, b] = [t * PANEL, t * PANEL + 16];
            let last = t + 1 == size.steps;
            let (a, b) = if last {
                (some::<M>(size, scores, highest, a), some::<M>(size, scores, highest, b))
            } else {
                (power::<M>(scores.add(a), highest), power::<M>(scores.add(b), highest))
            };
            M::store_operands(shares.add(t * SHARES).cast(), a, b);
        }
    }
}

/// # Safety
/// Like [`share`].
#[inline(always)]
unsafe fn power<M: Wide>(scores: *const f32, highest: Option<f32>) -> M::V {
    let s = M::load(scores);
    M::exp2(if let Some(highest) = highest { M::sub(s, M::splat(highest)) } else { s })
}

/// [`power`] of the scores from `j` on, zero beyond the last key.
///
/// # Safety
/// Like [`share`].
#[inline(always)]
unsafe fn some<M: Wide>(size: Size, scores: *const f32, highest: Option<f32>, j: usize) -> M::V {
    let e = power::<M>(scores.add(j), highest);
    M::first(e, size.length.saturating_sub(j).min(16), M::splat(0.0))
}

/// The values of panel `p` weighted by the shares of `count` rows, divided by the shares' sums, which stay
/// in `sums`, 16 times each.
///
/// # Safety
/// The instructions of `M`; shares, values and room for the rows at `to`; room for a tile and a half of sums.
#[inline(always)]
unsafe fn weigh<M: Tiles>(
    size: Size,
    p: usize,
    count: usize,
    shares: *const f32,
    values: &Buffer,
    sums: &mut Buffer,
    to: *mut f32,
) {
    let b = values.as_ptr().add(p * size.steps * STEP_WORDS);
    let totals = sums.as_mut_ptr();
    let c = totals.add(TILE * 16);
    M::mix(count, size.steps, shares, SHARES, b, c, totals);
    for r in 0..count {
        let inverse = M::div(M::splat(1.0), M::load(totals.add(r * 16)));
        let (a, b) = (M::load(c.add(r * PANEL)), M::load(c.add(r * PANEL + 16)));
        M::store_operands(to.add(r * ROW).cast(), M::mul(a, inverse), M::mul(b, inverse));
    }
}

/// Recompute, with the highest score subtracted, the shares of those of `count` rows whose sums are out of
/// bounds; return whether there were any.
///
/// # Safety
/// The instructions of `M`; `count` rows of scores, shares and sums.
#[inline(always)]
unsafe fn redo<M: Wide>(
    size: Size,
    count: usize,
    scores: *const f32,
    shares: *mut f32,
    sums: *const f32,
) -> bool {
    let wide = size.steps * PANEL;
    let mut any = false;
    for r in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            if (LEAST..=MOST).contains(&sums.add(r * 16).read()) {
                continue;
            }
            any = true;
            let line = scores.add(r * wide);
            let highest = (0..size.length).map(|j| line.add(j).read());
            let highest = highest.fold(f32::NEG_INFINITY, |m, s| if s > m { s } else { m });
            share::<M>(size, line, Some(highest), shares.add(r * ROW));
        }
    }
    any
}
