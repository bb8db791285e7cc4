//! A cache of replies, limited in bytes.

use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Mutex;

/// Size of an entry in addition to its question and its reply: its slots in a table of which half may be
/// empty.
const ENTRY: usize = 128;
/// A block grows in steps of this share of its final size.
const STEPS: usize = 16;

/// Two generations of replies of half the size each. A reply that is read moves to the young generation. When
/// the young generation is full it becomes the old one, and replies that were not read in the meantime are
/// dropped.
///
/// Each generation reuses one block of memory, so that memory usage does not depend on the allocator, which
/// keeps memory for each thread.
#[derive(Debug)]
pub struct Cache {
    half: usize,
    hasher: RandomState,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    young: Generation,
    old: Generation,
}

#[derive(Debug, Default)]
struct Generation {
    /// Questions, each followed by its reply.
    bytes: Vec<u8>,
    /// Entries by the hash of plan and question. If two have the same hash, the last is kept.
    places: HashMap<u64, Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    plan: u64,
    start: usize,
    question: usize,
    reply: usize,
}

impl Generation {
    fn get(&self, hash: u64, plan: u64, question: &str) -> Option<&[u8]> {
        let place = self.places.get(&hash).filter(|place| place.plan == plan)?;
        let reply = place.start + place.question;
        let is_same = self.bytes.get(place.start..reply)? == question.as_bytes();
        self.bytes.get(reply..reply + place.reply).filter(|_| is_same)
    }

    /// Return the size with one more entry.
    fn size_with(&self, bytes: usize) -> usize {
        (self.bytes.len() + bytes).max(self.bytes.capacity()) + (self.places.len() + 1) * ENTRY
    }
}

impl Kept {
    /// Add a reply that fits into `half`, unless there is no memory.
    fn insert(&mut self, half: usize, hash: u64, plan: u64, question: &str, reply: &[u8]) {
        let size = question.len() + reply.len();
        if self.young.size_with(size) > half {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.places = HashMap::new();
            self.young.bytes.clear();
            self.young.bytes.shrink_to(self.old.bytes.len());
        }
        let Generation { bytes, places } = &mut self.young;
        if bytes.capacity() - bytes.len() < size {
            let most = half - bytes.len() - (places.len() + 1) * ENTRY;
            if bytes.try_reserve_exact(size.max(half / STEPS).min(most)).is_err() {
                return;
            }
        }
        if places.try_reserve(1).is_err() {
            return;
        }
        let start = bytes.len();
        bytes.extend_from_slice(question.as_bytes());
        bytes.extend_from_slice(reply);
        places.insert(hash, Place { plan, start, question: question.len(), reply: reply.len() });
    }
}

impl Cache {
    /// Create a cache of at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { half: most / 2, hasher: RandomState::new(), kept: Mutex::default() }
    }

    /// Return the reply of a plan to a question, if there is one.
    pub fn get(&self, plan: u64, question: &str) -> Option<Vec<u8>> {
        if self.half == 0 {
            return None;
        }
        let hash = self.hasher.hash_one((plan, question));
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(reply) = kept.young.get(hash, plan, question) {
            return Some(reply.to_vec());
        }
        let reply = kept.old.get(hash, plan, question)?.to_vec();
        kept.insert(self.half, hash, plan, question, &reply);
        Some(reply)
    }

    /// Cache a reply, unless it is larger than the cache.
    pub fn add(&self, plan: u64, question: &str, reply: &[u8]) {
        if question.len() + reply.len() + ENTRY > self.half {
            return;
        }
        let hash = self.hasher.hash_one((plan, question));
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        if kept.young.get(hash, plan, question).is_none() {
            kept.insert(self.half, hash, plan, question, reply);
        }
    }

    /// Drop all replies and their memory.
    pub fn clear(&self) {
        *self.kept.lock().unwrap_or_else(|e| e.into_inner()) = Kept::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Cache {
        fn has(&self, plan: u64, question: &str, reply: &[u8]) -> bool {
            let found = self.get(plan, question);
            assert!(found.as_ref().is_none_or(|found| found == reply), "{question}");
            found.is_some()
        }

        /// Return the bytes of the blocks and the tables.
        fn held(&self) -> usize {
            let kept = self.kept.lock().unwrap();
            let slot = size_of::<(u64, Place)>() + 1;
            // A table has a power of two of slots, of which at most seven eighths are used.
            let slots = |places: &HashMap<u64, Place>| (places.capacity() * 8 / 7).next_power_of_two();
            [&kept.young, &kept.old].iter().map(|g| g.bytes.capacity() + slots(&g.places) * slot).sum()
        }
    }

    #[test]
    fn what_is_read_stays_and_the_size_is_bounded() {
        let cache = Cache::new(20_000);
        let reply = |n: usize| vec![n as u8; 500 + n * 7];
        cache.add(1, "kept", &reply(7));
        for n in 0..200 {
            cache.add(1, &format!("question {n}"), &reply(n));
            assert!(cache.has(1, &format!("question {n}"), &reply(n)));
            assert!(cache.has(1, "kept", &reply(7)), "{n}");
            assert!(cache.held() <= 20_000, "{}", cache.held());
        }
        assert!(cache.has(1, "question 199", &reply(199)) && !cache.has(1, "question 3", &reply(3)));
        assert!(!cache.has(2, "kept", &reply(7)), "another plan");
        cache.clear();
        assert!(!cache.has(1, "kept", &reply(7)));
        assert!(cache.held() < 200);
    }

    #[test]
    fn memory_is_bounded_whatever_the_size_of_replies() {
        let cache = Cache::new(100_000);
        for size in [0, 1, 30, 100, 3000, 40_000, 0] {
            let mut held = 0;
            for n in 0..5000 {
                cache.add(size as u64, &n.to_string(), &vec![1; size]);
                held = cache.held().max(held);
            }
            assert!(cache.has(size as u64, "4999", &vec![1; size]), "{size}");
            assert!(held <= 100_000, "{held} bytes for replies of {size}");
        }
    }

    #[test]
    fn a_reply_read_from_a_full_cache_is_whole() {
        let cache = Cache::new(8000);
        let reply = |n: u8| vec![n; 1000];
        for n in 0..6 {
            cache.add(1, &n.to_string(), &reply(n));
        }
        // The entry moves while the block that contained it is overwritten.
        for n in 0..6 {
            cache.has(1, &n.to_string(), &reply(n));
        }
        assert!(cache.has(1, "5", &reply(5)));
    }

    #[test]
    fn two_questions_with_one_hash_do_not_get_each_other_s_reply() {
        let mut kept = Kept::default();
        kept.insert(1000, 7, 1, "first", b"one");
        assert_eq!(kept.young.get(7, 1, "other"), None);
        assert_eq!(kept.young.get(7, 2, "first"), None);
        kept.insert(1000, 7, 1, "other", b"two");
        assert_eq!(kept.young.get(7, 1, "other"), Some(&b"two"[..]));
        assert_eq!(kept.young.get(7, 1, "first"), None);
    }

    #[test]
    fn nothing_is_kept_without_room() {
        let cache = Cache::new(0);
        cache.add(1, "a", b"");
        assert!(!cache.has(1, "a", b""));
        let cache = Cache::new(2000);
        cache.add(1, "a", &[0; 5000]);
        assert!(!cache.has(1, "a", b""));
        assert!(cache.held() < 200);
    }
}
