use super::*;
use proptest::prelude::*;

fn build(units: &[(&str, &[&str])], threads: usize) -> Result<Links> {
    let titles: StringsBuf = units.iter().map(|u| u.0).collect();
    let texts: StringsBuf = units.iter().map(|u| u.1.join(" ")).collect();
    let sentences: StringsBuf = units.iter().flat_map(|u| u.1.iter()).collect();
    let mut first_sentence = vec![0];
    for unit in units {
        first_sentence.push(first_sentence.last().unwrap() + unit.1.len() as u64);
    }
    let input = Texts {
        titles: titles.view(),
        texts: texts.view(),
        sentences: sentences.view(),
        first_sentence: &first_sentence,
        language: crate::text::detection::Choice::Detect,
    };
    Links::build(&input, threads, &Progress::none())
}

#[test]
fn a_small_index() {
    let links = build(
        &[
            ("The Green Mile", &["It is a film of 1999.", "Tom Hanks plays."]),
            ("", &["Tom Hanks is an actor.", "He was in The Green Mile in 1999."]),
        ],
        1,
    )
    .unwrap();
    let words: Vec<&str> = links.keywords.view().iter().collect();
    assert_eq!(words, ["1999", "actor", "film", "green", "hank", "mile", "play", "tom"]);
    assert_eq!(links.names.view().iter().collect::<Vec<_>>(), ["1999", "green mile", "tom hanks"]);
    assert_eq!(links.subjects.view().iter().collect::<Vec<_>>(), ["green mile", "tom hanks"]);
    assert_eq!(links.unit_subject, [0, 1]);
    assert_eq!(links.unit_mentions.view().row(1), [0, 1]);
    let positions = |ids: &[u32], own: &[u32]| -> Vec<u32> {
        ids.iter().map(|id| own.binary_search(id).unwrap() as u32).collect()
    };
    let (keywords, names) = (links.unit_keywords.view(), links.unit_names.view());
    assert_eq!(links.sentence_keywords.view().row(1), positions(&[3, 4, 5, 6, 7], keywords.row(0)));
    assert_eq!(links.sentence_names.view().row(1), positions(&[1, 2], names.row(0)));
    assert_eq!(links.unit_length, [7, 6]);
    let arrays = links.into_arrays();
    assert_eq!(view(&arrays, &OnceLock::new()).unwrap().units(), 2);
}

#[test]
fn bad_input_is_refused_and_nothing_is_an_index() {
    let arrays = build(&[], 2).unwrap().into_arrays();
    assert_eq!(view(&arrays, &OnceLock::new()).unwrap().units(), 0);
    assert!(view(&arrays[1..], &OnceLock::new()).unwrap_err().to_string().contains("keywords_blob"));
    let one: StringsBuf = ["a"].into_iter().collect();
    let none = StringsBuf::default();
    for (titles, offsets) in [(&none, vec![0, 1]), (&one, vec![0]), (&one, vec![0, 2]), (&one, vec![1, 1])] {
        let input = Texts {
            titles: titles.view(),
            texts: one.view(),
            sentences: one.view(),
            first_sentence: &offsets,
            language: crate::text::detection::Choice::Detect,
        };
        assert!(matches!(Links::build(&input, 1, &Progress::none()), Err(Error::Input(_))));
    }
    let mut short = build(&[("T", &["Some words."])], 1).unwrap().into_arrays();
    for at in 0..crate::rank::links_view::ARRAYS.len() {
        let kept = short[at].1.clone();
        short[at].1 = Array::U32(vec![7; 9]);
        assert!(view(&short, &OnceLock::new()).is_err(), "{}", short[at].0);
        short[at].1 = kept;
    }
    let progress = Progress::none();
    progress.stop();
    let input = Texts {
        titles: one.view(),
        texts: one.view(),
        sentences: one.view(),
        first_sentence: &[0, 1],
        language: crate::text::detection::Choice::Detect,
    };
    assert_eq!(Links::build(&input, 1, &progress), Err(Error::Cancelled));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn threads_and_ranges_change_nothing(words in prop::collection::vec("[A-C]?[a-e]{1,2}|[0-9]{4}|of|the|\\PC", 1..60), n in 1usize..40) {
        // More units than one range holds, so that vocabularies are merged.
        let sentence = words.join(" ");
        let title = words[0].clone();
        let sentences = [sentence.as_str(), words[words.len() / 2].as_str()];
        let units: Vec<(&str, &[&str])> = (0..GRAIN + n)
            .map(|u| if u % 3 == 0 { ("", &sentences[..u % 2]) } else { (title.as_str(), &sentences[..]) })
            .collect();
        let one = build(&units, 1).unwrap();
        prop_assert_eq!(&one, &build(&units, 3).unwrap());
        one.unit_keywords.view().require_sorted().unwrap();
        one.unit_subjects.view().require_sorted().unwrap();
        one.sentence_names.view().require_sorted().unwrap();
        view(&one.into_arrays(), &OnceLock::new()).unwrap();
    }
}
