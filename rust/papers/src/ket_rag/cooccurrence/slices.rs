//! Counts of 512 texts at once: bitmaps added vertically into bit slices.
//!
//! A word's bitmap over a block of 512 texts is one [`Row`]. The rows of a text's words are added by a tree
//! of full adders, so that slice `b` holds bit `b` of the count of every position. Each word costs about one
//! full adder: 2 operations with AVX-512 for 512 texts, 5 with AVX2 for 256, 3 with NEON for 128.

use super::lanes::{Lane, Plain};
use super::options::Kernel;

/// Texts per block. A bitmap row is then exactly one cache line, and the rows of several thousand frequent
/// words stay in the L2 cache while all texts of a group are processed.
pub const TEXTS: usize = 512;
const WORDS: usize = TEXTS / 64;

/// A bitmap over the texts of one block.
#[repr(align(64))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row(pub [u64; WORDS]);

impl Row {
    pub const NONE: Self = Self([0; WORDS]);

    /// Return a row with the first `texts` positions set.
    pub fn first(texts: usize) -> Self {
        Self(std::array::from_fn(|w| match texts.saturating_sub(64 * w) {
            0 => 0,
            n if n >= 64 => u64::MAX,
            n => (1 << n) - 1,
        }))
    }

    pub fn set(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    pub fn clear(&mut self, at: usize) {
        self.0[at / 64] &= !(1 << (at % 64));
    }

    pub fn has(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 != 0
    }

    pub fn count(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }

    pub fn each(&self, mut visit: impl FnMut(usize)) {
        for (w, &word) in self.0.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                visit(64 * w + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }
}

/// Number of slices held in registers, enough for 63 words. For longer texts several such sums are added in
/// memory.
const HELD: usize = 6;
/// Number of words in each partial sum of a longer text: the greatest multiple of eight below 64.
const GROUP: usize = 56;
/// Counts are less than 2^32: a text has fewer distinct words than there are word ids.
const MOST: usize = 32;

/// The counts of one text with all texts of one block, as bit slices.
pub struct Counts {
    slices: [Row; MOST],
    levels: usize,
}

impl Counts {
    pub fn new() -> Self {
        Self { slices: [Row::NONE; MOST], levels: 0 }
    }

    /// Return the count at one position.
    pub fn at(&self, position: usize) -> u32 {
        let (word, bit) = (position / 64, position % 64);
        let bits = self.slices[..self.levels].iter().enumerate();
        bits.map(|(b, slice)| ((slice.0[word] >> bit & 1) as u32) << b).sum()
    }

    /// Return the largest `c` such that at least `k >= 1` positions of `among` have a count of at least `c`
    /// (0 if `among` has fewer than `k` positions).
    pub fn kth_largest(&self, among: Row, k: usize) -> u32 {
        let (mut left, mut above, mut value) = (among, 0, 0u32);
        for b in (0..self.levels).rev() {
            let high = Row(std::array::from_fn(|w| left.0[w] & self.slices[b].0[w]));
            let strong = high.count();
            if above + strong >= k {
                left = high;
                value |= 1 << b;
            } else {
                above += strong;
                for w in 0..WORDS {
                    left.0[w] &= !self.slices[b].0[w];
                }
            }
        }
        value
    }

    /// Return the positions of `among` with a count of at least `least`.
    pub fn at_least(&self, among: &Row, least: u32) -> Row {
        // SAFETY: plain words need no instruction set.
        unsafe { self.at_least_in::<Plain>(among, least) }.0
    }

    /// Like [`Self::at_least`], and return whether there are any.
    #[inline(always)]
    unsafe fn at_least_in<L: Lane>(&self, among: &Row, least: u32) -> (Row, bool) {
        let mut out = Row::NONE;
        if u64::from(least) >> self.levels != 0 {
            return (out, false);
        }
        let mut any = false;
        for w in (0..WORDS).step_by(L::WORDS) {
            // SAFETY: the caller guarantees the instruction set; w + L::WORDS <= WORDS, so all loads and the
            // store are within rows.
            unsafe {
                // Go from the lowest bit up. At a 1 of `least`, the count must also have a 1, unless a higher
                // bit decides. At a 0, any 1 of the count is enough.
                let mut enough = L::ones();
                for b in 0..self.levels {
                    let slice = L::load(self.slices[b].0.as_ptr().add(w));
                    enough = if least >> b & 1 != 0 { slice.and(enough) } else { slice.or(enough) };
                }
                let enough = enough.and(L::load(among.0.as_ptr().add(w)));
                any |= !enough.is_zero();
                enough.store(out.0.as_mut_ptr().add(w));
            }
        }
        (out, any)
    }

    /// Add the rows `table[slot]` of all `slots` and return the positions of `among` whose count is at least
    /// `least`, if there are any.
    ///
    /// Every slot must be less than `table.len()`, and `kernel` must come from `Kernel::resolve`.
    pub fn add(
        &mut self,
        kernel: Kernel,
        table: &[Row],
        slots: &[u32],
        among: &Row,
        least: u32,
    ) -> Option<Row> {
        debug_assert!(slots.iter().all(|&s| (s as usize) < table.len()));
        // SAFETY: `resolve` only returns a kernel whose instruction set is available; `Plan` creates the
        // slots as positions of a table of this length.
        let (mask, any) = unsafe {
            match kernel {
                #[cfg(target_arch = "x86_64")]
                Kernel::Avx512 => self.add_avx512(table, slots, among, least),
                #[cfg(target_arch = "x86_64")]
                Kernel::Avx2 => self.add_avx2(table, slots, among, least),
                #[cfg(target_arch = "aarch64")]
                Kernel::Neon => self.add_in::<super::lanes::arm::Neon>(table, slots, among, least),
                _ => self.add_in::<Plain>(table, slots, among, least),
            }
        };
        any.then_some(mask)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn add_avx2(&mut self, table: &[Row], slots: &[u32], among: &Row, least: u32) -> (Row, bool) {
        // SAFETY: AVX2 by the attribute; slots as guaranteed by the caller.
        unsafe { self.add_in::<super::lanes::x86::Avx2>(table, slots, among, least) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn add_avx512(&mut self, table: &[Row], slots: &[u32], among: &Row, least: u32) -> (Row, bool) {
        // SAFETY: AVX-512F by the attribute; slots as guaranteed by the caller.
        unsafe { self.add_in::<super::lanes::x86::Avx512>(table, slots, among, least) }
    }

    #[inline(always)]
    unsafe fn add_in<L: Lane>(
        &mut self,
        table: &[Row],
        slots: &[u32],
        among: &Row,
        least: u32,
    ) -> (Row, bool) {
        if slots.len() < 1 << HELD {
            self.levels = HELD;
            for w in (0..WORDS).step_by(L::WORDS) {
                // SAFETY: slots are within the table; w + L::WORDS <= WORDS.
                unsafe {
                    let sum = sum_of::<L>(table, slots, w);
                    for (slice, bits) in self.slices.iter_mut().zip(sum) {
                        bits.store(slice.0.as_mut_ptr().add(w));
                    }
                }
            }
        } else {
            self.levels = (usize::BITS - slots.len().leading_zeros()) as usize;
            self.slices[..self.levels].fill(Row::NONE);
            for group in slots.chunks(GROUP) {
                for w in (0..WORDS).step_by(L::WORDS) {
                    // SAFETY: slots are within the table; w + L::WORDS <= WORDS.
                    unsafe {
                        let sum = sum_of::<L>(table, group, w);
                        let mut carry = L::zero();
                        for (b, slice) in self.slices[..self.levels].iter_mut().enumerate() {
                            let more = if b < HELD { sum[b] } else { L::zero() };
                            let old = L::load(slice.0.as_ptr().add(w));
                            let (new, up) = L::full_add(old, more, carry);
                            new.store(slice.0.as_mut_ptr().add(w));
                            carry = up;
                        }
                    }
                }
            }
        }
        // SAFETY: as above.
        unsafe { self.at_least_in::<L>(among, least) }
    }
}

/// Sum fewer than 64 rows, at words `w..w + L::WORDS` of each.
#[inline(always)]
unsafe fn sum_of<L: Lane>(table: &[Row], slots: &[u32], w: usize) -> [L; HELD] {
    // SAFETY: the caller guarantees slots less than the table's length, w + L::WORDS <= WORDS, and the
    // instruction set.
    unsafe {
        let row = |slot: u32| L::load(table.as_ptr().add(slot as usize).cast::<u64>().add(w));
        let mut c = [L::zero(); HELD];
        let mut eights = slots.chunks_exact(8);
        for s in &mut eights {
            let (c0, t1) = L::full_add(c[0], row(s[0]), row(s[1]));
            let (c0, t2) = L::full_add(c0, row(s[2]), row(s[3]));
            let (c0, t3) = L::full_add(c0, row(s[4]), row(s[5]));
            let (c0, t4) = L::full_add(c0, row(s[6]), row(s[7]));
            let (c1, u1) = L::full_add(c[1], t1, t2);
            let (c1, u2) = L::full_add(c1, t3, t4);
            let (c2, v) = L::full_add(c[2], u1, u2);
            let (c3, x) = L::half_add(c[3], v);
            let (c4, y) = L::half_add(c[4], x);
            c = [c0, c1, c2, c3, c4, c[5].xor(y)];
        }
        let mut rest = eights.remainder();
        if rest.len() >= 4 {
            let (c0, t1) = L::full_add(c[0], row(rest[0]), row(rest[1]));
            let (c0, t2) = L::full_add(c0, row(rest[2]), row(rest[3]));
            let (c1, u) = L::full_add(c[1], t1, t2);
            let (c2, v) = L::half_add(c[2], u);
            let (c3, x) = L::half_add(c[3], v);
            let (c4, y) = L::half_add(c[4], x);
            c = [c0, c1, c2, c3, c4, c[5].xor(y)];
            rest = &rest[4..];
        }
        if let Some((&first, more)) = rest.split_first() {
            // One to three rows are left: use a full adder with zeros as the missing inputs.
            let second = more.first().map_or(L::zero(), |&s| row(s));
            let (c0, t1) = L::full_add(c[0], row(first), second);
            let (c0, t2) = match more.get(1) {
                Some(&s) => L::half_add(c0, row(s)),
                None => (c0, L::zero()),
            };
            let (c1, u) = L::full_add(c[1], t1, t2);
            let (c2, v) = L::half_add(c[2], u);
            let (c3, x) = L::half_add(c[3], v);
            let (c4, y) = L::half_add(c[4], x);
            c = [c0, c1, c2, c3, c4, c[5].xor(y)];
        }
        c
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_row_knows_its_positions() {
        for n in [0, 1, 63, 64, 65, 300, 511, 512, 900] {
            let row = Row::first(n);
            assert_eq!(row.count(), n.min(TEXTS));
            let mut seen = vec![];
            row.each(|p| seen.push(p));
            assert_eq!(seen, (0..n.min(TEXTS)).collect::<Vec<_>>());
        }
        let mut row = Row::first(100);
        row.clear(70);
        row.set(511);
        assert!(!row.has(70) && row.has(69) && row.has(511) && !row.has(510));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_truth_tables_are_sum_and_carry() {
        // `vpternlogq` returns bit (a << 2 | b << 1 | c) of its table. The tables are checked here as
        // numbers, so that machines without AVX-512 check them, too.
        use super::super::lanes::x86::{MAJORITY, XOR3};
        for index in 0..8i32 {
            let ones = index.count_ones();
            assert_eq!(XOR3 >> index & 1, (ones & 1) as i32);
            assert_eq!(MAJORITY >> index & 1, (ones >= 2) as i32);
        }
    }

    proptest! {
        #[test]
        fn every_kernel_adds_selects_and_compares(
            rows in prop::collection::vec(prop::array::uniform8(any::<u64>()), 1..40),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 0..400),
            among in prop::array::uniform8(any::<u64>()),
            least in 0u32..300,
            k in 1usize..600,
        ) {
            let table: Vec<Row> = rows.into_iter().map(Row).collect();
            let slots: Vec<u32> = picks.iter().map(|p| p.index(table.len()) as u32).collect();
            let among = Row(among);
            let expected: Vec<u32> = (0..TEXTS)
                .map(|p| slots.iter().filter(|&&s| table[s as usize].has(p)).count() as u32)
                .collect();
            for kernel in Kernel::available() {
                let mut counts = Counts::new();
                let mask = counts.add(kernel, &table, &slots, &among, least);
                let found: Vec<u32> = (0..TEXTS).map(|p| counts.at(p)).collect();
                prop_assert_eq!(&found, &expected);
                let mut enough = Row::NONE;
                for (p, &count) in expected.iter().enumerate() {
                    if among.has(p) && count >= least {
                        enough.set(p);
                    }
                }
                prop_assert_eq!(mask, (enough != Row::NONE).then_some(enough));
                prop_assert_eq!(counts.at_least(&among, least), enough);
                let mut order: Vec<u32> = (0..TEXTS).filter(|&p| among.has(p)).map(|p| expected[p]).collect();
                order.sort_unstable_by(|a, b| b.cmp(a));
                prop_assert_eq!(counts.kth_largest(among, k), order.get(k - 1).copied().unwrap_or(0));
            }
        }
    }
}
