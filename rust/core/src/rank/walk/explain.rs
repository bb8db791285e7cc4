//! Explanations of the walk's ranks: the partner of a unit's best pair, the pair of partners that its best
//! chain extends, and the bridges to them. A bridge is an item that two units share and the query does not
//! contain.
//!
//! Explanations are computed after a ranking, from its [`Trace`], for the few units that are shown.

use super::dense::Dense;
use super::pairs::Pairs;
use super::partners::PairScratch;
use super::ties::round_score;
use super::worth::Worth;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::rank::links_view::{LinksView, NONE};
use crate::rank::question::Question;
use crate::sparse::CsrView;
use std::cmp::Ordering;

/// Maximum number of bridges of a pair. It is higher than anybody reads, so that the number of omitted
/// bridges can be shown.
const BRIDGES: usize = 32;

/// A kind of connection between two units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The unit mentions the other unit's subject.
    Mentions,
    /// The other unit mentions the unit's subject.
    Mentioned,
    /// Both units contain a name.
    Name,
    /// Both units contain a keyword.
    Keyword,
    /// The unit's document cites the other unit's document.
    Cites,
    /// The other unit's document cites the unit's document.
    Cited,
    /// The unit refers to the other unit by a label.
    Refers,
    /// The unit follows the other unit.
    Follows,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Mentions => "mentions",
            Self::Mentioned => "mentioned",
            Self::Name => "name",
            Self::Keyword => "keyword",
            Self::Cites => "cites",
            Self::Cited => "cited",
            Self::Refers => "refers",
            Self::Follows => "follows",
        }
    }
}

/// An item that two units share and the query does not contain.
#[derive(Debug, Clone, PartialEq)]
pub struct Bridge {
    pub kind: Kind,
    /// The item in lower case, as in the index.
    pub text: String,
    /// Number of units that have the item; for a subject, the number of units that mention it.
    pub units: u32,
    /// idf / ln n: close to 1 if hardly any other unit has the item, 0 if all have it.
    pub rarity: f64,
}

/// Another unit, and the bridges that lead to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub unit: u32,
    pub worth: f64,
    pub bridges: Vec<Bridge>,
}

/// The pair that a unit extends.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// The partner to which the unit is linked.
    pub near: Step,
    /// The other partner, and the bridges between the two.
    pub far: u32,
    pub between: Vec<Bridge>,
}

/// The reasons for the rank of one unit. A unit that was not a candidate has neither a pair nor a chain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reason {
    /// The other unit of the best pair.
    pub partner: Option<Step>,
    pub chain: Option<Chain>,
}

/// Return the reasons for the ranks of `units`, from the trace of the ranking of the same query.
pub fn explain(
    links: &LinksView<'_>,
    dense: Option<&Dense<'_>>,
    question: &Question,
    trace: &Trace,
    units: &[u32],
    progress: &Progress,
) -> Result<Vec<Reason>> {
    if let Some(unit) = units.iter().find(|&&unit| unit as usize >= links.units()) {
        return Err(Error::input(format!("unit {unit} does not exist")));
    }
    let Some(worth) = trace.worth else { return Ok(vec![Reason::default(); units.len()]) };
    let mut scratch = PairScratch::default();
    let mut pairs = Pairs::new(links, dense, question, &trace.partners, worth, &mut scratch);
    pairs.bonus[..trace.bonus.len()].copy_from_slice(&trace.bonus);
    let mut reasons = Vec::with_capacity(units.len());
    for &unit in units {
        progress.check()?;
        pairs.at_most(unit);
        let partner = best_partner(&mut pairs, unit, &trace.partners);
        let chain = best_chain(&mut pairs, unit, trace);
        let between = |unit, other| bridges(links, question, unit, other, worth.least);
        let step = |other, worth| Step { unit: other, worth, bridges: between(unit, other) };
        reasons.push(Reason {
            partner: partner.map(|(other, worth)| step(other, worth)),
            chain: chain.map(|(near, far, worth)| Chain {
                near: step(near, worth),
                far,
                between: between(near, far),
            }),
        });
    }
    Ok(reasons)
}

/// Return the first of the best partners.
fn best_partner(pairs: &mut Pairs<'_>, unit: u32, partners: &[u32]) -> Option<(u32, f64)> {
    let mut best: Option<(u32, f64)> = None;
    for (i, &partner) in partners.iter().enumerate() {
        if partner != unit {
            let worth = round_score(pairs.exactly(unit, i));
            if best.is_none_or(|(_, most)| worth > most) {
                best = Some((partner, worth));
            }
        }
    }
    best
}

/// Return (linked partner, other partner, score) of the best chain with the unit as the third member. The
/// unit must be linked to the first partner and be neither of the two.
fn best_chain(pairs: &mut Pairs<'_>, unit: u32, trace: &Trace) -> Option<(u32, u32, f64)> {
    let mut own = Vec::new();
    pairs.covers(unit, &mut own);
    let shares = pairs.shares();
    let mut best: Option<(u32, u32, f64)> = None;
    for pair in trace.pairs.iter().filter(|pair| !pair.units.contains(&unit)) {
        let base = trace.chain_cover * beyond(&own, pair, &shares) - pair.loss;
        for (k, partner) in pair.units.into_iter().enumerate() {
            let Some(i) = trace.partners.iter().position(|&p| p == partner) else { continue };
            pairs.at_most(unit);
            let link = pairs.linked(unit, i, f64::NEG_INFINITY);
            let worth = round_score(base + link);
            if link > 0.0 && best.is_none_or(|(_, _, most)| worth > most) {
                best = Some((partner, pair.units[1 - k], worth));
            }
        }
    }
    best.filter(|best| best.2 > 0.0)
}

fn beyond(own: &[f64], pair: &Pair, shares: &[f64]) -> f64 {
    let new = own.iter().zip(&pair.covered).zip(shares);
    new.map(|((own, both), share)| (own - both).max(0.0) * share).sum()
}

/// Return the items that both units share and the query does not contain: subjects that one of them mentions,
/// names and keywords. Parts of longer items are omitted, and so are keywords less rare than `least`.
pub fn bridges(links: &LinksView<'_>, question: &Question, unit: u32, other: u32, least: f64) -> Vec<Bridge> {
    let log = (links.population().max(2) as f64).ln();
    let mut found = Vec::new();
    for (kind, by, of) in [(Kind::Mentions, unit, other), (Kind::Mentioned, other, unit)] {
        let subject = links.unit_subject[of as usize];
        let known = question.subjects.binary_search(&subject).is_ok()
            // Units of one section inherit the same subject: see `mentions`.
            || links.unit_subject[by as usize] == subject;
        if subject != NONE && !known && links.unit_mentions.row(by as usize).contains(&subject) {
            let at = subject as usize;
            let (text, rarity) = (links.subjects.get(at).to_owned(), links.subject_idf[at] / log);
            found.push(Bridge { kind, text, units: links.subject_units.row(at).len() as u32, rarity });
        }
    }
    for id in common(&links.unit_names, unit, other, &question.names) {
        let (text, rarity) = (links.names.get(id).to_owned(), links.name_idf[id] / log);
        found.push(Bridge { kind: Kind::Name, text, units: links.name_units.row(id).len() as u32, rarity });
    }
    for id in common(&links.unit_keywords, unit, other, &question.keywords) {
        let (text, rarity) = (links.keywords.get(id).to_owned(), links.keyword_idf[id] / log);
        let units = links.keyword_units.row(id).len() as u32;
        if rarity >= least {
            found.push(Bridge { kind: Kind::Keyword, text, units, rarity });
        }
    }
    // Subjects, then names, then keywords; in each group the rarest first, then the longest.
    found.sort_by(|a, b| {
        let rarer = b.rarity.partial_cmp(&a.rarity).unwrap_or(Ordering::Equal);
        let longer = b.text.len().cmp(&a.text.len());
        a.kind.cmp(&b.kind).then(rarer).then(longer).then_with(|| a.text.cmp(&b.text))
    });
    let mut kept: Vec<Bridge> = Vec::new();
    for bridge in found {
        if kept.len() < BRIDGES && !kept.iter().any(|known| holds(&known.text, &bridge.text)) {
            kept.push(bridge);
        }
    }
    kept
}

/// Return whether the words of one text are among the words of the other.
fn holds(text: &str, words: &str) -> bool {
    words.split(' ').all(|word| text.split(' ').any(|known| known == word))
}

/// Return the ids that both rows have and `but` lacks. All three ascend.
fn common(rows: &CsrView<'_>, a: u32, b: u32, but: &[u32]) -> Vec<usize> {
    let other = rows.row(b as usize);
    let both = rows.row(a as usize).iter().filter(|x| other.binary_search(x).is_ok());
    both.filter(|x| but.binary_search(x).is_err()).map(|&x| x as usize).collect()
}

/// A pair of partners that candidates extend to a chain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    pub units: [u32; 2],
    /// Distance of the pair's score from the best.
    pub loss: f64,
    /// The joint coverage of each counted keyword of the query.
    pub covered: Vec<f64>,
}

/// The partners of the last ranking, their contributions to a pair, and the pairs that chains extend.
#[derive(Debug, Default)]
pub struct Trace {
    pub wanted: bool,
    pub(crate) partners: Vec<u32>,
    pub(crate) bonus: Vec<f64>,
    pub(crate) worth: Option<Worth>,
    pub(crate) pairs: Vec<Pair>,
    /// Weight of the keywords that a third unit covers in addition to a pair.
    pub(crate) chain_cover: f64,
}

impl Trace {
    pub fn wanted() -> Self {
        Self { wanted: true, ..Self::default() }
    }

    pub(crate) fn keep(
        &mut self,
        partners: &[u32],
        bonus: &[f64],
        worth: Worth,
        pairs: impl FnOnce() -> Vec<Pair>,
    ) {
        if self.wanted {
            self.partners = partners.to_vec();
            self.bonus = bonus[..partners.len()].to_vec();
            self.worth = Some(worth);
            self.pairs = pairs();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::links::{view, Links, Texts};
    use crate::rank::walk::{self, Plan};
    use crate::text::strings::StringsBuf;

    const QUESTION: &str = "In which region lies the town where the maker of the film Blue Engine was born?";

    #[test]
    fn a_chain_of_three_is_named_and_only_a_wanted_trace_is_kept() {
        let told = [
            ("Blue Engine", "Blue Engine is a film of Ada Lorne."),
            ("Ada Lorne", "Ada Lorne was born in Milan."),
            ("Milan", "Milan lies in Lombardy."),
        ];
        let filler =
            (0..60).map(|k| (format!("Filler {k}"), format!("Filler {k} speaks of matter{}.", k % 7)));
        let units: Vec<(String, String)> =
            told.iter().map(|u| (u.0.to_owned(), u.1.to_owned())).chain(filler).collect();
        let titles: StringsBuf = units.iter().map(|u| u.0.as_str()).collect();
        let texts: StringsBuf = units.iter().map(|u| u.1.as_str()).collect();
        let first_sentence: Vec<u64> = (0..=units.len() as u64).collect();
        let (titles, texts) = (titles.view(), texts.view());
        let input = Texts {
            titles,
            texts,
            sentences: texts,
            first_sentence: &first_sentence,
            language: crate::text::detection::Choice::Detect,
        };
        let arrays = Links::build(&input, 1, &Progress::none()).unwrap().into_arrays();
        let weights = std::sync::OnceLock::new();
        let links = view(&arrays, &weights).unwrap();
        let mut question = Question::default();
        question.read(&links, QUESTION);
        let mut scratch = walk::Scratch::default();
        let rank = |scratch: &mut walk::Scratch| {
            walk::rank(
                &links,
                walk::Lengths::Keywords.into(),
                None,
                None,
                QUESTION,
                3,
                None,
                &Plan::new(false),
                scratch,
                &Progress::none(),
            )
            .unwrap()
        };
        let plain = rank(&mut scratch);
        assert!(scratch.trace.partners.is_empty() && scratch.trace.worth.is_none());
        scratch.trace = Trace::wanted();
        assert_eq!(rank(&mut scratch), plain);
        let say =
            |trace: &Trace, units: &[u32]| explain(&links, None, &question, trace, units, &Progress::none());
        let reasons = say(&scratch.trace, &[2, 1]).unwrap();
        let chain = reasons[0].chain.as_ref().unwrap();
        assert_eq!((chain.near.unit, chain.far), (1, 0));
        let first = &chain.near.bridges[0];
        assert_eq!((first.kind, first.text.as_str(), first.units), (Kind::Mentioned, "milan", 2));
        assert_eq!((chain.between[0].kind, chain.between[0].text.as_str()), (Kind::Mentioned, "ada lorne"));
        assert_eq!(reasons[1].partner.as_ref().unwrap().unit, 0);
        assert_eq!(say(&Trace::default(), &[2]).unwrap(), [Reason::default()]);
        assert!(say(&scratch.trace, &[63]).unwrap_err().to_string().contains("unit 63"));
    }
}
