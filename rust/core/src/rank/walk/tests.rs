use super::*;
use crate::graph::links::{view, Array, Links, Texts};
use crate::text::strings::StringsBuf;
use std::time::Instant;

fn index(units: &[(String, String)]) -> Vec<(&'static str, Array)> {
    let titles: StringsBuf = units.iter().map(|u| u.0.as_str()).collect();
    let texts: StringsBuf = units.iter().map(|u| u.1.as_str()).collect();
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

/// A chain of three: a film, its maker, the maker's town; and many unrelated units.
fn units() -> Vec<(String, String)> {
    let told = [
        ("Blue Engine", "Blue Engine is a film of Ada Lorne."),
        ("Ada Lorne", "Ada Lorne was born in Milan."),
        ("Milan", "Milan lies in Lombardy."),
        ("Red Engine", "Red Engine is a film."),
    ];
    let filler =
        (0..60).map(|k| (format!("Filler {k}"), format!("Filler {k} speaks of matter{} here.", k % 7)));
    told.iter().map(|u| (u.0.to_owned(), u.1.to_owned())).chain(filler).collect()
}

fn ids(plan: &Plan, question: &str, scratch: &mut Scratch) -> Vec<u32> {
    let arrays = index(&units());
    let weights = std::sync::OnceLock::new();
    let links = view(&arrays, &weights).unwrap();
    let found = rank(
        &links,
        Lengths::Keywords.into(),
        None,
        None,
        question,
        9,
        None,
        plan,
        scratch,
        &Progress::none(),
    )
    .unwrap();
    assert!(found.iter().all(|s| s.score.is_finite()));
    found.iter().map(|s| s.id).collect()
}

#[test]
fn the_third_hop_is_found_and_buffers_leave_no_trace() {
    let chain = "In which region lies the town where the maker of the film Blue Engine was born?";
    let mut kept = Scratch::default();
    for question in [chain, "a film", "Filler 3", "", "nowhere known"] {
        for plan in [Plan::new(false), Plan::new(true)] {
            let again = ids(&plan, question, &mut kept);
            assert_eq!(again, ids(&plan, question, &mut Scratch::default()), "{question}");
        }
    }
    let mut first = ids(&Plan::new(false), chain, &mut kept)[..3].to_vec();
    first.sort_unstable();
    assert_eq!(first, [0, 1, 2]);
    assert!(ids(&Plan::new(false), "nowhere known", &mut kept).is_empty());
}

#[test]
fn wrong_lengths_and_deadlines_are_errors() {
    let arrays = index(&units());
    let weights = std::sync::OnceLock::new();
    let links = view(&arrays, &weights).unwrap();
    let mut scratch = Scratch::default();
    let mut ask = |lengths: &[f64], progress: &Progress| {
        rank(
            &links,
            Lengths::Given(lengths).into(),
            None,
            None,
            "film",
            9,
            None,
            &Plan::new(false),
            &mut scratch,
            progress,
        )
    };
    let good = vec![4.0; links.units()];
    assert!(!ask(&good, &Progress::none()).unwrap().is_empty());
    assert!(ask(&good[1..], &Progress::none()).is_err());
    assert!(ask(&vec![f64::NAN; links.units()], &Progress::none()).is_err());
    assert_eq!(ask(&good, &Progress::with_deadline(Instant::now())), Err(Error::Deadline));
}
