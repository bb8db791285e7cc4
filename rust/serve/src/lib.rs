//! The HTTP front of the service. It accepts connections, answers plain requests to `/v1/retrieve` on threads that
//! never wait for the interpreter, and passes every other connection on, with the bytes that it has read.
//!
//! A request is plain if nothing about it needs a decision: the exact request line, one of the known hosts, the
//! right token, a body of known length, and fields that a [`Backend`] has planned. Anything else (an error, a
//! header that might be ambiguous, another path, a slow client) goes to the application behind the front, so there
//! is one place that words errors and keeps rules.
//!
//! [`request`] parses, [`connection`] holds the state of one connection, [`queue`] the requests that wait,
//! [`worker`] answers them, and [`front`] runs the event loop.

pub mod backend;
pub mod cache;
#[cfg(unix)]
pub mod connection;
pub mod counters;
pub mod date;
#[cfg(unix)]
pub mod front;
pub mod json;
pub mod limits;
#[cfg(unix)]
mod locks;
#[cfg(unix)]
pub mod queue;
pub mod request;
#[cfg(unix)]
mod shared;
#[cfg(unix)]
mod worker;

pub use backend::{Answer, Backend, Model, Plan};
#[cfg(unix)]
pub use front::Front;
pub use limits::Limits;
pub use request::Rules;
#[cfg(unix)]
pub use shared::Handed;
