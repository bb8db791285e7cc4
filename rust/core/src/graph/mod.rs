//! Graph builders, one file each: nearest neighbours, clusters and the links of the walk. Also functions for
//! drawing graphs: layout, communities, neighbourhoods.

pub mod communities;
pub mod cosine_knn;
pub mod kmeans;
pub mod layout;
pub mod links;
pub mod links_delta;
pub mod links_earlier;
mod links_pass;
pub mod links_runs;
mod links_search;
mod links_things;
pub mod links_update;
mod links_words;
pub mod neighbourhood;
mod spill;
pub mod transpose;
pub mod weighted;
