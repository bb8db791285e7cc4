//! A retrieval request without its query: checked once, used for many queries.

use super::fuse::Fuse;
use super::join::Join;
use super::recipe::{Recipe, Rollover, Share};
use super::shares::Shares;
use super::vote::Vote;
use crate::channels::{find, Options};
use crate::error::{Error, Result};
use crate::search::fill::{FillPolicy, OversizePolicy};
use crate::sparse::Mask;
use std::sync::Arc;

/// All joins. To add one, write a file with a [`Join`] and add an entry here.
static JOINS: &[&dyn Join] = &[&Shares, &Fuse, &Vote];

pub struct Request {
    pub(super) recipe: Recipe,
    pub(super) join: &'static dyn Join,
    pub(super) budgets: Vec<u64>,
    pub(super) options: Options,
    /// Maximum number of units.
    pub(super) top: Option<usize>,
    pub(super) policy: (FillPolicy, OversizePolicy),
    /// Only these units may be printed.
    pub(super) mask: Option<Arc<Mask>>,
    pub(super) once: bool,
    pub(super) min_score: f64,
}

impl Request {
    /// Check everything that can be checked without an index.
    #[allow(clippy::too_many_arguments)] // the fields of a request, in their order
    pub fn new(
        mode: String,
        shares: Vec<Share>,
        (join, rollover): (&str, &str),
        budgets: Vec<u64>,
        options: Options,
        top: Option<usize>,
        policy: (FillPolicy, OversizePolicy),
        mask: Option<Arc<Mask>>,
    ) -> Result<Self> {
        let join = by_name(join)?;
        let recipe = Recipe::new(mode, shares, Rollover::by_name(rollover)?)?;
        for channel in recipe.shares().iter().filter_map(|share| find(&share.channel)) {
            join.check(&recipe, channel, &options)?;
        }
        Ok(Self { recipe, join, budgets, options, top, policy, mask, once: false, min_score: 0.0 })
    }

    /// Print one of equal or nearly equal units, and neighbours of one list as one passage.
    pub fn once(self, once: bool) -> Self {
        Self { once, ..self }
    }

    /// Print no unit that is less relevant than this, from 0 to 1.
    pub fn min_score(self, min_score: f64) -> Result<Self> {
        match (0.0..=1.0).contains(&min_score) {
            true => Ok(Self { min_score, ..self }),
            false => Err(Error::input(format!("min_score must be from 0 to 1, got {min_score}"))),
        }
    }

    pub fn mode(&self) -> &str {
        self.recipe.name()
    }

    pub fn budgets(&self) -> &[u64] {
        &self.budgets
    }

    pub fn top(&self) -> Option<usize> {
        self.top
    }
}

fn by_name(name: &str) -> Result<&'static dyn Join> {
    let names: Vec<&str> = JOINS.iter().map(|join| join.name()).collect();
    let found = JOINS.iter().copied().find(|join| join.name() == name);
    let listed = || match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    };
    found.ok_or_else(|| Error::input(format!("join must be {}, not {name:?}", listed())))
}
