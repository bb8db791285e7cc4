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
    "0 12.661069, 66 12.661069, 69 12.661069, 1 11.277511, 67 10.499592, 65 10.483069, 64 9.613337, 2 8.201127, 68 7.517309",
    "0 12.380746, 69 12.364375, 66 11.888763, 1 11.223599, 67 10.490769, 65 10.304843, 64 9.728722, 2 8.400022, 68 7.458460",
    "64 13.176527, 1 13.072821, 65 13.072821, 67 12.207626, 2 11.600823, 69 10.816037, 0 10.071289, 66 9.962844, 68 9.123319",
    "64 12.857173, 1 12.779202, 65 12.514624, 67 11.976696, 2 11.298378, 69 10.502215, 66 9.604694, 0 9.574714, 68 9.341909",
    "1 15.499230, 65 14.891677, 64 12.413041, 66 11.807890, 2 11.269330, 67 11.176240, 69 10.255858, 68 9.964575, 0 8.934258",
    "1 14.965704, 65 14.467666, 64 11.894717, 66 11.183186, 67 11.002411, 2 10.950059, 68 9.739128, 69 9.691901, 0 8.954898",
    "66 13.491340, 0 13.425897, 69 13.230325, 65 11.295185, 64 10.174630, 2 9.903772, 3 9.430814, 67 8.345828, 1 8.156960",
    "66 13.093935, 0 12.890919, 69 12.553280, 65 10.638802, 64 9.671567, 2 9.268993, 3 8.922840, 67 7.855550, 1 7.569292",
    "69 14.097503, 7 14.097503, 66 14.097503, 0 10.664653, 68 9.573776, 65 7.460737, 2 7.458460, 14 6.527804, 67 6.493203",
    "69 13.708656, 66 13.708656, 7 12.549430, 0 10.574613, 68 9.004897, 2 7.105073, 65 6.729734, 67 6.076529, 64 6.021661",
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
