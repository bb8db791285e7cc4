use super::*;
use crate::sparse::Csr;
use proptest::prelude::*;

fn graph(rows: &[&[u32]]) -> Csr {
    Csr::from_rows(rows, rows.len()).unwrap()
}

fn run(csr: &Csr, restart: Option<&[f64]>, settings: &Settings) -> Result<Vec<f64>> {
    pagerank(csr.view(), None, restart, settings, &Progress::none())
}

#[test]
fn a_path_and_two_isolated_nodes() {
    let ranks = run(&graph(&[&[1], &[0], &[], &[]]), None, &Settings::default()).unwrap();
    for (got, want) in ranks.iter().zip([0.4347826, 0.4347826, 0.0652174, 0.0652174]) {
        assert!((got - want).abs() < 1e-7, "{ranks:?}");
    }
    assert_eq!(steps_for(0.15, 1e-9), 132);
}

#[test]
fn two_steps_with_teleport_and_lazy() {
    // Node 0 -> 1 -> {0, 2}, 2 -> 0.
    let csr = graph(&[&[1], &[0, 2], &[0]]);
    let settings = |walk| Settings { teleport: 0.5, until: Until::Steps(2), walk, ..Default::default() };
    // p = e0, P'p = e1, P'P'p = (0.5, 0, 0.5).
    let teleport = run(&csr, Some(&[7.0, 0.0, 0.0]), &settings(Walk::Teleport)).unwrap();
    assert_eq!(teleport, [0.5 + 0.25 * 0.5, 0.25, 0.25 * 0.5]);
    let lazy = run(&csr, Some(&[7.0, 0.0, 0.0]), &settings(Walk::Lazy)).unwrap();
    assert_eq!(lazy, [0.25 + 0.25 * 0.5, 0.5, 0.25 * 0.5]);
}

#[test]
fn small_and_strange_graphs() {
    assert_eq!(run(&graph(&[]), None, &Settings::default()).unwrap(), Vec::<f64>::new());
    assert_eq!(run(&graph(&[&[]]), None, &Settings::default()).unwrap(), [1.0]);
    let all = Settings { teleport: 1.0, ..Default::default() };
    assert_eq!(run(&graph(&[&[1], &[1]]), None, &all).unwrap(), [0.5, 0.5]);
    let none = Settings { until: Until::Steps(0), ..Default::default() };
    assert_eq!(run(&graph(&[&[1], &[1]]), None, &none).unwrap(), [0.5, 0.5]);
}

#[test]
fn bad_input_is_named() {
    let csr = graph(&[&[1], &[0]]);
    let text = |r: Result<Vec<f64>>| r.unwrap_err().to_string();
    for teleport in [0.0, -0.1, 1.1, f64::NAN] {
        let settings = Settings { teleport, ..Default::default() };
        assert!(text(run(&csr, None, &settings)).contains("teleport"));
    }
    for restart in [&[1.0][..], &[0.0, 0.0], &[1.0, -1.0], &[f64::NAN, 1.0], &[f64::MAX, f64::MAX]] {
        assert!(text(run(&csr, Some(restart), &Settings::default())).contains("restart"));
    }
    let weighted = |w: &[f64]| pagerank(csr.view(), Some(w), None, &Settings::default(), &Progress::none());
    assert!(text(weighted(&[1.0])).contains("1 weights for 2 edges"));
    assert!(text(weighted(&[1.0, f64::INFINITY])).contains("weights[1]"));
    let wide = Csr::from_rows(&[[1u32]], 2).unwrap();
    assert!(text(run(&wide, None, &Settings::default())).contains("square"));
    let lazy = Settings { walk: Walk::Lazy, ..Default::default() };
    assert!(text(run(&csr, None, &lazy)).contains("lazy"));
    let loose = Settings { until: Until::Tolerance(0.0), ..Default::default() };
    assert!(text(run(&csr, None, &loose)).contains("tolerance"));
    let slow = Settings { teleport: 1e-6, until: Until::Networkx, ..Default::default() };
    let star = graph(&[&[1, 2], &[0], &[0]]);
    assert!(text(run(&star, None, &slow)).contains("networkx"));
}

#[test]
fn a_stop_is_seen() {
    let progress = Progress::none();
    progress.stop();
    let csr = graph(&[&[1], &[0]]);
    let stopped = pagerank(csr.view(), None, None, &Settings::default(), &progress);
    assert_eq!(stopped, Err(Error::Cancelled));
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    // Large enough for the parallel path, with hubs, dangling nodes and a partial last range.
    let n = 21_000u32;
    let rows: Vec<Vec<u32>> = (0..n)
        .map(|i| match i % 7 {
            0 => Vec::new(),
            _ => (0..13).map(|k| (i.wrapping_mul(2_654_435_761 + k) >> (k % 5)) % n).collect(),
        })
        .collect();
    let csr = Csr::from_rows(&rows, n as usize).unwrap();
    assert!(csr.indices.len() > PARALLEL_EDGES);
    let with = |threads| {
        let settings = Settings { threads, until: Until::Steps(9), ..Default::default() };
        run(&csr, None, &settings).unwrap().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(with(1), with(2));
    assert_eq!(with(1), with(7));
}

proptest! {
    /// Compare with dense matrices: mass is preserved, and the tolerance holds.
    #[test]
    fn reaches_the_fixed_point(
        rows in (1usize..9).prop_flat_map(|n| prop::collection::vec(prop::collection::vec((0..n as u32, 0.0f64..3.0), 0..6), n)),
        teleport in 0.05f64..1.0,
        seed in prop::option::of(0usize..9),
    ) {
        let n = rows.len();
        let ids: Vec<Vec<u32>> = rows.iter().map(|r| r.iter().map(|e| e.0).collect()).collect();
        let weights: Vec<f64> = rows.iter().flatten().map(|e| e.1).collect();
        let csr = Csr::from_rows(&ids, n).unwrap();
        let restart: Option<Vec<f64>> = seed.map(|s| (0..n).map(|i| f64::from(u8::from(i == s % n))).collect());
        let settings = Settings { teleport, ..Default::default() };
        let got = pagerank(csr.view(), Some(&weights), restart.as_deref(), &settings, &Progress::none()).unwrap();
        prop_assert!((got.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let r = restart.unwrap_or_else(|| vec![1.0 / n as f64; n]);
        let mut want: Vec<f64> = r.iter().map(|x| teleport * x).collect();
        for (row, mass) in rows.iter().zip(&got) {
            let out: f64 = row.iter().map(|e| e.1).sum();
            if out == 0.0 {
                for i in 0..n {
                    want[i] += (1.0 - teleport) * mass * r[i];
                }
            }
            for &(to, w) in row.iter().filter(|_| out > 0.0) {
                want[to as usize] += (1.0 - teleport) * mass * w / out;
            }
        }
        for i in 0..n {
            prop_assert!((got[i] - want[i]).abs() < 2e-9, "{got:?} {want:?}");
        }
    }
}
