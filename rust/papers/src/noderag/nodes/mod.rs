//! NodeRAG's search in a graph of seven node types: a short walk from the nodes nearest to the query and from
//! the nodes that it names, followed by a selection of the nodes that the walk reaches.

pub mod print;

use crate::error::{Error, Result};
use crate::noderag::spread::{Settings, Spread};
use crate::progress::Progress;
use crate::sparse::{leaves, CsrView, Mask, Scored};
use crate::text::languages::Language;
use crate::text::stopwords::StopWords;
use crate::text::strings::Strings;
use crate::text::words::Words;
use crate::vector::quantised::QuantisedView;
use crate::vector::simd::Level;
use crate::vector::{self, Filter, Vectors};
use std::collections::HashSet;

/// The type of a node, in the order of the ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Chunk,
    Unit,
    Attribute,
    Element,
    Entity,
    Title,
    Relation,
}

/// Maximum number of words of a name in a query.
const LONGEST_NAME: usize = 6;

/// The first node of each kind, in the order of [`Kind`], and the end of the last kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks([usize; 8]);

impl Blocks {
    /// Compute the blocks from the number of nodes of each kind.
    pub fn new(counts: [usize; 7]) -> Self {
        let mut starts = [0usize; 8];
        for (at, count) in counts.into_iter().enumerate() {
            starts[at + 1] = starts[at].saturating_add(count);
        }
        Self(starts)
    }

    pub fn nodes(&self) -> usize {
        self.0[7]
    }

    /// Return the number of nodes that have a vector.
    pub fn searched(&self) -> usize {
        self.0[Kind::Entity as usize]
    }

    pub fn start(&self, kind: Kind) -> usize {
        self.0[kind as usize]
    }

    /// Return the kind of a node, and its number within that kind.
    pub fn place(&self, node: u32) -> (Kind, usize) {
        use Kind::{Attribute, Chunk, Element, Entity, Relation, Title, Unit};
        let node = node as usize;
        let kinds = [Relation, Title, Entity, Element, Attribute, Unit];
        let kind = kinds.into_iter().find(|&kind| node >= self.start(kind)).unwrap_or(Chunk);
        (kind, node - self.start(kind))
    }
}

/// Options of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Number of nodes nearest to the query from which the walk starts.
    pub hits: usize,
    /// Number of units, attributes, elements and chunks that the walk adds.
    pub nodes: usize,
    pub entities: usize,
    pub relations: usize,
    pub titles: usize,
    /// Whether chunks are appended, in the order of the walk, until the budget is used.
    pub fill: bool,
    pub walk: Settings,
}

/// The graph in its searchable form.
#[derive(Debug, Clone, Copy)]
pub struct NodeIndex<'a> {
    pub blocks: Blocks,
    /// Vectors of the nodes up to the last entity.
    pub vectors: Option<Vectors<'a>>,
    pub codes: Option<&'a QuantisedView<'a>>,
    pub edges: CsrView<'a>,
    /// Parallel to the ids of `edges`.
    pub weights: &'a [f64],
    /// The words of each name, sorted by bytes, and the entities and titles with that name.
    pub names: Strings<'a>,
    pub name_nodes: CsrView<'a>,
    /// The entity of each attribute, ascending.
    pub attribute_entity: &'a [u32],
    pub title_elements: CsrView<'a>,
}

/// Buffers that are reused between queries.
#[derive(Debug, Default)]
pub struct Buffers {
    nearest: vector::Scratch,
    spread: Spread,
}

impl NodeIndex<'_> {
    /// Return the nodes to print, best first: the nearest nodes, those that the walk found, the attributes of
    /// its entities, the elements of its titles, its relations, and the chunks that `fill` adds. Scores are
    /// those of the walk. The result is empty if no node is near the query and none is named in it. With a
    /// filter over the nodes, the nearest nodes and the results are taken from those that pass; the walk uses
    /// all.
    pub fn search(
        &self,
        question: &str,
        vector: Option<&[f32]>,
        options: &Options,
        mask: Option<&Mask>,
        buffers: &mut Buffers,
        progress: &Progress,
    ) -> Result<Vec<Scored>> {
        let near = self.near(vector, options.hits, mask, &mut buffers.nearest)?;
        let named = self.named(question);
        // A node that is both near and named is listed once.
        let mut entries: Vec<(u32, f64)> =
            near.iter().map(|s| s.id).chain(named).map(|id| (id, 1.0)).collect();
        entries.sort_unstable_by_key(|entry| entry.0);
        entries.dedup();
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        progress.check()?;
        let weight = |place: usize| self.weights[place];
        buffers.spread.run(self.edges, weight, &entries, &options.walk, progress)?;
        Ok(self.retrieved(&near, &buffers.spread, options, mask))
    }

    fn near(
        &self,
        vector: Option<&[f32]>,
        hits: usize,
        mask: Option<&Mask>,
        scratch: &mut vector::Scratch,
    ) -> Result<Vec<Scored>> {
        let (Some(vector), Some(vectors)) = (vector, self.vectors) else { return Ok(Vec::new()) };
        let left = mask.map_or(Filter::All, |mask| Filter::Bits(mask.bits()));
        vector::top_k(&vectors, self.codes, vector, hits, left, Level::best(), scratch)
    }

    /// Return the entities and titles whose whole name is a run of words of the query, in the order of the
    /// query. Of nested names only the longest counts. Stop words are not removed, because stored names
    /// contain them ("House of Representatives", "Out Here on My Own"). A single stop word is not a name:
    /// otherwise an entity called "It" would be an entry point of every other query.
    pub fn named(&self, question: &str) -> Vec<u32> {
        let mut words: Vec<String> = Vec::new();
        let mut lexer = Words::new(StopWords::None);
        lexer.for_each_word(question, |word, _| words.push(word.to_owned()));
        let own = match Words::new(StopWords::Detect).language(question) {
            Language::ENGLISH => StopWords::English,
            language => StopWords::Of(language),
        };
        let (mut found, mut covered) = (Vec::new(), 0);
        for first in 0..words.len() {
            let most = (words.len() - first).min(LONGEST_NAME);
            let name = |size: &usize| {
                let run = &words[first..first + size];
                let is_stop_word =
                    *size == 1 && (StopWords::English.contains(&run[0]) || own.contains(&run[0]));
                if is_stop_word {
                    None
                } else {
                    self.names.position(&run.join(" "))
                }
            };
            let Some((size, row)) = (1..=most).rev().find_map(|size| Some((size, name(&size)?))) else {
                continue;
            };
            if first + size <= covered {
                continue;
            }
            covered = first + size;
            for &node in self.name_nodes.row(row) {
                if !found.contains(&node) {
                    found.push(node);
                }
            }
        }
        found
    }

    fn retrieved(
        &self,
        near: &[Scored],
        walked: &Spread,
        options: &Options,
        mask: Option<&Mask>,
    ) -> Vec<Scored> {
        let score = |id: u32| walked.score(id);
        let mut taken: Vec<u32> = near.iter().map(|s| s.id).collect();
        taken.sort_unstable();
        let mut left = options.nodes;
        let ranked = walked.ranked();
        let (mut entities, mut titles, mut relations) = (Vec::new(), Vec::new(), Vec::new());
        let mut list: Vec<Scored> = near.iter().map(|s| Scored { id: s.id, score: score(s.id) }).collect();
        for &node in &ranked {
            let (kind, number) = self.blocks.place(node.id);
            match kind {
                Kind::Entity if entities.len() < options.entities => entities.push(number),
                Kind::Title if titles.len() < options.titles => titles.push(number),
                _ if !leaves(mask, node.id) => {}
                Kind::Relation if relations.len() < options.relations => relations.push(node),
                Kind::Chunk | Kind::Unit | Kind::Attribute | Kind::Element
                    if left > 0 && taken.binary_search(&node.id).is_err() =>
                {
                    left -= 1;
                    list.push(node);
                }
                _ => {}
            }
        }
        let attribute = |entity: &usize| {
            let number = self.attribute_entity.binary_search(&(*entity as u32)).ok()?;
            Some((self.blocks.start(Kind::Attribute) + number) as u32)
        };
        let element = |&number: &u32| (self.blocks.start(Kind::Element) + number as usize) as u32;
        let elements = titles.iter().flat_map(|&title| self.title_elements.row(title)).map(element);
        for id in entities.iter().filter_map(attribute).chain(elements) {
            if leaves(mask, id) && !list.iter().any(|s| s.id == id) {
                list.push(Scored { id, score: score(id) });
            }
        }
        list.extend(relations);
        if options.fill {
            self.fill(&ranked, mask, &mut list);
        }
        list
    }

    /// Append the chunks that the walk reached and that are not in `list`, in the order of the walk.
    fn fill(&self, ranked: &[Scored], mask: Option<&Mask>, list: &mut Vec<Scored>) {
        let taken: HashSet<u32> = list.iter().map(|s| s.id).collect();
        let fits = |s: &&Scored| {
            self.blocks.place(s.id).0 == Kind::Chunk && leaves(mask, s.id) && !taken.contains(&s.id)
        };
        list.extend(ranked.iter().filter(fits).copied());
    }

    /// Return a damage error if the arrays do not fit together.
    pub fn check(&self) -> Result<()> {
        let (n, searched) = (self.blocks.nodes(), self.blocks.searched());
        let fits = self.edges.rows() == n
            && self.weights.len() == self.edges.nnz()
            && self.vectors.is_none_or(|v| v.len() == searched)
            && self.names.len() == self.name_nodes.rows()
            && self.name_nodes.columns == n;
        match fits {
            true => Ok(()),
            false => Err(Error::damaged(format!("all arrays of the graph must have {n} nodes"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::Csr;
    use crate::text::strings::StringsBuf;

    fn named(question: &str) -> Vec<&'static str> {
        const NAMES: [&str; 7] = [
            "bay of whales", "house of representatives", "it", "out here on my own", "south pole",
            "south pole inn", "the who",
        ];
        let strings: StringsBuf = NAMES.iter().collect();
        let rows = Csr::from_rows(&[[0u32], [1], [2], [3], [4], [5], [6]], 7).unwrap();
        let empty = Csr::from_rows(&[[0u32; 0]; 7], 7).unwrap();
        let titles = Csr::from_rows(&[[0u32; 0]; 0], 0).unwrap();
        let index = NodeIndex {
            blocks: Blocks::new([0, 0, 0, 0, 7, 0, 0]),
            vectors: None,
            codes: None,
            edges: empty.view(),
            weights: &[],
            names: strings.view(),
            name_nodes: rows.view(),
            attribute_entity: &[],
            title_elements: titles.view(),
        };
        index.check().unwrap();
        index.named(question).into_iter().map(|node| NAMES[node as usize]).collect()
    }

    #[test]
    fn names_in_a_question_keep_their_stop_words() {
        let house = ["house of representatives"];
        assert_eq!(named("When was the House of Representatives founded?"), house);
        assert_eq!(
            named("From the Bay of Whales to the South Pole Inn"),
            ["bay of whales", "south pole inn"]
        );
        // These runs would be names only without their stop words.
        assert_eq!(named("What lies south of the pole?"), [""; 0]);
    }

    #[test]
    fn a_single_stop_word_is_not_a_name_but_several_are() {
        assert_eq!(named("Who sang Out Here on My Own?"), ["out here on my own"]);
        assert_eq!(named("It is said that it was the who"), ["the who"]);
        assert_eq!(named("Is it at the South Pole?"), ["south pole"]);
    }
}
