//! The channel of NodeRAG: a short walk over a graph of seven node types, printed by type.

use super::view::Nodes;
use crate::channels::{silent, Channel, Options, Printed, Query, Room, Scratch, Section};
use crate::error::Result;
use crate::generation::{once, Arrays, Parts};
use crate::noderag::nodes::print::{print, Room as Limits};
use crate::noderag::nodes::{Buffers, Options as Search};
use crate::noderag::spread::Settings;
use crate::progress::Progress;
use crate::rank::pagerank::Walk;
use std::sync::OnceLock;

/// The channel over the graph of NodeRAG.
pub struct NodeRag<'a> {
    arrays: &'a Arrays,
    view: OnceLock<Nodes<'a>>,
}

impl<'a> NodeRag<'a> {
    pub fn new(arrays: &'a Arrays) -> Self {
        Self { arrays, view: OnceLock::new() }
    }

    fn nodes(&self, parts: &Parts<'_>) -> Result<&Nodes<'a>> {
        once(&self.view, || Nodes::new(self.arrays, parts.chunks()?.len()))
    }

    fn options(&self, options: &Options) -> Result<Search> {
        let name = self.name();
        let lazy = options.choice(name, "node_walk", &["teleport", "lazy"])? == "lazy";
        let steps = options.count(name, "node_steps")?;
        Ok(Search {
            hits: options.count(name, "node_hits")?,
            nodes: options.count(name, "cross_nodes")?,
            entities: options.count(name, "cross_entities")?,
            relations: options.count(name, "cross_relations")?,
            titles: options.count(name, "cross_titles")?,
            fill: options.choice(name, "node_fill", &["chunks", "none"])? == "chunks",
            walk: Settings {
                teleport: options.real(name, "node_teleport")?,
                steps: u32::try_from(steps).unwrap_or(u32::MAX),
                walk: if lazy { Walk::Lazy } else { Walk::Teleport },
            },
        })
    }
}

impl Channel for NodeRag<'_> {
    fn name(&self) -> &str {
        "noderag"
    }

    fn missing(&self, _parts: &Parts<'_>) -> Option<&'static str> {
        (!Nodes::in_index(self.arrays)).then_some("the graph of NodeRAG (index with --llm)")
    }

    fn is_empty(&self, parts: &Parts<'_>) -> Result<bool> {
        Ok(self.nodes(parts)?.blocks().nodes() == 0)
    }

    fn check(&self, options: &Options, _alone: bool) -> Result<()> {
        self.options(options).map(drop)
    }

    fn print(
        &self,
        query: &Query<'_, '_>,
        room: &Room<'_>,
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Printed>> {
        let nodes = self.nodes(query.parts)?;
        let (units, chunks) = (query.parts.units()?, query.parts.chunks()?);
        let vector = query.vector()?;
        let options = self.options(query.options)?;
        let vector = (!silent(vector)).then_some(vector);
        let buffers = scratch.of::<Buffers>();
        let left = query.mask.map(|mask| nodes.left(chunks, &chunks.left(mask))).transpose()?;
        let (text, left) = (query.question.text, left.as_ref());
        let mut found = nodes.index().search(text, vector, &options, left, buffers, progress)?;
        if found.is_empty() {
            return Ok(vec![Printed { no_match: true, ..Printed::default() }; room.budgets.len()]);
        }
        let blocks = nodes.blocks();
        // Chunks whose units are all printed in other parts of the context are omitted.
        let elsewhere = |unit: u32| room.without.binary_search(&unit).is_ok();
        let printed_already = |chunk: usize| chunks.units(chunk).all(elsewhere);
        found.retain(|s| {
            let (kind, number) = blocks.place(s.id);
            kind != crate::noderag::nodes::Kind::Chunk || room.without.is_empty() || !printed_already(number)
        });
        let print_within = |&budget: &u64| {
            let (policy, oversize) = (query.policy, query.oversize);
            let room = Limits { budget, most: room.units, policy, oversize };
            let units_of = |chunk: usize| chunks.units(chunk);
            let made = print(query.printers.encoding(), blocks, &nodes.texts, units, units_of, &found, room)?;
            let section = |s: &crate::noderag::nodes::print::Section| Section {
                name: s.name,
                channel: self.name().to_owned(),
                tokens: s.tokens,
                start: s.start,
                end: s.end,
            };
            Ok(Printed {
                sections: made.sections.iter().map(section).collect(),
                context: made.context,
                scores: made.scores,
                nodes: made.nodes,
                ..Printed::default()
            })
        };
        room.budgets.iter().map(print_within).collect()
    }
}
