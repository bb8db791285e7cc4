//! Progress of a long kernel, its cancellation and its deadline.

use crate::error::{Error, Result};
use crate::reserve;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// State shared between a kernel and its observer. A check is cheap enough to be made for every row.
#[derive(Debug, Default)]
pub struct Progress {
    stop: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    deadline: Option<Instant>,
}

impl Progress {
    /// Progress that nobody observes: it never stops the kernel.
    pub fn none() -> Self {
        Self::default()
    }

    pub fn with_deadline(deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..Self::default() }
    }

    /// Ask the kernel to stop at its next check.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Return `Err(Cancelled)` after [`Progress::stop`], `Err(Deadline)` once the deadline has passed, and
    /// `Err(Memory)` once the system has refused an allocation.
    pub fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        reserve::check()?;
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Error::Deadline),
            _ => Ok(()),
        }
    }

    pub fn expect(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    pub fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    /// Return (done, total) in the kernel's unit of work.
    pub fn state(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_and_deadline_are_seen() {
        let progress = Progress::none();
        assert_eq!(progress.check(), Ok(()));
        progress.stop();
        assert_eq!(progress.check(), Err(Error::Cancelled));
        assert_eq!(Progress::with_deadline(Instant::now()).check(), Err(Error::Deadline));
    }
}
