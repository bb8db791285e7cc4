//! The error type that all crates share, and how errors and panics cross threads.

use std::fmt;
use std::ops::Deref;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::Arc;

pub type Result<T> = std::result::Result<T, Error>;

/// The errors of kernels. Kernels never panic on bad input but return one of these errors.
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
    /// The caller's arrays or numbers are invalid; the text names the argument and the reason.
    #[error("{0}")]
    Input(String),
    /// A stored array is truncated, altered or of an unexpected type.
    #[error(transparent)]
    Damaged(Detail),
    /// The operating system refused an operation; the text carries the path.
    #[error(transparent)]
    Io(Detail),
    /// An allocation failed; the text names its purpose and its size.
    #[error(transparent)]
    Memory(Detail),
    /// The process has reached a system limit on open or mapped files.
    #[error(transparent)]
    Limit(Detail),
    /// A defect of this package.
    #[error("{0}")]
    Internal(String),
    /// The caller cancelled the work.
    #[error("cancelled")]
    Cancelled,
    /// The deadline of the call has passed.
    #[error("the deadline of this call has passed")]
    Deadline,
}

/// The message of an error, with the system or library error that caused it, if there is one.
///
/// Two details are equal if their texts are equal.
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

// Written by hand: the derived implementation returns the `Arc`, which cannot be downcast to the error
// inside.
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

    /// Attach the cause that [`std::error::Error::source`] returns. `Input` and `Internal` errors have no
    /// cause.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        if let Self::Damaged(detail) | Self::Io(detail) | Self::Memory(detail) | Self::Limit(detail) =
            &mut self
        {
            detail.source = Some(cause.into().into());
        }
        self
    }

    /// Unwind to the nearest [`caught`]. Used when a block of a mapped file is damaged, by accessors that
    /// cannot return an error without a branch in every row.
    pub fn raise(self) -> ! {
        resume_unwind(Box::new(self)) // without printing a panic message
    }
}

/// Run `work` and return its result. A raised error becomes an ordinary error, a panic becomes
/// `Error::Internal`.
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
