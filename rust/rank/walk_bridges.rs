//! Which of the partners (units, and their sentences) have a thing that the question does not name.

use crate::rank::links_view::LinksView;
use crate::sparse::CsrView;

/// Marks what the question names; the bits below it are its place in the question.
const ASKED: u32 = 1 << 31;

/// Lists by thing: of partner units and of partner sentences.
#[derive(Debug, Default)]
pub(crate) struct Bridges {
    /// By id of the thing: 0 unknown to the partners, from [`ASKED`] on asked for, else its place + 1.
    slot: Vec<u32>,
    used: Vec<u32>,
    /// The bit of each thing that was asked for.
    bits: Vec<u64>,
    /// (idf / ln n)^8 by place.
    weights: Vec<f64>,
    units: Lists,
    sentences: Lists,
}

#[derive(Debug, Default)]
struct Lists {
    pairs: Vec<(u32, u32)>,
    start: Vec<u32>,
    members: Vec<u32>,
}

impl Lists {
    /// Lists by place, from pairs (place, member); members keep their order.
    fn build(&mut self, places: usize) {
        self.start.clear();
        self.start.resize(places + 2, 0);
        for &(place, _) in &self.pairs {
            self.start[place as usize + 2] += 1;
        }
        for k in 2..self.start.len() {
            self.start[k] += self.start[k - 1];
        }
        self.members.clear();
        self.members.resize(self.pairs.len(), 0);
        for &(place, member) in &self.pairs {
            let next = &mut self.start[place as usize + 1];
            self.members[*next as usize] = member;
            *next += 1;
        }
        self.pairs.clear();
    }

    fn row(&self, place: usize) -> &[u32] {
        &self.members[self.start[place] as usize..self.start[place + 1] as usize]
    }
}

impl Bridges {
    /// `of_unit` and `of_sentence` are rows of things; partners are units.
    #[allow(clippy::too_many_arguments)] // two of each kind of row, from one call
    pub fn build(
        &mut self,
        links: &LinksView<'_>,
        of_unit: &CsrView<'_>,
        of_sentence: &CsrView<'_>,
        idf: &[f64],
        asked: &[u32],
        bit: impl Fn(u32) -> u64,
        partners: &[u32],
    ) {
        for &x in &self.used {
            self.slot[x as usize] = 0;
        }
        self.used.clear();
        self.weights.clear();
        if self.slot.len() < idf.len() {
            self.slot.resize(idf.len(), 0);
        }
        self.bits.clear();
        for (k, &x) in asked.iter().enumerate() {
            self.slot[x as usize] = ASKED | k as u32;
            self.bits.push(bit(x));
            self.used.push(x);
        }
        let log = (links.units().max(2) as f64).ln();
        let Self { slot, used, weights, units, sentences, .. } = self;
        let mut place = |x: u32| -> Option<u32> {
            let known = &mut slot[x as usize];
            if *known == 0 {
                let rarity = idf[x as usize] / log;
                let square = rarity * rarity;
                weights.push((square * square) * (square * square));
                used.push(x);
                *known = weights.len() as u32;
            }
            (*known < ASKED).then(|| *known - 1)
        };
        let mut sentence = 0;
        for (i, &unit) in partners.iter().enumerate() {
            let row = of_unit.row(unit as usize).iter();
            units.pairs.extend(row.filter_map(|&x| place(x).map(|p| (p, i as u32))));
            for s in links.sentences(unit as usize) {
                let row = of_sentence.row(s).iter();
                sentences.pairs.extend(row.filter_map(|&x| place(x).map(|p| (p, sentence))));
                sentence += 1;
            }
        }
        units.build(weights.len());
        sentences.build(weights.len());
    }

    /// sums[i] += weight of every thing of `row` that partner i has. Returns the bits of those that
    /// were asked for.
    pub fn add_units(&self, row: &[u32], sums: &mut [f64]) -> u64 {
        self.add(row, sums, &self.units)
    }

    /// The same for partner sentences.
    pub fn add_sentences(&self, row: &[u32], sums: &mut [f64]) -> u64 {
        self.add(row, sums, &self.sentences)
    }

    #[inline]
    fn add(&self, row: &[u32], sums: &mut [f64], lists: &Lists) -> u64 {
        let mut set = 0;
        for &x in row {
            let slot = self.slot[x as usize];
            if slot >= ASKED {
                set |= self.bits[(slot - ASKED) as usize];
            } else if slot != 0 {
                let place = slot as usize - 1;
                let weight = self.weights[place];
                for &member in lists.row(place) {
                    sums[member as usize] += weight;
                }
            }
        }
        set
    }
}
