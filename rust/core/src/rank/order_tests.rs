//! Independence of document order: reordering the units gives the same results, to the bit.

use super::links_view::LinksView;
use super::{bm25, walk};
use crate::graph::links::{view, Array, Links, Texts};
use crate::progress::Progress;
use crate::sparse::Scored;
use crate::text::strings::StringsBuf;
use proptest::prelude::*;

const NAMES: [&str; 6] = ["Ada Lorne", "Milan", "Blue Engine", "Oslo", "Nora Vale", "Fram"];

/// Title, words and names of a unit, as numbers.
type Unit = (usize, Vec<usize>, Vec<usize>);

fn build(units: &[(String, String)]) -> Vec<(&'static str, Array)> {
    let titles: StringsBuf = units.iter().map(|unit| unit.0.as_str()).collect();
    let texts: StringsBuf = units.iter().map(|unit| unit.1.as_str()).collect();
    let first_sentence: Vec<u64> = (0..=units.len() as u64).collect();
    let input = Texts {
        titles: titles.view(),
        texts: texts.view(),
        sentences: texts.view(),
        first_sentence: &first_sentence,
        language: crate::text::detection::Choice::Detect,
    };
    Links::build(&input, 1, &Progress::none()).unwrap().into_arrays()
}

/// Return title and text. Each unit has its own length, so that hardly any scores are equal.
fn text(at: usize, (title, words, names): &Unit) -> (String, String) {
    let words = words.iter().map(|word| format!("w{word}")).chain(vec!["pad".to_owned(); at + 1]);
    let names = names.iter().map(|&name| format!("of {}", NAMES[name]));
    let text = format!("It is {}.", words.chain(names).collect::<Vec<_>>().join(" "));
    (NAMES.get(*title).map_or_else(String::new, |name| (*name).to_owned()), text)
}

/// The exact form of the walk starts from 20 units, whether or not they match. With more units, ties would
/// decide the order.
const MOST: usize = 20;

/// Rank all units by BM25 and by both forms of the walk. Units with equal scores are ordered by ascending id.
fn rankings(units: &[(String, String)], ids: &[u32], question: &str) -> Vec<Vec<(u64, u32)>> {
    let arrays = build(units);
    let weights = std::sync::OnceLock::new();
    let links: LinksView<'_> = view(&arrays, &weights).unwrap();
    let none = Progress::none();
    let mut found =
        vec![bm25::rank(&links, question, 99, None, &mut bm25::Scratch::default(), &none).unwrap()];
    for exact in [false, true] {
        let (plan, mut scratch) = (walk::Plan::new(exact), walk::Scratch::default());
        found.push(
            walk::rank(
                &links,
                walk::Lengths::Keywords.into(),
                None,
                None,
                question,
                99,
                None,
                &plan,
                &mut scratch,
                &none,
            )
            .unwrap(),
        );
    }
    // The walk rounds scores to multiples of 2^-30, and raises the first of several equal scores by one last
    // bit.
    let grid = (1u64 << 30) as f64;
    for one in found.iter_mut().skip(1).flatten() {
        one.score = (one.score * grid).round() / grid;
    }
    let of = |one: &Scored| (one.score.to_bits(), ids[one.id as usize]);
    let mut rows: Vec<Vec<_>> = found.iter().map(|found| found.iter().map(of).collect()).collect();
    rows.iter_mut()
        .flat_map(|row: &mut Vec<(u64, u32)>| row.chunk_by_mut(|a, b| a.0 == b.0))
        .for_each(<[_]>::sort);
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn permuting_the_units_permutes_the_results(
        units in prop::collection::vec(
            (0usize..9, prop::collection::vec(0usize..25, 1..10), prop::collection::vec(0usize..6, 0..3)), 2..=MOST,
        ),
        asked in prop::collection::vec(0usize..25, 1..5),
        name in 0usize..6,
        order in prop::collection::vec(any::<u32>(), MOST),
    ) {
        let texts: Vec<_> = units.iter().enumerate().map(|(at, unit)| text(at, unit)).collect();
        let words: Vec<String> = asked.iter().map(|word| format!("w{word}")).collect();
        let question = format!("What is {} of {}?", words.join(" "), NAMES[name]);
        let mut turned: Vec<u32> = (0..units.len() as u32).collect();
        let want = rankings(&texts, &turned, &question);
        turned.sort_by_key(|&at| order[at as usize]);
        let other: Vec<_> = turned.iter().map(|&at| texts[at as usize].clone()).collect();
        prop_assert_eq!(rankings(&other, &turned, &question), want);
    }
}
