//! The sentence encoder: loads a sentence-transformers folder and computes vectors of texts.

use super::batch::{batches, pieces, Piece, BY_ROWS, BY_TILES};
use super::body::Scratch;
use super::body::Spares;
use super::choice::Precision;
use super::choice::{exact_way, measure, ways, Timing, Way};
use super::config::Config;
use super::folder::Folder;
use super::kernel::Form;
use super::load::Weights;
use super::model::Body;
use super::pool::{normalise, Head};
use super::tokens::{Lead, Tokens, Windows};
use super::verify;
use crate::error::{Error, Result};
use crate::parallel::{map_ranges, map_ranges_with};
use crate::progress::Progress;
use crate::text::strings::Strings;
use ketrag_base::tiles::{tiles, Tiles};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Number of texts that a thread tokenises at a time.
const TEXTS: usize = 32;
/// A loaded model, shared by the threads that encode.
pub struct Encoder {
    body: Body,
    head: Head,
    tokens: Tokens,
    folder: Folder,
    path: PathBuf,
    note: Option<String>,
    timings: Vec<Timing>,
    /// The lowest cosine to f32, if it has been computed.
    lowest: OnceLock<f64>,
    spare: Spares,
}

impl Encoder {
    /// Load a folder. `kernel` is the name of a [`Kernel`], or auto: then those of this machine that support
    /// the precision are timed for a few milliseconds on the model's shapes, and the fastest is used, int8 only if the
    /// others need 1.25 times as long. With [`Precision::Auto`] and [`Precision::Float`] every format except f32 is
    /// compared with it on built-in texts first, and rejected (see [`Encoder::note`]) if a vector's cosine is below
    /// 0.999, or 0.998 in int8.
    pub fn open(
        path: &Path,
        precision: Precision,
        kernel: &str,
        threads: usize,
        progress: &Progress,
    ) -> Result<Self> {
        let folder = Folder::read(path)?;
        let config = Config::read(&folder.transformer)?;
        let longest = folder.longest.unwrap_or(usize::MAX).min(config.room());
        let tokens = Tokens::open(
            &folder.transformer.join("tokenizer.json"),
            config.vocabulary,
            longest,
            folder.lower,
            &folder.tokeniser,
        )?;
        let weights = Weights::open(&folder.transformer, config)?;
        let hidden = weights.config.hidden;
        let mut head = Head::open(&folder.pooling, folder.pool_prompt, &folder.steps, hidden)?;
        head.cut(folder.cut);
        let mut timings = measure(&weights, &ways(precision, kernel)?, threads, progress)?;
        let sample = verify::sample(&tokens)?;
        let sample: Vec<&[u32]> = sample.iter().map(Vec::as_slice).collect();
        let pack = |way: Way| weights.pack(way.kernel, way.form, &sample, threads, progress);
        let first = timings.first().ok_or_else(|| Error::Internal("no kernel".into()))?.way;
        let mut encoder = Self {
            body: pack(first)?,
            head,
            tokens,
            folder,
            path: path.to_path_buf(),
            note: refused(),
            timings: Vec::new(),
            lowest: OnceLock::new(),
            spare: Spares::default(),
        };
        // A kernel that supports only int8 and was named explicitly is used without comparison.
        let free = timings.len() > 1 || first.form == Form::Bf16;
        if matches!(precision, Precision::Auto | Precision::Float) && first.form != Form::F32 && free {
            // Use the first candidate that is close to f32. The last candidate is f32 itself.
            let fast = std::mem::replace(&mut encoder.body, pack(exact_way())?);
            let exact = encoder.probe(threads, progress)?;
            let mut fast = Some(fast);
            let ways = timings.iter().map(|timing| timing.way).chain([exact_way()]);
            for way in ways {
                encoder.body = match fast.take() {
                    Some(body) => body,
                    None => pack(way)?,
                };
                if way.form == Form::F32 {
                    break;
                }
                let own = encoder.probe(threads, progress)?;
                let lowest = verify::lowest_cosine(&own, &exact, encoder.dimension());
                if lowest >= verify::least_cosine(way.form) {
                    encoder.lowest = lowest.into();
                    break;
                }
                encoder.note = Some(format!(
                    "{} is not used: in it a vector of this model has cosine {lowest:.5} to itself in f32",
                    way.form.name()
                ));
            }
        }
        timings.retain(|timing| !timing.microseconds.is_nan());
        timings.sort_by(|a, b| a.microseconds.total_cmp(&b.microseconds));
        encoder.timings = timings;
        Ok(encoder)
    }

    /// Return why a folder's model has no native implementation, judged by its settings, or `None` if it has
    /// one. Errors: damaged or missing settings.
    pub fn refusal(path: &Path) -> Result<Option<String>> {
        let look = || -> Result<()> {
            let folder = Folder::read(path)?;
            Config::read(&folder.transformer)?;
            Weights::exist(&folder.transformer)
        };
        match look() {
            Ok(()) => Ok(None),
            Err(Error::Input(reason)) => Ok(Some(reason)),
            Err(other) => Err(other),
        }
    }

    /// Return the lowest cosine between this encoder's vectors and those of f32, on built-in texts in many
    /// languages. Packs the model again unless it is f32 already, or the cosine is known.
    pub fn closeness(&self, threads: usize, progress: &Progress) -> Result<f64> {
        if self.body.form == Form::F32 {
            return Ok(1.0);
        }
        if let Some(&lowest) = self.lowest.get() {
            return Ok(lowest);
        }
        let exact = exact_way().kernel.name();
        let exact = Self::open(&self.path, Precision::F32, exact, threads, progress)?;
        let (own, exact) = (self.probe(threads, progress)?, exact.probe(threads, progress)?);
        Ok(*self.lowest.get_or_init(|| verify::lowest_cosine(&own, &exact, self.dimension())))
    }

    fn probe(&self, threads: usize, progress: &Progress) -> Result<Vec<f32>> {
        let texts = verify::texts();
        let silent = Progress::none();
        progress.check()?;
        Ok(self.encode(&texts.view(), "", threads, &silent)?.vectors)
    }

    /// Return the number of values of a vector.
    pub fn dimension(&self) -> usize {
        self.head.dimension()
    }

    /// Return the longest window in tokens.
    pub fn longest(&self) -> usize {
        self.tokens.longest()
    }

    /// Return "f32", "bf16" or "int8".
    pub fn precision(&self) -> &'static str {
        self.body.form.name()
    }

    pub fn kernel(&self) -> &'static str {
        self.body.kernel.name()
    }

    /// Return the time of each measured candidate, the fastest first; empty if there was no choice.
    pub fn timings(&self) -> &[Timing] {
        &self.timings
    }

    /// Return the reason why the preferred precision or kernel is not used, or `None` if it is.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Return the prompts as (name, prompt), and the name of the folder's default.
    pub fn prompts(&self) -> (&[(String, String)], Option<&str>) {
        (&self.folder.prompts, self.folder.default_prompt.as_deref())
    }

    /// Return a digest of the precision and of all files on which the vectors depend. Reads them in full.
    pub fn fingerprint(&self, progress: &Progress) -> Result<String> {
        self.folder.digest(&self.path, self.precision(), progress)
    }

    /// Return the number of tokens of each text, in all its windows, including special tokens and prompt.
    pub fn lengths(
        &self,
        texts: &Strings<'_>,
        prompt: &str,
        threads: usize,
        progress: &Progress,
    ) -> Result<Vec<u64>> {
        let windows = self.windows(texts, prompt, threads, progress)?;
        Ok(windows.iter().map(|w| w.ids.len() as u64).collect())
    }

    /// Return the number of tokens of each text, without special tokens and prompt and without truncation.
    pub fn counts(&self, texts: &Strings<'_>, threads: usize, progress: &Progress) -> Result<Vec<u64>> {
        let counts = map_ranges(texts.len(), TEXTS, threads, progress, |range| {
            range.map(|i| Ok(self.tokens.count(texts.get(i))? as u64)).collect::<Result<Vec<_>>>()
        })?;
        Ok(counts.concat())
    }

    fn windows(
        &self,
        texts: &Strings<'_>,
        prompt: &str,
        threads: usize,
        progress: &Progress,
    ) -> Result<Vec<Windows>> {
        self.for_each_text(texts, prompt, threads, progress, |i, lead| {
            self.tokens.windows(texts.get(i), lead)
        })
    }

    /// Call a function with each text's number and the prompt, and return its results.
    fn for_each_text<T: Send>(
        &self,
        texts: &Strings<'_>,
        prompt: &str,
        threads: usize,
        progress: &Progress,
        tokenise: impl Fn(usize, &Lead) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        // Progress is counted in tokens, whose total is not known yet.
        let uncounted = Progress::none();
        let lead: Lead = self.tokens.lead(prompt)?;
        let parts = map_ranges(texts.len(), TEXTS, threads, &uncounted, |range| {
            let one = |i| {
                progress.check()?;
                tokenise(i, &lead)
            };
            range.map(one).collect::<Result<Vec<_>>>()
        })?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// Return a row of [`Encoder::dimension`] values for each text, each preceded by `prompt`. A text that
    /// exceeds the model's limit is cut into windows, whose unit vectors are averaged by their number of
    /// tokens and normalised. An empty text has the zero vector. A row depends only on its text and the
    /// prompt. Progress counts the texts' tokens.
    pub fn encode(
        &self,
        texts: &Strings<'_>,
        prompt: &str,
        threads: usize,
        progress: &Progress,
    ) -> Result<Encoded> {
        let windows = self.windows(texts, prompt, threads, progress)?;
        self.encode_pieces(&windows, pieces(&windows), 0, threads, progress)
    }

    /// Return the rows of [`Encoder::encode`], and a row of length 1 for each span of a text, in order: the mean of
    /// the final states of the span's tokens, which have read the whole window. `spans` has the spans of each
    /// text in bytes. A span without tokens has the zero vector; one that several windows share is that of the
    /// window with most of its tokens.
    pub fn encode_spans(
        &self,
        texts: &Strings<'_>,
        spans: &TextSpans<'_>,
        prompt: &str,
        threads: usize,
        progress: &Progress,
    ) -> Result<Encoded> {
        spans.check(texts)?;
        let found = self.for_each_text(texts, prompt, threads, progress, |i, lead| {
            self.tokens.windows_and_spans(texts.get(i), lead, spans.of(i))
        })?;
        let (windows, rows): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let mut pieces = pieces(&windows);
        let (mut first, mut number) = (0, 0);
        for (own, rows) in windows.iter().zip(rows) {
            for span in rows {
                if !span.rows.is_empty() {
                    pieces[first + span.window].spans.push((number, span.rows));
                }
                number += 1;
            }
            first += own.lengths.len();
        }
        self.encode_pieces(&windows, pieces, number, threads, progress)
    }

    fn encode_pieces(
        &self,
        windows: &[Windows],
        pieces: Vec<Piece<'_>>,
        spans: usize,
        threads: usize,
        progress: &Progress,
    ) -> Result<Encoded> {
        let uncounted = Progress::none();
        let tokens = pieces.iter().map(|piece| piece.weight).sum();
        progress.expect(tokens);
        let most = if self.body.layout.tiles { BY_TILES } else { BY_ROWS };
        let batches = batches(pieces.iter().map(|piece| piece.ids.len()), most);
        let parts = map_ranges_with(
            batches.len() - 1,
            1,
            threads,
            &uncounted,
            || self.spare.take(),
            |scratch, range| {
                let batch = &pieces[batches[range.start]..batches[range.end]];
                self.batch(batch, scratch.get(), progress)
            },
        )?;
        let d = self.dimension();
        let mut of_windows = Vec::with_capacity(pieces.len() * d);
        let mut of_spans = vec![0.0f32; spans * d];
        let mut numbers = pieces.iter().flat_map(|piece| piece.spans.iter().map(|(number, _)| *number));
        for part in parts {
            of_windows.extend(part.windows);
            for (row, number) in part.spans.chunks_exact(d).zip(&mut numbers) {
                of_spans[number * d..][..d].copy_from_slice(row);
            }
        }
        let vectors = self.combine(windows, &pieces, &of_windows);
        let more = windows.iter().map(|w| w.lengths.len().saturating_sub(1) as u64).sum();
        Ok(Encoded { vectors, spans: of_spans, tokens, more })
    }

    fn batch(&self, pieces: &[Piece<'_>], scratch: &mut Scratch, progress: &Progress) -> Result<Rows> {
        let sequences: Vec<&[u32]> = pieces.iter().map(|piece| piece.ids).collect();
        let rows = self.body.run(&sequences, scratch, progress)?;
        let (stride, hidden) = (self.body.stride(), self.body.hidden);
        let mut out =
            Rows { windows: Vec::with_capacity(pieces.len() * self.dimension()), spans: Vec::new() };
        let mut first = 0;
        for piece in pieces {
            let own = &rows[first * stride..(first + piece.ids.len()) * stride];
            out.windows.extend(self.head.run(own, stride, hidden, piece.prompt));
            for (_, span) in &piece.spans {
                let rows = &own[span.start * stride..span.end * stride];
                out.spans.extend(self.head.run_span(rows, stride, hidden));
            }
            first += piece.ids.len();
        }
        if !out.windows.iter().chain(&out.spans).all(|x| x.is_finite()) {
            return Err(Error::damaged(format!(
                "{}: the model's vectors are not finite; its weights are too large",
                self.path.display()
            )));
        }
        progress.advance(pieces.iter().map(|piece| piece.weight).sum());
        Ok(out)
    }

    /// Compute rows of texts from rows of windows.
    fn combine(&self, windows: &[Windows], pieces: &[Piece<'_>], vectors: &[f32]) -> Vec<f32> {
        let d = self.dimension();
        let mut out = vec![0.0f32; windows.len() * d];
        let mut at = 0;
        for (row, own) in out.chunks_exact_mut(d).zip(windows) {
            let count = own.lengths.len();
            let mine = &vectors[at * d..(at + count) * d];
            if count == 1 {
                row.copy_from_slice(mine);
            } else if count > 1 {
                let mut sums = vec![0.0f64; d];
                let mut total = 0.0;
                for (piece, vector) in pieces[at..at + count].iter().zip(mine.chunks_exact(d)) {
                    let length = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
                    let weight = piece.weight as f64 / if length > 0.0 { length } else { 1.0 };
                    total += piece.weight as f64;
                    for (s, &x) in sums.iter_mut().zip(vector) {
                        *s += weight * f64::from(x);
                    }
                }
                for (x, s) in row.iter_mut().zip(&sums) {
                    *x = (s / total) as f32;
                }
                normalise(row);
            }
            at += count;
        }
        out
    }
}

/// Return a note if the processor has tiles that cannot be used.
fn refused() -> Option<String> {
    let text = "the processor has tiles (amx), which the system does not grant this process";
    (tiles() == Tiles::Refused).then(|| text.into())
}

/// Vectors of one batch: of its windows, and of the spans in them.
struct Rows {
    windows: Vec<f32>,
    spans: Vec<f32>,
}

/// Spans of bytes in texts: those of text `i` are `spans[indptr[i]..indptr[i + 1]]`.
pub struct TextSpans<'a> {
    pub indptr: &'a [u64],
    pub spans: &'a [[u32; 2]],
}

impl TextSpans<'_> {
    fn of(&self, text: usize) -> &[[u32; 2]] {
        &self.spans[self.indptr[text] as usize..self.indptr[text + 1] as usize]
    }

    /// Errors: the rows do not match the texts, or a span ends before it begins or beyond its text.
    fn check(&self, texts: &Strings<'_>) -> Result<()> {
        let is_whole =
            self.indptr.first() == Some(&0) && self.indptr.last() == Some(&(self.spans.len() as u64));
        if self.indptr.len() != texts.len() + 1 || !is_whole || !self.indptr.is_sorted() {
            return Err(Error::input(format!(
                "the rows of {} spans do not belong to {} texts",
                self.spans.len(),
                texts.len()
            )));
        }
        for text in 0..texts.len() {
            let length = texts.get(text).len();
            if let Some([from, to]) =
                self.of(text).iter().find(|[from, to]| from > to || *to as usize > length)
            {
                return Err(Error::input(format!(
                    "span {from} to {to} is not within the {length} bytes of text {text}"
                )));
            }
        }
        Ok(())
    }
}

/// The result of [`Encoder::encode`].
pub struct Encoded {
    /// A row for each text.
    pub vectors: Vec<f32>,
    /// A row for each span; none from [`Encoder::encode`].
    pub spans: Vec<f32>,
    /// Number of tokens of the texts, without prompts and special tokens.
    pub tokens: u64,
    /// Number of windows in addition to one per text.
    pub more: u64,
}
