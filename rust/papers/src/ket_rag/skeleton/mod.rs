//! The skeleton: merges the extraction replies of single chunks into one graph of entities and relations
//! (KET-RAG, Algorithm 1).
//!
//! The skeleton is a pure function of the replies and of the units' texts. Chunks are merged in ascending
//! order of id, independent of the order in which they were extracted, so removing a document or resuming a
//! build only repeats the merge and never the extraction.

mod gather;
mod mentions;

use crate::error::{Error, Result};
use crate::ket_rag::skeleton::gather::by_owner;
use crate::ket_rag::skeleton::gather::Line;
use crate::ket_rag::tables::{push_entity, push_relation, RelationCells};
use crate::parallel::map_ranges_with;
use crate::progress::Progress;
use crate::sparse::Csr;
use crate::text::bpe::{Counter, Encoding};
use crate::text::strings::{Strings, StringsBuf};
use crate::tokens::Count;
use gather::check;
pub use gather::{ChunkUnits, Replies};
pub use mentions::Mention;

#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Maximum number of tokens of a merged description.
    pub description_tokens: usize,
    pub encoding: Encoding,
}

/// Entities and relations in order of first appearance.
#[derive(Debug, Default, PartialEq)]
pub struct Skeleton {
    pub names: StringsBuf,
    pub types: StringsBuf,
    pub descriptions: StringsBuf,
    /// Number of relations of each entity.
    pub ranks: Vec<u32>,
    pub chunks: Csr,
    pub units: Csr,
    /// Token count of the whole printed row.
    pub row_tokens: Vec<u32>,
    pub sources: Vec<u32>,
    pub targets: Vec<u32>,
    pub relation_descriptions: StringsBuf,
    pub weights: Vec<f64>,
    pub relation_ranks: Vec<u32>,
    pub relation_chunks: Csr,
    pub relation_units: Csr,
    /// Token count of the printed row, without the links and the line end.
    pub relation_row_tokens: Vec<u32>,
    /// Sorted by entity, unit and position.
    pub mentions: Vec<Mention>,
    /// Number of dropped records: entities without a name, and relations without two distinct ends.
    pub nameless: u64,
    pub endless: u64,
    pub loops: u64,
}

/// Fields of the printed rows of entities and relations.
#[derive(Debug, Clone, Copy)]
pub struct PrintedRows<'a> {
    pub names: Strings<'a>,
    pub descriptions: Strings<'a>,
    pub ranks: &'a [u32],
    pub sources: &'a [u32],
    pub targets: &'a [u32],
    pub relation_descriptions: Strings<'a>,
    pub weights: &'a [f64],
    pub relation_ranks: &'a [u32],
}

impl PrintedRows<'_> {
    /// Return the token count of each entity's whole row, and of each relation's row without the links and
    /// the line end.
    pub fn tokens(
        &self,
        encoding: Encoding,
        threads: usize,
        progress: &Progress,
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        self.check()?;
        let (names, described, told) = (self.names, self.descriptions, self.relation_descriptions);
        let entities = counts(names.len(), encoding, threads, progress, |row, e| {
            push_entity(row, e as u32, names.get(e), described.get(e), self.ranks[e]);
        })?;
        let relations = counts(told.len(), encoding, threads, progress, |row, r| {
            let cells = RelationCells {
                id: r as u32,
                source: names.get(self.sources[r] as usize),
                target: names.get(self.targets[r] as usize),
                description: told.get(r),
                weight: self.weights[r],
                rank: self.relation_ranks[r],
            };
            push_relation(row, cells);
            row.push('|');
        })?;
        Ok((entities, relations))
    }

    fn check(&self) -> Result<()> {
        let (entities, relations) = (self.names.len(), self.relation_descriptions.len());
        for (name, length, wanted) in [
            ("descriptions", self.descriptions.len(), entities),
            ("ranks", self.ranks.len(), entities),
            ("sources", self.sources.len(), relations),
            ("targets", self.targets.len(), relations),
            ("weights", self.weights.len(), relations),
            ("relation ranks", self.relation_ranks.len(), relations),
        ] {
            if length != wanted {
                return Err(Error::input(format!("there are {length} {name}, not {wanted}")));
            }
        }
        match self.sources.iter().chain(self.targets).find(|&&end| end as usize >= entities) {
            Some(end) => Err(Error::input(format!("a relation ends in entity {end} of {entities}"))),
            None => Ok(()),
        }
    }
}

/// Merge all replies.
pub fn fold(
    replies: &Replies<'_>,
    units: &ChunkUnits<'_>,
    options: Options,
    threads: usize,
    progress: &Progress,
) -> Result<Skeleton> {
    check(replies, units)?;
    let rows = replies.chunks.len() as u64;
    progress.expect(2 * rows);
    let found = gather::gather(replies, progress)?;
    let limit = (options.description_tokens, options.encoding);
    let (entities, relations) = (found.names.len(), found.pairs.len());
    progress.expect(2 * (rows + (entities + relations) as u64));
    let descriptions = join(&found.entity_lines, entities, limit, threads, progress)?;
    let relation_descriptions = join(&found.relation_lines, relations, limit, threads, progress)?;
    let mut ranks = vec![0u32; entities];
    for pair in &found.pairs {
        pair.iter().for_each(|&end| ranks[end as usize] += 1);
    }
    let relation_ranks: Vec<u32> =
        found.pairs.iter().map(|p| ranks[p[0] as usize].saturating_add(ranks[p[1] as usize])).collect();
    let tied = mentions::tie(replies.chunks, &found, units, threads, progress)?;
    let names = found.names.strings();
    let (sources, targets): (Vec<u32>, Vec<u32>) = found.pairs.iter().map(|p| (p[0], p[1])).unzip();
    // Creating a view checks the whole text, so create it once and not for each row.
    let printed = PrintedRows {
        names,
        descriptions: descriptions.view(),
        ranks: &ranks,
        sources: &sources,
        targets: &targets,
        relation_descriptions: relation_descriptions.view(),
        weights: &found.weights,
        relation_ranks: &relation_ranks,
    };
    let (row_tokens, relation_row_tokens) = printed.tokens(options.encoding, threads, progress)?;
    let chunks_of = |row: &u32| replies.chunks[*row as usize];
    let columns = units.units.len() - 1;
    Ok(Skeleton {
        names: names.iter().collect(),
        types: found.types.iter().collect(),
        ranks,
        chunks: by_owner(found.entity_rows.iter().map(|(e, r)| (*e, chunks_of(r))), entities, columns),
        units: tied.entity_units,
        row_tokens,
        sources,
        targets,
        relation_ranks,
        relation_chunks: by_owner(
            found.relation_rows.iter().map(|(e, r)| (*e, chunks_of(r))),
            relations,
            columns,
        ),
        relation_units: tied.relation_units,
        relation_row_tokens,
        mentions: tied.mentions,
        nameless: found.nameless,
        endless: found.endless,
        loops: found.loops,
        weights: found.weights,
        descriptions,
        relation_descriptions,
    })
}

/// Return the token count of the printed row of each of `rows`.
fn counts(
    rows: usize,
    encoding: Encoding,
    threads: usize,
    progress: &Progress,
    print: impl Fn(&mut String, usize) + Sync,
) -> Result<Vec<u32>> {
    let parts = map_ranges_with(
        rows,
        256,
        threads,
        progress,
        || (Counter::new(encoding), String::new()),
        |(counter, row), range| {
            Ok(range
                .map(|i| {
                    row.clear();
                    print(row, i);
                    counter.count(row) as u32
                })
                .collect::<Vec<u32>>())
        },
    )?;
    Ok(parts.concat())
}

// Merges the descriptions of an entity or relation by a fixed rule, without an LLM.

/// For each of `owners`, return its distinct lines, one per line up to `limit` tokens. Lines found in most
/// chunks come first, then byte order. If the first line exceeds the limit, it is truncated.
fn join(
    lines: &[Line<'_>],
    owners: usize,
    limit: (usize, Encoding),
    threads: usize,
    progress: &Progress,
) -> Result<StringsBuf> {
    if lines.len() > u32::MAX as usize {
        return Err(Error::input("more than 4,294,967,295 lines of descriptions in one fold"));
    }
    let places = lines.iter().enumerate().map(|(i, line)| (line.owner, i as u32));
    let own = by_owner(places, owners, lines.len());
    let parts = map_ranges_with(
        owners,
        256,
        threads,
        progress,
        || Counter::new(limit.1),
        |counter, range| {
            let mut out = StringsBuf::default();
            let mut text = String::new();
            for owner in range {
                let mut said: Vec<(&str, u32)> = own
                    .view()
                    .row(owner)
                    .iter()
                    .map(|&i| (lines[i as usize].text, lines[i as usize].row))
                    .collect();
                join_one(&mut said, limit, counter, &mut text);
                out.push(&text);
            }
            Ok(out)
        },
    )?;
    let mut all = StringsBuf::default();
    for part in parts {
        let base = all.blob.len() as u64;
        all.blob.extend_from_slice(&part.blob);
        all.offsets.extend(part.offsets[1..].iter().map(|end| base + end));
    }
    Ok(all)
}

fn join_one(
    said: &mut Vec<(&str, u32)>,
    (limit, encoding): (usize, Encoding),
    counter: &mut Counter,
    out: &mut String,
) {
    out.clear();
    said.sort_unstable();
    said.dedup();
    let mut lines: Vec<(usize, &str)> =
        said.chunk_by(|a, b| a.0 == b.0).map(|same| (same.len(), same[0].0)).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.0)); // stable sort: lines with equal counts keep byte order
                                                         // A text has at most as many tokens as bytes, so
                                                         // most lists need no counting.
    let fits = lines.iter().map(|line| line.1.len() + 1).sum::<usize>() <= limit;
    let mut used = 0;
    for (place, &(_, line)) in lines.iter().enumerate() {
        if !fits {
            used += counter.count(line) + 1;
            if used > limit {
                if place == 0 {
                    out.push_str(&line[..Count::cut(&encoding, line, limit)]);
                }
                break;
            }
        }
        if place > 0 {
            out.push('\n');
        }
        out.push_str(line);
    }
}
