//! The requests that wait for a worker, and the selection of those that are processed together.
//!
//! There are more workers than cores. The number of workers that answer at the same time is the number of
//! cores plus one ([`OVER`]). A worker that waits for a model on another machine, or that has worked on one
//! request for a long time, is no longer counted, so another worker takes the next request. This way no
//! request waits behind a slow one.

use crate::backend::{Call, Model, Plan, Replied, Vector, Vectors};
use crate::locks::lock;
use crate::request::Plain;
use ketrag_base::progress::Progress;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Weight of the last request in the running mean.
const SMOOTH: f64 = 0.05;
/// The mean before the first requests.
const START: f64 = 0.001;
/// A request is slow if it takes at least this long and at least this many times the mean.
const SLOW: f64 = 0.02;
const SLOWER: f64 = 5.0;
/// Number of workers in addition to the cores that may answer at the same time but not embed. If the system
/// interrupts a worker, for the client that it has just replied to or for another process, no core should be
/// idle.
const OVER: usize = 1;
/// Batch size above which the time per question hardly decreases.
const EFFICIENT: usize = 8;
/// Maximum total size in bytes of the questions that are embedded together, so that a long question does not
/// delay the others.
const TOGETHER: usize = 4096;

/// A request on its way.
pub struct Job {
    pub request: Plain,
    /// If the request is a call to a shard, which the backend answers; the other fields have no question.
    pub call: Option<Call>,
    /// Receives the reply. If it is dropped, the application answers.
    pub reply: oneshot::Sender<Replied>,
    pub arrived: Instant,
    pub until: Instant,
    pub progress: Arc<Progress>,
    pub plan: Option<Arc<dyn Plan>>,
    /// The vectors of the request's batch and its row in them, once a model has embedded its question.
    pub embedded: Option<(Arc<Vectors>, usize)>,
}

impl Job {
    /// Return the model that must embed the question first.
    pub fn model(&self) -> Option<Model> {
        match self.embedded {
            Some(_) => None,
            None => self.plan.as_ref().and_then(|plan| plan.model()),
        }
    }

    pub fn vector(&self) -> Option<Vector<'_>> {
        self.embedded.as_ref().and_then(|(vectors, row)| vectors.get(*row))
    }
}

/// First in, first out. Only questions for a model that already embeds its maximum number of batches wait for
/// the next batch, and other requests pass them.
pub struct Queue {
    state: Mutex<State>,
    ready: Condvar,
}

struct State {
    waiting: VecDeque<Job>,
    /// Number of batches that each model embeds.
    embedding: HashMap<u64, usize>,
    /// When each worker that uses a core took its request.
    began: Vec<Option<Instant>>,
    /// Number of workers that may use a core.
    cores: usize,
    /// Whether a worker waits for a request to become slow.
    timing: bool,
    closed: bool,
    /// Smoothed duration of a request in seconds.
    mean: f64,
}

impl Queue {
    /// Create a queue for `workers` workers, of which `cores` answer at a time.
    pub fn new(workers: usize, cores: usize) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            embedding: HashMap::new(),
            began: vec![None; workers],
            cores,
            timing: false,
            closed: false,
            mean: START,
        };
        Self { state: Mutex::new(state), ready: Condvar::new() }
    }

    /// Add a request. Return whether there was room: fewer than `most` were waiting.
    pub fn add(&self, job: Job, most: usize) -> bool {
        let mut state = lock(&self.state);
        if state.waiting.len() >= most {
            return false;
        }
        state.waiting.push_back(job);
        // A worker that becomes free takes the request. Waking another worker would only cost a context
        // switch.
        let wake = !state.timing || state.free(OVER, Instant::now()) > 0;
        drop(state);
        if wake {
            self.ready.notify_one();
        }
        true
    }

    /// Put requests back at the front, in their order, after planning or embedding.
    pub fn put_back(&self, jobs: Vec<Job>) {
        let mut state = lock(&self.state);
        for job in jobs.into_iter().rev() {
            state.waiting.push_front(job);
        }
        drop(state);
        self.ready.notify_all();
    }

    /// Wait for requests: one, or up to `most` that a model must embed together, until the queue is closed. The
    /// caller must call [`Queue::embedded`] for the latter.
    pub fn next(&self, worker: usize, most: usize) -> Option<Vec<Job>> {
        let mut state = lock(&self.state);
        state.began[worker] = None;
        let mut timing = false;
        loop {
            let now = Instant::now();
            if timing {
                state.timing = false;
            }
            if let Some(batch) = state.take(most, now) {
                state.began[worker] = Some(now);
                if timing && !state.waiting.is_empty() {
                    self.ready.notify_one(); // until the next request becomes slow
                }
                return Some(batch);
            }
            if state.closed {
                return None;
            }
            timing = !state.waiting.is_empty() && !state.timing;
            match state.next_slow(now).filter(|_| timing) {
                Some(pause) => {
                    state.timing = true;
                    state = self.ready.wait_timeout(state, pause).unwrap_or_else(|e| e.into_inner()).0;
                }
                None => {
                    timing = false;
                    state = self.ready.wait(state).unwrap_or_else(|e| e.into_inner());
                }
            }
        }
    }

    /// Record that a worker no longer needs a core, or needs one again.
    pub fn uses_core(&self, worker: usize, uses: bool) {
        let mut state = lock(&self.state);
        state.began[worker] = uses.then(Instant::now);
        let wake = !uses && !state.waiting.is_empty();
        drop(state);
        if wake {
            self.ready.notify_one();
        }
    }

    /// Let the next batch of a model begin.
    pub fn embedded(&self, model: Model) {
        let mut state = lock(&self.state);
        if let Some(batches) = state.embedding.get_mut(&model.id) {
            *batches -= 1;
            if *batches == 0 {
                state.embedding.remove(&model.id);
            }
        }
        drop(state);
        self.ready.notify_one();
    }

    /// Drop requests whose deadline has passed or whose client has disconnected.
    pub fn drop_ended(&self) {
        lock(&self.state).waiting.retain(|job| job.progress.check().is_ok());
    }

    /// Record the time that a worker needed for a request.
    pub fn took(&self, time: Duration) {
        let mut state = lock(&self.state);
        state.mean += SMOOTH * (time.as_secs_f64() - state.mean);
    }

    /// Return the number of waiting requests and the mean seconds of a request.
    pub fn load(&self) -> (usize, f64) {
        let state = lock(&self.state);
        (state.waiting.len(), state.mean)
    }

    /// Let the workers end once the queue is empty.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.ready.notify_all();
    }
}

impl State {
    fn slow(&self) -> Duration {
        Duration::from_secs_f64(SLOW.max(SLOWER * self.mean))
    }

    /// Return the number of cores, plus `over`, that no worker uses. Workers with slow requests are not
    /// counted.
    fn free(&self, over: usize, now: Instant) -> usize {
        let slow = self.slow();
        let busy = self.began.iter().flatten().filter(|&&began| now < began + slow).count();
        (self.cores + over).saturating_sub(busy)
    }

    /// Return the time until the next request becomes slow, if all cores are used.
    fn next_slow(&self, now: Instant) -> Option<Duration> {
        if self.free(0, now) > 0 {
            return None;
        }
        let slow = self.slow();
        self.began
            .iter()
            .flatten()
            .map(|&began| (began + slow).saturating_duration_since(now))
            .filter(|left| !left.is_zero())
            .min()
    }

    fn take(&mut self, most: usize, now: Instant) -> Option<Vec<Job>> {
        let cores = self.free(0, now);
        if self.free(OVER, now) == 0 {
            return None;
        }
        let batches = |model: Model| self.embedding.get(&model.id).copied().unwrap_or(0);
        let limit = |model: Model| if model.parallel { self.cores } else { 1 };
        let free = |job: &Job| job.model().is_none_or(|model| batches(model) < limit(model));
        let mut at = self.waiting.iter().position(free)?;
        if cores == 0 && self.waiting[at].model().is_some() {
            return None; // and none overtakes it
        }
        let first = self.waiting.remove(at)?;
        let Some(model) = first.model() else { return Some(vec![first]) };
        *self.embedding.entry(model.id).or_default() += 1;
        let is_same = |job: &Job| job.model().is_some_and(|other| other.id == model.id);
        let same = 1 + self.waiting.iter().filter(|job| is_same(job)).count();
        let share = match (model.parallel, cores) {
            (false, _) => most,
            (true, 1) => same.div_ceil(self.cores).max(EFFICIENT), // the others come back for theirs
            (true, _) => same.div_ceil(cores),
        };
        let mut bytes = first.request.question.len();
        let mut batch = vec![first];
        while at < self.waiting.len() && batch.len() < most.min(share) {
            let longer = bytes + self.waiting[at].request.question.len();
            if is_same(&self.waiting[at]) && longer <= TOGETHER {
                bytes = longer;
                batch.extend(self.waiting.remove(at));
            } else {
                at += 1;
            }
        }
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Answer;
    use ketrag_base::error::Result;

    struct Embedded;

    impl Plan for Embedded {
        fn id(&self) -> u64 {
            1
        }
        fn model(&self) -> Option<Model> {
            Some(Model { id: 7, parallel: true })
        }
        fn embed(&self, _: &[&str], _: Instant) -> Option<Vectors> {
            None
        }
        fn answer(&self, _: &str, _: Option<Vector<'_>>, _: &Progress, _: &mut Vec<u8>) -> Result<Answer> {
            Ok(Answer::Pass)
        }
    }

    fn add(queue: &Queue, question: &str, plan: Option<Arc<dyn Plan>>) {
        let request = Plain { question: question.into(), fields: "{}".into(), seconds: 60.0 };
        let arrived = Instant::now();
        let until = arrived + Duration::from_secs(60);
        let progress = Arc::new(Progress::with_deadline(until));
        let job = Job {
            request,
            call: None,
            reply: oneshot::channel().0,
            arrived,
            until,
            progress,
            plan,
            embedded: None,
        };
        assert!(queue.add(job, 100));
    }

    fn next(queue: &Queue, worker: usize) -> Vec<String> {
        let jobs = queue.next(worker, 8).unwrap();
        jobs.iter().map(|job| job.request.question.clone()).collect()
    }

    fn is_waiting(queue: &Queue) -> bool {
        let mut state = lock(&queue.state);
        state.mean = 1e6; // nothing is slow
        state.take(8, Instant::now()).is_none() && !state.waiting.is_empty()
    }

    #[test]
    fn one_request_more_than_there_are_cores_is_answered() {
        let queue = Queue::new(6, 2);
        lock(&queue.state).mean = 1e6;
        for question in ["a", "b", "c", "d"] {
            add(&queue, question, None);
        }
        for (worker, question) in ["a", "b", "c"].into_iter().enumerate() {
            assert_eq!(next(&queue, worker), [question]);
        }
        assert!(is_waiting(&queue));
        assert_eq!(next(&queue, 1), ["d"]);
    }

    #[test]
    fn a_question_for_a_model_waits_for_a_core_and_none_overtakes_it() {
        let queue = Queue::new(4, 1);
        lock(&queue.state).mean = 1e6;
        add(&queue, "a", None);
        assert_eq!(next(&queue, 0), ["a"]);
        add(&queue, "embedded", Some(Arc::new(Embedded)));
        add(&queue, "b", None);
        assert!(is_waiting(&queue));
        assert_eq!(next(&queue, 0), ["embedded"]);
        assert_eq!(next(&queue, 1), ["b"]);
    }
}
