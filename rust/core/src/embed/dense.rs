//! Dense and sparse products of the built-in embedder in a fixed order of operations, so the bytes depend
//! neither on the number of threads nor on the processor. Wider registers are used only if each lane computes
//! the same as scalar code, and multiplications are never fused with additions.

use crate::cpu::wide;
use crate::error::Result;
use crate::memory::zeros;
use crate::parallel::{fill_rows, map_ranges};
use crate::progress::Progress;
use crate::sparse::{prefetch_lines, CsrView};

/// A range of columns of a dense matrix: from `first` on, in each of its rows of `width` values.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    pub values: &'a [f32],
    pub width: usize,
    pub first: usize,
}

/// Number of values of a row that stay in registers while rows are added to them.
const LANES: usize = 64;
/// Number of rows that are prefetched before they are added, because they are scattered in memory.
const AHEAD: usize = 6;

/// `sum += weights[i] * dense[ids[i]]` for `sum.len()` columns, one row after the other. `next` are the ids
/// that follow after the next [`AHEAD`], including those of later rows.
#[inline(always)]
fn gather_body(ids: &[u32], weights: &[f32], next: &[u32], dense: Columns, sum: &mut [f32]) {
    let (d, Columns { values: dense, width, first }) = (sum.len(), dense);
    let mut parts = sum.chunks_exact_mut(LANES);
    let mut start = 0;
    for part in &mut parts {
        let mut lanes = [0f32; LANES];
        lanes.copy_from_slice(part);
        for (at, (&id, &weight)) in ids.iter().zip(weights).enumerate() {
            if let (0, Some(&later)) = (start, next.get(at)) {
                prefetch_lines(dense, later as usize * width + first, d);
            }
            let row = &dense[id as usize * width + first + start..][..LANES];
            for k in 0..LANES {
                lanes[k] += weight * row[k];
            }
        }
        part.copy_from_slice(&lanes);
        start += LANES;
    }
    let rest = parts.into_remainder();
    if rest.is_empty() {
        return;
    }
    for (&id, &weight) in ids.iter().zip(weights) {
        let row = &dense[id as usize * width + first + start..][..rest.len()];
        for (sum, &x) in rest.iter_mut().zip(row) {
            *sum += weight * x;
        }
    }
}
wide!(gather, gather_body, (ids: &[u32], weights: &[f32], next: &[u32], dense: Columns, sum: &mut [f32]));

/// Like [`gather`] for a row of the columns of `dense`, with all weights 1.
pub fn gather_once(ids: &[u32], next: &[u32], dense: Columns, sum: &mut [f32]) {
    const ONES: [f32; 256] = [1.0; 256];
    for (at, ids) in ids.chunks(ONES.len()).enumerate() {
        gather(ids, &ONES[..ids.len()], next.get(at * ONES.len()..).unwrap_or(&[]), dense, sum);
    }
}

/// A sparse matrix: a pattern and its values.
#[derive(Clone, Copy)]
pub struct Sparse<'a> {
    pub pattern: CsrView<'a>,
    pub values: &'a [f32],
}

/// `sparse * dense`, where `dense` has `d` columns: f32[rows, d].
pub fn multiply(
    sparse: Sparse,
    dense: &[f32],
    d: usize,
    threads: usize,
    progress: &Progress,
) -> Result<Vec<f32>> {
    let mut out: Vec<f32> = zeros(sparse.pattern.rows().saturating_mul(d), "a product of vectors")?;
    multiply_into(&mut out, sparse, dense, d, threads, progress)?;
    Ok(out)
}

/// Like [`multiply`], into existing memory, because fresh pages cost as much as the products. (Processing a
/// few columns at a time, to keep them in the L2 cache, was slower: rows are short.)
pub fn multiply_into(
    out: &mut [f32],
    sparse: Sparse,
    dense: &[f32],
    d: usize,
    threads: usize,
    progress: &Progress,
) -> Result<()> {
    let dense = Columns { values: dense, width: d, first: 0 };
    fill_rows(out, d, 256, threads, progress, |rows, part| {
        part.fill(0.0);
        for (row, sum) in rows.zip(part.chunks_exact_mut(d)) {
            // Long rows are split, so that a cancellation is noticed in time.
            let range = sparse.pattern.range(row);
            for start in range.clone().step_by(16384) {
                progress.check()?;
                let cut = start..(start + 16384).min(range.end);
                let next = sparse.pattern.indices.all().get(start + AHEAD..).unwrap_or(&[]);
                gather(&sparse.pattern.indices[cut.clone()], &sparse.values[cut], next, dense, sum);
            }
        }
        Ok(())
    })
}

/// Add the outer products of eight rows at a time to the upper half of `gram`.
#[inline(always)]
fn gram_body(a: &[f32], b: &[f32], d: usize, gram: &mut [f64]) {
    for (a, b) in a.chunks(8 * d).zip(b.chunks(8 * d)) {
        let rows = a.len() / d;
        for i in 0..d {
            let sum = &mut gram[i * d + i..(i + 1) * d];
            if rows == 8 {
                let x: [f64; 8] = std::array::from_fn(|r| f64::from(a[r * d + i]));
                let y: [&[f32]; 8] = std::array::from_fn(|r| &b[r * d + i..(r + 1) * d]);
                for (j, sum) in sum.iter_mut().enumerate() {
                    let mut new = *sum;
                    for r in 0..8 {
                        new += x[r] * f64::from(y[r][j]);
                    }
                    *sum = new;
                }
            } else {
                for r in 0..rows {
                    let x = f64::from(a[r * d + i]);
                    for (sum, &y) in sum.iter_mut().zip(&b[r * d + i..(r + 1) * d]) {
                        *sum += x * f64::from(y);
                    }
                }
            }
        }
    }
}
wide!(gram_rows, gram_body, (a: &[f32], b: &[f32], d: usize, gram: &mut [f64]));

/// Return `a^T b` for matrices of `d` columns whose product is symmetric: the upper half, mirrored, f64[d,
/// d]. Summed in blocks whose size depends only on the number of rows.
pub fn gram(a: &[f32], b: &[f32], d: usize, threads: usize, progress: &Progress) -> Result<Vec<f64>> {
    let rows = a.len() / d;
    let block = rows.div_ceil(32).next_multiple_of(8).max(64);
    let parts = map_ranges(rows, block, threads, progress, |rows| {
        let mut part = zeros::<f64>(d * d, "a Gram matrix")?;
        for start in rows.clone().step_by(64) {
            progress.check()?;
            let cut = start * d..(start + 64).min(rows.end) * d;
            gram_rows(&a[cut.clone()], &b[cut], d, &mut part);
        }
        Ok(part)
    })?;
    let mut sum = zeros::<f64>(d * d, "a Gram matrix")?;
    for part in parts {
        sum.iter_mut().zip(part).for_each(|(s, x)| *s += x);
    }
    for i in 0..d {
        for j in 0..i {
            sum[i * d + j] = sum[j * d + i];
        }
    }
    Ok(sum)
}

/// Compute `row := row * R^-1` for an upper triangular `R`; a zero on the diagonal drops the column.
#[inline(always)]
fn solve_body(rows: &mut [f32], r: &[f32], d: usize) {
    for row in rows.chunks_exact_mut(d) {
        for j in 0..d {
            let (done, rest) = row.split_at_mut(j + 1);
            let pivot = r[j * d + j];
            let x = if pivot > 0.0 { done[j] / pivot } else { 0.0 };
            done[j] = x;
            for (y, &r) in rest.iter_mut().zip(&r[j * d + j + 1..(j + 1) * d]) {
                *y -= x * r;
            }
        }
    }
}
wide!(solve_rows, solve_body, (rows: &mut [f32], r: &[f32], d: usize));

/// Return an orthonormal basis of the columns of `matrix` (f32[n, d]); linearly dependent columns become
/// zero. The Cholesky factor of the Gram matrix is accurate enough for subspace iteration, where the next
/// round corrects rounding errors.
pub fn orthonormal(mut matrix: Vec<f32>, d: usize, threads: usize, progress: &Progress) -> Result<Vec<f32>> {
    const DEPENDENT: f64 = 1e-8;
    let mut g = gram(&matrix, &matrix, d, threads, progress)?;
    let mut r = vec![0f32; d * d];
    for j in 0..d {
        let own = matrix_diagonal(&r, &g, d, j);
        let pivot = g[j * d + j];
        let stands = pivot > DEPENDENT * own && pivot > f64::from(f32::MIN_POSITIVE);
        if !stands {
            continue;
        }
        let root = pivot.sqrt();
        for k in j..d {
            r[j * d + k] = (g[j * d + k] / root) as f32;
        }
        for i in j + 1..d {
            let x = g[j * d + i] / root;
            for k in i..d {
                g[i * d + k] -= x * (g[j * d + k] / root);
            }
        }
    }
    fill_rows(&mut matrix, d, 64, threads, progress, |_, part| {
        solve_rows(part, &r, d);
        Ok(())
    })?;
    Ok(matrix)
}

/// Return the squared length of column `j` before anything was subtracted.
fn matrix_diagonal(r: &[f32], g: &[f64], d: usize, j: usize) -> f64 {
    g[j * d + j] + (0..j).map(|i| f64::from(r[i * d + j]).powi(2)).sum::<f64>()
}

/// Return `a * b` for a f32[n, d] and b f32[d, e]: f32[n, e].
pub fn times(
    a: &[f32],
    b: &[f32],
    d: usize,
    e: usize,
    threads: usize,
    progress: &Progress,
) -> Result<Vec<f32>> {
    let ids: Vec<u32> = (0..d as u32).collect();
    let b = Columns { values: b, width: e, first: 0 };
    let mut out = zeros::<f32>(a.len() / d * e, "a product of matrices")?;
    fill_rows(&mut out, e, 64, threads, progress, |rows, part| {
        for (row, sum) in rows.zip(part.chunks_exact_mut(e)) {
            gather(&ids, &a[row * d..(row + 1) * d], &[], b, sum);
        }
        Ok(())
    })?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn orthonormal_columns_span_the_matrix(seed in prop::collection::vec(-1f32..1.0, 120), n in 5usize..24) {
            let d = 5;
            let mut matrix: Vec<f32> = seed[..n * d].to_vec();
            for row in matrix.chunks_exact_mut(d) {
                row[3] = row[0] - 2.0 * row[1]; // a dependent column
            }
            let ask = |threads| orthonormal(matrix.clone(), d, threads, &Progress::none()).unwrap();
            let q = ask(1);
            prop_assert_eq!(&q, &ask(3));
            let g = gram(&q, &q, d, 1, &Progress::none()).unwrap();
            for i in 0..d {
                for j in 0..i {
                    prop_assert!(g[i * d + j].abs() < 1e-2, "{} {} {}", i, j, g[i * d + j]);
                }
                prop_assert!(g[i * d + i] < 1e-2 || (g[i * d + i] - 1.0).abs() < 1e-3);
            }
        }
    }

    #[test]
    fn parts_in_registers_change_no_byte() {
        let (d, ids, weights) = (2 * LANES + 7, [2u32, 0, 1, 2], [0.3f32, -1.7, 1e-4, 9.1]);
        let dense: Vec<f32> = (0..3 * d).map(|i| ((i * 31) % 97) as f32 / 9.0 - 4.0).collect();
        let mut sum = vec![0.25f32; d];
        let mut plain = sum.clone();
        gather(&ids, &weights, &[1, 0], Columns { values: &dense, width: d, first: 0 }, &mut sum);
        let mut some = vec![0.25f32; d - 9];
        gather(&ids, &weights, &[], Columns { values: &dense, width: d, first: 5 }, &mut some);
        assert_eq!(some, sum[5..d - 4]);
        for (&id, &weight) in ids.iter().zip(&weights) {
            plain.iter_mut().zip(&dense[id as usize * d..]).for_each(|(s, &x)| *s += weight * x);
        }
        assert_eq!(sum, plain);
    }

    #[test]
    fn wide_and_narrow_give_the_same_bytes() {
        let dense: Vec<f32> = (0..300).map(|i| ((i * 37) % 101) as f32 / 7.0 - 5.0).collect();
        let (ids, weights) = ([3u32, 0, 9, 2], [0.1f32, -7.3, 1e-3, 2.2]);
        let (mut a, mut b) = (vec![0.3f32; 30], vec![0.3f32; 30]);
        let columns = Columns { values: &dense, width: 30, first: 0 };
        gather(&ids, &weights, &[1, 0], columns, &mut a);
        gather_body(&ids, &weights, &[], columns, &mut b);
        assert_eq!(a, b);
        let (mut a, mut b) = (vec![0f64; 900], vec![0f64; 900]);
        gram_rows(&dense, &dense, 30, &mut a);
        gram_body(&dense, &dense, 30, &mut b);
        assert_eq!(a, b);
        let r: Vec<f32> = (0..900).map(|i| 1.0 + (i % 13) as f32).collect();
        let (mut a, mut b) = (dense.clone(), dense);
        solve_rows(&mut a, &r, 30);
        solve_body(&mut b, &r, 30);
        assert_eq!(a, b);
    }
}
