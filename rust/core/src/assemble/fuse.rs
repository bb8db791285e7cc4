//! The join `fuse`: the channels' lists merged by reciprocal rank. All channels with a share have equal
//! weight, whatever its size; channels without a share are ignored.

use super::join::{Join, Task};
use super::recipe::Recipe;
use crate::channels::{print_ranked, Channel, List, Options, Printed, Room, Scratch};
use crate::error::Result;
use crate::progress::Progress;
use crate::search::fusion::fuse;
use crate::search::render::Style;

/// Minimum depth of the lists that are fused.
const DEPTH: usize = 1000;
/// Constant of reciprocal-rank fusion (Cormack, Clarke, Buettcher 2009, who use 60). A value of 10 gives top
/// ranks more weight: with the space fitted on the corpus, recall@5 of `fused` gains 2.6 to 4.9 points on
/// three development sets, with MiniLM 1.7; coverage does not fall with the fitted space, and changes by -1.0
/// to +2.2 with MiniLM.
const CONSTANT: f64 = 10.0;

pub struct Fuse;

impl Join for Fuse {
    fn name(&self) -> &'static str {
        "fuse"
    }

    fn check(&self, _recipe: &Recipe, channel: &dyn Channel, options: &Options) -> Result<()> {
        channel.check(options, true)
    }

    fn print(&self, task: &Task<'_, '_>, scratch: &mut Scratch, progress: &Progress) -> Result<Vec<Printed>> {
        let voices: Vec<&dyn Channel> = task
            .channels
            .iter()
            .zip(task.recipe.shares())
            .filter(|(_, share)| share.part > 0.0)
            .map(|(channel, _)| *channel)
            .collect();
        let each_budget = voices.iter().any(|channel| channel.depends_on_budget());
        let list = List { channel: task.recipe.name(), style: Style::Cited, each_budget };
        let room =
            Room { budgets: task.budgets, units: task.most, alone: true, joined: true, ..Room::default() };
        print_ranked(task.query, &room, list, progress, &mut |wanted, budget| {
            let depth = wanted.max(DEPTH);
            let lists = voices
                .iter()
                .map(|channel| {
                    let ranked = channel.rank(task.query, depth, budget, scratch, progress)?;
                    Ok(ranked.iter().map(|s| s.id).collect())
                })
                .collect::<Result<Vec<Vec<u32>>>>()?;
            let lists: Vec<&[u32]> = lists.iter().map(Vec::as_slice).collect();
            let mut fused = fuse(&lists, CONSTANT)?;
            fused.truncate(wanted);
            Ok(fused)
        })
    }
}
