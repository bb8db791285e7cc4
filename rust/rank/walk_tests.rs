use super::*;
use crate::graph::links::{view, Array, Links, Texts};
use crate::text::strings::StringsBuf;
use std::time::Instant;

fn index(units: &[(&str, &str)]) -> Vec<(&'static str, Array)> {
    let titles: StringsBuf = units.iter().map(|u| u.0).collect();
    let texts: StringsBuf = units.iter().map(|u| u.1).collect();
    let first_sentence: Vec<u64> = (0..=units.len() as u64).collect();
    let input = Texts {
        titles: titles.view(),
        texts: texts.view(),
        sentences: texts.view(),
        first_sentence: &first_sentence,
    };
    Links::build(&input, 1, &Progress::none()).unwrap().into_arrays()
}

const UNITS: [(&str, &str); 4] = [
    ("Blue Engine", "Blue Engine is a film of Ada Lorne."),
    ("Turin", "Turin is a city."),
    ("Ada Lorne", "Ada Lorne was born in Milan."),
    ("Red Engine", "Red Engine is a film."),
];

fn ids(options: Options, question: &str, scratch: &mut Scratch) -> Vec<u32> {
    let arrays = index(&UNITS);
    let links = view(&arrays).unwrap();
    let found = rank(&links, None, question, 9, options, scratch, &Progress::none()).unwrap();
    found.iter().map(|s| s.id).collect()
}

#[test]
fn the_second_hop_is_found_and_buffers_leave_no_trace() {
    let mut kept = Scratch::default();
    for question in ["Where was the maker of Blue Engine born?", "a film", "Turin", "", "nowhere known"] {
        for options in [Options::default(), Options::exact()] {
            let again = ids(options, question, &mut kept);
            assert_eq!(again, ids(options, question, &mut Scratch::default()), "{question}");
        }
    }
    assert_eq!(ids(Options::default(), "Where was the maker of Blue Engine born?", &mut kept)[..2], [0, 2]);
    assert!(ids(Options::default(), "nowhere known", &mut kept).is_empty());
}

#[test]
fn wrong_vectors_and_deadlines_are_errors() {
    let arrays = index(&UNITS);
    let links = view(&arrays).unwrap();
    let (units, query) = ([0.5f32; 16], [0.5f32; 4]);
    let mut scratch = Scratch::default();
    let mut ask = |units: &[f32], sentences: &[f32], dim, query: &[f32]| {
        let dense = Dense { unit_vectors: units, sentence_vectors: sentences, dim, query };
        rank(&links, Some(dense), "Turin", 9, Options::default(), &mut scratch, &Progress::none())
    };
    assert_eq!(ask(&units, &units, 4, &query).unwrap().len(), 4);
    assert!(ask(&units, &units[1..], 4, &query).is_err());
    assert!(ask(&units, &units, 0, &[]).is_err());
    assert!(ask(&units, &units, 4, &[f32::NAN; 4]).is_err());
    assert!(ask(&[f32::INFINITY; 16], &units, 4, &query).is_err());
    let late = Progress::with_deadline(Instant::now());
    let result = rank(&links, None, "Turin", 9, Options::default(), &mut scratch, &late);
    assert_eq!(result, Err(Error::Deadline));
}

#[test]
fn identical_vectors_stay_finite() {
    let arrays = index(&[("A B", "Same words here."); 40]);
    let links = view(&arrays).unwrap();
    let (rows, query) = (vec![0.5f32; 160], [0.5f32; 4]);
    let dense = Dense { unit_vectors: &rows, sentence_vectors: &rows, dim: 4, query: &query };
    let mut scratch = Scratch::default();
    let none = Progress::none();
    let found = rank(&links, Some(dense), "Same?", 40, Options::default(), &mut scratch, &none).unwrap();
    assert!(found.iter().all(|s| s.score.is_finite()));
    assert_eq!(found.len(), 40);
}
