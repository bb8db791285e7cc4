//! Files of source code and their documentation among the best units: tests and imports last, one passage of each file
//! first, and files whose name, folders or definitions the query names earlier. Units of other documents keep their order
//! and their ranks, and so do all if none of these units is code.
//!
//! The first `code_depth` units of the walk, with vectors `code_depth_dense`, are put in order again by
//!
//! ```text
//! score = (61 / (61 + rank) + share × bonus) × factors
//! bonus = code_name × short × name + code_folder × folder + code_body × body + code_cover × cover
//!       + code_symbol × defined + code_file × named + code_near × near
//! factors = code_aside^(tests) × code_imports^(imports) × code_old^(old version) × code_again^(better passages of the file)
//! ```
//!
//! where `share` is the share of code among these units, so that code in a collection of notes gains little, and pages
//! there still less. A page of documentation gains `code_page` times what code would gain, or as much if the query asks
//! what a user does, and less if more than half of these units are not code. It has no definitions, and its factors are weaker the smaller the share. A header
//! counts as imports if the source that it declares is among the files. With vectors, `cover` does not count, and `near`
//! is the similarity of the file's nearest unit: 1 for the nearest of these units, 0 for the farthest. The ranks are
//! used, not the walk's scores, because passages of a file that matches everywhere have nearly equal scores.

use super::company::run_around;
use super::dense::Dense;
use super::plan::Plan;
use super::ties::round_score;
use crate::items::Items;
use crate::rank::links_view::LinksView;
use crate::rank::question::Question;
use crate::sparse::{rank_order, Scored};
use crate::text::code::{
    adjoined, asked_symbols, asks_for_help, asks_for_tests, declared_by, defines, folder_words, is_aside,
    is_code, is_imports, is_named, is_page, is_record, is_same, is_source_of_headers, name_words, stems,
    version_of,
};
use crate::text::strings::Strings;
use std::collections::{HashMap, HashSet};
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
    /// Whether it is a page of documentation.
    is_page: bool,
    /// Whether it is read after other files: tests and examples; of pages lists of changes and licences.
    is_aside: bool,
    /// Whether the file that it declares is among the files.
    is_header: bool,
    /// Whether its folder is an older version of one that other files are in, and the query does not name the version.
    is_old: bool,
    name: f64,
    folder: f64,
    /// Whether the file is named like the last identifier of the query.
    is_named: bool,
    body: f64,
    /// Share of the query's keywords that the file has, by their rarity.
    cover: f64,
    /// With vectors: the similarity of its nearest unit.
    near: f64,
}

/// Return the ranking with the files of a repository in its first `plan.code_depth` units in another order. `documents`
/// has the row of each unit in `files.ids`.
pub fn arrange(
    links: &LinksView<'_>,
    dense: Option<&Dense<'_>>,
    (documents, files): (Items<'_, u32>, Files<'_>),
    (text, known): (&str, &Question),
    mut ranked: Vec<Scored>,
    plan: &Plan,
) -> Vec<Scored> {
    let depth = ranked.len().min(plan.code_depth_of(dense.is_some()));
    let (mut found, file_of) = files_of(documents, files.ids, text, &ranked[..depth]);
    let code = file_of.iter().flatten().filter(|&&at| !found[at].is_page).count();
    let share = code as f64 / depth.max(1) as f64;
    if share == 0.0 {
        return ranked;
    }
    compare_bodies(links, known, &mut found);
    if let Some(dense) = dense {
        compare_vectors(dense, &ranked[..depth], &file_of, &mut found);
    }
    let symbols = asked_symbols(text);
    let wants_tests = asks_for_tests(text);
    // Vectors know words that the query does not have.
    let cover = if dense.is_some() { 0.0 } else { plan.code_cover };
    // In a collection with little code, pages are notes.
    let page = (2.0 * share).min(1.0) * if asks_for_help(text) { 1.0 } else { plan.code_page };
    let on_page = |factor: f64| 1.0 - share * (1.0 - factor);
    let words = text.split_whitespace().count().max(1) as f64;
    let short = (SHORT / words).min(1.0).powi(2);
    let score = |rank: usize| {
        let direct = RANKS / (RANKS + rank as f64);
        let Some(at) = file_of[rank] else { return direct };
        let (file, passage) = (&found[at], files.texts.get(ranked[rank].id as usize));
        let is_defined = !file.is_page && symbols.iter().any(|symbol| defines(passage, symbol));
        let bonus = plan.code_name * short * file.name
            + plan.code_folder * file.folder
            + plan.code_body * file.body
            + cover * file.cover
            + plan.code_near * file.near;
        if file.is_page {
            let aside = if file.is_aside { on_page(plan.code_aside) } else { 1.0 };
            return (direct + share * page * bonus) * aside;
        }
        let bonus =
            bonus + plan.code_symbol * f64::from(is_defined) + plan.code_file * f64::from(file.is_named);
        let aside = if file.is_aside && !wants_tests { plan.code_aside } else { 1.0 };
        let is_header = file.is_header && !is_defined;
        let imports = if is_header || is_imports(passage) { plan.code_imports } else { 1.0 };
        let old = if file.is_old { plan.code_old } else { 1.0 };
        (direct + share * bonus) * aside * imports * old
    };
    let mut order = in_order((0..depth).map(score));
    let mut before = vec![0; found.len()];
    for one in &mut order {
        if let Some(at) = file_of[one.id as usize] {
            let again = if found[at].is_page { on_page(plan.code_again) } else { plan.code_again };
            one.score = round_score(one.score * again.powi(before[at]));
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

/// Return the files of code and the pages of some units, and the number of each unit's file.
fn files_of(
    documents: Items<'_, u32>,
    ids: Strings<'_>,
    text: &str,
    units: &[Scored],
) -> (Vec<File>, Vec<Option<usize>>) {
    let words = stems(text);
    let mut whole = words.clone();
    whole.extend(adjoined(text));
    let symbol = asked_symbols(text).pop();
    let mut numbers: HashMap<&str, Option<usize>> = HashMap::new();
    let mut paths = Vec::new();
    let mut found = Vec::new();
    let mut file = |one: &Scored| {
        let row = documents[one.id as usize] as usize;
        let path = ids.get(row);
        *numbers.entry(path).or_insert_with(|| {
            let is_page = is_page(path);
            (is_page || is_code(path)).then(|| {
                let name = name_words(path);
                let name = share_of(&name, &whole);
                paths.push(path);
                found.push(File {
                    units: units_of(documents, ids, row),
                    is_page,
                    is_aside: if is_page { name == 0.0 && is_record(path) } else { is_aside(path) },
                    is_header: false,
                    is_old: false,
                    name,
                    folder: share_of(&words, &folder_words(path)),
                    is_named: symbol.is_some_and(|symbol| is_named(path, symbol)),
                    body: 0.0,
                    cover: 0.0,
                    near: 0.0,
                });
                found.len() - 1
            })
        })
    };
    let file_of = units.iter().map(&mut file).collect();
    compare_paths(text, &paths, &mut found);
    (found, file_of)
}

/// Find the headers whose sources are among the files, and the files of versions that have newer ones among them.
fn compare_paths(text: &str, paths: &[&str], files: &mut [File]) {
    let sources: HashSet<&str> = paths.iter().filter_map(|path| is_source_of_headers(path)).collect();
    let mut newest: HashMap<&str, u32> = HashMap::new();
    for (above, version) in paths.iter().filter_map(|path| version_of(path)) {
        let known = newest.entry(above).or_default();
        *known = version.max(*known);
    }
    for (path, file) in paths.iter().zip(files) {
        file.is_header = declared_by(path).is_some_and(|name| sources.contains(name));
        file.is_old = version_of(path).is_some_and(|(above, version)| {
            let is_asked = || stems(text).iter().any(|word| *word == format!("v{version}"));
            version < newest[above] && !is_asked()
        });
    }
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

/// Set the match of each whole file: its BM25 score divided by that of the best file, and which keywords it has.
fn compare_bodies(links: &LinksView<'_>, known: &Question, files: &mut [File]) {
    let length =
        |file: &File| links.unit_length[file.units.clone()].iter().map(|&one| f64::from(one)).sum::<f64>();
    let lengths: Vec<f64> = files.iter().map(length).collect();
    let mean = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
    let idf = |at: usize| known.share(at) * links.keyword_idf[known.keywords[at] as usize];
    let all = (0..known.keywords.len()).map(idf).sum::<f64>().max(f64::MIN_POSITIVE);
    for (file, length) in files.iter_mut().zip(lengths) {
        let norm = K1 * (1.0 - B + B * length / mean.max(1.0));
        for (at, &keyword) in known.keywords.iter().enumerate() {
            let range = links.keyword_units.range(keyword as usize);
            let units = links.keyword_units.indices.get(range.clone());
            let from = |unit: usize| units.partition_point(|&one| (one as usize) < unit);
            let own = range.start + from(file.units.start)..range.start + from(file.units.end);
            let count = links.keyword_tf.get(own).iter().map(|&one| f64::from(one)).sum::<f64>();
            file.body += idf(at) * count / (count + norm);
            file.cover += if count > 0.0 { idf(at) / all } else { 0.0 };
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
