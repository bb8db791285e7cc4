//! Work over rows on several threads, with the result in row order.
//!
//! Threads are started for each call and joined before it returns, so the library stays usable after `fork`.
//! The result never depends on the number of threads.

use crate::error::Result;
use crate::progress::Progress;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// Return the number of threads to use: `asked`, or the number of cores if it is 0.
pub fn threads(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        n => n.min(256),
    }
}

/// Call `work` once for each range of at most `grain` rows of `0..rows` and return the results in row order.
/// Progress advances by the rows of each finished range. The first error (in row order, of those that
/// occurred) is returned, and no new range is started after an error.
///
/// ```
/// use ketrag_base::parallel::map_ranges;
/// use ketrag_base::progress::Progress;
///
/// let sums = map_ranges(5, 2, 2, &Progress::none(), |rows| Ok(rows.sum::<usize>()))?;
/// assert_eq!(sums, [1, 5, 4]);
/// # Ok::<(), ketrag_base::Error>(())
/// ```
pub fn map_ranges<T, F>(
    rows: usize,
    grain: usize,
    asked: usize,
    progress: &Progress,
    work: F,
) -> Result<Vec<T>>
where
    T: Send,
    F: Fn(Range<usize>) -> Result<T> + Sync,
{
    map_ranges_with(rows, grain, asked, progress, || (), |(), range| work(range))
}

/// Like [`map_ranges`], with a scratch value that each thread creates once and reuses.
pub fn map_ranges_with<T, S, I, F>(
    rows: usize,
    grain: usize,
    asked: usize,
    progress: &Progress,
    scratch: I,
    work: F,
) -> Result<Vec<T>>
where
    T: Send,
    I: Fn() -> S + Sync,
    F: Fn(&mut S, Range<usize>) -> Result<T> + Sync,
{
    let grain = grain.max(1);
    let ranges = rows.div_ceil(grain);
    let range_of = |k: usize| k * grain..((k + 1) * grain).min(rows);
    let workers = threads(asked).min(ranges);
    if workers <= 1 {
        let mut own = scratch();
        return (0..ranges)
            .map(|k| {
                progress.check()?;
                let range = range_of(k);
                let length = range.len() as u64;
                let value = work(&mut own, range)?;
                progress.advance(length);
                Ok(value)
            })
            .collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<T>)>> = Mutex::new(Vec::with_capacity(ranges));
    let run = || {
        let mut own = scratch();
        let mut local = Vec::new();
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            if k >= ranges {
                break;
            }
            let range = range_of(k);
            let length = range.len() as u64;
            let value = progress.check().and_then(|()| work(&mut own, range));
            let failed = value.is_err();
            local.push((k, value));
            if failed {
                next.store(ranges, Ordering::Relaxed);
                break;
            }
            progress.advance(length);
        }
        done.lock().unwrap_or_else(|e| e.into_inner()).append(&mut local);
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            // If the system cannot start more threads, those already running do the work.
            if std::thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut all = done.into_inner().unwrap_or_else(|e| e.into_inner());
    all.sort_by_key(|(k, _)| *k);
    all.into_iter().map(|(_, value)| value).collect()
}

/// Call `work` once for each range of at most `grain` rows with the part of `out` that holds these rows of
/// `width` values. Like [`map_ranges`], but nothing is collected: a large result is written once.
pub fn fill_rows<T, F>(
    out: &mut [T],
    width: usize,
    grain: usize,
    asked: usize,
    progress: &Progress,
    work: F,
) -> Result<()>
where
    T: Send,
    F: Fn(Range<usize>, &mut [T]) -> Result<()> + Sync,
{
    let (width, grain) = (width.max(1), grain.max(1));
    let rows = out.len() / width;
    let parts: Vec<Mutex<&mut [T]>> = out.chunks_mut(grain * width).map(Mutex::new).collect();
    map_ranges(rows, grain, asked, progress, |range| {
        let mut part = parts[range.start / grain].lock().unwrap_or_else(|e| e.into_inner());
        work(range, &mut part)
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn order_does_not_depend_on_threads() {
        for workers in [1, 2, 7] {
            let rows: Vec<usize> =
                map_ranges(1000, 7, workers, &Progress::none(), |r| Ok(r.collect::<Vec<_>>()))
                    .unwrap()
                    .concat();
            assert_eq!(rows, (0..1000).collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_row_is_filled_in_its_place() {
        for (workers, grain) in [(1, 3), (2, 1), (5, 64)] {
            let mut out = vec![0usize; 2 * 31];
            fill_rows(&mut out, 2, grain, workers, &Progress::none(), |rows, part| {
                part.chunks_exact_mut(2)
                    .zip(rows)
                    .for_each(|(row, i)| row.copy_from_slice(&[2 * i, 2 * i + 1]));
                Ok(())
            })
            .unwrap();
            assert_eq!(out, (0..62).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_the_work() {
        let result: Result<Vec<()>> = map_ranges(1000, 1, 3, &Progress::none(), |r| {
            if r.start == 500 {
                Err(Error::input("row 500"))
            } else {
                Ok(())
            }
        });
        assert_eq!(result, Err(Error::input("row 500")));
    }

    #[test]
    fn a_stop_is_seen_and_nothing_is_left_to_do_on_no_rows() {
        let progress = Progress::none();
        progress.stop();
        assert_eq!(map_ranges(10, 1, 2, &progress, |_| Ok(())), Err(Error::Cancelled));
        assert_eq!(map_ranges(0, 1, 2, &Progress::none(), |_| Ok(())), Ok(vec![]));
    }
}
