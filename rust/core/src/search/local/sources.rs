//! The units to which the entities of a query lead.

use super::graph::EntityGraph;
use crate::items::Items;
use crate::sparse::{leaves, Mask};
use std::cmp::Reverse;
use std::collections::HashSet;

/// Return units with the index of the entity that brings them: by entity, then by the number of that entity's
/// relations linked to the unit, then by id. Units are distinct, unless `repeat` (as in the reference
/// implementation). The list ends when the units' tokens exceed `enough`.
pub fn order(
    graph: &EntityGraph<'_>,
    selected: &[u32],
    unit_tokens: Items<'_, u32>,
    enough: u64,
    repeat: bool,
    mask: Option<&Mask>,
) -> Vec<(u32, usize)> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut tokens = 0;
    let mut tied = Vec::new();
    for (place, &entity) in selected.iter().enumerate() {
        tied.clear();
        for &relation in graph.touching(entity) {
            tied.extend_from_slice(graph.arrays.relation_units.row(relation as usize));
        }
        tied.sort_unstable();
        let relations = |unit: u32| {
            let start = tied.partition_point(|&u| u < unit);
            tied[start..].partition_point(|&u| u == unit)
        };
        let mut units: Vec<(Reverse<usize>, u32)> =
            graph.arrays.units.row(entity as usize).iter().map(|&u| (Reverse(relations(u)), u)).collect();
        units.sort_unstable();
        for (_, unit) in units.into_iter().filter(|one| leaves(mask, one.1)) {
            if tokens > enough {
                return found;
            }
            if repeat || seen.insert(unit) {
                found.push((unit, place));
                tokens += u64::from(unit_tokens[unit as usize]);
            }
        }
    }
    found
}
