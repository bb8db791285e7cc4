//! Scratch memory that is reused between calls: a query takes less time than touching new memory would.

use super::body::Scratch;
use std::sync::Mutex;

/// The largest scratch that is kept, and the number kept.
const BYTES: usize = 16 << 20;
const KEPT: usize = 16;

/// Scratch left by earlier calls.
#[derive(Default)]
pub struct Spares {
    kept: Mutex<Vec<Scratch>>,
}

impl Spares {
    /// Return the scratch of an earlier call, or a new one. Never waits: a lock that another thread held when
    /// the process forked stays locked in the child.
    pub fn take(&self) -> Spare<'_> {
        let own = self.kept.try_lock().ok().and_then(|mut kept| kept.pop()).unwrap_or_default();
        Spare { own, home: self }
    }
}

/// A scratch that is returned when its thread is done.
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
