//! The kernels and channels of the published systems: KET-RAG, G2ConS, NodeRAG and CG-RAG, a module for each.
//!
//! The core does not know this crate. [`EXTENSIONS`] hands its channels and joins to
//! [`ketrag_core::assemble::Searcher::open`] and [`ketrag_core::assemble::Request::new`]; a program without them
//! has the channels of the core. Each channel keeps the views of an index's arrays that it needs.
//!
//! The Python declarations are in `ketrag_fast.systems.papers`.

// Modules of lower crates, under the names that they have in this crate.
use ketrag_base::{cpu, error, items, memory, parallel, progress, sparse};
use ketrag_core::{assemble, channels, embed, generation, graph, rank, search, tokens, vector};
use ketrag_text as text;

pub mod cg_rag;
pub mod g2cons;
pub mod ket_rag;
pub mod noderag;

#[cfg(test)]
mod testing;
mod transposed;

use assemble::Extensions;
use channels::Channel;
use generation::Arrays;

/// The channels and joins of the published systems.
pub const EXTENSIONS: Extensions = Extensions { open, joins: &[&g2cons::vote::Vote] };

fn open<'a>(arrays: &'a Arrays) -> Vec<Box<dyn Channel + 'a>> {
    vec![
        Box::new(ket_rag::channels::knn::Knn::new(arrays)),
        Box::new(ket_rag::channels::keyword::Keyword::new(arrays)),
        Box::new(ket_rag::channels::skeleton::Skeleton::new(arrays)),
        Box::new(g2cons::channel::Concepts::new(arrays)),
        Box::new(g2cons::core_graph::CoreGraph::new(arrays)),
        Box::new(noderag::channel::NodeRag::new(arrays)),
        Box::new(cg_rag::channel::Cited::new(arrays)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use assemble::{Request, Share};
    use channels::{Options, Value};
    use search::fill::{FillPolicy, OversizePolicy};

    fn request(shares: &[&str], join: &str, extensions: &Extensions) -> Result<(), Error> {
        let part = 1.0 / shares.len() as f64;
        let shares = shares.iter().map(|&channel| Share { channel: channel.to_owned(), part }).collect();
        let options = Options::new([("tables".to_owned(), Value::Text("own".into()))].into());
        let policy = (FillPolicy::default(), OversizePolicy::default());
        Request::new(
            "mine".into(),
            shares,
            (join, "none"),
            vec![100],
            options,
            None,
            policy,
            None,
            extensions,
        )
        .map(drop)
    }

    #[test]
    fn options_are_checked_without_an_index() {
        for (channel, option) in [
            ("keyword", "seed_keywords"),
            ("skeleton", "seed_entities"),
            ("core-graph", "seed_entities"),
            ("noderag", "node_walk"),
            ("cg-rag", "citation_direction"),
        ] {
            let told = request(&[channel], "shares", &EXTENSIONS).unwrap_err().to_string();
            assert!(
                told.contains(&format!("channel {channel}")) || told.contains(option),
                "{channel}: {told}"
            );
        }
        assert_eq!(request(&["knn"], "shares", &EXTENSIONS), Ok(()));
    }

    #[test]
    fn a_join_of_this_crate_exists_only_with_it() {
        let told = |extensions| request(&["knn", "text"], "vote", extensions).map_err(|e| e.to_string());
        assert_eq!(told(&EXTENSIONS), Ok(()));
        assert_eq!(told(&Extensions::NONE), Err("join must be shares or fuse, not \"vote\"".into()));
        let alone = request(&["knn"], "vote", &EXTENSIONS).unwrap_err().to_string();
        assert!(alone.contains("join vote takes two channels, not 1"), "{alone}");
    }

    #[test]
    fn each_channel_is_opened() {
        let empty = Arrays::default();
        let names: Vec<String> = open(&empty).iter().map(|channel| channel.name().to_owned()).collect();
        assert_eq!(names, ["knn", "keyword", "skeleton", "concepts", "core-graph", "noderag", "cg-rag"]);
    }
}
