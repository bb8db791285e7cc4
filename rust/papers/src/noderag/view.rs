//! View of NodeRAG's graph: nodes, edges, vectors, names and texts.

use crate::error::{Error, Result};
use crate::generation::vectors::{codes, vectors};
use crate::generation::Chunks;
use crate::generation::{damaged, Arrays};
use crate::noderag::nodes::print::Texts;
use crate::noderag::nodes::{Blocks, Kind, NodeIndex};
use crate::sparse::{Csr, CsrView, Mask};
use crate::text::strings::Strings;
use crate::vector::quantised::QuantisedView;
use crate::vector::Vectors;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Nodes with their edges, vectors, names and texts.
pub struct Nodes<'a> {
    arrays: &'a Arrays,
    /// For each element, the semantic units of its communities, or their attributes if they have no units.
    /// Computed when a filter first needs it.
    members: OnceLock<Csr>,
    blocks: Blocks,
    vectors: Option<Vectors<'a>>,
    codes: Option<QuantisedView<'a>>,
    edges: CsrView<'a>,
    weights: &'a [f64],
    names: Strings<'a>,
    name_nodes: CsrView<'a>,
    attribute_entity: &'a [u32],
    title_elements: CsrView<'a>,
    pub texts: Texts<'a>,
}

impl<'a> Nodes<'a> {
    pub fn in_index(arrays: &Arrays) -> bool {
        arrays.has("noderag_edges.edges_indptr") && arrays.has("noderag_vectors.vectors")
    }

    pub fn new(arrays: &'a Arrays, chunks: usize) -> Result<Self> {
        let rows = |name: &str| Ok::<_, Error>(arrays.shape(name)?.0);
        let strings = |name: &str| Ok::<_, Error>(rows(name)?.saturating_sub(1));
        let units = rows("noderag_graph.unit_weight")?;
        let attributes = rows("noderag_attributes.attribute_entity")?;
        let elements = strings("noderag_elements.element_offsets")?;
        let entities = rows("noderag_graph.entity_weight")?;
        let titles = strings("noderag_elements.title_offsets")?;
        let relations = rows("noderag_graph.relation_weight")?;
        let blocks = Blocks::new([chunks, units, attributes, elements, entities, titles, relations]);
        let n = blocks.nodes();
        let (weights, guard) = arrays.sparse::<f64>("noderag_edges.edge_weight")?;
        let edges = arrays.csr("noderag_edges.edges", n, n)?.beside(guard);
        let texts = |name: &str, tokens: &str, count: usize| {
            let texts = arrays.strings(name)?;
            let tokens = arrays.exactly::<u32>(&format!("noderag_edges.{tokens}_tokens"), count)?;
            match texts.len() == count {
                true => Ok((texts, tokens)),
                false => Err(Error::damaged(format!("{name} must have {count} entries"))),
            }
        };
        let names = arrays.strings("noderag_edges.name")?;
        let searched = blocks.searched();
        let codes = (searched > 0).then(|| codes(arrays, "noderag_vectors.node")).transpose()?;
        let vectors = (searched > 0)
            .then(|| vectors(arrays, "noderag_vectors.vectors", searched, codes.as_ref()))
            .transpose()?;
        let made = Self {
            arrays,
            members: OnceLock::new(),
            blocks,
            vectors,
            codes,
            edges,
            weights,
            names,
            name_nodes: arrays.csr("noderag_edges.name_nodes", names.len(), n)?,
            attribute_entity: arrays.ids("noderag_attributes.attribute_entity", attributes, entities)?.all(),
            title_elements: arrays.csr("noderag_elements.title_elements", titles, elements)?,
            texts: Texts {
                units: texts("noderag_graph.semantic_unit", "semantic_unit", units)?,
                attributes: texts("noderag_attributes.attribute", "attribute", attributes)?,
                elements: texts("noderag_elements.element", "element", elements)?,
                relations: texts("noderag_graph.node_relation", "node_relation", relations)?,
            },
        };
        made.index().check().map_err(|e| damaged("noderag_edges", e))?;
        Ok(made)
    }

    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Return the nodes that depend on a chunk which passes the filter: chunks, and nodes derived from
    /// chunks. The summary of a community depends on the chunks of its members. Entities and titles are never
    /// printed.
    pub fn left(&self, chunks: Chunks<'_>, mask: &Mask) -> Result<Mask> {
        let (arrays, blocks, n) = (self.arrays, self.blocks, chunks.len());
        let count = |kind, next| blocks.start(next) - blocks.start(kind);
        let rows = |name: &str, rows: usize| arrays.csr(name, rows, n);
        let units = rows("noderag_graph.unit_chunks", count(Kind::Unit, Kind::Attribute))?;
        let attributes = rows("noderag_attributes.attribute_chunks", count(Kind::Attribute, Kind::Element))?;
        let relations = rows("noderag_graph.relation_chunks", blocks.nodes() - blocks.start(Kind::Relation))?;
        let members = self.members()?;
        let stands = |node: u32| match blocks.place(node) {
            (Kind::Chunk, chunk) => mask.has(chunk as u32),
            (Kind::Unit, unit) => mask.any(units.row(unit)),
            (Kind::Attribute, attribute) => mask.any(attributes.row(attribute)),
            (Kind::Relation, relation) => mask.any(relations.row(relation)),
            (Kind::Entity | Kind::Title | Kind::Element, _) => false,
        };
        let start = blocks.start(Kind::Element);
        Ok(Mask::from_fn(blocks.nodes(), |node| match blocks.place(node as u32).0 {
            Kind::Element => members.view().row(node - start).iter().any(|&member| stands(member)),
            _ => stands(node as u32),
        }))
    }

    fn members(&self) -> Result<&Csr> {
        if let Some(made) = self.members.get() {
            return Ok(made);
        }
        let (arrays, blocks) = (self.arrays, self.blocks);
        let of = |name: &str| arrays.values::<u32>(name);
        let community = of("noderag_communities.community")?;
        let own = arrays.rows("noderag_elements.element_communities", community.len().max(1))?;
        let count = |kind, next| blocks.start(next) - blocks.start(kind);
        let (units, attributes) = (count(Kind::Unit, Kind::Attribute), count(Kind::Attribute, Kind::Element));
        let wrong = || Error::damaged("noderag_communities.community is not of the nodes of the graph");
        let before = community.len().checked_sub(attributes).filter(|&n| n >= units).ok_or_else(wrong)?;
        // For each community, the numbers of its nodes among all nodes.
        let by_community = |own: &[u32], kind: Kind| {
            let mut inside: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (at, &one) in own.iter().enumerate() {
                inside.entry(one).or_default().push((blocks.start(kind) + at) as u32);
            }
            inside
        };
        let said = by_community(&community[..units], Kind::Unit);
        let about = by_community(&community[before..], Kind::Attribute);
        let of = |inside: &BTreeMap<u32, Vec<u32>>, element: usize| -> Vec<u32> {
            let all = own.row(element).iter().filter_map(|one| inside.get(one)).flatten();
            let mut all: Vec<u32> = all.copied().collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let members = |element: usize| -> Vec<u32> {
            let units = of(&said, element);
            if units.is_empty() {
                of(&about, element)
            } else {
                units
            }
        };
        let elements = count(Kind::Element, Kind::Entity);
        if own.rows() != elements {
            return Err(wrong());
        }
        let rows: Vec<Vec<u32>> = (0..elements).map(members).collect();
        let made = Csr::from_rows(&rows, blocks.nodes())?;
        Ok(self.members.get_or_init(|| made))
    }

    /// Return the searchable form.
    pub fn index(&self) -> NodeIndex<'_> {
        NodeIndex {
            blocks: self.blocks,
            vectors: self.vectors,
            codes: self.codes.as_ref(),
            edges: self.edges,
            weights: self.weights,
            names: self.names,
            name_nodes: self.name_nodes,
            attribute_entity: self.attribute_entity,
            title_elements: self.title_elements,
        }
    }
}
