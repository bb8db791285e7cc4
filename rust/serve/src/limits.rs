//! The limits of a front, and the replies that it sends without the application.

use crate::reply::Reply;
use crate::request_log::RequestLog;
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Sizes are in bytes.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum number of threads that answer requests at the same time. Threads with a slow request are not
    /// counted.
    pub workers: usize,
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of waiting requests.
    pub queue: usize,
    /// Questions that a model embeds together.
    pub batch: usize,
    /// Maximum size of cached replies.
    pub cache: usize,
    /// Time limit for the next head of a connection, and again for a body.
    pub read: Duration,
    /// Time limit for a client that does not read its reply.
    pub idle: Duration,
    /// Headers of every reply with a context.
    pub headers: HeaderMap,
    pub errors: Errors,
    /// A new file for the counts; without it they are in memory.
    pub counts: Option<PathBuf>,
    /// The log of requests that the front answers itself.
    pub log: Option<Arc<RequestLog>>,
}

/// Error replies for cases in which the application cannot reply, in the application's wording.
#[derive(Debug, Clone)]
pub struct Errors {
    /// The queue is full; one reply for each wait of 1, 2, ... seconds.
    pub busy: Vec<Whole>,
    /// There are too many connections.
    pub crowded: Whole,
    /// The body of a request is incomplete or malformed.
    pub broken: Whole,
    /// The application has stopped.
    pub stopping: Whole,
}

/// A complete reply.
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
