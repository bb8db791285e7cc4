//! Scores for a candidate that mentions a partner's subject, or the reverse.
//!
//! A unit that mentions the subject it has itself gets nothing for it: the units of a section inherit the
//! section's title as their subject and mention it, which does not link them to each other.

use super::worth::LANES;
use crate::rank::links_view::{LinksView, NONE};
use crate::rank::numbers::Numbers;
use crate::rank::question::Question;

/// Subjects by the partners that own or mention them.
#[derive(Debug, Default)]
pub(crate) struct Mentions {
    /// By subject: 0 unknown to the partners, else its index + 1.
    slot: Numbers,
    /// By index: the score of a mention, and the partners that own or mention the subject, as bits.
    worth: Vec<f64>,
    owned: Vec<u64>,
    mentioned: Vec<u64>,
}

impl Mentions {
    /// Reset the partners; `count` is the number of subjects.
    pub fn begin_question(&mut self, count: usize) {
        let Self { slot, worth, owned, mentioned } = self;
        slot.fit(count);
        worth.clear();
        owned.clear();
        mentioned.clear();
    }

    /// Add partners, the first of them in lane `lane`.
    pub fn extend(&mut self, links: &LinksView<'_>, question: &Question, lane: usize, partners: &[u32]) {
        let Self { slot, worth, owned, mentioned } = self;
        let log = (links.units().max(2) as f64).ln();
        let mut place = |s: u32, owned: &mut Vec<u64>, mentioned: &mut Vec<u64>| {
            if slot.get(s) == 0 {
                // A subject that the query names does not link anything.
                let named = question.subjects.binary_search(&s).is_ok();
                worth.push(if named { 0.0 } else { links.subject_idf[s as usize] / log });
                owned.push(0);
                mentioned.push(0);
                slot.set(s, worth.len() as u32);
            }
            slot.get(s) as usize - 1
        };
        for (i, &unit) in (lane..).zip(partners) {
            let subject = links.unit_subject[unit as usize];
            if subject != NONE {
                let at = place(subject, owned, mentioned);
                owned[at] |= 1 << i;
            }
            for &s in links.unit_mentions.row(unit as usize).iter().filter(|&&s| s != subject) {
                let at = place(s, owned, mentioned);
                mentioned[at] |= 1 << i;
            }
        }
    }

    /// Set `out[i]` to the greater of the score of the unit's mention of partner i's subject, times
    /// `mentions`, and the reverse, times `mentioned`.
    pub fn of(
        &self,
        links: &LinksView<'_>,
        unit: u32,
        mentions: f64,
        mentioned: f64,
        out: &mut [f64; LANES],
    ) {
        out.fill(0.0);
        let mut add = |s: u32, sets: &[u64], weight: f64| {
            let Some(at) = (self.slot.get(s) as usize).checked_sub(1) else { return };
            let (mut set, worth) = (sets[at], weight * self.worth[at]);
            while set != 0 {
                let i = set.trailing_zeros() as usize;
                out[i] = out[i].max(worth);
                set &= set - 1;
            }
        };
        let subject = links.unit_subject[unit as usize];
        if subject != NONE {
            add(subject, &self.mentioned, mentioned);
        }
        let others = links.unit_mentions.row(unit as usize).iter().filter(|&&s| s != subject);
        others.for_each(|&s| add(s, &self.owned, mentions));
    }
}
