//! Local search over a skeleton (KET-RAG, Algorithm 2; graphrag's local search): the tables of entities,
//! relations and sources for the entities nearest to a query.

pub mod graph;
mod relations;

use crate::error::{Error, Result};
use crate::items::Items;
use crate::ket_rag::local::graph::EntityGraph;
pub use crate::ket_rag::local::relations::Options;
use crate::ket_rag::tables::push_entity;
use crate::progress::Progress;
use crate::search::fill::{fill, Count, OversizePolicy};
use crate::search::render::{Renderer, Row, Style, Units};
use crate::sparse::{leaves, Mask};
use relations::{grow, head, push_row, Relations};
use std::cmp::Reverse;
use std::collections::HashSet;

/// A printed table: a byte range of the text, without the empty lines before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    pub name: &'static str,
    pub tokens: u64,
    pub start: usize,
    pub end: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalContext {
    pub text: String,
    /// The sum of the sections' tokens, at most the budget. In the style of the reference implementation: the
    /// token count of the text.
    pub tokens: u64,
    pub sections: Vec<Section>,
    pub entities: Vec<u32>,
    pub relations: Vec<u32>,
    /// The printed sources, and for each the index of the entity that is linked to it.
    pub sources: Vec<Row>,
    pub brought_by: Vec<usize>,
}

const ENTITIES: &str = "-----Entities-----\nid|entity|description|number of relationships\n";
const GAP: &str = "\n\n";

/// Prints the tables in one encoding; reuse it between queries.
pub struct Tables<C> {
    count: C,
    sources: Renderer<C>,
    entities: u64,
    relations: u64,
    /// Whether the tables follow the reference implementation in every detail: rows are counted again, a
    /// relation keeps its link count during a query, and sources are repeated. Only for parity.
    published: bool,
}

impl<C: Count + Clone> Tables<C> {
    pub fn new(count: C, published: bool) -> Self {
        let style = if published { Style::PublishedSources } else { Style::Sources };
        let entities = count.count(ENTITIES) as u64;
        let relations = (count.count(GAP) + count.count(head(true))) as u64;
        Self { sources: Renderer::new(count.clone(), style), entities, relations, published, count }
    }

    /// Return the tables for the `selected` entities, nearest first.
    pub fn search(
        &self,
        graph: &EntityGraph<'_>,
        units: &Units<'_>,
        selected: &[u32],
        budget: u64,
        options: Options<'_>,
        progress: &Progress,
    ) -> Result<LocalContext> {
        if let Some(&unknown) = selected.iter().find(|&&e| e as usize >= graph.entities()) {
            return Err(Error::input(format!("entity {unknown} does not exist")));
        }
        if units.len() != graph.arrays.units.columns {
            return Err(Error::input("the skeleton is linked to other units"));
        }
        let half = budget / 2;
        let mut context = LocalContext::default();
        self.print_entities(&mut context, graph, selected, half, options);
        if context.sections.is_empty() {
            return Ok(context);
        }
        let used = context.tokens;
        let how = (&self.count, options, self.published);
        let grown = grow(graph, selected, used, half, self.relations, how, progress)?;
        self.print_relations(&mut context, graph, &grown);
        let room = if options.rollover { budget - context.tokens } else { half };
        let repeat = self.published;
        let cost = |&u: &u32| units.tokens().value(u as usize).map_or(0, |&tokens| u64::from(tokens));
        let enough = room + options.without.iter().map(cost).sum::<u64>();
        let order = order(graph, selected, units.tokens(), enough, repeat, options.mask);
        let fresh = |source: &&(u32, usize)| options.without.binary_search(&source.0).is_err();
        let ids: Vec<u32> =
            order.iter().filter(fresh).take(options.most_sources).map(|source| source.0).collect();
        let printed = self.sources.render(units, &ids, room, options.policy, options.oversize)?;
        if !printed.text.is_empty() {
            if self.published {
                context.text.push_str(GAP);
            }
            let base = context.text.len();
            let gap = if self.published { 0 } else { GAP.len() };
            context.text.push_str(&printed.text);
            let moved = printed.rows.iter().map(|r| Row { start: r.start + base, end: r.end + base, ..*r });
            context.sources = moved.collect();
            let mut rest = order.iter();
            let bringer = |row: &Row| rest.find(|source| source.0 == row.unit).map_or(0, |source| source.1);
            context.brought_by = printed.rows.iter().map(bringer).collect();
            context.push_section("sources", printed.tokens, base + gap);
        }
        if self.published {
            context.tokens = self.count.count(&context.text) as u64;
        }
        Ok(context)
    }

    fn print_entities(
        &self,
        context: &mut LocalContext,
        graph: &EntityGraph<'_>,
        selected: &[u32],
        budget: u64,
        options: Options<'_>,
    ) {
        let Some(room) = budget.checked_sub(self.entities) else { return };
        let row = |entity: u32| {
            let (e, mut row) = (entity as usize, String::new());
            let arrays = &graph.arrays;
            push_entity(&mut row, entity, arrays.names.get(e), arrays.descriptions.get(e), arrays.ranks[e]);
            row
        };
        let taken = fill(selected.len(), room, options.policy, |place, _| match self.published {
            true => self.count.count(&row(selected[place])) as u64,
            false => u64::from(graph.arrays.row_tokens[selected[place] as usize]),
        });
        let mut body: String = taken.iter().map(|&(place, _)| row(selected[place])).collect();
        let mut tokens = taken.iter().map(|taken| taken.1).sum();
        context.entities = taken.iter().map(|&(place, _)| selected[place]).collect();
        if let (true, Some(&first)) = (taken.is_empty(), selected.first()) {
            let cut = self.cut(&row(first), room);
            if options.oversize == OversizePolicy::Drop || cut.is_none() {
                return;
            }
            (body, tokens) = cut.unwrap_or_default();
            context.entities.push(first);
        }
        if selected.is_empty() {
            return;
        }
        context.text = [ENTITIES, &body].concat();
        context.push_section("entities", self.entities + tokens, 0);
    }

    /// Truncate a row so that it and its line end have at most `room` tokens.
    fn cut(&self, row: &str, room: u64) -> Option<(String, u64)> {
        let most = room.checked_sub(1)?;
        let kept = &row[..self.count.cut(row.trim_end_matches('\n'), most as usize)];
        let tokens = self.count.count(kept) as u64 + 1;
        (!kept.is_empty() && tokens <= room).then(|| (format!("{kept}\n"), tokens))
    }

    fn print_relations(&self, context: &mut LocalContext, graph: &EntityGraph<'_>, grown: &Relations) {
        context.relations = grown.rows.iter().map(|row| row.relation).collect();
        if grown.tokens == 0 {
            // The reference implementation prints the empty lines even if the table is missing.
            context.text.push_str(if self.published { GAP } else { "" });
            return;
        }
        context.text.push_str(GAP);
        let start = context.text.len();
        context.text.push_str(head(grown.column));
        grown.rows.iter().for_each(|row| push_row(&mut context.text, graph, row, grown.column));
        context.push_section("relationships", grown.tokens, start);
    }
}

impl LocalContext {
    fn push_section(&mut self, name: &'static str, tokens: u64, start: usize) {
        self.tokens += tokens;
        self.sections.push(Section { name, tokens, start, end: self.text.len() });
    }
}

// The units that are linked to the entities of a query.

/// Return units with the index of the entity that is linked to them: ordered by entity, then by the number of
/// that entity's relations linked to the unit, then by id. Units are distinct, unless `repeat` is set, as in
/// the reference implementation. The list ends when the units' tokens exceed `enough`.
fn order(
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

#[cfg(test)]
mod tests {
    use super::graph::SkeletonArrays;
    use super::*;
    use crate::search::fill::FillPolicy;
    use crate::sparse::Csr;
    use crate::text::bpe::Encoding;
    use crate::text::strings::StringsBuf;

    /// Search a skeleton of relations (source, target, unit). The rank of a relation is the sum of the
    /// degrees of its ends.
    fn search(
        relations: &[(u32, u32, u32)],
        selected: &[u32],
        budget: u64,
        options: Options<'_>,
    ) -> Result<LocalContext> {
        let entities = relations.iter().map(|r| r.0.max(r.1) + 1).max().unwrap_or(0);
        let count = relations.iter().map(|r| r.2 as usize + 1).max().unwrap_or(0);
        let degree = |e: u32| relations.iter().filter(|r| r.0 == e || r.1 == e).count() as u32;
        let own = |e: u32| {
            let mut units: Vec<u32> =
                relations.iter().filter(|r| r.0 == e || r.1 == e).map(|r| r.2).collect();
            units.sort_unstable();
            units.dedup();
            units
        };
        let names: StringsBuf = (0..entities).map(|e| format!("E{e}")).collect();
        let texts: StringsBuf = (0..count).map(|u| format!("unit {u}")).collect();
        let descriptions: StringsBuf = (0..entities).map(|_| String::new()).collect();
        let relation_descriptions: StringsBuf = relations.iter().map(|_| String::new()).collect();
        let column = |of: fn(&(u32, u32, u32)) -> u32| relations.iter().map(of).collect::<Vec<_>>();
        let (sources, targets) = (column(|r| r.0), column(|r| r.1));
        let ranks: Vec<u32> = (0..entities).map(degree).collect();
        let relation_ranks: Vec<u32> = relations.iter().map(|r| degree(r.0) + degree(r.1)).collect();
        let units = Csr::from_rows(&(0..entities).map(own).collect::<Vec<_>>(), count)?;
        let rows: Vec<Vec<u32>> = relations.iter().map(|r| vec![r.2]).collect();
        let relation_units = Csr::from_rows(&rows, count)?;
        let (row_tokens, unit_tokens) = (vec![6; entities as usize], vec![3u32; count]);
        let (weights, relation_row_tokens) = (vec![1.0; relations.len()], vec![9; relations.len()]);
        let graph = EntityGraph::new(SkeletonArrays {
            names: names.view(),
            descriptions: descriptions.view(),
            ranks: &ranks,
            units: units.view(),
            row_tokens: &row_tokens,
            sources: &sources,
            targets: &targets,
            relation_descriptions: relation_descriptions.view(),
            weights: &weights,
            relation_ranks: &relation_ranks,
            relation_units: relation_units.view(),
            relation_row_tokens: &relation_row_tokens,
        })?;
        let units = Units::new(texts.view(), None, &unit_tokens)?;
        Tables::new(Encoding::Cl100k, false).search(
            &graph,
            &units,
            selected,
            budget,
            options,
            &Progress::none(),
        )
    }

    #[test]
    fn relations_inside_come_first_then_by_links_and_rank_up_to_the_cap() {
        // 0 and 31 are selected. 30 other entities are linked to 0, and one of them also to 31.
        let mut relations: Vec<(u32, u32, u32)> = (1..31).map(|e| (0, e, 0)).collect();
        relations.extend([(31, 30, 0), (4, 32, 0), (0, 31, 0)]);
        let found = search(&relations, &[0, 31], 100_000, Options::default()).unwrap();
        // The relation between the two comes first, then the two of the entity linked to both, then the
        // highest rank.
        assert_eq!(found.relations[..4], [32, 29, 30, 3]);
        assert_eq!(found.relations.len(), 1 + 2 * 10);
        let fewer = Options { relations_per_entity: 2, ..Options::default() };
        assert_eq!(search(&relations, &[0, 31], 100_000, fewer).unwrap().relations.len(), 1 + 2 * 2);
    }

    #[test]
    fn a_unit_of_two_entities_is_printed_once() {
        let found = search(&[(0, 1, 0), (0, 2, 1)], &[0, 1, 2], 100_000, Options::default()).unwrap();
        let mut units: Vec<u32> = found.sources.iter().map(|row| row.unit).collect();
        units.sort_unstable();
        assert_eq!(units, [0, 1]);
        assert_eq!(found.text.matches("unit 0").count(), 1);
    }

    #[test]
    fn no_budget_is_exceeded_and_the_sections_are_the_text() {
        let relations: Vec<(u32, u32, u32)> = (0..9).map(|e| (e, (e + 2) % 9, e % 4)).collect();
        for budget in 0..250 {
            for policy in [FillPolicy::FirstOverflowStops, FillPolicy::SkipAndContinue] {
                let options = Options { policy, ..Options::default() };
                let found = search(&relations, &[3, 0, 7], budget, options).unwrap();
                assert!(found.tokens <= budget, "{budget}");
                assert_eq!(found.tokens, found.sections.iter().map(|s| s.tokens).sum::<u64>());
                for section in &found.sections {
                    let part = &found.text[section.start..section.end];
                    assert!(part.to_lowercase().starts_with(&format!("-----{}-----\n", section.name)));
                    assert!(part.ends_with('\n'));
                }
            }
        }
        let nothing = search(&relations, &[], 100, Options::default()).unwrap();
        assert_eq!(nothing.text, "");
        let error = search(&relations, &[9], 100, Options::default()).unwrap_err();
        assert!(error.to_string().contains("entity 9 does not exist"));
    }
}
