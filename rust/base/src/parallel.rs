//! Work over rows on several threads, with the result in row order.
//!
//! Threads are started for each call and joined before it returns, so the library stays usable after `fork`.
//! The result never depends on the number of threads.

use crate::error::{Error, Result};
use crate::progress::Progress;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Return the number of threads to use: `asked`, or the number of cores if it is 0.
pub fn threads(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        n => n.min(256),
    }
}

/// Return the number of threads for some ranges. The number of cores is read from files of the system, which takes longer
/// than the work of a small array.
fn team(asked: usize, ranges: usize) -> usize {
    match ranges {
        0 | 1 => ranges,
        _ => threads(asked).min(ranges),
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
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<T>)>> = Mutex::new(Vec::with_capacity(ranges));
    on_threads(team(asked, ranges), &|| {
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
    });
    let mut ordered: Vec<Option<Result<T>>> = std::iter::repeat_with(|| None).take(ranges).collect();
    for (k, value) in done.into_inner().unwrap_or_else(|e| e.into_inner()) {
        ordered[k] = Some(value);
    }
    ordered.into_iter().flatten().collect()
}

/// Call `work` on `workers` threads at once, including the calling thread. If the system cannot start more
/// threads, those already running do the work. This function is not generic, so a kernel is compiled only
/// once and not once for each way of running it.
fn on_threads(workers: usize, work: &(dyn Fn() + Sync)) {
    if workers <= 1 {
        return work();
    }
    std::thread::scope(|scope| {
        for _ in 1..workers {
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

/// Maximum number of results per thread that wait for earlier ones.
const AHEAD: usize = 4;

/// Return the maximum number of ranges that [`map_ranges_then`] holds at once: those in work and those
/// waiting.
pub fn held(asked: usize) -> usize {
    match threads(asked) {
        1 => 1,
        n => (AHEAD + 1) * n,
    }
}

/// Like [`map_ranges`], but results are not collected. `then` gets each result in row order while other
/// threads work on the next ranges. At most [`held`] ranges are in work or waiting.
pub fn map_ranges_then<T, F, C>(
    rows: usize,
    grain: usize,
    asked: usize,
    progress: &Progress,
    work: F,
    then: C,
) -> Result<()>
where
    T: Send,
    F: Fn(Range<usize>) -> Result<T> + Sync,
    C: FnMut(T) -> Result<()> + Send,
{
    let grain = grain.max(1);
    let ranges = rows.div_ceil(grain);
    let range_of = |k: usize| k * grain..((k + 1) * grain).min(rows);
    let workers = team(asked, ranges);
    let queue = Queue::new(ranges, AHEAD * workers.max(1), then);
    on_threads(workers, &|| {
        let _guard = StopOnPanic(&queue);
        while let Some(k) = queue.claim() {
            queue.put(k, progress.check().and_then(|()| work(range_of(k))));
            progress.advance(range_of(k).len() as u64);
        }
    });
    queue.finish()
}

/// Results that wait until earlier ones are consumed.
struct Queue<T, C> {
    state: Mutex<Waiting<T>>,
    changed: Condvar,
    ranges: usize,
    ahead: usize,
    then: Mutex<C>,
}

struct Waiting<T> {
    /// The next range to start, and the next to consume.
    next: usize,
    consumed: usize,
    ready: BTreeMap<usize, T>,
    is_consuming: bool,
    /// The first error in order of ranges. No range is started after an error.
    failed: Option<(usize, Error)>,
    stopped: bool,
}

impl<T, C: FnMut(T) -> Result<()>> Queue<T, C> {
    fn new(ranges: usize, ahead: usize, then: C) -> Self {
        let state = Waiting {
            next: 0,
            consumed: 0,
            ready: BTreeMap::new(),
            is_consuming: false,
            failed: None,
            stopped: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), ranges, ahead, then: Mutex::new(then) }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Return the next range once it is not too far ahead, or `None` at the end.
    fn claim(&self) -> Option<usize> {
        let mut state = self.lock();
        let k = state.next;
        state.next += 1;
        while k < self.ranges && !state.stopped && k >= state.consumed + self.ahead {
            state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        (k < self.ranges && !state.stopped).then_some(k)
    }

    /// Add the result of a range, and consume the results that are ready unless another thread is doing so.
    fn put(&self, k: usize, value: Result<T>) {
        let mut state = self.lock();
        match value {
            Ok(value) => _ = state.ready.insert(k, value),
            Err(error) => self.fail(&mut state, k, error),
        }
        while !state.is_consuming && !state.stopped {
            let at = state.consumed;
            let Some(value) = state.ready.remove(&at) else { break };
            state.is_consuming = true;
            drop(state);
            let done = (self.then.lock().unwrap_or_else(|e| e.into_inner()))(value);
            state = self.lock();
            state.is_consuming = false;
            state.consumed += 1;
            if let Err(error) = done {
                self.fail(&mut state, at, error);
            }
            self.changed.notify_all();
        }
    }

    fn fail(&self, state: &mut Waiting<T>, k: usize, error: Error) {
        if state.failed.as_ref().is_none_or(|(first, _)| k < *first) {
            state.failed = Some((k, error));
        }
        state.stopped = true;
        self.changed.notify_all();
    }

    fn finish(self) -> Result<()> {
        let state = self.state.into_inner().unwrap_or_else(|e| e.into_inner());
        state.failed.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Ends the other threads of a queue if one of them panics, so that the panic is reported.
struct StopOnPanic<'a, T, C: FnMut(T) -> Result<()>>(&'a Queue<T, C>);

impl<T, C: FnMut(T) -> Result<()>> Drop for StopOnPanic<'_, T, C> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().stopped = true;
            self.0.changed.notify_all();
        }
    }
}

/// Call `work` once for each range of at most `grain` rows, with the part of `out` that holds these rows of
/// `width` values. Like [`map_ranges`], but without collecting results, so a large result is written only
/// once.
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

/// The priority (nice) of background threads.
#[cfg(target_os = "linux")]
const LOW: libc::c_int = 10;

/// Run this thread only on processor time that no other thread needs, until it ends. On systems other than
/// Linux, where only whole processes have a priority, this has no effect.
pub fn lower_priority() {
    #[cfg(target_os = "linux")]
    // SAFETY: both calls take and return numbers. On Linux the process of a priority is a thread.
    unsafe {
        let thread = libc::gettid() as libc::id_t;
        if libc::getpriority(libc::PRIO_PROCESS, thread) < LOW {
            libc::setpriority(libc::PRIO_PROCESS, thread, LOW); // an error leaves the priority unchanged
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn results_are_consumed_in_order() {
        for workers in [1, 2, 7] {
            let mut rows = Vec::new();
            map_ranges_then(
                1000,
                7,
                workers,
                &Progress::none(),
                |r| Ok(r.collect::<Vec<_>>()),
                |part| {
                    rows.extend(part);
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(rows, (0..1000).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_error_ends_the_work_and_its_consumer() {
        let error = |k: usize| Error::input(format!("range {k}"));
        for workers in [1, 4] {
            let mut seen = 0;
            let work = |r: Range<usize>| if r.start == 50 { Err(error(50)) } else { Ok(r.start) };
            let done = map_ranges_then(1000, 1, workers, &Progress::none(), work, |at| {
                assert_eq!(at, seen);
                seen += 1;
                Ok(())
            });
            assert_eq!(done, Err(error(50)));
            assert!(seen <= 50);
            let then = |at: usize| if at == 9 { Err(error(9)) } else { Ok(()) };
            let done = map_ranges_then(1000, 1, workers, &Progress::none(), |r| Ok(r.start), then);
            assert_eq!(done, Err(error(9)));
        }
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_ends_the_other_threads() {
        let main = std::thread::current().id();
        let work = |_| {
            assert!(std::thread::current().id() == main);
            std::thread::sleep(std::time::Duration::from_millis(1));
            Ok(())
        };
        let _ = map_ranges_then(1000, 1, 4, &Progress::none(), work, Ok);
    }

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

    #[cfg(target_os = "linux")]
    #[test]
    fn only_this_thread_is_lowered() {
        // SAFETY: the call takes and returns numbers.
        let current = || unsafe { libc::getpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t) };
        let before = current();
        let lowered = std::thread::spawn(move || {
            lower_priority();
            current()
        });
        assert_eq!((lowered.join().unwrap(), current()), (before.max(LOW), before));
    }
}
