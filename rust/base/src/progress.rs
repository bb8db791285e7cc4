//! How a long kernel says how far it is, and learns that it should stop.

use crate::error::{Error, Result};
use crate::reserve;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Shared between a kernel and whoever watches it. Cheap enough to ask once per row.
#[derive(Debug, Default)]
pub struct Progress {
    stop: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    deadline: Option<Instant>,
}

impl Progress {
    /// Nobody watches: never stops.
    pub fn none() -> Self {
        Self::default()
    }

    pub fn with_deadline(deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..Self::default() }
    }

    /// Asks the kernel to stop at its next check.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// `Err(Cancelled)` once a stop was asked for, `Err(Deadline)` once the time is over, `Err(Memory)` once
    /// the system had none left.
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

    /// (done, total) in the kernel's own unit of work.
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
