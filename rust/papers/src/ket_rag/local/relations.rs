//! The table of relations, which grows with each entity.

use crate::error::Result;
use crate::ket_rag::local::graph::EntityGraph;
use crate::ket_rag::tables::push_relation;
use crate::progress::Progress;
use crate::search::fill::{Count, FillPolicy, OversizePolicy};
use crate::sparse::Mask;
use std::cmp::Reverse;

/// A row and the number of links that it prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelationRow {
    pub relation: u32,
    pub links: Option<u32>,
}

/// The table at its current size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relations {
    pub rows: Vec<RelationRow>,
    /// Tokens of the header and the rows; 0 if nothing is printed.
    pub tokens: u64,
    /// The reference implementation omits the column of links in some cases.
    pub column: bool,
}

/// State shared by the prefixes of one query.
struct Growing<'g, 'a, C> {
    graph: &'g EntityGraph<'a>,
    count: &'g C,
    published: bool,
    /// Maximum number of outside relations of each entity of the prefix.
    most: usize,
    budget: u64,
    header: u64,
    mask: Option<&'g Mask>,
    /// For each entity: whether it belongs to the prefix.
    member: Vec<bool>,
    /// For each outside entity: the number of entities of the prefix to which it is linked.
    links: Vec<u32>,
    inside: Vec<u32>,
    outside: Vec<u32>,
    /// For the style of the reference implementation: the number of links last assigned to a relation.
    sticky: Vec<Option<u32>>,
}

/// Return the largest prefix of `selected` whose table fits into `budget` in addition to the `used` tokens of
/// the entities.
pub fn grow<C: Count>(
    graph: &EntityGraph<'_>,
    selected: &[u32],
    used: u64,
    budget: u64,
    header: u64,
    (count, options, published): (&C, Options, bool),
    progress: &Progress,
) -> Result<Relations> {
    let sticky = if published { graph.arrays.sources.len() } else { 0 };
    let mut growing = Growing {
        graph,
        count,
        published,
        most: options.relations_per_entity,
        budget,
        header,
        mask: options.mask,
        member: vec![false; graph.entities()],
        links: vec![0; graph.entities()],
        inside: Vec::new(),
        outside: Vec::new(),
        sticky: vec![None; sticky],
    };
    let mut kept = Relations::default();
    for (place, &entity) in selected.iter().enumerate() {
        progress.check()?;
        growing.add(entity);
        let grown = growing.table(place + 1);
        if used + grown.tokens > budget {
            break;
        }
        kept = grown;
    }
    Ok(kept)
}

impl<C: Count> Growing<'_, '_, C> {
    /// Add an entity. Its relations to other entities of the prefix become inside relations.
    fn add(&mut self, entity: u32) {
        self.member[entity as usize] = true;
        let (member, graph) = (&self.member, self.graph);
        self.outside.retain(|&r| {
            let (source, target) = graph.ends(r);
            !(member[source as usize] && member[target as usize])
        });
        let stands = |relation: u32| {
            self.mask.is_none_or(|mask| mask.any(graph.arrays.relation_units.row(relation as usize)))
        };
        for &relation in graph.touching(entity).iter().filter(|&&relation| stands(relation)) {
            let other = graph.other(relation, entity) as usize;
            if self.member[other] {
                self.inside.push(relation);
            } else {
                self.links[other] += 1;
                self.outside.push(relation);
            }
        }
        let rank = |r: &u32| (Reverse(graph.arrays.relation_ranks[*r as usize]), *r);
        self.inside.sort_unstable_by_key(rank);
    }

    /// Return the end that is outside the prefix.
    fn end_outside(&self, relation: u32) -> u32 {
        let (source, target) = self.graph.ends(relation);
        if self.member[source as usize] {
            target
        } else {
            source
        }
    }

    fn table(&mut self, prefix: usize) -> Relations {
        let many = self.outside.len() > 1;
        if self.published && many {
            for &relation in &self.outside {
                self.sticky[relation as usize] = Some(self.links[self.end_outside(relation) as usize]);
            }
        }
        let order = |r: &u32| {
            let end = self.end_outside(*r);
            let rank = self.graph.arrays.relation_ranks[*r as usize];
            (Reverse(self.links[end as usize]), Reverse(rank), self.graph.ends(*r).1 != end, *r)
        };
        let most = prefix.saturating_mul(self.most);
        let mut best = self.outside.clone();
        if most < best.len() {
            best.select_nth_unstable_by_key(most, order);
            best.truncate(most);
        }
        best.sort_unstable_by_key(order);
        let links = |r: u32, outside: bool| match self.published {
            true => self.sticky[r as usize],
            false => outside.then(|| self.links[self.end_outside(r) as usize]),
        };
        let inside = self.inside.iter().map(|&r| (r, false));
        let all: Vec<RelationRow> = inside
            .chain(best.into_iter().map(|r| (r, true)))
            .map(|(relation, outside)| RelationRow { relation, links: links(relation, outside) })
            .collect();
        self.filled(all)
    }

    fn filled(&self, mut rows: Vec<RelationRow>) -> Relations {
        let column = !self.published || rows.first().is_some_and(|row| row.links.is_some());
        let header = if self.published { self.count.count(head(column)) as u64 } else { self.header };
        let mut tokens = header;
        let mut text = String::new();
        let fitting = rows.iter().take_while(|row| {
            let cost = if self.published {
                text.clear();
                push_row(&mut text, self.graph, row, column);
                self.count.count(&text) as u64
            } else {
                row_tokens(self.graph, row)
            };
            let fits = tokens + cost <= self.budget;
            tokens += if fits { cost } else { 0 };
            fits
        });
        let fitting = fitting.count();
        rows.truncate(fitting);
        if self.published {
            // The reference implementation counts the printed table as one text, even if it has only a
            // header.
            let mut whole = head(column).to_owned();
            rows.iter().for_each(|row| push_row(&mut whole, self.graph, row, column));
            tokens = self.count.count(&whole) as u64;
        } else if rows.is_empty() {
            tokens = 0;
        }
        Relations { rows, tokens, column }
    }
}

/// Return the stored token count of the row plus the counts of its links and its line end.
fn row_tokens(graph: &EntityGraph<'_>, row: &RelationRow) -> u64 {
    // Both encodings split numbers into groups of three digits.
    let links = row.links.map_or(0, |links| u64::from(links.checked_ilog10().unwrap_or(0) / 3 + 1));
    u64::from(graph.arrays.relation_row_tokens[row.relation as usize]) + links + 1
}

/// Return the title and the names of the columns.
pub fn head(column: bool) -> &'static str {
    match column {
        true => "-----Relationships-----\nid|source|target|description|weight|rank|links\n",
        false => "-----Relationships-----\nid|source|target|description|weight|rank\n",
    }
}

/// Append one row with its line end.
pub fn push_row(out: &mut String, graph: &EntityGraph<'_>, row: &RelationRow, column: bool) {
    push_relation(out, graph.cells(row.relation));
    if column {
        out.push('|');
        if let Some(links) = row.links {
            out.push_str(&links.to_string());
        }
    }
    out.push('\n');
}

// Options of the tables of local search.

/// Options of the tables.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Maximum number of relations to outside entities, per entity of the prefix.
    pub relations_per_entity: usize,
    /// Maximum number of sources.
    pub most_sources: usize,
    /// Whether unused tokens of the entity and relation tables go to the sources.
    pub rollover: bool,
    /// Units that may not be sources, strictly ascending.
    pub without: &'a [u32],
    /// If set, only these units may be sources, and only relations with a source among them are printed.
    pub mask: Option<&'a Mask>,
    pub policy: FillPolicy,
    pub oversize: OversizePolicy,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            relations_per_entity: 10,
            most_sources: usize::MAX,
            rollover: false,
            without: &[],
            mask: None,
            policy: FillPolicy::default(),
            oversize: OversizePolicy::default(),
        }
    }
}
