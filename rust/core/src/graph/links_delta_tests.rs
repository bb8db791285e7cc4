use super::*;
use crate::graph::links::{self, Array, Links};
use crate::text::detection::Choice;
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

type Unit = (String, Vec<String>, String);

/// Titles, texts and sentences of units.
struct Corpus {
    titles: StringsBuf,
    texts: StringsBuf,
    sentences: StringsBuf,
    first_sentence: Vec<u64>,
}

impl Corpus {
    fn new(units: &[Unit]) -> Self {
        let mut first_sentence = vec![0];
        for unit in units {
            first_sentence.push(first_sentence.last().unwrap() + unit.1.len() as u64);
        }
        Self {
            titles: units.iter().map(|u| &u.0).collect(),
            texts: units.iter().map(|u| u.1.join(" ") + &u.2).collect(),
            sentences: units.iter().flat_map(|u| u.1.iter()).collect(),
            first_sentence,
        }
    }

    fn input(&self) -> Texts<'_> {
        Texts {
            titles: self.titles.view(),
            texts: self.texts.view(),
            sentences: self.sentences.view(),
            first_sentence: &self.first_sentence,
            language: Choice::Detect,
        }
    }

    fn links(&self) -> Links {
        Links::build(&self.input(), 1, &Progress::none()).unwrap()
    }
}

fn values(array: &Array) -> Vec<u64> {
    match array {
        Array::U8(x) => x.iter().map(|&x| u64::from(x)).collect(),
        Array::U32(x) => x.iter().map(|&x| u64::from(x)).collect(),
        Array::U64(x) => x.clone(),
    }
}

/// Compare the patched arrays of `was` with the arrays built from the current units. Return false if the
/// index must be rebuilt.
fn compare(was: &[Unit], gone: &[u32], before: &[u32], fresh: &[Unit]) -> bool {
    let corpus = Corpus::new(was);
    let built = corpus.links();
    let mut now: Vec<Unit> = Vec::new();
    for at in 0..=was.len() as u32 {
        now.extend(before.iter().zip(fresh).filter(|x| *x.0 == at).map(|x| x.1.clone()));
        if (at as usize) < was.len() && !gone.contains(&at) {
            now.push(was[at as usize].clone());
        }
    }
    let arrays = built.into_arrays();
    let weights = OnceLock::new();
    let links = links::view(&arrays, &weights).unwrap();
    let of_fresh = Corpus::new(fresh);
    let title_of: Vec<u32> = (0..was.len() as u32).collect();
    let language = arrays.iter().find(|x| x.0 == UNIT_LANGUAGE).map(|x| values(&x.1)).unwrap_or_default();
    let language: Vec<u8> = language.into_iter().map(|number| number as u8).collect();
    let contexts: StringsBuf = (0..corpus.texts.len()).map(|_| "").collect();
    let change = Change {
        links,
        language: &language,
        titles: corpus.titles.view(),
        texts: corpus.texts.view(),
        contexts: contexts.view(),
        title_of: (&title_of).into(),
        gone,
        fresh: of_fresh.input(),
        before,
    };
    let Some(delta) = Delta::new(&change, &Progress::none()).unwrap() else { return false };
    let wanted = Corpus::new(&now).links().into_arrays();
    assert_eq!(delta.arrays.len(), wanted.len());
    for (name, array) in &wanted {
        let (_, of, patch) = delta.arrays.iter().find(|x| x.0 == *name).unwrap();
        let old = values(&arrays.iter().find(|x| x.0 == *name).unwrap().1);
        let found = patch.read(0..patch.len, &old, delta.numbers(*of));
        assert_eq!(found, values(array), "{name}");
    }
    true
}

fn unit() -> impl Strategy<Value = Unit> {
    unit_of("[A-C][a-b]{0,2}|[a-c]{1,2}|of|the|The|[0-9]{4}|Who|é")
}

fn unit_of(word: &'static str) -> impl Strategy<Value = Unit> {
    let sentence = prop::collection::vec(word, 1..7).prop_map(|words| words.join(" ") + ".");
    let title = prop_oneof![Just(String::new()), prop::collection::vec(word, 1..3).prop_map(|w| w.join(" "))];
    (title, prop::collection::vec(sentence, 0..3), prop_oneof![Just(String::new()), Just("x Aa".to_owned())])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn patched_arrays_are_those_of_a_build(
        was in prop::collection::vec(unit(), 0..9),
        goes in prop::collection::vec(any::<bool>(), 9),
        fresh in prop::collection::vec((any::<prop::sample::Index>(), unit()), 0..4),
    ) {
        let gone: Vec<u32> = (0..was.len() as u32).filter(|&at| goes[at as usize]).collect();
        let mut fresh: Vec<(u32, Unit)> =
            fresh.into_iter().map(|(at, unit)| (at.index(was.len() + 1) as u32, unit)).collect();
        fresh.sort_by_key(|x| x.0);
        let (before, fresh): (Vec<u32>, Vec<Unit>) = fresh.into_iter().unzip();
        if compare(&was, &gone, &before, &fresh) {
            COMPARED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn patched_arrays_of_several_languages(
        was in prop::collection::vec(unit_of(FOREIGN), 1..9),
        goes in prop::collection::vec(any::<bool>(), 9),
        fresh in prop::collection::vec(unit_of(FOREIGN), 0..3),
        place in any::<prop::sample::Index>(),
    ) {
        let gone: Vec<u32> = (1..was.len() as u32).filter(|&at| goes[at as usize]).collect();
        let before = vec![place.index(was.len() + 1) as u32; fresh.len()];
        compare(&was, &gone, &before, &fresh);
    }
}

const FOREIGN: &str = "[A-C][a-b]{0,2}|[a-c]{1,2}|of|the|The|der|und|nicht|Häuser|город|города";

static COMPARED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn most_changes_are_patches() {
    patched_arrays_are_those_of_a_build();
    let count = COMPARED.load(Ordering::Relaxed);
    assert!(count > 200, "{count}");
}

#[test]
fn subjects_that_come_and_go_change_the_mentions_of_units_that_stay() {
    let unit = |title: &str, text: &str| -> Unit { (title.into(), vec![text.into()], String::new()) };
    let was = [
        unit("Green", "Green is a colour."),
        unit("Film", "A film of the Green Mile and of Green."),
        unit("Mile", "A Mile is long. The Green Mile is a film."),
    ];
    assert!(compare(&was, &[], &[3], &[unit("Green Mile", "The Green Mile has a Film.")]));
    assert!(compare(&was, &[0], &[0], &[unit("Green Mile", "Nothing of Green.")]));
    assert!(compare(&was, &[0, 2], &[], &[]));
    assert!(compare(&was, &[0, 1, 2], &[], &[]));
    assert!(compare(&[], &[], &[0], &[unit("Green", "Green is a colour.")]));
    // Units in other languages are added and removed while one remains. Adding the first creates arrays that
    // did not exist.
    let other = unit("Haus", "Das Haus ist nicht groß und der Garten ist klein.");
    let third = unit("Город", "Это большой город, и он стоит на реке.");
    assert!(!compare(&was, &[], &[1], std::slice::from_ref(&other)));
    let mixed = [was[0].clone(), other.clone(), was[1].clone(), third.clone()];
    assert!(compare(&mixed, &[1], &[1], std::slice::from_ref(&third)));
    assert!(!compare(&mixed, &[1, 3], &[], &[]));
    // A new subject of stop words may occur in any text.
    assert!(!compare(&was, &[], &[1], &[unit("The Who", "The Who is a band.")]));
}
