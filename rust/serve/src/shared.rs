//! State that the connections, the workers and the owner of the front share.

use crate::backend::{Backend, Plan};
use crate::cache::Cache;
use crate::counters::Counters;
use crate::limits::Limits;
use crate::locks::lock;
use crate::queue::Queue;
use crate::request::Rules;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Maximum number of cached plans.
const PLANS: usize = 256;

type Plans = HashMap<String, Option<Arc<dyn Plan>>>;

pub struct Shared {
    pub limits: Limits,
    pub rules: Rules,
    pub backend: Box<dyn Backend>,
    pub queue: Queue,
    pub cache: Cache,
    pub counters: Counters,
    /// Address of the application.
    pub address: String,
    /// Number of connections of clients.
    pub open: AtomicUsize,
    /// Whether running work must stop.
    pub aborting: AtomicBool,
    /// Number of times that the plans were dropped, and the plans by their fields.
    pub plans: Mutex<(u64, Plans)>,
}

impl Shared {
    pub fn is_aborting(&self) -> bool {
        self.aborting.load(Ordering::Relaxed)
    }

    /// Return the plan for the given fields if it is cached.
    pub fn known_plan(&self, fields: &str) -> Option<Option<Arc<dyn Plan>>> {
        lock(&self.plans).1.get(fields).cloned()
    }

    /// Return the plan for the given fields. If `until` passes, the result `None` is not cached, because the
    /// next request may have more time.
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

    /// Drop all plans and replies, because an index has changed.
    pub fn forget(&self) {
        let mut plans = lock(&self.plans);
        plans.0 += 1;
        plans.1.clear();
        self.cache.clear();
    }
}
