//! The one error type of the core.

use std::fmt;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in a kernel. Kernels never panic on bad input: they return one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The caller's arrays or numbers do not make sense; the text says which and why.
    Input(String),
    /// A stored array is cut short, altered or not of the expected kind.
    Damaged(String),
    /// The operating system refused; the text carries the path.
    Io(String),
    /// Memory that this machine cannot give; the text says for what, and how much.
    Memory(String),
    /// The system lets this process open or map no more files.
    Limit(String),
    /// A defect of this package.
    Internal(String),
    /// The caller asked to stop.
    Cancelled,
    /// The deadline of the call has passed.
    Deadline,
}

impl Error {
    pub fn input(text: impl Into<String>) -> Self {
        Self::Input(text.into())
    }

    pub fn damaged(text: impl Into<String>) -> Self {
        Self::Damaged(text.into())
    }

    /// Leaves for the next [`caught`]. For accessors that cannot return an error without costing every
    /// reader a branch at every row: a block of a mapped file that turns out to be damaged.
    pub fn raise(self) -> ! {
        resume_unwind(Box::new(self)) // without the message that a panic prints
    }
}

/// What `work` gives; an error that was raised inside of it, and a panic as an internal error.
pub fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        let cause = match cause.downcast::<Error>() {
            Ok(error) => return Err(*error),
            Err(cause) => cause,
        };
        let text = cause
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| cause.downcast_ref::<&str>().copied())
            .unwrap_or("unknown");
        Err(Error::Internal(format!("internal error in a kernel, please report it: {text}")))
    })
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(text)
            | Self::Damaged(text)
            | Self::Io(text)
            | Self::Memory(text)
            | Self::Limit(text)
            | Self::Internal(text) => f.write_str(text),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Deadline => f.write_str("the deadline of this call has passed"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_raised_is_caught_and_a_panic_is_an_internal_error() {
        assert_eq!(caught(|| Ok(3)), Ok(3));
        assert_eq!(caught::<()>(|| Error::damaged("file").raise()), Err(Error::damaged("file")));
        let values = [1, 2];
        let found = caught(|| Ok(values[std::hint::black_box(7)]));
        assert!(matches!(&found, Err(Error::Internal(text)) if text.contains("index out of bounds")));
    }
}
