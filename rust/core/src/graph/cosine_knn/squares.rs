//! Exact integer products of 32 rows with 32 other rows of byte codes, identical on every machine.
//!
//! Codes are grouped in *words* of four bytes: four codes if the processor multiplies bytes, otherwise two
//! codes of 16 bits. A row is a whole number of lines of 16 words; a *panel* is 16 transposed rows, one line
//! per word. A tile of rows and a tile of columns are therefore both 16 lines, and a vector of 16 columns is
//! one line.

use crate::error::Result;
use crate::memory::filled;
use crate::vector::simd::Level;

mod layout;
use layout::{Line, LINE};
pub use layout::{Square, SIDE};

const CODES: &str = "the codes of vectors";

/// Codes laid out for [`Packed::square`], as rows and as columns; padded with zeros to whole squares.
pub struct Packed {
    level: Level,
    rows: Vec<Line>,
    panels: Vec<Line>,
    /// Lines per row.
    lines: usize,
    /// Initial value of each column's sum: if rows are unsigned (`code + 128`), -128 times its codes.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "NEON has signed products"))]
    begin: Vec<i32>,
}

impl Packed {
    /// `level` must be available on this machine ([`Level::here`]); `codes` hold rows of `d`, within 127.
    pub fn new(level: Level, codes: &[i8], d: usize) -> Result<Self> {
        let bytes = matches!(level, Level::Avx2Vnni | Level::Avx512Vnni | Level::Amx);
        let unsigned = matches!(level, Level::Avx2Vnni | Level::Avx512Vnni);
        let n = (codes.len() / d).next_multiple_of(SIDE);
        let lines = d.div_ceil(if bytes { 4 * LINE } else { 2 * LINE });
        let mut rows = filled(Line([0; LINE]), n * lines, CODES)?;
        for (row, codes) in rows.chunks_exact_mut(lines).zip(codes.chunks_exact(d)) {
            let words = row.iter_mut().flat_map(|line| &mut line.0);
            if bytes {
                for (word, codes) in words.zip(codes.chunks(4)) {
                    *word = (0..).zip(codes).fold(0, |w, (i, &c)| w | u32::from(c as u8) << (8 * i));
                }
            } else {
                for (word, codes) in words.zip(codes.chunks(2)) {
                    *word =
                        (0..).zip(codes).fold(0, |w, (i, &c)| w | u32::from(i16::from(c) as u16) << (16 * i));
                }
            }
        }
        let mut panels = filled(Line([0; LINE]), n * lines, CODES)?;
        for (panel, rows) in panels.chunks_exact_mut(LINE * lines).zip(rows.chunks_exact(LINE * lines)) {
            for (column, row) in rows.chunks_exact(lines).enumerate() {
                for (line, &word) in panel.iter_mut().zip(row.iter().flat_map(|line| &line.0)) {
                    line.0[column] = word;
                }
            }
        }
        let mut begin = filled(0, n, CODES)?;
        if unsigned {
            for (begin, codes) in begin.iter_mut().zip(codes.chunks_exact(d)) {
                *begin = codes.iter().fold(0i32, |sum, &c| sum.wrapping_sub(128 * i32::from(c)));
            }
            // The rows are stored with the offset; the panels were built before.
            rows.iter_mut().flat_map(|line| &mut line.0).for_each(|word| *word ^= 0x8080_8080);
        }
        Ok(Self { level, rows, panels, lines, begin })
    }

    /// Prepare the processor for [`Packed::square`] until the returned value is dropped.
    pub fn ready(&self) -> Ready {
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY: this level exists only if tiles were granted.
            Ready((self.level == Level::Amx).then(|| unsafe { crate::tiles::On::begin() }))
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            Ready(())
        }
    }

    /// Compute the products of the rows from `row` with the rows from `column`, both multiples of [`SIDE`].
    ///
    /// # Panics
    /// If either is not a multiple, or is beyond the last row.
    pub fn square(&self, _ready: &Ready, row: usize, column: usize, out: &mut Square) {
        assert!(row.is_multiple_of(SIDE) && column.is_multiple_of(SIDE));
        let rows = &self.rows[row * self.lines..(row + SIDE) * self.lines];
        let panels = &self.panels[column * self.lines..(column + SIDE) * self.lines];
        #[cfg(target_arch = "x86_64")]
        let begin = &self.begin[column..column + SIDE];
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level is available here; slices of 32 rows of `lines` lines, and 32 sums.
            Level::Avx2 => unsafe { x86::avx2(rows, panels, self.lines, begin, out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::Avx2Vnni => unsafe { x86::avx2_vnni(rows, panels, self.lines, begin, out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::Avx512 => unsafe { x86::avx512(rows, panels, self.lines, begin, out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::Avx512Vnni => unsafe { x86::avx512_vnni(rows, panels, self.lines, begin, out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above; tiles are in use while `_ready` lives.
            Level::Amx => unsafe { x86::amx(rows, panels, self.lines, out) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: as above.
            Level::Neon => unsafe { arm::neon(rows, panels, self.lines, out) },
            _ => plain(rows, panels, self.lines, out),
        }
    }
}

/// See [`Packed::ready`].
#[cfg(target_arch = "x86_64")]
pub struct Ready(#[allow(dead_code)] Option<crate::tiles::On>);
/// See [`Packed::ready`].
#[cfg(not(target_arch = "x86_64"))]
pub struct Ready(());

fn plain(rows: &[Line], panels: &[Line], lines: usize, out: &mut Square) {
    for (row, out) in rows.chunks_exact(lines).zip(&mut out.0) {
        for (panel, out) in panels.chunks_exact(LINE * lines).zip(out.chunks_exact_mut(LINE)) {
            out.fill(0);
            for (&a, column) in row.iter().flat_map(|line| &line.0).zip(panel) {
                for (sum, &b) in out.iter_mut().zip(&column.0) {
                    let half = |w: u32, i: u32| i32::from((w >> (16 * i)) as i16);
                    *sum += half(a, 0) * half(b, 0) + half(a, 1) * half(b, 1);
                }
            }
        }
    }
}

/// Find the products of a square that may matter: bit `c` of `out[r]` is set if `scales[r] * (square[r][c] *
/// columns[c]) + spreads[c] >= floors[r]`, in f32.
///
/// # Panics
/// If a slice does not hold 32 values.
pub fn reaching(
    level: Level,
    square: &Square,
    (scales, floors): (&[f32], &[f32]),
    (columns, spreads): (&[f32], &[f32]),
    out: &mut [u32; SIDE],
) {
    assert!([scales, floors, columns, spreads].iter().all(|values| values.len() == SIDE));
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available here; 32 values as asserted.
        Level::Avx2 | Level::Avx2Vnni => unsafe {
            x86::reaching_avx2(square, scales, floors, columns, spreads, out)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx512 | Level::Avx512Vnni | Level::Amx => unsafe {
            x86::reaching_avx512(square, scales, floors, columns, spreads, out)
        },
        _ => {
            for (r, mask) in out.iter_mut().enumerate() {
                *mask = (0..SIDE).fold(0, |mask, c| {
                    let upper = scales[r] * (square.0[r][c] as f32 * columns[c]) + spreads[c];
                    mask | u32::from(upper >= floors[r]) << c
                });
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(codes: &[i8], d: usize) {
        let n = codes.len() / d;
        let row = |i: usize| if i < n { &codes[i * d..(i + 1) * d] } else { &[][..] };
        let mut square = Square([[7; SIDE]; SIDE]);
        for level in Level::all() {
            let packed = Packed::new(level, codes, d).unwrap();
            for (i, j) in [(0, 0), (0, 32), (32, 0), (32, 32)] {
                packed.square(&packed.ready(), i, j, &mut square);
                for (r, sums) in square.0.iter().enumerate() {
                    for (c, &sum) in sums.iter().enumerate() {
                        let pairs = row(i + r).iter().zip(row(j + c));
                        let plain: i32 = pairs.map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
                        assert_eq!(sum, plain, "{} {i}+{r} {j}+{c}", level.name());
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn squares_are_equal_at_every_level(
            codes in prop::collection::vec(-127i8..=127, 64 * 140), d in 1usize..140, n in 33usize..65,
        ) {
            check(&codes[..n * d], d);
        }

        #[test]
        fn what_reaches_is_equal_at_every_level(
            sums in prop::collection::vec(-1000i32..1000, SIDE * SIDE),
            values in prop::collection::vec(-2f32..2.0, 4 * SIDE),
        ) {
            let square = Square(std::array::from_fn(|r| std::array::from_fn(|c| sums[r * SIDE + c])));
            // Whole numbers: without rounding a fused product equals two operations.
            let values: Vec<f32> = values.iter().map(|x| x.round()).collect();
            let mut floors = values[..SIDE].to_vec();
            floors[3] = f32::NEG_INFINITY;
            floors[4] = f32::INFINITY;
            let (scales, columns, spreads) = (&values[SIDE..2 * SIDE], &values[2 * SIDE..3 * SIDE], &values[3 * SIDE..]);
            let mut plain = [0; SIDE];
            reaching(Level::Portable, &square, (scales, &floors), (columns, spreads), &mut plain);
            prop_assert_eq!((plain[3], plain[4]), (u32::MAX, 0));
            for level in Level::all() {
                let mut out = [7; SIDE];
                reaching(level, &square, (scales, &floors), (columns, spreads), &mut out);
                prop_assert_eq!(out, plain);
            }
        }
    }

    #[test]
    fn the_largest_sums_fit() {
        for d in [64, 4096] {
            for (a, b) in [(127, 127), (127, -127), (-127, -127)] {
                let codes: Vec<i8> = [vec![a; d], vec![b; d]].concat().repeat(17);
                check(&codes, d);
            }
        }
    }
}
