//! The `Join` trait: how the channels of a recipe make one context.

use super::recipe::Recipe;
use crate::channels::{Channel, Options, Printed, Query, Scratch};
use crate::error::Result;
use crate::progress::Progress;

/// One query to the channels of a recipe.
pub struct Task<'a, 'p> {
    pub query: &'a Query<'a, 'p>,
    pub recipe: &'a Recipe,
    /// The recipe's channels, in the order of its shares.
    pub channels: &'a [&'a dyn Channel],
    pub budgets: &'a [u64],
    /// Maximum number of units.
    pub most: usize,
}

pub trait Join: Sync {
    fn name(&self) -> &'static str;

    /// Return an error if an option is invalid for one of the channels.
    fn check(&self, recipe: &Recipe, channel: &dyn Channel, options: &Options) -> Result<()>;

    /// Return a context for each of the task's budgets.
    fn print(&self, task: &Task<'_, '_>, scratch: &mut Scratch, progress: &Progress) -> Result<Vec<Printed>>;
}
