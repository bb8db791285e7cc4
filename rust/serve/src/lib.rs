//! The HTTP front of the service. hyper serves the connections; plain requests to `/v1/retrieve` are answered on threads
//! that never wait for the interpreter, and all others are passed to the application behind the front.
//!
//! A request is plain if nothing about it needs a decision: the exact path, one of the known hosts, the right
//! token, a small body of known length, and fields that a [`Backend`] has planned. Anything else (an error, a
//! request from another site's page, another path) goes to the application, so error messages and rules are
//! in one place.
//!
//! [`request`] recognises plain requests of those who have [`access`], [`queue`] holds waiting requests, `worker` answers them, `client`
//! passes the others to `application`, `socket` and `reply` keep the time limits of clients, and [`front`]
//! accepts connections. [`request_log`] has a line for each request.

pub mod access;
mod application;
pub mod backend;
pub mod cache;
mod client;
pub mod counters;
pub mod front;
pub mod json;
pub mod limits;
mod locks;
pub mod queue;
mod reply;
pub mod request;
mod request_body;
pub mod request_log;
mod shared;
mod worker;

pub use access::{Access, Holder};
pub use backend::{Answer, Backend, Call, Model, Plan, Replied};
pub use front::Front;
pub use limits::{Errors, Limits, Whole};
pub use request::Rules;
pub use request_log::{RequestLog, Style};
