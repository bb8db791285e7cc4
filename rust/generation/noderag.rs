//! NodeRAG's graph as a question reads it.

use super::arrays::{damaged, Arrays};
use super::vectors::{codes, vectors};
use crate::error::Result;
use crate::search::nodes::print::Texts;
use crate::search::nodes::{Blocks, NodeIndex};
use crate::search::quantised::QuantisedView;
use crate::search::vectors::Vectors;
use crate::sparse::CsrView;
use crate::text::strings::Strings;

/// Nodes with their edges, vectors, names and texts.
pub struct Nodes<'a> {
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
    pub(super) fn in_index(arrays: &Arrays) -> bool {
        arrays.has("noderag_edges.edges_indptr") && arrays.has("noderag_vectors.vectors")
    }

    pub(super) fn new(arrays: &'a Arrays, chunks: usize) -> Result<Self> {
        let rows = |name: &str| Ok::<_, crate::error::Error>(arrays.shape(name)?.0);
        let strings = |name: &str| Ok::<_, crate::error::Error>(rows(name)?.saturating_sub(1));
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
                false => Err(crate::error::Error::damaged(format!("{name} are not {count}"))),
            }
        };
        let names = arrays.strings("noderag_edges.name")?;
        let searched = blocks.searched();
        let codes = (searched > 0).then(|| codes(arrays, "noderag_vectors.node")).transpose()?;
        let vectors = (searched > 0)
            .then(|| vectors(arrays, "noderag_vectors.vectors", searched, codes.as_ref()))
            .transpose()?;
        let made = Self {
            blocks,
            vectors,
            codes,
            edges,
            weights,
            names,
            name_nodes: arrays.csr("noderag_edges.name_nodes", names.len(), n)?,
            attribute_entity: arrays.ids("noderag_attributes.attribute_entity", attributes, entities)?,
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

    /// As it is searched.
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
