use super::*;
use crate::graph::links;
use crate::graph::links_earlier::Part;
use proptest::prelude::*;

type Unit = (String, Vec<String>, String);

/// Titles, texts and sentences; a text may differ from its sentences, as units of windows do.
fn with<T>(units: &[Unit], work: impl FnOnce(&Texts<'_>) -> T) -> T {
    let titles: StringsBuf = units.iter().map(|u| &u.0).collect();
    let texts: StringsBuf = units.iter().map(|u| u.1.join(" ") + &u.2).collect();
    let sentences: StringsBuf = units.iter().flat_map(|u| u.1.iter()).collect();
    let mut first_sentence = vec![0];
    for unit in units {
        first_sentence.push(first_sentence.last().unwrap() + unit.1.len() as u64);
    }
    work(&Texts {
        titles: titles.view(),
        texts: texts.view(),
        sentences: sentences.view(),
        first_sentence: &first_sentence,
        language: crate::text::detection::Choice::Detect,
    })
}

fn build(units: &[Unit]) -> Links {
    with(units, |texts| Links::build(texts, 2, &Progress::none()).unwrap())
}

fn update(before: &Links, units: &[Unit], row: &[u32], threads: usize) -> Result<Links> {
    let arrays = before.clone().into_arrays();
    let weights = std::sync::OnceLock::new();
    let part = Part { links: links::view(&arrays, &weights)?, language: &before.unit_language };
    let earlier = Earlier::new(std::slice::from_ref(&part), row);
    with(units, |texts| Links::update(texts, &earlier, threads, &Progress::none()))
}

/// Merge indexes: `row` counts the units of one after another.
fn merge(before: &[Links], units: &[Unit], row: &[u32], threads: usize) -> Result<Links> {
    let arrays: Vec<_> = before.iter().map(|links| links.clone().into_arrays()).collect();
    let weights: Vec<std::sync::OnceLock<_>> = before.iter().map(|_| std::sync::OnceLock::new()).collect();
    let parts = before.iter().zip(&arrays).zip(&weights).map(|((links, arrays), weights)| {
        Ok(Part { links: links::view(arrays, weights)?, language: &links.unit_language[..] })
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let earlier = Earlier::new(&parts, row);
    with(units, |texts| Links::update(texts, &earlier, threads, &Progress::none()))
}

fn unit() -> impl Strategy<Value = Unit> {
    let word = "[A-C][a-b]{0,2}|[a-c]{1,2}|of|the|The|[0-9]{4}|Who|日本|é|der|und|nicht|Häuser|город|города";
    let sentence = prop::collection::vec(word, 1..7).prop_map(|words| words.join(" ") + ".");
    let title = prop_oneof![Just(String::new()), prop::collection::vec(word, 1..3).prop_map(|w| w.join(" "))];
    (title, prop::collection::vec(sentence, 0..3), prop_oneof![Just(String::new()), Just("x Aa".to_owned())])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn an_update_is_a_build(
        before in prop::collection::vec(unit(), 0..9),
        fresh in prop::collection::vec(unit(), 0..4),
        kept in prop::collection::vec(any::<bool>(), 9),
        moved in any::<prop::sample::Index>(),
    ) {
        let mut now: Vec<(u32, &Unit)> =
            before.iter().enumerate().filter(|(at, _)| kept[*at]).map(|(at, unit)| (at as u32, unit)).collect();
        for unit in &fresh {
            now.insert(moved.index(now.len() + 1), (NONE, unit));
        }
        if !now.is_empty() {
            let at = moved.index(now.len());
            now.rotate_left(at / 2);
        }
        let (row, units): (Vec<u32>, Vec<Unit>) = now.into_iter().map(|(row, unit)| (row, unit.clone())).unzip();
        let was = build(&before);
        let wanted = build(&units);
        prop_assert_eq!(&update(&was, &units, &row, 1).unwrap(), &wanted);
        prop_assert_eq!(&update(&was, &units, &row, 3).unwrap(), &wanted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_merge_is_a_build(
        parts in prop::collection::vec(prop::collection::vec((unit(), any::<bool>(), any::<u16>()), 0..6), 1..5),
        fresh in prop::collection::vec((unit(), any::<u16>()), 0..3),
    ) {
        let before: Vec<Links> =
            parts.iter().map(|part| build(&part.iter().map(|one| one.0.clone()).collect::<Vec<_>>())).collect();
        let all = parts.iter().flatten().zip(0u32..).filter(|(one, _)| one.1);
        let mut now: Vec<(u16, u32, &Unit)> = all.map(|(one, row)| (one.2, row, &one.0)).collect();
        now.extend(fresh.iter().map(|(unit, place)| (*place, NONE, unit)));
        now.sort_by_key(|one| one.0);
        let row: Vec<u32> = now.iter().map(|one| one.1).collect();
        let units: Vec<Unit> = now.iter().map(|one| one.2.clone()).collect();
        let wanted = build(&units);
        prop_assert_eq!(&merge(&before, &units, &row, 1).unwrap(), &wanted);
        prop_assert_eq!(&merge(&before, &units, &row, 3).unwrap(), &wanted);
    }
}

#[test]
fn many_units_are_more_than_one_range() {
    let unit = |at: usize| -> Unit {
        (
            format!("Name{}", at % 700),
            vec![format!("Word{at} of Name{} and More.", (at * 7) % 900)],
            String::new(),
        )
    };
    let before: Vec<Unit> = (0..2 * GRAIN + 9).map(unit).collect();
    let mut units = before.clone();
    let mut row: Vec<u32> = (0..units.len() as u32).collect();
    for at in (3..units.len()).rev().step_by(500) {
        units[at] = unit(at + 5000);
        row[at] = NONE;
    }
    assert_eq!(update(&build(&before), &units, &row, 2).unwrap(), build(&units));
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let units: Vec<Unit> =
        ["Some words.", "Others."].map(|s| (String::new(), vec![s.to_owned()], String::new())).into();
    let before = build(&units);
    for row in [&[0][..], &[0, 0], &[0, 2]] {
        assert!(matches!(update(&before, &units, row, 1), Err(Error::Input(_))), "{row:?}");
    }
    let other: Vec<Unit> = vec![(String::new(), vec![], String::new()), units[1].clone()];
    assert!(matches!(update(&before, &other, &[0, 1], 1), Err(Error::Input(_))));
}
