//! The skeleton in the form that local search reads: borrowed arrays, checked once.

use crate::error::{Error, Result};
use crate::ket_rag::tables::RelationCells;
use crate::sparse::{Csr, CsrView};
use crate::text::strings::Strings;

/// The arrays of a skeleton. Token counts of rows are those of the printed tables.
#[derive(Debug, Clone, Copy)]
pub struct SkeletonArrays<'a> {
    pub names: Strings<'a>,
    pub descriptions: Strings<'a>,
    pub ranks: &'a [u32],
    /// Entity -> units, ascending.
    pub units: CsrView<'a>,
    pub row_tokens: &'a [u32],
    pub sources: &'a [u32],
    pub targets: &'a [u32],
    pub relation_descriptions: Strings<'a>,
    pub weights: &'a [f64],
    pub relation_ranks: &'a [u32],
    pub relation_units: CsrView<'a>,
    pub relation_row_tokens: &'a [u32],
}

/// Checked [`SkeletonArrays`], together with the relations of each entity.
#[derive(Debug)]
pub struct EntityGraph<'a> {
    pub arrays: SkeletonArrays<'a>,
    /// Entity -> its relations, ascending.
    touching: Csr,
}

impl<'a> EntityGraph<'a> {
    pub fn new(arrays: SkeletonArrays<'a>) -> Result<Self> {
        arrays.units.require_sorted()?;
        arrays.relation_units.require_sorted()?;
        Self::stored(arrays)
    }

    /// Like `new`, for rows that were checked before they were written and are not read here.
    pub fn stored(arrays: SkeletonArrays<'a>) -> Result<Self> {
        let (entities, relations) = (arrays.names.len(), arrays.sources.len());
        for (name, length, wanted) in [
            ("entity descriptions", arrays.descriptions.len(), entities),
            ("entity ranks", arrays.ranks.len(), entities),
            ("entity unit rows", arrays.units.rows(), entities),
            ("entity token counts", arrays.row_tokens.len(), entities),
            ("targets", arrays.targets.len(), relations),
            ("relation descriptions", arrays.relation_descriptions.len(), relations),
            ("weights", arrays.weights.len(), relations),
            ("relation ranks", arrays.relation_ranks.len(), relations),
            ("relation unit rows", arrays.relation_units.rows(), relations),
            ("relation token counts", arrays.relation_row_tokens.len(), relations),
        ] {
            if length != wanted {
                return Err(Error::input(format!("skeleton: there are {length} {name}, not {wanted}")));
            }
        }
        if arrays.units.columns != arrays.relation_units.columns {
            return Err(Error::input("skeleton: entities and relations are linked to different units"));
        }
        let mut ends = Csr { indptr: vec![0], indices: Vec::with_capacity(2 * relations), columns: entities };
        for (r, (&source, &target)) in arrays.sources.iter().zip(arrays.targets).enumerate() {
            if source == target || source.max(target) as usize >= entities {
                return Err(Error::input(format!(
                    "skeleton: relation {r} joins {source} and {target} of {entities} entities"
                )));
            }
            ends.indices.extend([source, target]);
            ends.indptr.push(ends.indices.len() as u64);
        }
        Ok(Self { arrays, touching: ends.view().transpose()? })
    }

    pub fn entities(&self) -> usize {
        self.arrays.names.len()
    }

    pub fn touching(&self, entity: u32) -> &[u32] {
        let (start, end) = (entity as usize, entity as usize + 1);
        &self.touching.indices[self.touching.indptr[start] as usize..self.touching.indptr[end] as usize]
    }

    /// Return the other end of a relation of `entity`.
    pub fn other(&self, relation: u32, entity: u32) -> u32 {
        let (source, target) = self.ends(relation);
        if source == entity {
            target
        } else {
            source
        }
    }

    /// Return the source and the target of a relation.
    pub fn ends(&self, relation: u32) -> (u32, u32) {
        (self.arrays.sources[relation as usize], self.arrays.targets[relation as usize])
    }

    pub fn cells(&self, relation: u32) -> RelationCells<'a> {
        let (source, target) = self.ends(relation);
        let r = relation as usize;
        RelationCells {
            id: relation,
            source: self.arrays.names.get(source as usize),
            target: self.arrays.names.get(target as usize),
            description: self.arrays.relation_descriptions.get(r),
            weight: self.arrays.weights[r],
            rank: self.arrays.relation_ranks[r],
        }
    }
}
