//! The one error type of all crates.

use std::fmt;
use std::ops::Deref;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::Arc;

pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in a kernel. Kernels never panic on bad input: they return one of these.
///
/// ```
/// use ketrag_base::Error;
/// use std::error::Error as _;
///
/// let refused = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
/// let error = Error::io(format!("words.npy: {refused}")).caused_by(refused);
/// assert_eq!(error.to_string(), "words.npy: permission denied");
/// assert!(error.source().is_some_and(|source| source.is::<std::io::Error>()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The caller's arrays or numbers do not make sense; the text says which and why.
    #[error("{0}")]
    Input(String),
    /// A stored array is cut short, altered or not of the expected kind.
    #[error(transparent)]
    Damaged(Detail),
    /// The operating system refused; the text carries the path.
    #[error(transparent)]
    Io(Detail),
    /// Memory that this machine cannot give; the text says for what, and how much.
    #[error(transparent)]
    Memory(Detail),
    /// The system lets this process open or map no more files.
    #[error(transparent)]
    Limit(Detail),
    /// A defect of this package.
    #[error("{0}")]
    Internal(String),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The deadline of the call has passed.
    #[error("the deadline of this call has passed")]
    Deadline,
}

/// What happened, as text, and the error of the system or of a library that caused it, if there is one.
///
/// Two are equal when their texts are.
#[derive(Debug, Clone)]
pub struct Detail {
    text: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl<T: Into<String>> From<T> for Detail {
    fn from(text: T) -> Self {
        Self { text: text.into(), source: None }
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

// By hand: a derived one hands out the `Arc`, which cannot be downcast to what is in it.
impl std::error::Error for Detail {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl Deref for Detail {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Detail {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Detail {}

impl Error {
    pub fn input(text: impl Into<String>) -> Self {
        Self::Input(text.into())
    }

    pub fn damaged(text: impl Into<Detail>) -> Self {
        Self::Damaged(text.into())
    }

    pub fn io(text: impl Into<Detail>) -> Self {
        Self::Io(text.into())
    }

    pub fn memory(text: impl Into<Detail>) -> Self {
        Self::Memory(text.into())
    }

    pub fn limit(text: impl Into<Detail>) -> Self {
        Self::Limit(text.into())
    }

    /// The same error with its cause, for [`std::error::Error::source`]. Bad input and defects have none.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        if let Self::Damaged(detail) | Self::Io(detail) | Self::Memory(detail) | Self::Limit(detail) =
            &mut self
        {
            detail.source = Some(cause.into().into());
        }
        self
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

    #[test]
    fn an_error_keeps_its_cause_and_only_its_text_is_compared() {
        use std::error::Error as _;
        let cause = || std::io::Error::from_raw_os_error(13);
        for error in
            [Error::damaged("a file"), Error::io("a file"), Error::memory("a file"), Error::limit("a file")]
        {
            assert!(error.source().is_none());
            let caused = error.clone().caused_by(cause());
            assert_eq!(caused.to_string(), "a file");
            assert_eq!(caused, error);
            let found = caused.source().and_then(|source| source.downcast_ref::<std::io::Error>());
            assert_eq!(found.and_then(std::io::Error::raw_os_error), Some(13));
        }
        assert!(Error::input("a number").caused_by(cause()).source().is_none());
    }
}
