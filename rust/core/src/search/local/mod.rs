//! Local search over a skeleton (KET-RAG, Algorithm 2; graphrag's local search): the tables of entities,
//! relations and sources for the entities nearest to a query.

pub mod graph;
mod options;
mod relations;
mod sources;

use super::fill::{fill, Count, OversizePolicy};
use super::render::{Renderer, Row, Style, Units};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::tables::push_entity;
use graph::EntityGraph;
pub use options::Options;
use relations::{grow, head, push_row, Relations};

/// One printed table: a byte range of the text, without the empty lines before it.
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
    /// The sum of the sections' tokens, at most the budget. In the reference implementation's style: the
    /// count of the text.
    pub tokens: u64,
    pub sections: Vec<Section>,
    pub entities: Vec<u32>,
    pub relations: Vec<u32>,
    /// The printed sources, and for each the index of the entity that led to it.
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
    /// Whether everything is done as in the reference implementation: rows recounted, link counts that stick
    /// to a relation during a query, sources repeated. Only for parity.
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
            return Err(Error::input("the skeleton is tied to other units"));
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
        let order = sources::order(graph, selected, units.tokens(), enough, repeat, options.mask);
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

    /// Cut a row so that it and its line end have at most `room` tokens.
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
