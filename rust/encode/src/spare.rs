//! Scratch memory that is kept between calls: a question takes less than its first touch would.

use super::body::Scratch;
use std::sync::Mutex;

/// The largest scratch that is kept, and how many are.
const BYTES: usize = 16 << 20;
const KEPT: usize = 16;

/// What earlier calls left.
#[derive(Default)]
pub struct Spares {
    kept: Mutex<Vec<Scratch>>,
}

impl Spares {
    /// A scratch of an earlier call, or a new one. Never waits: a lock that another thread held when the
    /// process forked stays locked in the child.
    pub fn take(&self) -> Spare<'_> {
        let own = self.kept.try_lock().ok().and_then(|mut kept| kept.pop()).unwrap_or_default();
        Spare { own, home: self }
    }
}

/// A scratch that goes back when its thread is done.
pub struct Spare<'a> {
    own: Scratch,
    home: &'a Spares,
}

impl Spare<'_> {
    pub fn get(&mut self) -> &mut Scratch {
        &mut self.own
    }
}

impl Drop for Spare<'_> {
    fn drop(&mut self) {
        if self.own.bytes() > BYTES {
            return;
        }
        if let Ok(mut kept) = self.home.kept.try_lock() {
            if kept.len() < KEPT {
                kept.push(std::mem::take(&mut self.own));
            }
        }
    }
}
