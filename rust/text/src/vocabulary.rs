//! The keyword vocabulary of a corpus, and the words of each unit, chunk and sentence.

use super::corpus::{check_documents, Corpus};
use super::languages::Language;
use super::stopwords::StopWords;
use super::strings::{Strings, StringsBuf};
use super::word_table::WordTable;
use super::words::Words;
use crate::error::{Error, Result};
use crate::parallel::{map_ranges, map_ranges_with, threads as thread_count};
use crate::progress::Progress;
use crate::sparse::Csr;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Word `w` is the `w`-th in the order of UTF-8 bytes. The ids of every row ascend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    pub words: StringsBuf,
    /// Unit -> its distinct words, those of the title included.
    pub unit_words: Csr,
    /// Number of occurrences of each word, parallel to `unit_words.indices`.
    pub unit_counts: Vec<u32>,
    /// Chunk -> its distinct words; `None` if each chunk is a unit.
    pub chunk_words: Option<Csr>,
    /// Sentence -> its distinct words. A title sentence has the words of the title.
    pub sent_words: Csr,
    /// Language of each chunk; empty if all are English, or if words are not stemmed.
    pub chunk_language: Vec<Language>,
}

impl Vocabulary {
    pub fn chunk_words(&self) -> &Csr {
        self.chunk_words.as_ref().unwrap_or(&self.unit_words)
    }
}

/// Concatenated rows, with the ids of one thread.
#[derive(Debug, Default)]
struct Rows {
    ids: Vec<u32>,
    ends: Vec<u32>,
}

impl Rows {
    fn end_row(&mut self) -> Result<()> {
        let end = u32::try_from(self.ids.len()).map_err(|_| Error::input("64 chunks have too many words"))?;
        self.ends.push(end);
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Part {
    slot: usize,
    units: Rows,
    counts: Vec<u32>,
    chunks: Rows,
    sentences: Rows,
    languages: Vec<Language>,
}

/// Working state of one thread.
struct Worker {
    slot: usize,
    words: Words,
    title: Vec<u32>,
    /// Document of the title that was read last, and the language in which it was read.
    title_of: Option<(u32, Language)>,
    /// Numbers of the rows begun last; marks refer to them.
    unit: u32,
    chunk: u32,
    sentence: u32,
}

const GRAIN: usize = 64;

/// Tokenise every chunk once. A token belongs to the unit and the sentence that contain its first character.
/// Progress is counted in chunks, twice (words, then rows).
pub fn build_vocabulary(
    titles: Strings<'_>,
    texts: Strings<'_>,
    corpus: &Corpus,
    stop: StopWords,
    threads: usize,
    progress: &Progress,
) -> Result<Vocabulary> {
    check_documents(titles, texts)?;
    let unit_of = ranges(&corpus.unit_chunk, corpus.chunks(), "unit_chunk")?;
    let sentence_of = ranges(&corpus.sent_chunk, corpus.chunks(), "sent_chunk")?;
    check_spans(texts, corpus, &unit_of)?;
    let one_level = corpus.one_level();
    progress.expect(corpus.chunks() as u64 + corpus.chunks().div_ceil(GRAIN) as u64);
    let workers = thread_count(threads);
    let pool: Vec<Mutex<WordTable>> = (0..workers).map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    let parts = map_ranges_with(
        corpus.chunks(),
        GRAIN,
        workers,
        progress,
        || Worker {
            slot: next.fetch_add(1, Ordering::Relaxed),
            words: Words::new(stop),
            title: Vec::new(),
            title_of: None,
            unit: 0,
            chunk: 0,
            sentence: 0,
        },
        |worker, range| {
            let mut interner = lock(&pool[worker.slot]);
            let mut part = Part { slot: worker.slot, ..Part::default() };
            for chunk in range {
                progress.check()?;
                let doc = corpus.chunk_doc[chunk];
                let text = texts.get(doc as usize);
                let [start, end] = corpus.chunk_span[chunk];
                let language = worker.words.language(&text[start as usize..end as usize]);
                part.languages.push(language);
                if worker.title_of != Some((doc, language)) {
                    worker.title.clear();
                    let title = &mut worker.title;
                    worker.words.for_each_word_in(language, titles.get(doc as usize), |word, _| {
                        title.push(interner.intern(word));
                    });
                    worker.title_of = Some((doc, language));
                }
                let rows = (unit_of[chunk].clone(), sentence_of[chunk].clone());
                add_chunk(&mut part, worker, &mut interner, corpus, chunk, rows, text, one_level)?;
            }
            Ok(part)
        },
    )?;
    let pool: Vec<WordTable> =
        pool.into_iter().map(|m| m.into_inner().unwrap_or_else(|e| e.into_inner())).collect();
    let (words, renumbered) = merge(&pool, threads, progress)?;
    drop(pool);
    let mut languages: Vec<Language> = parts.iter().flat_map(|part| part.languages.iter().copied()).collect();
    if stop == StopWords::None || languages.iter().all(|&language| language == Language::ENGLISH) {
        languages.clear();
    }
    let found = finish(words, &renumbered, parts, one_level, threads, progress)?;
    Ok(Vocabulary { chunk_language: languages, ..found })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Return the row range of each chunk, from the ascending chunk of each row.
fn ranges(chunk_of: &[u32], chunks: usize, name: &str) -> Result<Vec<Range<usize>>> {
    if chunk_of.windows(2).any(|w| w[1] < w[0]) || chunk_of.last().is_some_and(|&c| c as usize >= chunks) {
        return Err(Error::input(format!(
            "{name} must ascend and stay below the number of chunks, {chunks}"
        )));
    }
    let mut at = 0;
    Ok((0..chunks)
        .map(|chunk| {
            let start = at;
            while chunk_of.get(at).is_some_and(|&c| c as usize == chunk) {
                at += 1;
            }
            start..at
        })
        .collect())
}

/// A corpus may come from any caller, so check all spans before they are read.
fn check_spans(texts: Strings<'_>, corpus: &Corpus, unit_of: &[Range<usize>]) -> Result<()> {
    let same = |a: usize, b: usize| {
        if a == b {
            Ok(())
        } else {
            Err(Error::input("the arrays of the corpus differ in length"))
        }
    };
    same(corpus.chunk_span.len(), corpus.chunks())?;
    same(corpus.unit_span.len(), corpus.units())?;
    same(corpus.sent_span.len(), corpus.sentences())?;
    same(corpus.sent_title.len(), corpus.sentences())?;
    for (chunk, &doc) in corpus.chunk_doc.iter().enumerate() {
        if doc as usize >= texts.len() {
            return Err(Error::input(format!("chunk {chunk} names document {doc} of {}", texts.len())));
        }
        let [start, end] = corpus.chunk_span[chunk];
        if texts.get(doc as usize).get(start as usize..end as usize).is_none() {
            return Err(Error::input(format!(
                "chunk {chunk} spans {start}..{end}, which is outside document {doc}"
            )));
        }
        if unit_of[chunk].is_empty() {
            return Err(Error::input(format!("chunk {chunk} has no unit")));
        }
    }
    Ok(())
}

/// Give title sentences, which come first, the words of the title. Returns the index of the first other
/// sentence.
fn add_title_sentences(
    part: &mut Part,
    interner: &mut WordTable,
    corpus: &Corpus,
    sentences: Range<usize>,
    title: &[u32],
    sentence_mark: &mut u32,
) -> Result<usize> {
    for sentence in sentences.clone() {
        if corpus.sent_title[sentence] == 0 {
            return Ok(sentence);
        }
        *sentence_mark += 1;
        for &id in title {
            let mark = &mut interner.marks[id as usize];
            if mark.sentence != *sentence_mark {
                mark.sentence = *sentence_mark;
                part.sentences.ids.push(id);
            }
        }
        part.sentences.end_row()?;
    }
    Ok(sentences.end)
}

#[allow(clippy::too_many_arguments)] // one call; a struct would only rename the arguments
fn add_chunk(
    part: &mut Part,
    worker: &mut Worker,
    interner: &mut WordTable,
    corpus: &Corpus,
    chunk: usize,
    (units, mut sentences): (Range<usize>, Range<usize>),
    text: &str,
    one_level: bool,
) -> Result<()> {
    let Worker { words, title, unit: unit_mark, chunk: chunk_mark, sentence: sentence_mark, .. } = worker;
    *chunk_mark += 1;
    let chunk_mark = *chunk_mark;
    sentences.start = add_title_sentences(part, interner, corpus, sentences.clone(), title, sentence_mark)?;
    let add = |part: &mut Part, interner: &mut WordTable, id: u32, unit_mark: u32| {
        let mark = &mut interner.marks[id as usize];
        if mark.unit == unit_mark {
            part.counts[mark.place as usize] += 1;
        } else {
            (mark.unit, mark.place) = (unit_mark, part.units.ids.len() as u32);
            part.units.ids.push(id);
            part.counts.push(1);
        }
        if !one_level && mark.chunk != chunk_mark {
            mark.chunk = chunk_mark;
            part.chunks.ids.push(id);
        }
    };
    let mut unit = units.start;
    *unit_mark += 1;
    title.iter().for_each(|&id| add(part, interner, id, *unit_mark));
    let mut sentence = sentences.start;
    *sentence_mark += 1;
    let [start, end] = corpus.chunk_span[chunk];
    let mut failure = None;
    let language = part.languages.last().copied().unwrap_or_default();
    words.for_each_word_in(language, &text[start as usize..end as usize], |word, at| {
        let at = (start as usize + at) as u32;
        while unit + 1 < units.end && corpus.unit_span[unit + 1][0] <= at {
            failure = failure.take().or(part.units.end_row().err());
            unit += 1;
            *unit_mark += 1;
            title.iter().for_each(|&id| add(part, interner, id, *unit_mark));
        }
        while sentence + 1 < sentences.end && corpus.sent_span[sentence + 1][0] <= at {
            failure = failure.take().or(part.sentences.end_row().err());
            sentence += 1;
            *sentence_mark += 1;
        }
        let id = interner.intern(word);
        add(part, interner, id, *unit_mark);
        let mark = &mut interner.marks[id as usize];
        if sentence < sentences.end && mark.sentence != *sentence_mark {
            mark.sentence = *sentence_mark;
            part.sentences.ids.push(id);
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    // Units and sentences after the last word have only the words of the title.
    part.units.end_row()?;
    for _ in unit + 1..units.end {
        *unit_mark += 1;
        title.iter().for_each(|&id| add(part, interner, id, *unit_mark));
        part.units.end_row()?;
    }
    for _ in sentence..sentences.end {
        part.sentences.end_row()?;
    }
    if !one_level {
        part.chunks.end_row()?;
    }
    Ok(())
}

/// Return all words in order, and for each interner the new number of each of its words.
fn merge(pool: &[WordTable], threads: usize, progress: &Progress) -> Result<(StringsBuf, Vec<Vec<u32>>)> {
    // Not counted as progress, because the total is not known in advance.
    let silent = Progress::none();
    let sorted = map_ranges(pool.len(), 1, threads, &silent, |r| Ok(pool[r.start].sorted()))?;
    let mut renumbered: Vec<Vec<u32>> = pool.iter().map(|p| vec![0; p.len()]).collect();
    let mut words = StringsBuf::default();
    words.blob.reserve(pool.iter().map(WordTable::bytes).max().unwrap_or(0));
    // `Reverse` on (word, interner, position) pops the smallest word first.
    let head = |t: usize, k: usize| sorted[t].get(k).map(|&id| std::cmp::Reverse((pool[t].get(id), t, k)));
    let mut heads: BinaryHeap<_> = (0..pool.len()).filter_map(|t| head(t, 0)).collect();
    let mut seen = 0usize;
    while let Some(std::cmp::Reverse((word, t, k))) = heads.pop() {
        if seen.is_multiple_of(4096) {
            progress.check()?;
        }
        seen += 1;
        let last = words.offsets.len() - 1;
        let known = last > 0 && &words.blob[words.offsets[last - 1] as usize..] == word;
        if !known {
            words.blob.extend_from_slice(word);
            words.offsets.push(words.blob.len() as u64);
        }
        let id = u32::try_from(words.offsets.len() - 2)
            .map_err(|_| Error::input("more than 4,294,967,295 distinct words"))?;
        renumbered[t][sorted[t][k] as usize] = id;
        heads.extend(head(t, k + 1));
    }
    Ok((words, renumbered))
}

/// Concatenate the rows of all parts with the final ids, sorted.
fn finish(
    words: StringsBuf,
    renumbered: &[Vec<u32>],
    parts: Vec<Part>,
    one_level: bool,
    threads: usize,
    progress: &Progress,
) -> Result<Vocabulary> {
    let columns = words.offsets.len() - 1;
    let mut unit_words = layout(&parts, columns, |p| &p.units);
    let mut chunk_words = layout(&parts, columns, |p| &p.chunks);
    let mut sent_words = layout(&parts, columns, |p| &p.sentences);
    let mut unit_counts = vec![0u32; unit_words.indices.len()];
    {
        let units = split(&mut unit_words.indices, &parts, |p| p.units.ids.len());
        let counts = split(&mut unit_counts, &parts, |p| p.units.ids.len());
        let chunks = split(&mut chunk_words.indices, &parts, |p| p.chunks.ids.len());
        let sentences = split(&mut sent_words.indices, &parts, |p| p.sentences.ids.len());
        let work: Vec<_> = parts
            .into_iter()
            .zip(units.into_iter().zip(counts))
            .zip(chunks.into_iter().zip(sentences))
            .map(|((part, (u, c)), (k, s))| Mutex::new(Some((part, u, c, k, s))))
            .collect();
        map_ranges_with(work.len(), 1, threads, progress, Vec::new, |pairs: &mut Vec<u64>, range| {
            let Some((part, units, counts, chunks, sentences)) = lock(&work[range.start]).take() else {
                return Ok(());
            };
            let ids = &renumbered[part.slot];
            put(&part.chunks, ids, chunks);
            put(&part.sentences, ids, sentences);
            let mut start = 0;
            for &end in &part.units.ends {
                let row = start..end as usize;
                pairs.clear();
                // The id is in the high half and the count in the low half, so sorting one number sorts both.
                let both = part.units.ids[row.clone()].iter().zip(&part.counts[row.clone()]);
                pairs.extend(both.map(|(&id, &count)| u64::from(ids[id as usize]) << 32 | u64::from(count)));
                pairs.sort_unstable();
                for (k, &pair) in row.zip(pairs.iter()) {
                    (units[k], counts[k]) = ((pair >> 32) as u32, pair as u32);
                }
                start = end as usize;
            }
            Ok(())
        })?;
    }
    let chunk_words = (!one_level).then_some(chunk_words);
    Ok(Vocabulary { words, unit_words, unit_counts, chunk_words, sent_words, chunk_language: Vec::new() })
}

fn layout(parts: &[Part], columns: usize, rows: impl Fn(&Part) -> &Rows) -> Csr {
    let mut indptr = vec![0u64];
    let mut base = 0u64;
    for part in parts {
        let rows = rows(part);
        indptr.extend(rows.ends.iter().map(|&end| base + u64::from(end)));
        base += rows.ids.len() as u64;
    }
    Csr { indptr, indices: vec![0; base as usize], columns }
}

fn split<'a>(mut all: &'a mut [u32], parts: &[Part], length: impl Fn(&Part) -> usize) -> Vec<&'a mut [u32]> {
    parts
        .iter()
        .map(|part| {
            let (own, rest) = std::mem::take(&mut all).split_at_mut(length(part));
            all = rest;
            own
        })
        .collect()
}

fn put(rows: &Rows, ids: &[u32], out: &mut [u32]) {
    for (slot, &id) in out.iter_mut().zip(&rows.ids) {
        *slot = ids[id as usize];
    }
    let mut start = 0;
    for &end in &rows.ends {
        out[start..end as usize].sort_unstable();
        start = end as usize;
    }
}
