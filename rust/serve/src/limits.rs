//! The limits of a front.

use std::path::PathBuf;
use std::time::Duration;

/// Sizes are in bytes.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Threads that answer requests at a time; those with a slow request do not count.
    pub workers: usize,
    /// Maximum number of connections, with those that were passed on.
    pub connections: usize,
    /// Maximum number of waiting requests.
    pub queue: usize,
    /// Questions that a model embeds together.
    pub batch: usize,
    /// Maximum size of kept replies.
    pub cache: usize,
    /// For the first bytes of a connection. A request that is not complete after a quarter of it is passed on.
    pub read: Duration,
    /// For the next request, and for a client that does not read its reply.
    pub idle: Duration,
    /// Lines of every reply besides its length, its type and its date.
    pub headers: Vec<u8>,
    /// Whole replies 429 with a wait of 1, 2, ... seconds.
    pub busy: Vec<Vec<u8>>,
    /// A new file for the counts; without it they are in memory.
    pub counts: Option<PathBuf>,
}
