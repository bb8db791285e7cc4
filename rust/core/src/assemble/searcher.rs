//! One opened generation that answers queries.

use super::extensions::Extensions;
use super::join::Task;
use super::request::Request;
use crate::channels::{
    all, evidence, find, Channel, Given, Printed, Printers, Query, Question, Reason, Scratch,
};
use crate::error::{caught, Error, Result};
use crate::generation::{Arrays, Parts};
use crate::progress::Progress;
use crate::rank::relevance::{falling, nothing_fits, Evidence};
use crate::sparse::{Mask, Scored};
use crate::text::bpe::Encoding;
use self_cell::self_cell;
use std::collections::BTreeMap;
use std::sync::Mutex;

self_cell!(
    /// The mapped arrays together with views of them.
    struct Opened {
        owner: Arrays,
        #[not_covariant]
        dependent: Views,
    }
);

/// What queries read: views of the arrays, and the channels that a crate above the core adds.
struct Views<'a> {
    parts: Parts<'a>,
    added: Vec<Box<dyn Channel + 'a>>,
}

/// The answer to a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// Reason for an empty result: `empty_index`, `no_match` or `below_min_score`.
    pub reason: Option<&'static str>,
    /// One context per budget, in order.
    pub contexts: Vec<Printed>,
    /// Channels that have no data in the index. Their shares went to other channels.
    pub empty_channels: Vec<String>,
}

/// An opened index. It can be shared between threads: each query borrows scratch buffers from a pool.
pub struct Searcher {
    opened: Opened,
    printers: &'static Printers,
    scratch: Mutex<Vec<Scratch>>,
}

impl Searcher {
    /// Open a generation. Opening reads almost nothing: each part is loaded when a query first needs it.
    /// Budgets are counted in tokens of `encoding`. `extensions` add to the channels of the core.
    pub fn open(arrays: Arrays, encoding: Encoding, language: &str, extensions: &Extensions) -> Result<Self> {
        Ok(Self {
            opened: Opened::try_new(arrays, |arrays| {
                Ok::<_, Error>(Views {
                    parts: Parts::new(arrays, language)?,
                    added: (extensions.open)(arrays),
                })
            })?,
            printers: Printers::of(encoding),
            scratch: Mutex::default(),
        })
    }

    /// Call `work` with views of the arrays. Errors raised in the call, such as a damaged block, are returned
    /// as errors.
    pub fn with_parts<T>(&self, work: impl FnOnce(&Parts<'_>) -> Result<T>) -> Result<T> {
        self.with_views(|views| work(&views.parts))
    }

    fn with_views<T>(&self, work: impl FnOnce(&Views<'_>) -> Result<T>) -> Result<T> {
        caught(|| self.opened.with_dependent(|_, views| work(views)))
    }

    /// Verify and unpack the rest of the arrays that queries have read from, up to `most` bytes, so that
    /// later queries do not wait for it. Returns the number of bytes.
    pub fn read_ahead(&self, most: usize, progress: &Progress) -> Result<usize> {
        caught(|| self.opened.borrow_owner().read_ahead(most, progress))
    }

    /// Return the number of units.
    pub fn len(&self) -> usize {
        self.opened.with_dependent(|_, views| views.parts.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For each channel that cannot run, return the missing part of the index.
    pub fn missing(&self) -> BTreeMap<String, Option<&'static str>> {
        self.opened.with_dependent(|_, views| {
            let missing = |channel: &dyn Channel| (channel.name().to_owned(), channel.missing(&views.parts));
            all(&views.added).map(missing).collect()
        })
    }

    /// Print a context for each budget of the request.
    pub fn answer(&self, request: &Request, question: Question<'_>, progress: &Progress) -> Result<Reply> {
        let mut scratch = self.lend();
        let reply = self.with_views(|views| {
            let mut reply = self.print_with(views, request, question, &mut scratch, progress)?;
            if views.parts.is_empty() {
                return Ok(reply);
            }
            for printed in &mut reply.contexts {
                let units: Vec<u32> = printed.context.rows.iter().map(|row| row.unit).collect();
                let found = evidence(&views.parts, question, &units)?;
                printed.nothing_fits = nothing_fits(found.first().copied().flatten());
                printed.relevance = falling(found);
            }
            Ok(reply)
        });
        self.give_back(scratch);
        reply
    }

    /// Like [`Searcher::answer`] for callers that know how relevant the units are: the relevance of all rows is 0.
    pub fn print(&self, request: &Request, question: Question<'_>, progress: &Progress) -> Result<Reply> {
        let mut scratch = self.lend();
        let reply =
            self.with_views(|views| self.print_with(views, request, question, &mut scratch, progress));
        self.give_back(scratch);
        let mut reply = reply?;
        for printed in &mut reply.contexts {
            printed.relevance = vec![0.0; printed.context.rows.len()];
        }
        Ok(reply)
    }

    fn print_with(
        &self,
        views: &Views<'_>,
        request: &Request,
        question: Question<'_>,
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Reply> {
        let parts = &views.parts;
        let given = given_rankings(parts, request, question)?;
        if parts.is_empty() {
            let contexts = vec![Printed::default(); request.budgets.len()];
            return Ok(Reply { reason: Some("empty_index"), contexts, ..Reply::default() });
        }
        let recipe = &request.recipe;
        let channels = chosen_channels(views, request, &given)?;
        let mask = request.mask.as_deref();
        if let Some(mask) = mask {
            mask.check(parts.len())?;
        }
        let (options, policy) = (&request.options, request.policy);
        let mut query = Query::new(recipe.name(), question, parts, self.printers, options, policy, mask);
        query.once = request.once;
        query.min_score = request.min_score;
        let task = Task {
            query: &query,
            recipe,
            channels: &channels,
            budgets: &request.budgets,
            most: request.top.unwrap_or(usize::MAX),
        };
        let contexts = request.join.print(&task, scratch, progress)?;
        let mut reply = Reply { contexts, ..Reply::default() };
        if reply.contexts.iter().any(|context| context.no_match) {
            reply.reason = Some("no_match");
            return Ok(reply);
        }
        if reply.contexts.iter().any(|context| context.below_min_score) {
            reply.reason = Some("below_min_score");
        }
        for (i, channel) in channels.iter().enumerate() {
            let asked = || request.budgets.iter().any(|&budget| recipe.sizes(budget)[i] > 0);
            if channel.is_empty(parts)? && asked() {
                reply.empty_channels.push(channel.name().to_owned());
            }
        }
        Ok(reply)
    }

    /// Return the best `count` units that pass a mask, for a mode that ranks one list of units. The mask replaces
    /// that of the request.
    pub fn rank(
        &self,
        request: &Request,
        question: Question<'_>,
        (count, mask): (usize, Option<&Mask>),
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Scored>> {
        self.with_views(|views| {
            let parts = &views.parts;
            if parts.is_empty() {
                return Ok(Vec::new());
            }
            let channels = chosen_channels(views, request, &[])?;
            let (recipe, options) = (&request.recipe, &request.options);
            let query =
                Query::new(recipe.name(), question, parts, self.printers, options, request.policy, mask);
            let task = Task { query: &query, recipe, channels: &channels, budgets: &[], most: count };
            request.join.rank(&task, count, scratch, progress)
        })
    }

    /// Return why the named channel gave each of these units its rank for the same query, or nothing if the
    /// channel has no explanations.
    pub fn explain(
        &self,
        request: &Request,
        channel: &str,
        question: Question<'_>,
        units: &[u32],
        progress: &Progress,
    ) -> Result<Vec<Reason>> {
        self.with_views(|views| {
            let parts = &views.parts;
            let Some(channel) = find(&views.added, channel).filter(|found| found.missing(parts).is_none())
            else {
                return Ok(Vec::new());
            };
            let name = request.recipe.name();
            let (options, policy, mask) = (&request.options, request.policy, request.mask.as_deref());
            let query = Query::new(name, question, parts, self.printers, options, policy, mask);
            channel.explain(&query, units, progress)
        })
    }

    /// Return the evidence about a query and each of the given units: see [`evidence`].
    pub fn evidence(&self, question: Question<'_>, units: &[u32]) -> Result<Vec<Option<Evidence>>> {
        self.with_parts(|parts| evidence(parts, question, units))
    }

    fn lend(&self) -> Scratch {
        self.scratch.lock().unwrap_or_else(|e| e.into_inner()).pop().unwrap_or_default()
    }

    fn give_back(&self, scratch: Scratch) {
        self.scratch.lock().unwrap_or_else(|e| e.into_inner()).push(scratch);
    }
}

/// Return the caller's rankings that the recipe uses, after checking them.
fn given_rankings<'a>(
    parts: &Parts<'_>,
    request: &Request,
    question: Question<'a>,
) -> Result<Vec<Given<'a>>> {
    let used = |name: &str| request.recipe.shares().iter().any(|share| share.channel == name);
    let rankings = question.given.iter().filter(|ranking| used(ranking.channel));
    rankings.map(|&ranking| Given::new(ranking, parts.len())).collect()
}

/// Return the channels of the recipe's shares.
fn chosen_channels<'a>(
    Views { parts, added }: &'a Views<'_>,
    request: &Request,
    given: &'a [Given<'_>],
) -> Result<Vec<&'a dyn Channel>> {
    let mode = request.recipe.name();
    let mut channels: Vec<&'a dyn Channel> = Vec::with_capacity(request.recipe.shares().len());
    for share in request.recipe.shares() {
        let name = share.channel.as_str();
        let ranking = given.iter().find(|given| given.name() == name);
        let channel: &'a dyn Channel = match (find(added, name), ranking) {
            (Some(channel), None) => channel,
            (None, Some(given)) => given,
            (Some(_), Some(_)) => {
                return Err(Error::input(format!(
                    "channel {name} is built in: give the ranking another name"
                )))
            }
            (None, None) => {
                let known: Vec<&str> = all(added).map(|channel| channel.name()).collect();
                return Err(Error::input(format!(
                    "mode {mode}: channel {name:?} does not exist, and no ranking is given for it; \
                     the channels are {}",
                    known.join(", ")
                )));
            }
        };
        if let Some(missing) = channel.missing(parts) {
            return Err(Error::input(format!("mode {mode} needs {missing}")));
        }
        channels.push(channel);
    }
    Ok(channels)
}
