//! Candidates of several shards, ranked together by the ordinary channels.

use super::bundle::Bundle;
use super::join::{join, Origin};
use super::lookup::{Leads, Node, Seed};
use super::terms::{summed, totals, Frequencies, Terms};
use crate::assemble::{Extensions, Request, Searcher};
use crate::channels::{Question, Scratch};
use crate::error::Result;
use crate::generation::{Arrays, Parts};
use crate::progress::Progress;
use crate::rank::bm25;
use crate::rank::links_view::LinksView;
use crate::rank::links_weights::Whole;
use crate::rank::moments::Moments;
use crate::rank::question::Question as Known;
use crate::rank::relevance::{falling, nothing_fits};
use crate::rank::walk;
use crate::search::copies::distinct;
use crate::search::preferred::first_preferred;
use crate::sparse::{leaves, CsrView, Mask, Scored};
use crate::text::bpe::Encoding;
use crate::text::lexical::Lexer;
use crate::text::strings::Strings;
use std::collections::{BTreeMap, BTreeSet};

/// The union prints nothing, so the encoding in which it would count tokens does not matter.
const ENCODING: &str = "cl100k_base";
/// Number of units with the best direct match, and of best units, from which leads start: those of the walk.
const RESTART: usize = 20;
const SEEDS: usize = 8;

/// A collection of the candidates, or of all units, of several shards.
pub struct Union {
    searcher: Searcher,
    pub origins: Vec<Origin>,
    copies: BTreeMap<u32, Vec<Origin>>,
}

/// The filter of each shard that has one.
pub type Masks<'m> = BTreeMap<u32, &'m Mask>;

/// Units that a question prefers because they have a phrase that it quotes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preferred {
    /// Pairs of a shard and a unit of it.
    pub units: BTreeSet<(u32, u32)>,
    /// Number of the best units among which they move to the front; the others keep their ranks.
    pub depth: usize,
}

/// A ranking of units of several shards, best first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranked {
    pub origins: Vec<Origin>,
    pub scores: Vec<f64>,
    pub relevance: Vec<f64>,
    /// Whether no unit is relevant enough to answer the query.
    pub nothing_fits: bool,
}

impl Union {
    /// Join bundles, each with the number of its shard, in ascending order of these numbers. `known` are terms whose
    /// number of units is known for all shards, among them those of the query. `is_final`: see [`join`].
    pub fn new(
        bundles: &[(u32, &Bundle)],
        whole: &Whole,
        known: &Frequencies,
        is_final: bool,
    ) -> Result<Self> {
        let matches = bundles.iter().fold(Moments::default(), |sum, (_, own)| sum.and(own.matches));
        let whole = Whole { matches: (matches.count() > 0).then_some(matches), ..whole.clone() };
        let joined = join(bundles, &whole, known, is_final, &Progress::none())?;
        let arrays = Arrays::weighted(joined.stored.into_arrays(), joined.weights);
        Self::open(arrays, joined.origins, joined.copies)
    }

    /// Join all units of some shards. The collection ranks as one index of all documents does, because it has all
    /// counts and all links of that index, and it can be used for any number of queries.
    pub fn complete(shards: &[&Searcher], progress: &Progress) -> Result<Self> {
        let copy = |(number, shard): (usize, &&Searcher)| {
            shard.with_parts(|parts| Ok((number as u32, Bundle::of_all(parts, progress)?, totals(parts)?)))
        };
        let copied = shards.iter().enumerate().map(copy).collect::<Result<Vec<_>>>()?;
        let bundles: Vec<(u32, &Bundle)> = copied.iter().map(|(number, own, _)| (*number, own)).collect();
        let wholes: Vec<Whole> = copied.iter().map(|one| one.2.clone()).collect();
        let joined = join(&bundles, &summed(&wholes), &Frequencies::default(), true, progress)?;
        Self::open(Arrays::new(joined.stored.into_arrays(), false), joined.origins, joined.copies)
    }

    fn open(arrays: Arrays, origins: Vec<Origin>, copies: BTreeMap<u32, Vec<Origin>>) -> Result<Self> {
        let encoding = Encoding::by_name(ENCODING)?;
        let searcher = Searcher::open(arrays, encoding, "english", &Extensions::NONE)?;
        Ok(Self { searcher, origins, copies })
    }

    /// Return the shard and the number there of a unit, if the filters permit it in one of the shards that have it.
    fn permitted(&self, unit: u32, masks: &Masks<'_>) -> Option<Origin> {
        let copies = self.copies.get(&unit).into_iter().flatten();
        let mut all = std::iter::once(&self.origins[unit as usize]).chain(copies).copied();
        all.find(|one| one.is_permitted && leaves(masks.get(&one.shard).copied(), one.unit))
    }

    /// Return the best `count` units, without copies if the request prints each text once. The best preferred unit comes
    /// first, if its score is good enough; the others keep their order. `masks` are needed only for the units of
    /// [`Union::complete`]; other bundles know which of their units the filter permits.
    pub fn rank(
        &self,
        request: &Request,
        question: Question<'_>,
        count: usize,
        (preferred, masks): (&Preferred, &Masks<'_>),
        progress: &Progress,
    ) -> Result<Ranked> {
        let mut scratch = Scratch::default();
        let is_filtered = !masks.is_empty() || self.origins.iter().any(|one| !one.is_permitted);
        let fits = |unit: usize| self.permitted(unit as u32, masks).is_some();
        let mask = is_filtered.then(|| Mask::from_fn(self.origins.len(), fits));
        let origin = |unit: u32| self.permitted(unit, masks).unwrap_or_else(|| self.origins[unit as usize]);
        let found = self.searcher.rank(request, question, (count, mask.as_ref()), &mut scratch, progress)?;
        let mut found =
            self.searcher.with_parts(|parts| match parts.copies()?.filter(|_| request.is_once()) {
                Some(copies) => Ok(distinct(found, &[], copies).ranked),
                None => Ok(found),
            })?;
        let is_preferred = |one: &Scored| {
            let Origin { shard, unit, .. } = origin(one.id);
            preferred.units.contains(&(shard, unit))
        };
        let flagged = found.iter().take(preferred.depth).map(|one| (one.score, is_preferred(one)));
        if let Some(best) = first_preferred(flagged) {
            found[..=best].rotate_right(1);
        }
        let units: Vec<u32> = found.iter().map(|one| one.id).collect();
        let evidence = self.searcher.evidence(question, &units)?;
        Ok(Ranked {
            origins: units.iter().map(|&unit| origin(unit)).collect(),
            scores: found.iter().map(|one| one.score).collect(),
            nothing_fits: nothing_fits(evidence.first().copied().flatten()),
            relevance: falling(evidence),
        })
    }

    /// Return where the best candidates lead.
    pub fn leads(&self, request: &Request, question: Question<'_>, progress: &Progress) -> Result<Leads> {
        let mut scratch = Scratch::default();
        let best = self.searcher.rank(request, question, (SEEDS, None), &mut scratch, progress)?;
        let uncovered = std::mem::take(&mut scratch.of::<walk::Scratch>().uncovered);
        self.searcher.with_parts(|parts| {
            let Some(links) = parts.links()? else { return Ok(Leads::default()) };
            leads_of(parts, links, question.text, (&best, &uncovered), progress)
        })
    }

    /// Return the terms that at least two units have, except known ones.
    pub fn shared(&self, known: &Frequencies) -> Result<Terms> {
        let of = |parts: &Parts<'_>| {
            let Some(links) = parts.links()? else { return Ok(Terms::default()) };
            let shared = |strings: Strings<'_>, units: &CsrView<'_>, known: &[(String, u64)]| {
                let is_known = |text: &str| known.binary_search_by(|one| one.0.as_str().cmp(text)).is_ok();
                let all = (0..strings.len()).filter(|&at| units.len_of(at) > 1).map(|at| strings.get(at));
                all.filter(|text| !is_known(text)).map(str::to_owned).collect()
            };
            Ok(Terms {
                keywords: shared(links.keywords, &links.keyword_units, &known.keywords),
                names: shared(links.names, &links.name_units, &known.names),
                subjects: shared(links.subjects, &links.subject_units, &known.subjects),
            })
        };
        self.searcher.with_parts(of)
    }
}

/// Return the weight of each keyword of a query: its idf over all shards, times its share.
pub fn weights_of(whole: &Whole, known: &Frequencies, question: &str) -> Result<Vec<(String, f64)>> {
    let union = Union::new(&[], whole, known, false)?;
    union.searcher.with_parts(|parts| {
        let Some(links) = parts.links()? else { return Ok(Vec::new()) };
        let mut read = Known::default();
        read.read(links, question);
        let weight = |(at, &id): (usize, &u32)| {
            (links.keywords.get(id as usize).to_owned(), links.keyword_idf[id as usize] * read.share(at))
        };
        Ok(read.keywords.iter().enumerate().map(weight).collect())
    })
}

fn leads_of(
    parts: &Parts<'_>,
    links: &LinksView<'_>,
    text: &str,
    (best, uncovered): (&[Scored], &[f64]),
    progress: &Progress,
) -> Result<Leads> {
    let mut question = Known::default();
    question.read(links, text);
    let direct = bm25::rank(links, text, RESTART, None, &mut bm25::Scratch::default(), progress)?;
    let moments = links.whole.and_then(|whole| whole.matches).unwrap_or_default();
    let moments = moments.with(0.0, links.population() - moments.count());
    let (mean, deviation) = (moments.mean(), moments.deviation());
    let highest = direct.first().map_or(0.0, |one| one.score);
    let weight = |one: &Scored| ((one.score - highest) / deviation.max(1e-6)).exp();
    let total: f64 = direct.iter().map(weight).sum();
    let mut starts: Vec<Scored> =
        direct.iter().map(|one| Scored { id: one.id, score: weight(one) / total }).collect();
    let share = 1.0 / best.len().max(1) as f64;
    let mut seeds: Vec<Scored> = best.iter().map(|one| Scored { id: one.id, score: share }).collect();
    let mut found: [Vec<Scored>; 3] = Default::default();
    for start in [&mut starts, &mut seeds] {
        start.sort_unstable_by_key(|one| one.id);
        for (found, nodes) in found.iter_mut().zip(walk::leading(links, &question, start)) {
            found.extend(nodes);
        }
    }
    let [keywords, names, subjects] = found;
    let mut of_seeds: BTreeMap<u32, f64> = BTreeMap::new();
    starts.iter().chain(&seeds).for_each(|one| *of_seeds.entry(one.id).or_default() += one.score);
    let mut lexer = Lexer::default();
    let seed = |(&unit, &mass): (&u32, &f64)| {
        let place = parts.place(unit)?;
        lexer.clear();
        lexer.append_words(
            &place.map_or_else(String::new, |place| format!("{}\n{}", place.title, place.text)),
        );
        let words: Vec<&str> = lexer.lowers(0).collect();
        Ok(Seed { text: words.join(" "), mass })
    };
    let seeds = of_seeds.iter().map(seed).collect::<Result<Vec<Seed>>>()?;
    let [of_keywords, of_names, of_subjects] = links.frequencies();
    let frequency = |counts: Option<&[u64]>, at: u32| counts.map_or(1, |counts| counts[at as usize]);
    let rest = question.keywords.iter().zip(uncovered).enumerate();
    let rest = rest.map(|(at, (&id, left))| {
        let weight = links.keyword_idf[id as usize] * (question.share(at) * left);
        (links.keywords.get(id as usize).to_owned(), weight)
    });
    Ok(Leads {
        keywords: nodes(links.keywords, keywords, |id| frequency(of_keywords, id)),
        names: nodes(links.names, names, |id| frequency(of_names, id)),
        subjects: nodes(links.subjects, subjects, |id| frequency(of_subjects, id)),
        seeds,
        question: text.to_owned(),
        rest: rest.collect(),
        standard: [mean, deviation],
    })
}

/// Return nodes as text, each once, with the sum of its masses.
fn nodes(strings: Strings<'_>, mut found: Vec<Scored>, frequency: impl Fn(u32) -> u64) -> Vec<Node> {
    found.sort_by_key(|one| one.id);
    let sums = found.chunk_by(|a, b| a.id == b.id).map(|same| {
        let mass = same.iter().map(|one| one.score).sum();
        let text = strings.get(same[0].id as usize).to_owned();
        Node { text, mass, frequency: frequency(same[0].id) }
    });
    sums.collect()
}
