//! Files of source code among the best units: tests and imports last, one passage of each file first, and files whose
//! name, folders or definitions the query names earlier. Units of other documents keep their order and their ranks.
//!
//! The first `code_depth` units of the walk, with vectors `code_depth_dense`, are put in order again by
//!
//! ```text
//! score = (61 / (61 + rank) + share × bonus) × code_aside^(tests) × code_imports^(imports) × code_again^(better passages of the file)
//! bonus = code_name × short × name + code_folder × folder + code_body × body + code_symbol × defined + code_file × named
//!       + code_near × near
//! ```
//!
//! where `share` is the share of code among these units, so that code in a collection of notes gains little. With vectors,
//! `near` is the similarity of the file's nearest unit: 1 for the nearest of these units, 0 for the farthest. The ranks
//! are used, not the walk's scores, because passages of a file that matches everywhere have nearly equal scores.

use super::company::run_around;
use super::dense::Dense;
use super::plan::Plan;
use super::ties::round_score;
use crate::items::Items;
use crate::rank::links_view::LinksView;
use crate::rank::question::Question;
use crate::sparse::{rank_order, Scored};
use crate::text::code::{
    asked_symbols, asks_for_tests, defines, folder_words, is_aside, is_code, is_imports, is_named, is_same,
    name_words, stems,
};
use crate::text::strings::Strings;
use std::collections::HashMap;
use std::ops::Range;

/// The ranks count less the greater this number is: rank 61 has half of the first rank's score.
const RANKS: f64 = 61.0;
/// BM25 over whole files. Their lengths differ by the hundredfold without saying less, so length counts little.
const K1: f64 = 1.2;
const B: f64 = 0.3;
/// Number of words from which names of files count less, with the square: issues and stack traces name many files.
const SHORT: f64 = 12.0;

/// The ids of the documents, row by row, and the texts of the units. The ids of files are their paths.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    pub ids: Strings<'a>,
    pub texts: Strings<'a>,
}

/// What the query and the index know about one file.
struct File {
    units: Range<usize>,
    is_aside: bool,
    name: f64,
    folder: f64,
    /// Whether the file is named like the last identifier of the query.
    is_named: bool,
    body: f64,
    /// With vectors: the similarity of its nearest unit.
    near: f64,
}

/// Return the ranking with the files of code in its first `plan.code_depth` units in another order. `documents` has the
/// row of each unit in `files.ids`.
pub fn arrange(
    links: &LinksView<'_>,
    dense: Option<&Dense<'_>>,
    (documents, files): (Items<'_, u32>, Files<'_>),
    (text, known): (&str, &Question),
    mut ranked: Vec<Scored>,
    plan: &Plan,
) -> Vec<Scored> {
    let depth = ranked.len().min(plan.code_depth_of(dense.is_some()));
    let (mut found, file_of) = files_of(links, documents, files.ids, (text, known), &ranked[..depth]);
    let share = file_of.iter().flatten().count() as f64 / depth.max(1) as f64;
    if share == 0.0 {
        return ranked;
    }
    if let Some(dense) = dense {
        compare_vectors(dense, &ranked[..depth], &file_of, &mut found);
    }
    let symbols = asked_symbols(text);
    let wants_tests = asks_for_tests(text);
    let words = text.split_whitespace().count().max(1) as f64;
    let short = (SHORT / words).min(1.0).powi(2);
    let score = |rank: usize| {
        let direct = RANKS / (RANKS + rank as f64);
        let Some(at) = file_of[rank] else { return direct };
        let (file, passage) = (&found[at], files.texts.get(ranked[rank].id as usize));
        let is_defined = symbols.iter().any(|symbol| defines(passage, symbol));
        let bonus = plan.code_name * short * file.name
            + plan.code_folder * file.folder
            + plan.code_body * file.body
            + plan.code_symbol * f64::from(is_defined)
            + plan.code_file * f64::from(file.is_named)
            + plan.code_near * file.near;
        let aside = if file.is_aside && !wants_tests { plan.code_aside } else { 1.0 };
        let imports = if is_imports(passage) { plan.code_imports } else { 1.0 };
        (direct + share * bonus) * aside * imports
    };
    let mut order = in_order((0..depth).map(score));
    let mut before = vec![0; found.len()];
    for one in &mut order {
        if let Some(at) = file_of[one.id as usize] {
            one.score = round_score(one.score * plan.code_again.powi(before[at]));
            before[at] += 1;
        }
    }
    order.sort_unstable_by(rank_order);
    let head: Vec<Scored> = order.iter().map(|one| ranked[one.id as usize]).collect();
    ranked[..depth].copy_from_slice(&head);
    // Scores fall strictly, so that they keep the order.
    let mut below = f64::INFINITY;
    for one in &mut ranked {
        one.score = one.score.min(below);
        below = one.score.next_down();
    }
    ranked
}

/// Return the ranks with their scores, the greatest score first.
fn in_order(scores: impl Iterator<Item = f64>) -> Vec<Scored> {
    let mut all: Vec<Scored> =
        scores.zip(0..).map(|(score, id)| Scored { id, score: round_score(score) }).collect();
    all.sort_unstable_by(rank_order);
    all
}

/// Return the files of code of some units, and the number of each unit's file.
fn files_of(
    links: &LinksView<'_>,
    documents: Items<'_, u32>,
    ids: Strings<'_>,
    (text, known): (&str, &Question),
    units: &[Scored],
) -> (Vec<File>, Vec<Option<usize>>) {
    let words = stems(text);
    let symbol = asked_symbols(text).pop();
    let mut numbers: HashMap<&str, Option<usize>> = HashMap::new();
    let mut found = Vec::new();
    let mut file = |one: &Scored| {
        let row = documents[one.id as usize] as usize;
        let path = ids.get(row);
        *numbers.entry(path).or_insert_with(|| {
            is_code(path).then(|| {
                let name = name_words(path);
                found.push(File {
                    units: units_of(documents, ids, row),
                    is_aside: is_aside(path),
                    name: share_of(&name, &words),
                    folder: share_of(&words, &folder_words(path)),
                    is_named: symbol.is_some_and(|symbol| is_named(path, symbol)),
                    body: 0.0,
                    near: 0.0,
                });
                found.len() - 1
            })
        })
    };
    let file_of = units.iter().map(&mut file).collect();
    compare_bodies(links, known, &mut found);
    (found, file_of)
}

/// Return the share of some words that others have.
fn share_of(words: &[String], others: &[String]) -> f64 {
    let has = |word: &&String| others.iter().any(|other| is_same(word, other));
    words.iter().filter(has).count() as f64 / words.len().max(1) as f64
}

/// Return the units of the document that has a row.
fn units_of(documents: Items<'_, u32>, ids: Strings<'_>, row: usize) -> Range<usize> {
    let own = ids.bytes(row);
    let rows = run_around(row, ids.len(), |at| ids.bytes(at) == own);
    let from = |row: usize| documents.partition_point(0..documents.len(), |&one| (one as usize) < row);
    from(rows.start)..from(rows.end)
}

/// Set the match of each whole file: its BM25 score divided by that of the best file.
fn compare_bodies(links: &LinksView<'_>, known: &Question, files: &mut [File]) {
    let length =
        |file: &File| links.unit_length[file.units.clone()].iter().map(|&one| f64::from(one)).sum::<f64>();
    let lengths: Vec<f64> = files.iter().map(length).collect();
    let mean = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
    for (file, length) in files.iter_mut().zip(lengths) {
        let norm = K1 * (1.0 - B + B * length / mean.max(1.0));
        for (at, &keyword) in known.keywords.iter().enumerate() {
            let range = links.keyword_units.range(keyword as usize);
            let units = links.keyword_units.indices.get(range.clone());
            let from = |unit: usize| units.partition_point(|&one| (one as usize) < unit);
            let own = range.start + from(file.units.start)..range.start + from(file.units.end);
            let count = links.keyword_tf.get(own).iter().map(|&one| f64::from(one)).sum::<f64>();
            file.body += known.share(at) * links.keyword_idf[keyword as usize] * count / (count + norm);
        }
    }
    let best = files.iter().map(|file| file.body).fold(0.0, f64::max);
    files.iter_mut().for_each(|file| file.body /= if best > 0.0 { best } else { 1.0 });
}

/// Set the similarity of each file's nearest unit, from 0 for the farthest of all units to 1 for the nearest.
fn compare_vectors(dense: &Dense<'_>, units: &[Scored], file_of: &[Option<usize>], files: &mut [File]) {
    let near: Vec<f64> = units.iter().map(|one| dense.unit(one.id)).collect();
    let least = near.iter().copied().fold(f64::INFINITY, f64::min);
    let span = near.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least;
    if span <= 0.0 {
        return;
    }
    for (near, at) in near.iter().zip(file_of) {
        if let Some(at) = *at {
            files[at].near = files[at].near.max((near - least) / span);
        }
    }
}
