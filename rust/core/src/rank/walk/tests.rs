use super::*;
use crate::graph::links::{view, Array, Links, Texts};
use crate::text::strings::StringsBuf;
use crate::vector::signs::pack;
use crate::vector::{Rows, Signs, Vectors};
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

/// More units around the same words, so that company, pairs, subjects and bridges of the walk all count.
fn crowded() -> Vec<(String, String)> {
    let more = [
        ("Green Engine", "Green Engine is a film of Ada Lorne and Otto Brandt. It was shot in Milan."),
        ("Otto Brandt", "Otto Brandt was born in Turin. Otto Brandt married Ada Lorne in Milan."),
        ("Turin", "Turin lies in Piedmont. A film museum of Turin keeps the Blue Engine."),
        ("Milan", "The town of Milan has a film school, which Ada Lorne led."),
        ("Lombardy", "Lombardy is a region of Italy. Its capital is Milan."),
        ("Piedmont", "Piedmont is a region of Italy with the town of Turin."),
    ];
    let more = more.iter().map(|u| (u.0.to_owned(), u.1.to_owned()));
    units().into_iter().chain(more).collect()
}

const QUESTIONS: [&str; 5] = [
    "In which region lies the town where the maker of the film Blue Engine was born?",
    "Which film of Ada Lorne was shot in Milan?",
    "Who married Ada Lorne?",
    "film museum",
    "What does Filler 3 speak of, and which region is Turin in?",
];

/// Ids with scores, rounded to six digits, for each question with both plans. A parity test of Python compares the
/// walk with its oracle; this table notices a wrong sign without Python. After a change on purpose, copy what it prints.
const SCORES: [&str; 10] = [
    "0 12.737457, 66 12.737457, 69 12.737457, 1 11.307192, 67 10.702397, 65 10.642926, 64 9.755110, 2 8.252627, 68 7.637369",
    "0 12.409031, 69 12.409031, 66 11.991422, 1 11.190611, 67 10.633918, 65 10.415020, 64 9.828684, 2 8.331451, 68 7.535622",
    "64 13.258451, 67 13.157020, 1 13.157020, 65 13.077759, 2 11.678231, 69 11.022268, 66 10.090023, 0 9.882291, 68 9.140462",
    "64 13.011543, 1 13.011543, 65 12.514224, 67 12.324996, 2 11.367216, 69 10.682848, 66 9.818834, 0 9.376266, 68 9.313636",
    "1 15.716450, 65 15.294051, 64 12.414782, 66 11.895078, 2 11.495586, 67 11.419653, 68 10.211599, 69 10.188257, 0 7.880723",
    "1 15.162758, 65 14.765010, 64 11.868605, 66 11.262538, 67 11.222285, 2 11.149706, 68 9.964924, 69 9.629322, 0 8.530525",
    "66 13.728132, 0 13.413426, 69 13.413426, 65 11.468691, 64 10.340286, 2 10.037123, 3 9.199603, 67 8.537257, 1 8.235171",
    "66 13.313740, 0 12.782681, 69 12.695459, 65 10.772468, 64 9.786305, 2 9.365578, 3 8.640523, 67 7.996901, 1 7.605543",
    "69 14.416051, 7 14.416051, 66 14.416051, 0 10.698389, 68 9.718148, 65 7.688485, 2 7.286586, 14 6.627916, 21 6.627916",
    "66 13.878996, 69 13.457416, 7 12.907327, 0 10.562450, 68 9.113328, 2 7.114455, 65 6.908932, 67 6.157127, 64 6.103359",
];

#[test]
fn scores_are_those_of_the_table() {
    let arrays = index(&crowded());
    let weights = std::sync::OnceLock::new();
    let links = view(&arrays, &weights).unwrap();
    let mut found = Vec::new();
    for question in QUESTIONS {
        for plan in [Plan::new(false), Plan::new(true)] {
            let mut scratch = Scratch::default();
            let none = Progress::none();
            let ranked = rank(
                &links,
                Lengths::Keywords.into(),
                None,
                None,
                question,
                9,
                None,
                &plan,
                &mut scratch,
                &none,
            );
            let row: Vec<_> = ranked.unwrap().iter().map(|s| format!("{} {:.6}", s.id, s.score)).collect();
            found.push(row.join(", "));
        }
    }
    assert!(found.iter().eq(&SCORES), "{found:#?}");
}

/// Files of code and their page among notes; the units of a file are adjacent.
fn repository() -> (Vec<(String, String)>, Vec<u32>, Vec<&'static str>) {
    let told = [
        ("src/reader.py", "def read_rows(path): the reader of rows opens the file"),
        ("src/reader.py", "class Reader: reads rows of a table and keeps the header"),
        ("src/table/rows.py", "def split_rows(text): rows of a table are split at the end of a line"),
        ("src/table/__init__.py", "from rows import split_rows; from reader import Reader"),
        ("tests/test_reader.py", "def test_reader(): the reader reads rows of a table"),
        ("docs/reader.md", "How to use the reader: the reader reads a table of rows"),
        ("notes/ships", "The rows of benches in the ship were a table for the men"),
        ("src/v1/reader.py", "def read_rows(path): the older reader of rows"),
    ];
    let mut ids: Vec<&str> = told.iter().map(|u| u.0).collect();
    ids.dedup();
    let row = |path| ids.iter().position(|id| *id == path).unwrap() as u32;
    let rows = told.iter().map(|u| row(u.0)).collect();
    let units = told.iter().map(|u| (String::new(), u.1.to_owned())).collect();
    (units, rows, ids)
}

/// As [`SCORES`], first of the crowd with vectors, then of a repository without and with them.
const MORE_SCORES: [&str; 9] = [
    "66 12.03505, 69 12.03505, 1 12.03505, 0 11.65890, 67 11.52705, 64 10.85412",
    "1 13.77817, 67 13.77817, 2 13.67033, 64 12.92641, 69 11.80738, 65 11.16270",
    "1 14.10025, 65 13.26754, 2 12.36659, 67 12.28665, 64 12.04942, 66 11.72914",
    "1 4.35513, 7 0.03843, 2 -7.03715, 5 -7.03715, 6 -9.34248, 3 -10.14160",
    "7 13.28235, 0 12.37767, 2 -6.24865, 5 -6.24865, 6 -9.53988, 1 -9.53988",
    "2 16.22128, 1 -2.46445, 5 -5.13827, 6 -5.13827, 7 -7.22957, 3 -7.22957",
    "1 10.59576, 7 1.15463, 2 -4.36641, 5 -5.08196, 6 -5.08196, 3 -5.08196",
    "0 2.29455, 7 2.29455, 2 -3.38147, 5 -15.85944, 6 -15.85944, 3 -15.85944",
    "2 9.55133, 1 2.62112, 7 -3.06638, 6 -3.06638, 5 -11.58837, 3 -11.58837",
];

#[test]
fn scores_with_vectors_and_of_files_are_those_of_the_table() {
    let mut found = Vec::new();
    let (code, rows, ids) = repository();
    let ids: StringsBuf = ids.into_iter().collect();
    let asked_code = ["Where does the reader read rows of a table?", "read_rows Reader", "split rows table"];
    for (units, questions, has_files, dense) in [
        (crowded(), &QUESTIONS[..3], false, true),
        (code.clone(), &asked_code[..], true, false),
        (code, &asked_code[..], true, true),
    ] {
        let arrays = index(&units);
        let weights = std::sync::OnceLock::new();
        let links = view(&arrays, &weights).unwrap();
        // Values that are added without rounding, so that all processors agree.
        let values: Vec<f32> =
            (0..units.len()).flat_map(|u| [3, 5, 7, 2].map(|k| ((u * k) % 5) as f32 / 8.0)).collect();
        let signed: Vec<f32> = values.iter().map(|x| x - 0.2).collect();
        let bits = pack(&signed, 4);
        let texts: StringsBuf = units.iter().map(|u| u.1.as_str()).collect();
        let files = code::Files { ids: ids.view(), texts: texts.view() };
        let own: Vec<u32> =
            if has_files { rows.clone() } else { (0..units.len() as u32).map(|u| u / 2).collect() };
        let places = Units {
            lengths: Lengths::Keywords,
            documents: Some((&own).into()),
            files: has_files.then_some(files),
        };
        for question in questions {
            let vectors = dense.then(|| {
                let rows = Rows::Floats(Vectors::new(&values, 4).unwrap(), None);
                Dense::new(rows, Signs::new(&bits, 4).unwrap(), &[0.5, 0.25, -0.25, 0.5]).unwrap()
            });
            let (plan, none) = (Plan::new(false), Progress::none());
            let mut scratch = Scratch::default();
            let ranked = rank(&links, places, vectors, None, question, 6, None, &plan, &mut scratch, &none);
            let row: Vec<_> = ranked.unwrap().iter().map(|s| format!("{} {:.5}", s.id, s.score)).collect();
            found.push(row.join(", "));
        }
    }
    assert!(found.iter().eq(&MORE_SCORES), "{found:#?}");
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

/// Units that fill the places behind the pool keep their order, and come below the worst unit of the pool.
#[test]
fn units_outside_the_pool_come_last() {
    let arrays = index(&units());
    let weights = std::sync::OnceLock::new();
    let links = view(&arrays, &weights).unwrap();
    let order = [Scored { id: 3, score: 2.5 }, Scored { id: 1, score: 0.5 }, Scored { id: 2, score: -7.0 }];
    let found = finish(&links, None, &Plan::new(false), &[], &order, 2).unwrap();
    assert_eq!(found.iter().map(|s| (s.id, s.score)).collect::<Vec<_>>(), [(3, 2.5 - 1e4), (1, 0.5 - 1e4)]);
}
