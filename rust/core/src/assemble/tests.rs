//! Recipes over an index that contains only units. The tests supply the rankings as channels.

use super::{Extensions, Request, Searcher, Share};
use crate::channels::{Options, Printed, Question, Ranking};
use crate::error::Result;
use crate::generation::Arrays;
use crate::progress::Progress;
use crate::search::fill::{FillPolicy, OversizePolicy};
use crate::search::fusion::fuse;
use crate::store::MappedFile;
use crate::text::bpe::Encoding;
use crate::text::strings::StringsBuf;
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// Write `name.npy` to `folder`.
fn array(folder: &std::path::Path, name: &str, descr: &str, length: usize, data: &[u8]) -> (String, PathBuf) {
    let mut head = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({length},), }}");
    while (10 + head.len() + 1) % 64 != 0 {
        head.push(' ');
    }
    head.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((head.len() as u16).to_le_bytes());
    file.extend(head.as_bytes());
    file.extend(data);
    let path = folder.join(format!("{name}.npy"));
    std::fs::write(&path, file).unwrap();
    (format!("units.{name}"), path)
}

/// A folder that is removed when this value is dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// An index in a folder. The fields are dropped in this order, because Windows does not remove mapped files.
struct Opened {
    searcher: Searcher,
    _folder: Temporary,
}

impl std::ops::Deref for Opened {
    type Target = Searcher;

    fn deref(&self) -> &Searcher {
        &self.searcher
    }
}

/// Build an index of these texts, one document each.
fn index(texts: &[String]) -> Opened {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("ketrag-assemble-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let n = texts.len();
    let mut files = Vec::new();
    let mut strings = |name: &str, each: &mut dyn Iterator<Item = String>| {
        let mut packed = StringsBuf::default();
        each.for_each(|text| packed.push(&text));
        let offsets: Vec<u8> = packed.offsets.iter().flat_map(|x| x.to_le_bytes()).collect();
        files.push(array(&folder, &format!("{name}_blob"), "|u1", packed.blob.len(), &packed.blob));
        files.push(array(&folder, &format!("{name}_offsets"), "<u8", n + 1, &offsets));
    };
    strings("unit_texts", &mut texts.iter().cloned());
    strings("document_ids", &mut (0..n).map(|i| format!("d{i}")));
    strings("document_titles", &mut (0..n).map(|_| String::new()));
    let mut numbers = |name: &str, values: Vec<u32>| {
        let data: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        files.push(array(&folder, name, "<u4", values.len(), &data));
    };
    numbers("unit_tokens", texts.iter().map(|text| Encoding::Cl100k.count(text) as u32).collect());
    numbers("unit_chunk", (0..n as u32).collect());
    numbers("unit_document", (0..n as u32).collect());
    numbers("unit_span", texts.iter().flat_map(|text| [0, text.chars().count() as u32]).collect());
    let chunks: Vec<u8> = (0..=n as u64).flat_map(|x| x.to_le_bytes()).collect();
    files.push(array(&folder, "chunk_units", "<u8", n + 1, &chunks));
    let mapped = files.into_iter().map(|(name, path): (String, PathBuf)| {
        (name, Arc::new(MappedFile::open(&path, None, None, None).unwrap()))
    });
    let arrays = Arrays::new(mapped.collect::<Vec<_>>(), false);
    let searcher = Searcher::open(arrays, Encoding::Cl100k, "english", &Extensions::NONE).unwrap();
    Opened { searcher, _folder: Temporary(folder) }
}

fn words(counts: &[usize]) -> Vec<String> {
    counts.iter().enumerate().map(|(i, &n)| format!("unit {i}{}", " word".repeat(n))).collect()
}

fn options() -> Options {
    Options::default()
}

fn request(
    shares: &[(&str, f64)],
    join: &str,
    rollover: &str,
    budgets: &[u64],
    top: Option<usize>,
) -> Result<Request> {
    let share = |&(channel, part): &(&str, f64)| Share { channel: channel.to_owned(), part };
    let shares = shares.iter().map(share).collect();
    let policy = (FillPolicy::default(), OversizePolicy::default());
    Request::new(
        "mine".into(),
        shares,
        (join, rollover),
        budgets.to_vec(),
        options(),
        top,
        policy,
        None,
        &Extensions::NONE,
    )
}

fn answer(searcher: &Searcher, request: &Request, lists: &[(&str, &[u32])]) -> Result<Vec<Printed>> {
    let scores: Vec<f64> = (0..1000).map(|i| 1.0 / f64::from(i + 1)).collect();
    let given: Vec<Ranking<'_>> =
        lists.iter().map(|&(channel, ids)| Ranking { channel, ids, scores: &scores[..ids.len()] }).collect();
    let question = Question { text: "asked", given: &given, ..Question::default() };
    searcher.answer(request, question, &Progress::none()).map(|reply| reply.contexts)
}

fn units(printed: &Printed) -> Vec<u32> {
    printed.context.rows.iter().map(|row| row.unit).collect()
}

#[test]
fn what_cannot_be_answered_is_named() {
    let searcher = index(&words(&[3, 3]));
    let told = |shares: &[(&str, f64)], join: &str, lists: &[(&str, &[u32])]| {
        let found = request(shares, join, "none", &[100], None);
        found.and_then(|request| answer(&searcher, &request, lists)).unwrap_err().to_string()
    };
    let unknown = told(&[("mine", 1.0)], "shares", &[("other", &[0])]);
    assert!(
        unknown.starts_with("mode mine: channel \"mine\" does not exist, and no ranking is given"),
        "{unknown}"
    );
    assert!(unknown.contains("bm25") && unknown.contains("walk"), "{unknown}");
    assert!(told(&[("mine", 0.8), ("b", 0.4)], "shares", &[]).contains("more than 1: mine 0.8, b 0.4"));
    assert_eq!(told(&[("bm25", 1.0)], "shares", &[]), "mode mine needs the word index (stage links)");
    assert!(told(&[("bm25", 1.0)], "shares", &[("bm25", &[0])]).contains("is built in"));
    assert!(told(&[("mine", 1.0)], "shares", &[("mine", &[2])]).contains("channel mine names unit 2"));
    assert_eq!(told(&[("mine", 1.0)], "add", &[]), "join must be shares or fuse, not \"add\"");
    // A ranking that no share refers to is ignored.
    let fine = request(&[("mine", 1.0)], "shares", "none", &[100], None).unwrap();
    assert_eq!(units(&answer(&searcher, &fine, &[("mine", &[1]), ("bm25", &[9])]).unwrap()[0]), [1]);
}

#[test]
fn an_index_without_units_says_so() {
    let searcher = index(&[]);
    let asked = request(&[("mine", 1.0)], "shares", "none", &[10, 20], None).unwrap();
    let given = [Ranking { channel: "mine", ids: &[], scores: &[] }];
    let question = Question { given: &given, ..Question::default() };
    let reply = searcher.answer(&asked, question, &Progress::none()).unwrap();
    assert_eq!((reply.reason, reply.contexts.len()), (Some("empty_index"), 2));
}

#[test]
fn rollover_decides_who_gets_the_rest() {
    let searcher = index(&words(&[4; 12]));
    let lists: [(&str, &[u32]); 2] = [("a", &[5]), ("b", &[5, 0, 1, 2, 3, 4, 6, 7, 8, 9])];
    let found = |rollover| {
        let asked = request(&[("a", 0.5), ("b", 0.5)], "shares", rollover, &[160], None).unwrap();
        answer(&searcher, &asked, &lists).unwrap().remove(0)
    };
    let (none, last, first) = (found("none"), found("last"), found("first"));
    let names = |printed: &Printed| printed.sections.iter().map(|s| s.channel.clone()).collect::<Vec<_>>();
    assert_eq!(names(&none), ["a", "b"]);
    assert_eq!(units(&none)[..3], [5, 5, 0]);
    // The last share receives the tokens that the first left unused, and does not repeat its unit.
    assert_eq!(units(&last)[..3], [5, 0, 1]);
    assert!(last.context.rows.len() > none.context.rows.len());
    // The first share has nothing more to print, so the rest is unchanged.
    assert_eq!(units(&first), units(&none));
    assert_eq!(first.sections[1].tokens, none.sections[1].tokens);
}

#[test]
fn lists_are_fused_by_reciprocal_rank() {
    let searcher = index(&words(&[2; 9]));
    let lists: [(&str, &[u32]); 3] = [("a", &[1, 2, 3]), ("b", &[3, 8]), ("c", &[7])];
    let asked = request(&[("a", 0.5), ("b", 0.5), ("c", 0.0)], "fuse", "none", &[500], None).unwrap();
    let printed = answer(&searcher, &asked, &lists).unwrap().remove(0);
    let wanted = fuse(&[lists[0].1, lists[1].1], 10.0).unwrap();
    assert_eq!(units(&printed), wanted.iter().map(|s| s.id).collect::<Vec<_>>());
    assert_eq!(printed.scores, wanted.iter().map(|s| s.score).collect::<Vec<_>>());
    assert_eq!((printed.sections[0].name, printed.sections[0].channel.as_str()), ("sources", "mine"));
}

fn parts() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.0..1.0f64, 1..5).prop_map(|parts| {
        let sum: f64 = parts.iter().sum();
        parts.iter().map(|part| part / sum.max(1.0)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_budget_is_exceeded(
        lengths in prop::collection::vec(0usize..40, 1..12),
        orders in prop::collection::vec(prop::collection::vec(0u32..12, 0..12), 4),
        parts in parts(), rollover in prop_oneof![Just("none"), Just("last"), Just("first")],
        join in prop_oneof![Just("shares"), Just("fuse")],
        budgets in prop::collection::vec(0u64..300, 1..4), top in prop::option::of(0usize..6),
    ) {
        let texts = words(&lengths);
        let searcher = index(&texts);
        let lists: Vec<Vec<u32>> = orders.iter().map(|order| {
            let mut seen = Vec::new();
            order.iter().for_each(|&id| if (id as usize) < texts.len() && !seen.contains(&id) { seen.push(id) });
            seen
        }).collect();
        let names = ["a", "b", "c", "d"];
        let given: Vec<(&str, &[u32])> = names.iter().zip(&lists).map(|(n, l)| (*n, l.as_slice())).collect();
        let shares: Vec<(&str, f64)> = names.iter().copied().zip(parts).collect();
        let found = answer(&searcher, &request(&shares, join, rollover, &budgets, top).unwrap(), &given).unwrap();
        for (printed, &budget) in found.iter().zip(&budgets) {
            let context = &printed.context;
            prop_assert!(context.tokens <= budget);
            prop_assert_eq!(printed.sections.iter().map(|s| s.tokens).sum::<u64>(), context.tokens);
            prop_assert!(context.rows.len() <= top.unwrap_or(usize::MAX));
            prop_assert_eq!(context.rows.len(), printed.scores.len());
            for row in &context.rows {
                prop_assert!(texts[row.unit as usize].starts_with(&context.text[row.start..row.end]));
            }
            for pair in printed.sections.windows(2) {
                prop_assert_eq!(&context.text[pair[0].end..pair[1].start], "\n\n");
            }
            if let (true, Some(last)) = (rollover == "last", printed.sections.last()) {
                let split = context.rows.partition_point(|row| row.start < last.start);
                // The channel that was filled last repeats no unit.
                if shares.last().map(|share| share.0) == Some(last.channel.as_str()) && split > 0 {
                    let (before, after) = context.rows.split_at(split);
                    let filled_last = (shares[shares.len() - 1].1 * budget as f64) >= 1.0;
                    prop_assert!(!filled_last || after.iter().all(|r| before.iter().all(|b| b.unit != r.unit)));
                }
            }
            // A single budget gives the same result as several budgets.
            let one = request(&shares, join, rollover, &[budget], top).unwrap();
            prop_assert_eq!(&answer(&searcher, &one, &given).unwrap()[0].context, context);
        }
    }
}
