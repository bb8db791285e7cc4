//! Two vectors side by side, for machines whose vectors are half as wide as a kernel needs.

use super::Lanes;

/// Two vectors as one of twice the lanes. Of four lanes, a pair of pairs has sixteen.
#[derive(Clone, Copy)]
pub struct Pair<S>(std::marker::PhantomData<S>);

macro_rules! halves {
    ($($name:ident($($arg:ident),+);)+) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arg: Self::V),+) -> Self::V {
                // SAFETY: the caller's promise.
                unsafe { [S::$name($($arg[0]),+), S::$name($($arg[1]),+)] }
            }
        )+
    };
}

// The caller's promise of `N` elements covers half at the pointer and half after.
impl<S: Lanes> Lanes for Pair<S> {
    const N: usize = 2 * S::N;
    const NV: usize = 1;
    type V = [S::V; 2];

    halves! {
        add(a, b);
        sub(a, b);
        mul(a, b);
        div(a, b);
        fma(a, b, c);
        max(a, b);
        min(a, b);
        round(v);
        power(v);
        dot2(acc, a, b);
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self::V {
        [S::load(p), S::load(p.add(S::N))]
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, v: Self::V) {
        S::store(p, v[0]);
        S::store(p.add(S::N), v[1]);
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        [S::splat(x); 2]
    }
    #[inline(always)]
    unsafe fn spread(p: *const f32) -> Self::V {
        [S::spread(p); 2]
    }
    #[inline(always)]
    unsafe fn total(v: Self::V) -> f32 {
        S::total(S::add(v[0], v[1]))
    }
    #[inline(always)]
    unsafe fn largest(v: Self::V) -> f32 {
        S::largest(S::max(v[0], v[1]))
    }
    #[inline(always)]
    unsafe fn first(v: Self::V, n: usize, other: Self::V) -> Self::V {
        [S::first(v[0], n.min(S::N), other[0]), S::first(v[1], n.saturating_sub(S::N), other[1])]
    }
    #[inline(always)]
    unsafe fn store_low(p: *mut u16, v: Self::V) {
        S::store_low(p, v[0]);
        S::store_low(p.add(S::N), v[1]);
    }
    #[inline(always)]
    unsafe fn pair(a: *const u16, b: *const u16, out: *mut f32) {
        S::pair(a, b, out);
        S::pair(a.add(S::N), b.add(S::N), out.add(S::N));
    }
    #[inline(always)]
    unsafe fn prefetch(p: *const f32) {
        S::prefetch(p)
    }
    #[inline(always)]
    unsafe fn turn(from: *const f32, stride: usize, to: *mut f32) {
        // The quarters, each of which is written to its place from a buffer.
        let mut quarter = [0.0f32; 64];
        for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            // SAFETY: see above; a half has at most eight lanes.
            unsafe {
                S::turn(from.add(i * S::N * stride + j * S::N), stride, quarter.as_mut_ptr());
                for row in 0..S::N {
                    let line = S::load(quarter.as_ptr().add(row * S::N));
                    S::store(to.add((j * S::N + row) * Self::N + i * S::N), line);
                }
            }
        }
    }
}
