//! The limits of a front, and the replies that it sends by itself.

use crate::reply::Reply;
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};
use std::path::PathBuf;
use std::time::Duration;

/// Sizes are in bytes.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Threads that answer requests at a time; those with a slow request do not count.
    pub workers: usize,
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of waiting requests.
    pub queue: usize,
    /// Questions that a model embeds together.
    pub batch: usize,
    /// Maximum size of cached replies.
    pub cache: usize,
    /// For the next head of a connection, and again for a body.
    pub read: Duration,
    /// For a client that does not read its reply.
    pub idle: Duration,
    /// Headers of every reply with a context.
    pub headers: HeaderMap,
    pub errors: Errors,
    /// A new file for the counts; without it they are in memory.
    pub counts: Option<PathBuf>,
}

/// Errors that the application cannot send, in its words.
#[derive(Debug, Clone)]
pub struct Errors {
    /// The queue is full, with a wait of 1, 2, ... seconds.
    pub busy: Vec<Whole>,
    /// There are too many connections.
    pub crowded: Whole,
    /// The body of a request breaks off or is malformed.
    pub broken: Whole,
    /// The application has stopped.
    pub stopping: Whole,
}

/// A whole reply.
#[derive(Debug, Clone)]
pub struct Whole {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Whole {
    pub(crate) fn response(&self) -> Response<Reply> {
        respond(self.status, self.headers.clone(), self.body.clone())
    }
}

pub(crate) fn respond(status: StatusCode, headers: HeaderMap, body: Vec<u8>) -> Response<Reply> {
    let mut response = Response::new(Reply::whole(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
