//! Learned sparse encoders: the weights of a vocabulary's terms for a text (SPLADE: Formal et al. 2021, section 3;
//! document encoders whose query is a table: Geng et al. 2024, "Towards Competitive Search Relevance For Inference-Free
//! Learned Sparse Retrievers").

use super::batch::{batches, pieces, Piece, BY_ROWS};
use super::body::Spares;
use super::choice::Precision;
use super::choice::{exact_way, ways, Way};
use super::config::Config;
use super::kernel::Form;
use super::load::Weights;
use super::model::Body;
use super::tensors::Tensors;
use super::term_folder::{Table, TermFolder};
use super::tokens::{Tokens, Windows};
use super::verify;
use super::word_head::{Scratch, WordHead};
use crate::error::{Error, Result};
use crate::parallel::{map_ranges, map_ranges_with};
use crate::progress::Progress;
use crate::text::strings::Strings;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Terms of a text that are kept, those of the greatest weights. Trained encoders give a text of some hundred words 100
/// to 400; a model that was not trained to be sparse gives most of its vocabulary.
const MOST: usize = 512;
/// Texts that a thread tokenises at a time.
const TEXTS: usize = 32;
/// Maximum size of a JSON table.
const LONGEST_TABLE: u64 = 64 << 20;

/// The side of a search on which a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Query,
    Document,
}

/// Compressed rows: for each text its terms, ascending, with their positive weights.
#[derive(Debug, Default, PartialEq)]
pub struct TermRows {
    pub indptr: Vec<u64>,
    pub terms: Vec<u32>,
    pub weights: Vec<f32>,
}

/// A loaded model, shared by the threads that encode.
pub struct TermEncoder {
    body: Body,
    head: WordHead,
    tokens: Tokens,
    folder: TermFolder,
    path: PathBuf,
    /// Whether a term is a special token, which is never returned.
    special: Vec<bool>,
    /// The weight of each term in a query, if queries do not need the model.
    table: Option<Vec<f32>>,
    note: Option<String>,
    spare: Spares,
}

impl TermEncoder {
    /// Load a folder. [`Precision::Auto`] is int8, whose weights are the same on all machines, if it keeps the
    /// direction of built-in texts (see [`verify::least_cosine`]), otherwise f32; [`Precision::Int8`] is not
    /// compared, all others are f32. `kernel` is as in [`super::Encoder::open`]. Errors: another architecture, a
    /// model without a masked-language-model head, other modules than the built-in ones.
    pub fn open(
        path: &Path,
        precision: Precision,
        kernel: &str,
        threads: usize,
        progress: &Progress,
    ) -> Result<Self> {
        let folder = TermFolder::read(path)?;
        let config = Config::read(&folder.transformer)?;
        let longest = folder.longest.unwrap_or(usize::MAX).min(config.room());
        let name = folder.transformer.join("tokenizer.json");
        let tokens = Tokens::open(&name, config.vocabulary, longest, folder.lower, &folder.tokeniser)?;
        let mut special = vec![false; config.vocabulary];
        for id in tokens.special_ids() {
            special[id as usize] = true;
        }
        let table = folder.table.as_ref().map(|table| read_table(table, &tokens, config.vocabulary));
        let table = table.transpose()?;
        let weights = Weights::open(&folder.transformer, config)?;
        let sample = verify::sample(&tokens)?;
        let sample: Vec<&[u32]> = sample.iter().map(Vec::as_slice).collect();
        let pack = |way: Way| -> Result<(Body, WordHead)> {
            let body = weights.pack(way.kernel, way.form, &sample, threads, progress)?;
            let head = WordHead::open(&weights, &body, &sample, progress)?;
            Ok((body, head))
        };
        let way = match precision {
            Precision::Auto if kernel == "auto" => ways(Precision::Int8, kernel)?[0],
            Precision::Auto | Precision::Int8 => ways(precision, kernel)?[0],
            _ if kernel == "auto" => exact_way(),
            _ => ways(Precision::F32, kernel)?[0],
        };
        let (body, head) = pack(way)?;
        let path = path.to_path_buf();
        let (note, spare) = (None, Spares::default());
        let mut own = Self { body, head, tokens, folder, path, special, table, note, spare };
        if precision == Precision::Auto && kernel == "auto" {
            let fast = own.probe(threads, progress)?;
            let (body, head) = pack(exact_way())?;
            let fast_parts = (std::mem::replace(&mut own.body, body), std::mem::replace(&mut own.head, head));
            let lowest = lowest_cosine(&fast, &own.probe(threads, progress)?);
            if lowest >= verify::least_cosine(Form::Int8) {
                (own.body, own.head) = fast_parts;
            } else {
                own.note = Some(format!(
                    "int8 is not used: in it the weights of a text have cosine {lowest:.5} to those in f32"
                ));
            }
        }
        Ok(own)
    }

    /// Return a digest of all files of a folder on which weights depend. Reads them in full.
    pub fn fingerprint(path: &Path, progress: &Progress) -> Result<String> {
        TermFolder::read(path)?.digest(progress)
    }

    fn probe(&self, threads: usize, progress: &Progress) -> Result<TermRows> {
        progress.check()?;
        self.by_model(&verify::texts().view(), "", threads, &Progress::none())
    }

    /// Return the number of terms: the size of the vocabulary.
    pub fn terms(&self) -> usize {
        self.special.len()
    }

    /// Return the longest window in tokens.
    pub fn longest(&self) -> usize {
        self.tokens.longest()
    }

    /// Return "f32" or "int8".
    pub fn precision(&self) -> &'static str {
        self.body.form.name()
    }

    pub fn kernel(&self) -> &'static str {
        self.body.kernel.name()
    }

    /// Return whether queries are a table of weights, without the model.
    pub fn has_table(&self) -> bool {
        self.table.is_some()
    }

    /// Return why int8 is not used, if so.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Return the terms of each text, at most [`MOST`] of the greatest weights. A text that exceeds the model's limit
    /// is read in windows, and each term has the greatest of its weights. A row depends only on its text. Progress
    /// counts tokens, or texts if the model is not needed.
    pub fn rows(
        &self,
        texts: &Strings<'_>,
        role: Role,
        threads: usize,
        progress: &Progress,
    ) -> Result<TermRows> {
        match (role, &self.table) {
            (Role::Query, Some(table)) => self.by_table(texts, table, threads, progress),
            (Role::Query, None) => self.by_model(texts, &self.folder.query_prompt, threads, progress),
            (Role::Document, _) => self.by_model(texts, &self.folder.document_prompt, threads, progress),
        }
    }

    fn by_table(
        &self,
        texts: &Strings<'_>,
        table: &[f32],
        threads: usize,
        progress: &Progress,
    ) -> Result<TermRows> {
        progress.expect(texts.len() as u64);
        let rows = map_ranges(texts.len(), TEXTS, threads, progress, |range| {
            let row = |i| {
                let mut terms = self.tokens.own_ids(texts.get(i), &self.folder.query_prompt)?;
                terms.sort_unstable();
                terms.dedup();
                let weighed = terms.into_iter().map(|term| (term, table[term as usize]));
                Ok(weighed.filter(|&(term, weight)| weight > 0.0 && !self.special[term as usize]).collect())
            };
            range.map(row).collect::<Result<Vec<_>>>()
        })?;
        Ok(TermRows::new(rows.into_iter().flatten()))
    }

    fn by_model(
        &self,
        texts: &Strings<'_>,
        prompt: &str,
        threads: usize,
        progress: &Progress,
    ) -> Result<TermRows> {
        // Progress is counted in tokens, whose number is not known yet.
        let uncounted = Progress::none();
        let lead = self.tokens.lead(prompt)?;
        let windows: Vec<Windows> = map_ranges(texts.len(), TEXTS, threads, &uncounted, |range| {
            let one = |i| {
                progress.check()?;
                self.tokens.windows(texts.get(i), &lead)
            };
            range.map(one).collect::<Result<Vec<_>>>()
        })?
        .concat();
        let pieces = pieces(&windows);
        progress.expect(pieces.iter().map(|piece| piece.weight).sum());
        let starts = batches(pieces.iter().map(|piece| piece.ids.len()), BY_ROWS);
        let rows = map_ranges_with(
            starts.len() - 1,
            1,
            threads,
            &uncounted,
            || (self.spare.take(), Scratch::default()),
            |(scratch, own), range| {
                let batch = &pieces[starts[range.start]..starts[range.end]];
                let sequences: Vec<&[u32]> = batch.iter().map(|piece| piece.ids).collect();
                let states = self.body.run(&sequences, scratch.get(), progress)?;
                self.weigh(batch, states, own, progress)
            },
        )?;
        let mut rows = rows.into_iter().flatten();
        let texts = windows.iter().map(|own| greatest(rows.by_ref().take(own.lengths.len())));
        Ok(TermRows::new(texts.map(keep_most)))
    }

    /// Return the terms of each window of a batch from the states of its tokens.
    fn weigh(
        &self,
        batch: &[Piece<'_>],
        states: &[f32],
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Vec<(u32, f32)>>> {
        let stride = self.body.stride();
        let (mut first, mut rows) = (0, Vec::with_capacity(batch.len()));
        for piece in batch {
            progress.check()?;
            let own = &states[first * stride..(first + piece.ids.len()) * stride];
            let logits = self.head.highest(own, scratch)?;
            let positive = logits.iter().zip(&self.special).zip(0u32..);
            let positive = positive.filter(|((&logit, &special), _)| logit > 0.0 && !special);
            let row: Vec<_> = positive.map(|((&logit, _), term)| (term, self.weight(logit))).collect();
            if row.iter().any(|(_, weight)| !weight.is_finite()) {
                return Err(Error::damaged(format!(
                    "{}: the model's logits are not finite; its weights are too large",
                    self.path.display()
                )));
            }
            rows.push(row);
            first += piece.ids.len();
            progress.advance(piece.weight);
        }
        Ok(rows)
    }

    /// Return the weight of a term with this greatest logit. The logarithm rises, so that the greatest weight is that
    /// of the greatest logit.
    fn weight(&self, logit: f32) -> f32 {
        let weight = f64::from(logit).ln_1p();
        (if self.folder.is_damped { weight.ln_1p() } else { weight }) as f32
    }
}

impl TermRows {
    fn new(rows: impl Iterator<Item = Vec<(u32, f32)>>) -> Self {
        let mut all = Self { indptr: vec![0], ..Self::default() };
        for row in rows {
            all.terms.extend(row.iter().map(|(term, _)| term));
            all.weights.extend(row.iter().map(|(_, weight)| weight));
            all.indptr.push(all.terms.len() as u64);
        }
        all
    }

    fn row(&self, row: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let range = self.indptr[row] as usize..self.indptr[row + 1] as usize;
        self.terms[range.clone()].iter().copied().zip(self.weights[range].iter().copied())
    }
}

/// Return the greatest weight of each term in any of the rows.
fn greatest(mut rows: impl Iterator<Item = Vec<(u32, f32)>>) -> Vec<(u32, f32)> {
    let mut all = rows.next().unwrap_or_default();
    let first = all.len();
    rows.for_each(|row| all.extend(row));
    if all.len() > first {
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        all.dedup_by_key(|(term, _)| *term);
    }
    all
}

/// Keep the [`MOST`] greatest weights, of equal ones those of the smaller terms.
fn keep_most(mut row: Vec<(u32, f32)>) -> Vec<(u32, f32)> {
    if row.len() > MOST {
        row.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        row.truncate(MOST);
        row.sort_unstable_by_key(|(term, _)| *term);
    }
    row
}

/// Return the lowest cosine between the rows of a text. Two empty rows agree.
fn lowest_cosine(a: &TermRows, b: &TermRows) -> f64 {
    let square =
        |row: &mut dyn Iterator<Item = (u32, f32)>| row.map(|(_, x)| f64::from(x).powi(2)).sum::<f64>();
    let mut lowest = 1.0f64;
    for row in 0..a.indptr.len() - 1 {
        let other: Vec<_> = b.row(row).collect();
        let of =
            |term: u32| other.binary_search_by_key(&term, |(term, _)| *term).map_or(0.0, |at| other[at].1);
        let dot: f64 = a.row(row).map(|(term, x)| f64::from(x) * f64::from(of(term))).sum();
        let lengths = (square(&mut a.row(row)) * square(&mut b.row(row))).sqrt();
        let alike = f64::from(u8::from(a.row(row).next().is_none() && other.is_empty()));
        lowest = lowest.min(if lengths > 0.0 { dot / lengths } else { alike });
    }
    lowest
}

/// Return the weight of each term in a query: 0 if the table does not have it.
fn read_table(table: &Table, tokens: &Tokens, vocabulary: usize) -> Result<Vec<f32>> {
    let weights = match table {
        Table::Tensor(path) => Tensors::open(path)?.finite("weight", &[vocabulary])?.to_vec(),
        Table::Json(path) => {
            let name = path.display();
            let failed = |e: std::io::Error| Error::io(format!("{name}: {e}")).caused_by(e);
            if std::fs::metadata(path).map_err(failed)?.len() > LONGEST_TABLE {
                return Err(Error::damaged(format!("{name}: too large for a table of weights")));
            }
            let value: Value = serde_json::from_slice(&std::fs::read(path).map_err(failed)?)
                .map_err(|e| Error::damaged(format!("{name}: {e}")).caused_by(e))?;
            let wrong = || Error::damaged(format!("{name} is not a JSON object of tokens and their weights"));
            let mut weights = vec![0.0; vocabulary];
            for (token, weight) in value.as_object().ok_or_else(wrong)? {
                let weight = weight.as_f64().ok_or_else(wrong)? as f32;
                // A table may have words that this tokeniser lacks.
                if let Some(place) = tokens.id(token).and_then(|id| weights.get_mut(id as usize)) {
                    *place = weight;
                }
            }
            weights
        }
    };
    if weights.iter().all(|x| x.is_finite()) {
        Ok(weights)
    } else {
        Err(Error::damaged("a table of weights has a value that is not finite"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_merged_by_their_maximum() {
        let rows = [vec![(1, 0.5), (3, 2.0)], vec![], vec![(1, 0.25), (2, 1.0), (3, 3.0)]];
        assert_eq!(greatest(rows.into_iter()), [(1, 0.5), (2, 1.0), (3, 3.0)]);
        assert_eq!(greatest(std::iter::empty()), []);
    }

    #[test]
    fn the_greatest_weights_are_kept() {
        let row: Vec<(u32, f32)> = (0..2 * MOST as u32).map(|term| (term, (term % 7) as f32 + 1.0)).collect();
        let kept = keep_most(row.clone());
        assert_eq!(kept.len(), MOST);
        assert!(kept.is_sorted_by_key(|(term, _)| *term));
        let least = kept.iter().map(|(_, weight)| *weight).fold(f32::INFINITY, f32::min);
        assert!(row.iter().filter(|(_, weight)| *weight > least).all(|one| kept.contains(one)));
        assert_eq!(keep_most(vec![(4, 1.0)]), [(4, 1.0)]);
    }

    #[test]
    fn rows_are_compared_by_their_lowest_cosine() {
        let rows = |rows: Vec<Vec<(u32, f32)>>| TermRows::new(rows.into_iter());
        let one = rows(vec![vec![(0, 3.0), (5, 4.0)], vec![]]);
        assert_eq!(lowest_cosine(&one, &one), 1.0);
        assert_eq!(lowest_cosine(&one, &rows(vec![vec![(0, 4.0), (5, 3.0)], vec![]])), 24.0 / 25.0);
        assert_eq!(lowest_cosine(&one, &rows(vec![vec![(0, 3.0), (5, 4.0)], vec![(1, 1.0)]])), 0.0);
    }
}
