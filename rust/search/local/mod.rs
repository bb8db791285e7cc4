//! Local search over a skeleton of entities and relations (10-ketrag 1.4).

pub mod rows;
