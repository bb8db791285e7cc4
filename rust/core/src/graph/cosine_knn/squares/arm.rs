//! Squares of 32 rows and 32 columns with NEON.

use super::layout::{Line, Square, LINE, SIDE};
use std::arch::aarch64::*;

/// Rows that share each load of the columns. 2 x 4 sums, four columns and a broadcast word stay in registers.
const ROWS: usize = 2;

/// A word holds two codes of 16 bits. A vector of four words holds four columns and gives eight products,
/// which are added in pairs.
///
/// # Safety
/// Rows and panels hold [`SIDE`] rows of `lines` lines each; NEON is available.
#[target_feature(enable = "neon")]
pub unsafe fn neon(rows: &[Line], panels: &[Line], lines: usize, out: &mut Square) {
    debug_assert!(rows.len() == SIDE * lines && panels.len() == SIDE * lines);
    for (half, panel) in panels.chunks_exact(LINE * lines).enumerate() {
        for (i, rows) in rows.chunks_exact(ROWS * lines).enumerate() {
            let mut sums = [[vdupq_n_s32(0); 4]; ROWS];
            for (k, column) in panel.iter().enumerate() {
                // SAFETY: a line has 16 words: four vectors.
                let column: [int16x8_t; 4] = [0, 4, 8, 12]
                    .map(|from| unsafe { vreinterpretq_s16_u32(vld1q_u32(column.0.as_ptr().add(from))) });
                for r in 0..ROWS {
                    let word = rows[r * lines + k / LINE].0[k % LINE];
                    let x = vreinterpretq_s16_u32(vdupq_n_u32(word));
                    for v in 0..4 {
                        let low = vmull_s16(vget_low_s16(x), vget_low_s16(column[v]));
                        let high = vmull_high_s16(x, column[v]);
                        sums[r][v] = vaddq_s32(sums[r][v], vpaddq_s32(low, high));
                    }
                }
            }
            for (r, sums) in sums.into_iter().enumerate() {
                let out = &mut out.0[i * ROWS + r][half * LINE..(half + 1) * LINE];
                for (out, sum) in out.chunks_exact_mut(4).zip(sums) {
                    // SAFETY: four words.
                    unsafe { vst1q_s32(out.as_mut_ptr(), sum) };
                }
            }
        }
    }
}
