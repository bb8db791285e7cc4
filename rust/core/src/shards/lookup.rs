//! The units of a shard to which the best candidates of all shards lead: through keywords, names and subjects that
//! they share, and by the part of the query that the best pair leaves uncovered.

use super::bundle::Bundle;
use super::candidates::{best_of, bundle, Weighting};
use crate::channels::need;
use crate::error::Result;
use crate::generation::Parts;
use crate::memory::zeros;
use crate::progress::Progress;
use crate::rank::links_view::LinksView;
use crate::rank::matches::{bits, Matches};
use crate::rank::question::{phrases_in_all, phrases_of};
use crate::sparse::{leaves, Leaders, Mask, Scored};
use crate::text::lexical::Lexer;
use crate::text::strings::Strings;
use std::collections::HashMap;

/// Added to the mass of a unit before its logarithm is taken, as in the walk.
const TINY: f64 = 1e-9;

/// Share of the mass that moves over subjects in a step of the walk.
const SHARE: f64 = 0.165;

/// A keyword, name or subject that passes mass on.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub text: String,
    pub mass: f64,
    /// Number of units of all shards that have it.
    pub frequency: u64,
}

/// A unit of another shard, whose subjects may be those of documents of this one.
#[derive(Debug, Clone, PartialEq)]
pub struct Seed {
    /// Its words in lower case, separated by spaces, so that only the caller splits the text into words.
    pub text: String,
    pub mass: f64,
}

/// Where the best candidates lead.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Leads {
    pub keywords: Vec<Node>,
    pub names: Vec<Node>,
    pub subjects: Vec<Node>,
    /// The best candidates. A shard looks for its own subjects in them.
    pub seeds: Vec<Seed>,
    /// The query, whose own subjects lead nowhere.
    pub question: String,
    /// The weights of the query's keywords in the part of the query that the best pair leaves uncovered.
    pub rest: Vec<(String, f64)>,
    /// Mean and deviation of the scores of all units of all shards for the query.
    pub standard: [f64; 2],
}

/// How many units a shard returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Units with the greatest sum of direct match and logarithm of the mass.
    pub reached: usize,
    /// Units with the greatest mass.
    pub stepped: usize,
    /// Units that match the uncovered part best.
    pub rest: usize,
}

/// Return the units of a shard to which the candidates lead. `weighting` is that of the whole query.
pub fn looked_up(
    parts: &Parts<'_>,
    weighting: &Weighting,
    leads: &Leads,
    limits: Limits,
    mask: Option<&Mask>,
    progress: &Progress,
) -> Result<Bundle> {
    let links = need(parts.links()?)?;
    let matches = weighting.matches(links, progress)?;
    let rest = Weighting { keywords: leads.rest.clone(), saturations: weighting.saturations.clone() };
    let rest = rest.matches(links, progress)?;
    let mass = arrived(links, weighting, leads)?;
    let mut units: Vec<u32> = best_of(&rest, limits.rest, mask).iter().map(|one| one.id).collect();
    let permitted = || mass.iter().filter(|&(unit, _)| leaves(mask, unit));
    units.extend(reached(&matches, permitted(), leads, limits.reached));
    let mut stepped = Leaders::new(limits.stepped);
    for (id, score) in permitted() {
        stepped.push(Scored { id, score });
    }
    units.extend(stepped.finish().iter().map(|one| one.id));
    bundle(parts, links, (units, None), mask, progress)
}

/// Return the units with the greatest sum of direct match and logarithm of the mass.
fn reached(
    matches: &Matches,
    mass: impl Iterator<Item = (u32, f64)>,
    leads: &Leads,
    count: usize,
) -> Vec<u32> {
    let [mean, deviation] = leads.standard;
    let mut best = Leaders::new(count);
    for (id, mass) in mass {
        let direct = if deviation > 0.0 { (matches.get(id) - mean) / deviation } else { 0.0 };
        best.push(Scored { id, score: direct + (mass + TINY).ln() });
    }
    best.finish().iter().map(|one| one.id).collect()
}

/// The mass of each unit of a shard. Memory of units without mass is never written.
struct Mass {
    of_units: Vec<f64>,
    /// One bit for each unit that has mass.
    has: Vec<u64>,
}

impl Mass {
    fn new(units: usize) -> Result<Self> {
        Ok(Self {
            of_units: zeros(units, "the mass of units")?,
            has: zeros(units.div_ceil(64), "the units with mass")?,
        })
    }

    fn add(&mut self, unit: u32, mass: f64) {
        self.of_units[unit as usize] += mass;
        self.has[unit as usize / 64] |= 1 << (unit % 64);
    }

    /// Iterate over the units that have mass, ascending.
    fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        let words = self.has.iter().enumerate().filter(|(_, &set)| set != 0);
        let units = words.flat_map(|(word, &set)| bits(set).map(move |at| 64 * word as u32 + at));
        units.map(|unit| (unit, self.of_units[unit as usize]))
    }
}

/// Return the mass that arrives at the units of the shard.
fn arrived(links: &LinksView<'_>, weighting: &Weighting, leads: &Leads) -> Result<Mass> {
    let mut mass = Mass::new(links.units())?;
    let known = |nodes: &'_ [Node], strings: Strings<'_>| -> Vec<(usize, f64)> {
        let found = |node: &Node| {
            strings.position(&node.text).map(|at| (at, node.mass / node.frequency.max(1) as f64))
        };
        nodes.iter().filter_map(found).collect()
    };
    for (at, push) in known(&leads.keywords, links.keywords) {
        let range = links.keyword_units.range(at);
        let units = links.keyword_units.indices.get(range.clone());
        let of =
            |(&unit, &count): (&u32, &u32)| weighting.saturations.of(links.unit_length[unit as usize], count);
        let parts: Vec<f64> = units.iter().zip(links.keyword_tf.get(range)).map(of).collect();
        let mean = parts.iter().sum::<f64>() / parts.len().max(1) as f64;
        for (&unit, part) in units.iter().zip(&parts).filter(|_| mean > 0.0) {
            mass.add(unit, push * part / mean);
        }
    }
    for (at, push) in known(&leads.names, links.names) {
        links.name_units.row(at).iter().for_each(|&unit| mass.add(unit, push));
    }
    for (at, push) in known(&leads.subjects, links.subjects) {
        links.subject_units.row(at).iter().for_each(|&unit| mass.add(unit, push));
    }
    from_seeds(links, leads, &mut mass);
    Ok(mass)
}

/// Add the mass that moves from the seeds over the subjects of the shard that they mention, in proportion to the idf of
/// these subjects, as in a step of the walk.
fn from_seeds(links: &LinksView<'_>, leads: &Leads, mass: &mut Mass) {
    let mut lexer = Lexer::default();
    lexer.read(&leads.question);
    let asked = phrases_of(&lexer, links.subjects);
    let mut places = HashMap::new();
    for seed in &leads.seeds {
        let words: Vec<&str> = seed.text.split(' ').collect();
        let mut found = phrases_in_all(&words, links.subjects, &mut places);
        found.retain(|id| asked.binary_search(id).is_err());
        let sum: f64 = found.iter().map(|&id| links.subject_idf[id as usize]).sum();
        for &id in &found {
            let units = links.subject_units.row(id as usize);
            let push = SHARE * seed.mass * links.subject_idf[id as usize] / sum / units.len() as f64;
            units.iter().for_each(|&unit| mass.add(unit, push));
        }
    }
}
