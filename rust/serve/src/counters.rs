//! The counters of the front, in a file that other processes read if there are several workers. If a worker
//! is killed, its counts are not lost.

use memmap2::MmapRaw;
use std::fs::OpenOptions;
use std::io::Result;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the counted times in seconds; one more bucket counts the rest.
pub const SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// Upper bounds of the counted batch sizes; one more bucket counts the rest.
pub const SIZES: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

const ANSWERED: usize = 0;
const REFUSED: usize = 1;
const CACHED: usize = 2;
/// Microseconds of all requests.
const MICROS: usize = 3;
/// Questions in all batches.
const QUESTIONS: usize = 4;
const TIMES: usize = 5;
const BATCHES: usize = TIMES + SECONDS.len() + 1;
/// Number of counts.
pub const COUNTS: usize = BATCHES + SIZES.len() + 1;

/// Counts in memory, or in a mapped file of `COUNTS` numbers of 8 bytes in the order of the processor.
#[derive(Debug)]
pub struct Counters {
    memory: [AtomicU64; COUNTS],
    file: Option<MmapRaw>,
}

impl Counters {
    /// Count in a new file, or in memory.
    pub fn new(path: Option<&Path>) -> Result<Self> {
        let open = |path: &Path| {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
            file.set_len(8 * COUNTS as u64)?;
            MmapRaw::map_raw(&file)
        };
        Ok(Self { memory: Default::default(), file: path.map(open).transpose()? })
    }

    fn count(&self, which: usize) -> &AtomicU64 {
        let memory = &self.memory[which];
        let Some(file) = &self.file else { return memory };
        // SAFETY: the mapping begins at a page and has `COUNTS` numbers; `which` was checked against as many
        // above. It lives as long as `self`, and all access to it is atomic. Nobody shortens the file.
        unsafe { &*file.as_mut_ptr().cast::<AtomicU64>().add(which) }
    }

    fn add(&self, which: usize, number: u64) {
        self.count(which).fetch_add(number, Ordering::Relaxed);
    }

    /// Count a reply and its duration; `cached` if it came from the cache.
    pub fn answered(&self, time: Duration, cached: bool) {
        self.add(ANSWERED, 1);
        self.add(CACHED, cached.into());
        self.took(time);
    }

    /// Count a request that found the queue full.
    pub fn refused(&self, time: Duration) {
        self.add(REFUSED, 1);
        self.took(time);
    }

    fn took(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = SECONDS.iter().position(|&most| seconds <= most).unwrap_or(SECONDS.len());
        self.add(TIMES + bucket, 1);
        self.add(MICROS, time.as_micros() as u64);
    }

    /// Count a batch.
    pub fn batch(&self, size: usize) {
        let bucket = SIZES.iter().position(|&most| size as f64 <= most).unwrap_or(SIZES.len());
        self.add(BATCHES + bucket, 1);
        self.add(QUESTIONS, size as u64);
    }

    /// Return all counts: replies, refusals, cached replies, microseconds, questions, requests by time, batches
    /// by size.
    pub fn all(&self) -> Vec<u64> {
        (0..COUNTS).map(|which| self.count(which).load(Ordering::Relaxed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_memory_and_in_a_file_are_equal() {
        let path = std::env::temp_dir().join(format!("ketrag-counts-{}", std::process::id()));
        let (plain, mapped) = (Counters::new(None).unwrap(), Counters::new(Some(&path)).unwrap());
        for counters in [&plain, &mapped] {
            counters.answered(Duration::from_micros(900), true);
            counters.answered(Duration::from_secs(60), false);
            counters.refused(Duration::from_millis(1));
            counters.batch(3);
            counters.batch(100);
        }
        let counts = plain.all();
        assert_eq!(counts[..5], [2, 1, 1, 60_001_900, 103]);
        assert_eq!(
            (counts[TIMES], counts[TIMES + 14], counts[BATCHES + 2], counts[BATCHES + 7]),
            (2, 1, 1, 1)
        );
        assert_eq!(counts, mapped.all());
        let stored = std::fs::read(&path).unwrap();
        let stored: Vec<u64> =
            stored.chunks_exact(8).map(|eight| u64::from_ne_bytes(eight.try_into().unwrap())).collect();
        assert_eq!(counts, stored);
        std::fs::remove_file(&path).unwrap();
    }
}
