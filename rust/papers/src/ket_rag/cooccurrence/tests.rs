use super::*;
use crate::sparse::Csr;
use proptest::prelude::*;
use std::cmp::Reverse;

/// Return all pairs, sorted.
fn brute(texts: &[Vec<u32>], k: usize, options: &Options) -> Neighbours {
    let n = texts.len();
    let columns = texts.iter().flatten().max().map_or(0, |&m| m as usize + 1);
    let mut df = vec![0usize; columns];
    texts.iter().flatten().for_each(|&w| df[w as usize] += 1);
    let counted = |w: u32| options.max_df_ratio.is_none_or(|ratio| df[w as usize] as f64 <= ratio * n as f64);
    let sets: Vec<Vec<u32>> =
        texts.iter().map(|t| t.iter().copied().filter(|&w| counted(w)).collect()).collect();
    let mut all = Neighbours { k, ..Neighbours::default() };
    for i in options.rows.clone().unwrap_or(0..n) {
        let mut row: Vec<(u32, u32)> = (0..n)
            .filter(|&j| j != i)
            .map(|j| (sets[i].iter().filter(|w| sets[j].binary_search(w).is_ok()).count() as u32, j as u32))
            .filter(|&(count, _)| count > 0 || options.allow_zero)
            .collect();
        row.sort_by_key(|&(count, id)| (Reverse(count), id));
        row.truncate(k);
        row.resize(k, (0, u32::MAX));
        all.ids.extend(row.iter().map(|r| r.1));
        all.counts.extend(row.iter().map(|r| r.0));
    }
    all
}

fn run(texts: &[Vec<u32>], k: usize, options: &Options) -> Result<Neighbours> {
    let columns = texts.iter().flatten().max().map_or(0, |&m| m as usize + 1);
    let csr = Csr::from_rows(texts, columns)?;
    cooccurrence_knn(csr.view(), k, options, &Progress::none())
}

/// Compare with all pairs for every kernel, on 1 to 3 threads, in small and default portions.
fn agrees(texts: &[Vec<u32>], k: usize, options: &Options) {
    let expected = brute(texts, k, options);
    let small = Tuning { frequent_df: Some(3), group: 5, run: 1, rare: 7 };
    for kernel in Kernel::available() {
        for (threads, tuning) in [
            (1, Tuning::default()),
            (2, small),
            (3, Tuning { frequent_df: Some(1), ..small }),
            (1, Tuning { frequent_df: Some(u32::MAX), run: 2, group: 300, rare: 1 << 20 }),
        ] {
            let options = Options { kernel, threads, tuning, ..options.clone() };
            let found = run(texts, k, &options).unwrap();
            assert!(found == expected, "{options:?}, k {k}, {} texts", texts.len());
        }
    }
}

/// Generate texts with frequent and rare words (xorshift).
fn generated(texts: usize, words: u32, each: usize) -> Vec<Vec<u32>> {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let draw = |r: u64| {
        // Log-uniform, so the first words occur in many texts.
        let x = (r >> 11) as f64 / (1u64 << 53) as f64;
        (f64::from(words).powf(x) - 1.0) as u32
    };
    (0..texts)
        .map(|_| {
            let mut text: Vec<u32> = (0..each).map(|_| draw(next())).collect();
            text.sort_unstable();
            text.dedup();
            text
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn equals_all_pairs(
        texts in prop::collection::vec(prop::collection::btree_set(prop_oneof![0u32..6, 0u32..60], 0..12), 0..40),
        k in 0usize..44,
        allow_zero in any::<bool>(),
        max_df_ratio in prop::option::of(0.0..=1.0f64),
    ) {
        let texts: Vec<Vec<u32>> = texts.into_iter().map(|t| t.into_iter().collect()).collect();
        agrees(&texts, k, &Options { allow_zero, max_df_ratio, ..Options::default() });
    }
}

#[test]
fn many_blocks_and_odd_ends() {
    for n in [63, 64, 65, 511, 512, 513, 1100] {
        let texts = generated(n, 3000, 30);
        for k in [1, 4] {
            agrees(&texts, k, &Options::default());
        }
    }
    let texts = generated(700, 500, 12);
    for k in [50, 699, 701] {
        agrees(&texts, k, &Options { allow_zero: true, ..Options::default() });
    }
}

#[test]
fn default_sizes_on_more_than_one_run_of_blocks() {
    // 64 blocks form a run; 33,000 texts need 65. The `rows` option keeps the oracle affordable.
    let texts = generated(33_000, 20_000, 20);
    for rows in [0..3, 32_766..32_770, 32_998..33_000] {
        let options = Options { rows: Some(rows), ..Options::default() };
        let expected = brute(&texts, 5, &options);
        assert!(run(&texts, 5, &options).unwrap() == expected);
    }
}

#[test]
fn long_texts_need_more_slices() {
    // Every text length at which a slice, an octet or a group of words ends.
    for common in [7, 8, 55, 56, 57, 62, 63, 64, 65, 112, 119, 127, 128, 255, 256, 257, 700] {
        let texts: Vec<Vec<u32>> = (0..20)
            .map(|i| (0..common).chain((common..common + 400).filter(|w| w % (i + 2) == 0)).collect())
            .collect();
        agrees(&texts, 3, &Options::default());
    }
}
