//! What the event loop, the workers and the owner of the front share.

use crate::backend::{Backend, Plan};
use crate::cache::Cache;
use crate::counters::Counters;
use crate::date::Clock;
use crate::limits::Limits;
use crate::locks::lock;
use crate::queue::Queue;
use crate::request::Rules;
use mio::{Registry, Token, Waker};
use std::collections::HashMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Maximum number of plans that are kept.
const PLANS: usize = 256;

/// A connection that the application takes over.
#[derive(Debug)]
pub struct Handed {
    pub socket: OwnedFd,
    /// What the front has read of its next request, and of later ones.
    pub bytes: Vec<u8>,
    /// Whether there are too many connections: the application replies 429.
    pub refused: bool,
    /// The deadline of its next request in seconds, if it has passed.
    pub late: Option<f64>,
}

type Plans = HashMap<String, Option<Arc<dyn Plan>>>;

pub struct Shared {
    pub limits: Limits,
    pub rules: Rules,
    pub backend: Box<dyn Backend>,
    pub queue: Queue,
    pub cache: Cache,
    pub counters: Counters,
    pub clock: Clock,
    pub registry: Registry,
    pub waker: Waker,
    pub stopping: AtomicBool,
    /// When running work is stopped, if the front stops.
    pub abort: Mutex<Option<Instant>>,
    /// Connections of the front, and those that were passed on and are still open.
    pub open: AtomicUsize,
    pub lent: AtomicUsize,
    /// Connections that the event loop must look at again.
    pub again: Mutex<Vec<Token>>,
    /// Number of times that the plans were dropped, and the plans by fields.
    pub plans: Mutex<(u64, Plans)>,
    pub handed: Mutex<Vec<Handed>>,
    pub notify: UnixStream,
}

impl Shared {
    /// Pass a connection to the application.
    pub fn hand_over(&self, handed: Handed) {
        self.lent.fetch_add(1, Ordering::Relaxed);
        lock(&self.handed).push(handed);
        // If the pipe is full the application is already being woken.
        let _ = (&self.notify).write(&[1]);
    }

    /// Return whether the front has stopped and its time is over.
    pub fn is_aborting(&self) -> bool {
        self.stopping.load(Ordering::Relaxed) && lock(&self.abort).is_some_and(|at| at <= Instant::now())
    }

    /// Have the event loop look at a connection again.
    pub fn look_again(&self, token: Token) {
        lock(&self.again).push(token);
        let _ = self.waker.wake();
    }

    /// Return the plan of some fields, if it was made before.
    pub fn known_plan(&self, fields: &str) -> Option<Option<Arc<dyn Plan>>> {
        lock(&self.plans).1.get(fields).cloned()
    }

    /// Return the plan of some fields. If `until` passes, `None` is not kept: the next request may have more time.
    pub fn plan(&self, fields: &str, until: Instant) -> Option<Arc<dyn Plan>> {
        if let Some(plan) = self.known_plan(fields) {
            return plan;
        }
        let age = lock(&self.plans).0;
        let plan = self.backend.plan(fields, until);
        if plan.is_none() && until <= Instant::now() {
            return None;
        }
        let mut plans = lock(&self.plans);
        if plans.0 == age {
            if plans.1.len() >= PLANS {
                plans.1.clear();
            }
            plans.1.insert(fields.to_owned(), plan.clone());
        }
        plan
    }

    /// Drop all plans and replies: an index has changed.
    pub fn forget(&self) {
        let mut plans = lock(&self.plans);
        plans.0 += 1;
        plans.1.clear();
        self.cache.clear();
    }
}
