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
