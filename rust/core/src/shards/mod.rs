//! One ranking over several indexes, called shards: the ranking that one index of all documents would have.
//!
//! The caller first adds up statistics of the query's words over all shards ([`terms`]), so that rarity is
//! counted over all documents. Each shard then returns its best candidates with everything that a ranking reads
//! of them ([`bundle`]), and afterwards the units to which the best candidates of all shards lead ([`lookup`]).
//! The caller joins these units into a small collection in memory and ranks it with the ordinary channels
//! ([`union`]). The ranked units are printed as one context ([`print`]).

pub mod bundle;
pub mod candidates;
pub mod join;
pub mod lookup;
pub mod memory;
pub mod mentions;
pub mod print;
pub mod terms;
pub mod union;
pub mod wire;
