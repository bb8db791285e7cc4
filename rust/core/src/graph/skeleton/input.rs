//! The input of the skeleton, and its checks.

use crate::error::{Error, Result};
use crate::sparse::Csr;
use crate::text::strings::Strings;

/// The replies of some chunks, one row each, in ascending order of chunk id. Records are already cleaned. The
/// remaining steps are upper-casing, merging, and dropping relations without two ends.
#[derive(Debug, Clone, Copy)]
pub struct Replies<'a> {
    pub chunks: &'a [u32],
    /// The entity records of row `r` are `entities[r]..entities[r + 1]`. Relations are stored in the same
    /// way.
    pub entities: &'a [u64],
    pub names: Strings<'a>,
    pub types: Strings<'a>,
    pub descriptions: Strings<'a>,
    pub relations: &'a [u64],
    pub sources: Strings<'a>,
    pub targets: Strings<'a>,
    pub relation_descriptions: Strings<'a>,
    pub strengths: &'a [f64],
}

/// The units into which chunks are cut.
#[derive(Debug, Clone, Copy)]
pub struct ChunkUnits<'a> {
    /// The units of chunk `c` are `units[c]..units[c + 1]`.
    pub units: &'a [u64],
    pub texts: Strings<'a>,
    /// Start and end of each unit in code points of its document's text.
    pub spans: &'a [u32],
}

/// Check that the sizes of replies and units match.
pub(super) fn check(replies: &Replies<'_>, units: &ChunkUnits<'_>) -> Result<()> {
    let rows = replies.chunks.len();
    let chunks = units.units.len().saturating_sub(1);
    if let Some(i) = replies.chunks.windows(2).position(|w| w[1] <= w[0]) {
        return Err(Error::input(format!("the chunks of the replies do not ascend after row {i}")));
    }
    if replies.chunks.last().is_some_and(|&last| last as usize >= chunks) {
        return Err(Error::input(format!("a reply names a chunk that is not below {chunks}")));
    }
    let (entities, relations) = (replies.names.len(), replies.sources.len());
    covers("entities", replies.entities, rows, entities)?;
    covers("relations", replies.relations, rows, relations)?;
    covers("chunk_units", units.units, chunks, units.texts.len())?;
    for (name, length, wanted) in [
        ("types", replies.types.len(), entities),
        ("descriptions", replies.descriptions.len(), entities),
        ("targets", replies.targets.len(), relations),
        ("relation descriptions", replies.relation_descriptions.len(), relations),
        ("strengths", replies.strengths.len(), relations),
        ("unit spans", units.spans.len(), 2 * units.texts.len()),
    ] {
        if length != wanted {
            return Err(Error::input(format!("there are {length} {name}, not {wanted}")));
        }
    }
    let most = u32::MAX as usize / 2;
    if entities > most || relations > most {
        return Err(Error::input(format!("more than {most} records in one fold")));
    }
    Ok(())
}

/// Check row offsets: from 0 to `items`, never decreasing.
fn covers(name: &str, offsets: &[u64], rows: usize, items: usize) -> Result<()> {
    let rising = offsets.windows(2).all(|w| w[0] <= w[1]);
    let whole = offsets.first() == Some(&0) && offsets.last() == Some(&(items as u64));
    if offsets.len() != rows + 1 || !rising || !whole {
        return Err(Error::input(format!("{name}: offsets must rise from 0 to {items} over {rows} rows")));
    }
    Ok(())
}

/// Convert pairs (owner, id) to rows of ids, in the order of the pairs.
pub(super) fn by_owner(
    pairs: impl Iterator<Item = (u32, u32)> + Clone,
    owners: usize,
    columns: usize,
) -> Csr {
    let mut indptr = vec![0u64; owners + 1];
    for (owner, _) in pairs.clone() {
        indptr[owner as usize + 1] += 1;
    }
    for owner in 0..owners {
        indptr[owner + 1] += indptr[owner];
    }
    let mut next = indptr.clone();
    let mut indices = vec![0u32; indptr[owners] as usize];
    for (owner, id) in pairs {
        let slot = &mut next[owner as usize];
        indices[*slot as usize] = id;
        *slot += 1;
    }
    Csr { indptr, indices, columns }
}
