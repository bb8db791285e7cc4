use super::*;
use crate::graph::links::{Links, Texts};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder that is removed when this value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("ketrag-runs-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Units of one document each, whose sentences are separated by spaces and follow a title sentence.
struct Corpus {
    titles: StringsBuf,
    texts: StringsBuf,
    before: StringsBuf,
    sentences: StringsBuf,
    owners: Vec<u32>,
    spans: Vec<u32>,
    sentence_units: Vec<u32>,
    sentence_spans: Vec<u32>,
    sentence_titles: Vec<u8>,
    first_sentence: Vec<u64>,
}

impl Corpus {
    fn new(units: &[(String, Vec<String>)]) -> Self {
        let mut corpus = Self {
            titles: units.iter().map(|unit| unit.0.as_str()).collect(),
            texts: units.iter().map(|unit| unit.1.join(" ")).collect(),
            before: (0..units.len()).map(|unit| if unit % 4 == 1 { "A: é\n" } else { "" }).collect(),
            sentences: units.iter().flat_map(|unit| unit.1.iter()).collect(),
            owners: (0..units.len() as u32).collect(),
            spans: Vec::new(),
            sentence_units: Vec::new(),
            sentence_spans: Vec::new(),
            sentence_titles: Vec::new(),
            first_sentence: vec![0],
        };
        for (unit, (_, sentences)) in units.iter().enumerate() {
            // Units start at byte 5 of their documents.
            let mut at = 5;
            corpus.sentence_units.push(unit as u32);
            corpus.sentence_spans.extend([0, 0]);
            corpus.sentence_titles.push(1);
            for sentence in sentences {
                corpus.sentence_units.push(unit as u32);
                corpus.sentence_spans.extend([at, at + sentence.len() as u32]);
                corpus.sentence_titles.push(0);
                at += sentence.len() as u32 + 1;
            }
            corpus.spans.extend([5, 5 + corpus.texts.get(unit).len() as u32]);
            corpus.first_sentence.push(corpus.first_sentence.last().unwrap() + sentences.len() as u64);
        }
        corpus
    }

    fn units(&self) -> Units<'_> {
        Units {
            titles: self.titles.view(),
            owners: &self.owners,
            texts: self.texts.view(),
            before: self.before.view(),
            spans: &self.spans,
            sentence_units: &self.sentence_units,
            sentence_spans: &self.sentence_spans,
            sentence_titles: &self.sentence_titles,
            language: Choice::Detect,
        }
    }

    fn whole(&self) -> Vec<(&'static str, Array)> {
        let texts = (0..self.texts.len()).map(|unit| [self.before.get(unit), self.texts.get(unit)].concat());
        let texts: StringsBuf = texts.collect();
        let input = Texts {
            titles: self.titles.view(),
            texts: texts.view(),
            sentences: self.sentences.view(),
            first_sentence: &self.first_sentence,
            language: Choice::Detect,
        };
        let mut arrays = Links::build(&input, 1, &Progress::none()).unwrap().into_arrays();
        arrays.sort_by_key(|array| array.0);
        arrays
    }
}

fn in_runs(corpus: &Corpus, bounds: Bounds, threads: usize) -> Vec<(&'static str, Array)> {
    let folder = Folder::new();
    let made = build_in_runs(&corpus.units(), bounds, &folder.0, threads, &Progress::none()).unwrap();
    let mut arrays: Vec<_> = made.into_iter().map(|(name, output)| (name, loaded(name, output))).collect();
    arrays.sort_by_key(|array| array.0);
    arrays
}

fn loaded(name: &str, output: Output) -> Array {
    match output {
        Output::Memory(array) => array,
        Output::File(path) => {
            let bytes = std::fs::read(path).unwrap();
            match name.ends_with("_indptr") {
                true => Array::U64(bytemuck::pod_collect_to_vec(&bytes)),
                false => Array::U32(bytemuck::pod_collect_to_vec(&bytes)),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn runs_bounds_and_threads_change_nothing(
        words in prop::collection::vec("[A-C]?[a-e]{1,2}|[0-9]{4}|of|the|\\PC", 1..60), n in 1usize..40,
    ) {
        let sentence = words.join(" ");
        let short = words[words.len() / 2].clone();
        // More units than fit into one range.
        let units: Vec<(String, Vec<String>)> = (0..GRAIN + n)
            .map(|u| match u % 3 {
                0 => (String::new(), vec![sentence.clone(); u % 2]),
                _ => (words[u % words.len()].clone(), vec![sentence[..].to_owned(), short.clone()]),
            })
            .collect();
        let corpus = Corpus::new(&units);
        let whole = corpus.whole();
        for (size, entries, threads) in [(7, 3, 2), (1 << 18, 1 << 20, 1), (1 << 18, 100, 2)] {
            prop_assert_eq!(&in_runs(&corpus, Bounds { units: size, entries }, threads), &whole);
        }
    }
}

#[test]
fn runs_of_one_unit_many_equal_units_and_none() {
    let unit =
        ("Maud".to_owned(), vec!["Amundsen built the Maud.".to_owned(), "It sailed in 1918.".to_owned()]);
    for units in [vec![], vec![unit.clone()], vec![unit; 300]] {
        let corpus = Corpus::new(&units);
        for (size, threads) in [(1, 1), (1, 2), (7, 2)] {
            assert_eq!(in_runs(&corpus, Bounds { units: size, entries: 1 }, threads), corpus.whole());
        }
    }
}

#[test]
fn a_sentence_outside_its_unit_and_lists_that_differ_are_refused() {
    let corpus = Corpus::new(&[("T".to_owned(), vec!["Some words.".to_owned()])]);
    let bounds = Bounds { units: 10, entries: 10 };
    let refused = |units: Units<'_>| {
        let folder = Folder::new();
        let error = build_in_runs(&units, bounds, &folder.0, 1, &Progress::none()).unwrap_err();
        assert!(matches!(error, Error::Input(_)), "{error}");
    };
    for spans in [[0, 0, 4, 9], [0, 0, 5, 99], [0, 0, 9, 7]] {
        refused(Units { sentence_spans: &spans, ..corpus.units() });
    }
    refused(Units { owners: &[], ..corpus.units() });
    refused(Units { owners: &[7], ..corpus.units() });
    refused(Units { sentence_units: &[1, 0], ..corpus.units() });
    refused(Units { sentence_units: &[0, 7], ..corpus.units() });
}

#[test]
fn an_altered_temporary_file_and_a_folder_that_is_missing_are_errors() {
    let folder = Folder::new();
    let mut spill = Spill::create(&folder.0, "parts").unwrap();
    let piece = spill.append(b"some bytes").unwrap();
    assert_eq!(spill.read(piece).unwrap(), b"some bytes");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
    let other = spill.append(b"other ones").unwrap();
    assert!(matches!(spill.read(piece.with_bytes_of(other)), Err(Error::Io(_))));
    let nowhere = folder.0.join("missing");
    let corpus = Corpus::new(&[]);
    let bounds = Bounds { units: 1, entries: 1 };
    let error = build_in_runs(&corpus.units(), bounds, &nowhere, 1, &Progress::none()).unwrap_err();
    assert!(matches!(error, Error::Io(_)), "{error}");
}
