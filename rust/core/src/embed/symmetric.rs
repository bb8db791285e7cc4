//! Eigenvalues and eigenvectors of a small symmetric matrix: Householder reduction to tridiagonal form, then
//! implicit QL (Wilkinson and Reinsch 1971, tred2 and tql2). It uses only plain arithmetic and square roots,
//! so the bytes are the same on every machine.

/// Return the eigenvalues in descending order and the eigenvectors as columns: component `i` of vector `j` is
/// at `i * n + j`. `a` is f64[n, n].
pub fn eigen(a: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut v = a.to_vec();
    let mut d = vec![0.0; n];
    let mut e = vec![0.0; n];
    if n == 0 {
        return (d, v);
    }
    tridiagonal(&mut v, &mut d, &mut e, n);
    // The rotations act on pairs of columns of v; on the transpose they act on pairs of rows.
    let mut rows = transpose(&v, n);
    ql(&mut rows, &mut d, &mut e, n);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| d[j].total_cmp(&d[i]).then(i.cmp(&j)));
    let mut vectors = vec![0.0; n * n];
    for (column, &old) in order.iter().enumerate() {
        for i in 0..n {
            vectors[i * n + column] = rows[old * n + i];
        }
    }
    (order.iter().map(|&i| d[i]).collect(), vectors)
}

fn transpose(a: &[f64], n: usize) -> Vec<f64> {
    (0..n * n).map(|at| a[at % n * n + at / n]).collect()
}

/// Reflect from the last row up; `v` becomes the product of the reflections, `d` the diagonal and `e[1..]`
/// the subdiagonal.
fn tridiagonal(v: &mut [f64], d: &mut [f64], e: &mut [f64], n: usize) {
    for i in (1..n).rev() {
        let scale: f64 = (0..i).map(|k| v[i * n + k].abs()).sum();
        if i == 1 || scale == 0.0 {
            e[i] = v[i * n + i - 1];
            d[i] = 0.0;
            continue;
        }
        let mut h = 0.0;
        for k in 0..i {
            v[i * n + k] /= scale;
            h += v[i * n + k] * v[i * n + k];
        }
        let f = v[i * n + i - 1];
        let g = if f > 0.0 { -h.sqrt() } else { h.sqrt() };
        e[i] = scale * g;
        h -= f * g;
        v[i * n + i - 1] = f - g;
        let mut total = 0.0;
        for j in 0..i {
            v[j * n + i] = v[i * n + j] / h;
            let mut sum = 0.0;
            for k in 0..=j {
                sum += v[j * n + k] * v[i * n + k];
            }
            for k in j + 1..i {
                sum += v[k * n + j] * v[i * n + k];
            }
            e[j] = sum / h;
            total += e[j] * v[i * n + j];
        }
        let half = total / (h + h);
        for j in 0..i {
            let f = v[i * n + j];
            e[j] -= half * f;
            let g = e[j];
            for k in 0..=j {
                v[j * n + k] -= f * e[k] + g * v[i * n + k];
            }
        }
        d[i] = h;
    }
    e[0] = 0.0;
    for i in 0..n {
        if d[i] != 0.0 {
            let mut sums = vec![0.0; i];
            for k in 0..i {
                let x = v[i * n + k];
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum += x * v[k * n + j];
                }
            }
            for k in 0..i {
                let x = v[k * n + i];
                for (j, sum) in sums.iter().enumerate() {
                    v[k * n + j] -= sum * x;
                }
            }
        }
        d[i] = v[i * n + i];
        v[i * n + i] = 1.0;
        for j in 0..i {
            v[j * n + i] = 0.0;
            v[i * n + j] = 0.0;
        }
    }
}

/// Eliminate the subdiagonal by rotations. `rows` holds one vector per row. An eigenvalue that has not
/// converged after 60 rounds is used as it is (none is known to need more than 30).
fn ql(rows: &mut [f64], d: &mut [f64], e: &mut [f64], n: usize) {
    e.rotate_left(1);
    e[n - 1] = 0.0;
    for l in 0..n {
        for _ in 0..60 {
            let small =
                |m: usize, d: &[f64], e: &[f64]| e[m].abs() <= f64::EPSILON * (d[m].abs() + d[m + 1].abs());
            let m = (l..n - 1).find(|&m| small(m, d, e)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            let mut g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let root = (g * g + 1.0).sqrt();
            g = d[m] - d[l] + e[l] / (g + if g < 0.0 { -root } else { root });
            let (mut sine, mut cosine, mut p) = (1.0, 1.0, 0.0);
            let mut whole = true;
            for i in (l..m).rev() {
                let (f, b) = (sine * e[i], cosine * e[i]);
                let r = (f * f + g * g).sqrt();
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    whole = false;
                    break;
                }
                sine = f / r;
                cosine = g / r;
                let g2 = d[i + 1] - p;
                let r2 = (d[i] - g2) * sine + 2.0 * cosine * b;
                p = sine * r2;
                d[i + 1] = g2 + p;
                g = cosine * r2 - b;
                let (low, high) = rows.split_at_mut((i + 1) * n);
                for (x, y) in low[i * n..].iter_mut().zip(&mut high[..n]) {
                    let f = *y;
                    *y = sine * *x + cosine * f;
                    *x = cosine * *x - sine * f;
                }
            }
            if whole {
                d[l] -= p;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn vectors_rebuild_the_matrix(seed in prop::collection::vec(-1f64..1.0, 196), n in 0usize..14, zero in any::<bool>()) {
            let mut a = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..n {
                    let x = if zero && (i + j) % 3 == 0 { 0.0 } else { seed[i.min(j) * 14 + i.max(j)] };
                    a[i * n + j] = x;
                }
            }
            let (values, vectors) = eigen(&a, n);
            prop_assert!(values.is_sorted_by(|a, b| a >= b));
            for i in 0..n {
                for j in 0..n {
                    let rebuilt: f64 = (0..n).map(|k| vectors[i * n + k] * values[k] * vectors[j * n + k]).sum();
                    prop_assert!((rebuilt - a[i * n + j]).abs() < 1e-10);
                    let dot: f64 = (0..n).map(|k| vectors[k * n + i] * vectors[k * n + j]).sum();
                    prop_assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-10);
                }
            }
        }
    }

    #[test]
    fn diagonal_and_constant_matrices() {
        assert_eq!(eigen(&[1.0, 0.0, 0.0, 3.0], 2).0, [3.0, 1.0]);
        assert_eq!(eigen(&[0.0; 9], 3).0, [0.0; 3]);
        let (values, _) = eigen(&[1.0; 16], 4);
        assert!((values[0] - 4.0).abs() < 1e-12 && values[1..].iter().all(|x| x.abs() < 1e-12));
    }
}
