//! The requests that wait for a worker, and which of them are taken together.

use crate::backend::Plan;
use crate::connection::Connection;
use crate::locks::lock;
use crate::request::Plain;
use ketrag_base::progress::Progress;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A request on its way.
pub struct Job {
    pub connection: Arc<Connection>,
    pub request: Plain,
    /// The request as it came, for the application.
    pub bytes: Vec<u8>,
    pub arrived: Instant,
    pub until: Instant,
    pub progress: Arc<Progress>,
    pub plan: Option<Arc<dyn Plan>>,
}

/// First in, first out; but questions for a model that embeds a batch wait for the next one, and nobody waits for
/// them.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// Models that embed a batch.
    embedding: HashSet<u64>,
    closed: bool,
    /// Smoothed seconds of a worker for a request.
    mean: f64,
}

/// How much the last request counts in the mean.
const SMOOTH: f64 = 0.05;

impl Queue {
    /// Add a request, or return it if `most` are waiting.
    pub fn add(&self, job: Job, most: usize) -> Result<(), Box<Job>> {
        let mut state = lock(&self.state);
        if state.waiting.len() >= most {
            return Err(Box::new(job));
        }
        state.waiting.push_back(job);
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    /// Put a request back at the front: its plan is now known.
    pub fn put_back(&self, job: Job) {
        lock(&self.state).waiting.push_front(job);
        self.ready.notify_one();
    }

    /// Wait for requests: one, or up to `most` that a model embeds together, until the queue is closed. The
    /// caller must call [`Queue::embedded`] for the latter.
    pub fn next(&self, most: usize) -> Option<Vec<Job>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(batch) = state.take(most) {
                return Some(batch);
            }
            if state.closed {
                return None;
            }
            state = self.ready.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Let the next batch of a model begin.
    pub fn embedded(&self, model: u64) {
        lock(&self.state).embedding.remove(&model);
        self.ready.notify_one();
    }

    /// Remove and return the requests whose time is over or whose client is gone.
    pub fn expired(&self, now: Instant) -> Vec<Job> {
        let mut state = lock(&self.state);
        let is_over = |job: &Job| job.until <= now || job.progress.check().is_err();
        if !state.waiting.iter().any(is_over) {
            return Vec::new();
        }
        let (over, waiting) = std::mem::take(&mut state.waiting).into_iter().partition(is_over);
        state.waiting = waiting;
        Vec::from(over)
    }

    /// Count the time that a worker took for a request.
    pub fn took(&self, time: Duration) {
        let mut state = lock(&self.state);
        state.mean += SMOOTH * (time.as_secs_f64() - state.mean);
    }

    /// Return the number of waiting requests and the mean seconds of a request.
    pub fn load(&self) -> (usize, f64) {
        let state = lock(&self.state);
        (state.waiting.len(), state.mean)
    }

    /// Let the workers end when the queue is empty.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.ready.notify_all();
    }
}

impl State {
    fn take(&mut self, most: usize) -> Option<Vec<Job>> {
        let model = |job: &Job| job.plan.as_ref().and_then(|plan| plan.model());
        let free = |job: &Job| model(job).is_none_or(|model| !self.embedding.contains(&model));
        let at = self.waiting.iter().position(free)?;
        let first = self.waiting.remove(at)?;
        let Some(own) = model(&first) else { return Some(vec![first]) };
        self.embedding.insert(own);
        let mut batch = vec![first];
        let mut at = at;
        while at < self.waiting.len() && batch.len() < most {
            match model(&self.waiting[at]) == Some(own) {
                true => batch.extend(self.waiting.remove(at)),
                false => at += 1,
            }
        }
        Some(batch)
    }
}
