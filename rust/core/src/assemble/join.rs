//! The `Join` trait: how the results of a recipe's channels become one context.

use super::recipe::Recipe;
use crate::channels::{Channel, Options, Printed, Query, Scratch};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::sparse::Scored;

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

/// One way of combining channels.
pub trait Join: Sync {
    fn name(&self) -> &'static str;

    /// Return an error if an option is invalid for one of the channels.
    fn check(&self, recipe: &Recipe, channel: &dyn Channel, options: &Options) -> Result<()>;

    /// Return a context for each of the task's budgets.
    fn print(&self, task: &Task<'_, '_>, scratch: &mut Scratch, progress: &Progress) -> Result<Vec<Printed>>;

    /// Return the best `wanted` units of a mode that prints one list of units, best first.
    fn rank(
        &self,
        task: &Task<'_, '_>,
        _wanted: usize,
        _scratch: &mut Scratch,
        _progress: &Progress,
    ) -> Result<Vec<Scored>> {
        Err(not_one_list(task))
    }
}

/// Return the error of a mode that prints more than one list of units.
pub(super) fn not_one_list(task: &Task<'_, '_>) -> Error {
    Error::input(format!("mode {} does not rank one list of units", task.recipe.name()))
}
