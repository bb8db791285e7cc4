//! One opened generation: its arrays, and the modes that rank its units.

mod answer;
mod combined;
mod modes;

pub use answer::{Near, Reply, Request, Section};
pub use combined::{Rollover, TableOptions};
pub use modes::{Mode, Scratch};

use crate::error::{caught, Result};
use crate::generation::{Arrays, Parts};
use crate::progress::Progress;
use crate::search::local::Tables;
use crate::search::render::{Renderer, Style};
use crate::text::bpe::Encoding;
use self_cell::self_cell;
use std::sync::Mutex;

self_cell!(
    /// The mapped arrays together with the views into them.
    struct Opened {
        owner: Arrays,
        #[not_covariant]
        dependent: Parts,
    }
);

/// A generation that answers questions. Safe to share between threads; each question borrows a
/// scratch of its own from a pool.
pub struct Engine {
    opened: Opened,
    cited: Renderer<Encoding>,
    ket: Renderer<Encoding>,
    published: Renderer<Encoding>,
    tables: Tables<Encoding>,
    published_tables: Tables<Encoding>,
    scratch: Mutex<Vec<Scratch>>,
}

impl Engine {
    /// Reads next to nothing: a part is looked at when a question first needs it. `encoding` is what budgets are counted in.
    pub fn open(arrays: Arrays, encoding: Encoding, language: &str) -> Result<Self> {
        Ok(Self {
            opened: Opened::try_new(arrays, |arrays| Parts::new(arrays, language))?,
            cited: Renderer::new(encoding, Style::Cited),
            ket: Renderer::new(encoding, Style::Ket),
            published: Renderer::new(encoding, Style::Published),
            tables: Tables::new(encoding, false),
            published_tables: Tables::new(encoding, true),
            scratch: Mutex::default(),
        })
    }

    /// Calls `work` with the views of the arrays. What it raises (a damaged block) is an error here.
    pub fn with_parts<T>(&self, work: impl FnOnce(&Parts<'_>) -> Result<T>) -> Result<T> {
        caught(|| self.opened.with_dependent(|_, parts| work(parts)))
    }

    /// What `mode` lacks in this generation, if anything.
    pub fn missing(&self, mode: Mode) -> Option<&'static str> {
        self.opened.with_dependent(|_, parts| mode.missing(parts))
    }

    /// The number of units.
    pub fn len(&self) -> usize {
        self.opened.with_dependent(|_, parts| parts.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ranks the units for one question and prints a context for each budget.
    pub fn answer(&self, request: &Request<'_>, progress: &Progress) -> Result<Reply> {
        let mut scratch = self.lend();
        let reply = self.with_parts(|parts| answer::answer(self, parts, request, &mut scratch, progress));
        self.give_back(scratch);
        reply
    }

    fn renderer(&self, mode: Mode, published: bool) -> &Renderer<Encoding> {
        match mode {
            Mode::Keyword | Mode::Text if published => &self.published,
            Mode::Keyword => &self.ket,
            _ => &self.cited,
        }
    }

    fn tables(&self, published: bool) -> &Tables<Encoding> {
        if published {
            &self.published_tables
        } else {
            &self.tables
        }
    }

    fn lend(&self) -> Scratch {
        self.scratch.lock().unwrap_or_else(|e| e.into_inner()).pop().unwrap_or_default()
    }

    fn give_back(&self, scratch: Scratch) {
        self.scratch.lock().unwrap_or_else(|e| e.into_inner()).push(scratch);
    }
}
