//! Replies that are kept, within a bound in bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Bytes of an entry besides its question and its reply: the keys, the tables' slots and what the allocator adds.
const ENTRY: usize = 250;

type Key = (u64, Box<str>);
type Replies = HashMap<Key, Arc<[u8]>>;

/// Two generations of replies of half the size each. A reply that is read moves to the young one; when that is
/// full it becomes the old one, and what nobody read meanwhile is dropped.
#[derive(Debug)]
pub struct Cache {
    half: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    young: Replies,
    old: Replies,
    /// Bytes of the young ones.
    size: usize,
}

impl Cache {
    /// Create a cache of at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { half: most / 2, kept: Mutex::default() }
    }

    /// Return the reply of a plan to a question.
    pub fn get(&self, plan: u64, question: &str) -> Option<Arc<[u8]>> {
        if self.half == 0 {
            return None;
        }
        let key: Key = (plan, question.into());
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(reply) = kept.young.get(&key) {
            return Some(reply.clone());
        }
        let reply = kept.old.remove(&key)?;
        self.insert(&mut kept, key, reply.clone());
        Some(reply)
    }

    /// Keep a reply, if it is not larger than the cache.
    pub fn add(&self, plan: u64, question: &str, reply: &[u8]) {
        if question.len() + reply.len() + ENTRY > self.half {
            return;
        }
        let (key, reply): (Key, Arc<[u8]>) = ((plan, question.into()), reply.into());
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        if !kept.young.contains_key(&key) {
            self.insert(&mut kept, key, reply);
        }
    }

    /// Drop all replies.
    pub fn clear(&self) {
        *self.kept.lock().unwrap_or_else(|e| e.into_inner()) = Kept::default();
    }

    fn insert(&self, kept: &mut Kept, key: Key, reply: Arc<[u8]>) {
        let size = key.1.len() + reply.len() + ENTRY;
        if kept.size + size > self.half {
            kept.old = std::mem::take(&mut kept.young);
            kept.size = 0;
        }
        kept.size += size;
        kept.young.insert(key, reply);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_stays_and_the_size_is_bounded() {
        let cache = Cache::new(20_000);
        let reply = [7u8; 1000];
        cache.add(1, "kept", &reply);
        for n in 0..200 {
            cache.add(1, &format!("question {n}"), &reply);
            assert!(cache.get(1, "kept").is_some(), "{n}");
            let kept = cache.kept.lock().unwrap();
            let size: usize = kept
                .young
                .iter()
                .chain(&kept.old)
                .map(|(key, reply)| key.1.len() + reply.len() + ENTRY)
                .sum();
            assert!(size <= 20_000);
        }
        assert!(cache.get(1, "question 199").is_some() && cache.get(1, "question 3").is_none());
        assert!(cache.get(2, "kept").is_none(), "another plan");
        cache.clear();
        assert!(cache.get(1, "kept").is_none());
    }

    #[test]
    fn nothing_is_kept_without_room() {
        let cache = Cache::new(0);
        cache.add(1, "a", b"");
        assert!(cache.get(1, "a").is_none());
        let cache = Cache::new(2000);
        cache.add(1, "a", &[0; 5000]);
        assert!(cache.get(1, "a").is_none());
    }
}
