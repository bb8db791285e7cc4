//! What a join is: how the channels of a recipe make one context.

use super::recipe::Recipe;
use crate::channels::{Channel, Options, Printed, Query, Scratch};
use crate::error::Result;
use crate::progress::Progress;

/// One question to the channels of a recipe.
pub struct Task<'a, 'p> {
    pub query: &'a Query<'a, 'p>,
    pub recipe: &'a Recipe,
    /// Those of the recipe's shares, in their order.
    pub channels: &'a [&'a dyn Channel],
    pub budgets: &'a [u64],
    /// At most so many units.
    pub most: usize,
}

pub trait Join: Sync {
    fn name(&self) -> &'static str;

    /// Refuses options that one of the channels known so far could not go by.
    fn check(&self, recipe: &Recipe, channel: &dyn Channel, options: &Options) -> Result<()>;

    /// A context for each of the task's budgets.
    fn print(&self, task: &Task<'_, '_>, scratch: &mut Scratch, progress: &Progress) -> Result<Vec<Printed>>;
}
