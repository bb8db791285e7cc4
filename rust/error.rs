//! The one error type of the core.

use std::fmt;

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
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(text) | Self::Damaged(text) | Self::Io(text) | Self::Internal(text) => {
                f.write_str(text)
            }
            Self::Cancelled => f.write_str("cancelled"),
            Self::Deadline => f.write_str("the deadline of this call has passed"),
        }
    }
}

impl std::error::Error for Error {}
