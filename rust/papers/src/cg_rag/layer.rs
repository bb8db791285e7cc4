//! A layer of a graph transformer over a few texts (CG-RAG), computed only for the requested texts. Sums run
//! in one fixed order on any number of threads.

use crate::error::{Error, Result};
use crate::memory::filled;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::sparse::CsrView;
use ketrag_encode::graph_matrix::{dot, Matrix};

/// Number of rows in a thread's unit of work.
const GRAIN: usize = 32;
const WHAT: &str = "values of a graph layer";
/// Marks a text without an index.
const NOWHERE: u32 = u32::MAX;

/// A layer: the projections of a text (own), of its neighbours (values), and of the attention (queries and
/// keys).
pub struct Layer {
    own: Matrix,
    value: Matrix,
    query: Matrix,
    key: Matrix,
    heads: usize,
}

/// Values of the selected texts, by index.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub values: &'a [f32],
    pub width: usize,
    /// `None` if all texts have values, in order.
    pub places: Option<&'a [u32]>,
}

impl<'a> Rows<'a> {
    fn of(&self, text: u32) -> &'a [f32] {
        let place = self.places.map_or(text, |places| places[text as usize]) as usize;
        &self.values[place * self.width..][..self.width]
    }
}

/// Messages between texts: in-neighbours, a factor for each of these edges, and each text's weight.
#[derive(Clone, Copy)]
pub struct Messages<'a> {
    edges: CsrView<'a>,
    factors: &'a [f32],
    weights: &'a [f32],
}

impl<'a> Messages<'a> {
    /// Check the shapes.
    pub fn new(edges: CsrView<'a>, factors: &'a [f32], weights: &'a [f32]) -> Result<Self> {
        let n = edges.rows();
        if edges.columns != n || weights.len() != n {
            return Err(Error::input(format!("there are {} weights for {n} texts", weights.len())));
        }
        if factors.len() != edges.indices.len() {
            return Err(Error::input(format!(
                "{} edges have {} factors",
                edges.indices.len(),
                factors.len()
            )));
        }
        Ok(Self { edges, factors, weights })
    }

    pub fn texts(&self) -> usize {
        self.weights.len()
    }

    /// Return these texts and those that send to them, ascending.
    pub fn with_senders(&self, texts: &[u32]) -> Vec<u32> {
        let mut all = self.senders(texts);
        all.extend_from_slice(texts);
        all.sort_unstable();
        all.dedup();
        all
    }

    fn senders(&self, texts: &[u32]) -> Vec<u32> {
        let mut all: Vec<u32> =
            texts.iter().flat_map(|&text| self.edges.row(text as usize)).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Return for every text its index in `texts`.
    pub fn places(&self, texts: &[u32]) -> Result<Vec<u32>> {
        let mut places = filled(NOWHERE, self.texts(), WHAT)?;
        (0u32..).zip(texts).for_each(|(place, &text)| places[text as usize] = place);
        Ok(places)
    }
}

/// Attention of some texts to their neighbours.
struct Attention<'a> {
    layer: &'a Layer,
    messages: Messages<'a>,
    queries: (Vec<u32>, Vec<f32>),
    keys: Vec<f32>,
    /// Index of each text among the senders.
    places: Vec<u32>,
    senders: Vec<u32>,
}

impl Layer {
    /// Check that the matrices have the same shape and whole heads.
    pub fn new([own, value, query, key]: [Matrix; 4], heads: usize) -> Result<Self> {
        let shape = (own.inputs(), own.outputs());
        if [&value, &query, &key].iter().any(|one| (one.inputs(), one.outputs()) != shape) {
            return Err(Error::input("the matrices of a layer differ in their shapes"));
        }
        if heads == 0 || !shape.1.is_multiple_of(heads) {
            return Err(Error::input(format!("{} outputs cannot be divided among {heads} heads", shape.1)));
        }
        Ok(Self { own, value, query, key, heads })
    }

    pub fn inputs(&self) -> usize {
        self.own.inputs()
    }

    pub fn outputs(&self) -> usize {
        self.own.outputs()
    }

    fn check(&self, h: Rows<'_>, messages: &Messages<'_>) -> Result<()> {
        let all = h.places.is_some() || messages.texts().checked_mul(h.width) == Some(h.values.len());
        if !all || h.width != self.inputs() {
            return Err(Error::input(format!(
                "{} values are not {} for each of {} texts",
                h.values.len(),
                self.inputs(),
                messages.texts()
            )));
        }
        Ok(())
    }

    /// Compute the queries of `texts` that have senders, and the keys of these senders.
    fn attention<'a>(
        &'a self,
        h: Rows<'_>,
        messages: Messages<'a>,
        texts: &[u32],
        threads: usize,
        progress: &Progress,
    ) -> Result<Attention<'a>> {
        let senders = messages.senders(texts);
        let hearing: Vec<u32> =
            texts.iter().copied().filter(|&text| !messages.edges.row(text as usize).is_empty()).collect();
        let queries = multiplied(&self.query, h, &hearing, threads, progress)?;
        let keys = multiplied(&self.key, h, &senders, threads, progress)?;
        let queries = (messages.places(&hearing)?, queries);
        Ok(Attention { layer: self, messages, queries, keys, places: messages.places(&senders)?, senders })
    }

    /// Compute `x'[i] = own(w_i h_i) + sum over j of softmax_j(query(h_i) . key(f_ij h_j) / sqrt(width))
    /// value(f_ij h_j)`, head by head, for each i of `texts`.
    pub fn run(
        &self,
        h: Rows<'_>,
        messages: Messages<'_>,
        texts: &[u32],
        (relu, threads): (bool, usize),
        progress: &Progress,
    ) -> Result<Vec<f32>> {
        self.check(h, &messages)?;
        let attention = self.attention(h, messages, texts, threads, progress)?;
        let own = multiplied(&self.own, h, texts, threads, progress)?;
        let value = multiplied(&self.value, h, &attention.senders, threads, progress)?;
        let (outputs, width) = (self.outputs(), self.outputs() / self.heads);
        let bias = self.value.bias();
        let parts = map_ranges(texts.len(), GRAIN, threads, progress, |range| {
            let mut out = filled(0.0, range.len() * outputs, WHAT)?;
            let mut shares = Vec::new();
            for (row, out) in range.zip(out.chunks_exact_mut(outputs)) {
                let text = texts[row];
                let weight = messages.weights[text as usize];
                let made = own[row * outputs..][..outputs].iter().zip(self.own.bias());
                out.iter_mut().zip(made).for_each(|(out, (x, bias))| *out = weight * x + bias);
                attention.shares(text, &mut shares);
                let mut shares = shares.iter();
                for head in 0..self.heads {
                    let part = head * width..(head + 1) * width;
                    let (out, bias) = (&mut out[part.clone()], &bias[part.clone()]);
                    for ((from, factor), &share) in attention.sent(text).zip(shares.by_ref()) {
                        let share = share as f32;
                        let value = &value[from * outputs..][part.clone()];
                        for ((out, value), bias) in out.iter_mut().zip(value).zip(bias) {
                            *out += share * (factor * value + bias);
                        }
                    }
                }
                if relu {
                    out.iter_mut().for_each(|x| *x = x.max(0.0));
                }
            }
            Ok(out)
        })?;
        Ok(parts.concat())
    }

    /// Return the products of a vector with the result of [`Layer::run`] for `texts`, without computing it:
    /// the linear steps after the sum are applied to the matrices instead.
    pub fn toward(
        &self,
        h: Rows<'_>,
        messages: Messages<'_>,
        texts: &[u32],
        vector: &[f32],
        (threads, progress): (usize, &Progress),
    ) -> Result<Vec<f64>> {
        self.check(h, &messages)?;
        if vector.len() != self.outputs() {
            return Err(Error::input(format!(
                "a vector of {} values, not of {}",
                vector.len(),
                self.outputs()
            )));
        }
        let attention = self.attention(h, messages, texts, threads, progress)?;
        let width = self.outputs() / self.heads;
        let (own, own_bias) = self.own.toward(0..self.outputs(), vector);
        let values: Vec<_> =
            (0..self.heads).map(|head| self.value.toward(head * width..(head + 1) * width, vector)).collect();
        // For each sender, a number per head.
        let worth: Vec<f64> = attention
            .senders
            .iter()
            .flat_map(|&text| values.iter().map(move |(value, _)| dot(value, h.of(text))))
            .collect();
        let mut shares = Vec::new();
        let mut found = Vec::with_capacity(texts.len());
        for &text in texts {
            let weight = f64::from(messages.weights[text as usize]);
            let mut score = weight * dot(&own, h.of(text)) + own_bias;
            attention.shares(text, &mut shares);
            let mut shares = shares.iter();
            for (head, (_, bias)) in values.iter().enumerate() {
                for ((from, factor), share) in attention.sent(text).zip(shares.by_ref()) {
                    score += share * (f64::from(factor) * worth[from * self.heads + head] + bias);
                }
            }
            found.push(score);
        }
        Ok(found)
    }
}

impl Attention<'_> {
    /// Iterate over the indices of a text's senders, and the factors of these edges.
    fn sent(&self, text: u32) -> impl Iterator<Item = (usize, f32)> + '_ {
        let range = self.messages.edges.range(text as usize);
        let factors = &self.messages.factors[range.clone()];
        let from = self.messages.edges.indices[range].iter();
        from.map(|&from| self.places[from as usize] as usize).zip(factors.iter().copied())
    }

    /// Compute the attention shares of the edges into a text, head by head; those of each head sum to one.
    fn shares(&self, text: u32, shares: &mut Vec<f64>) {
        shares.clear();
        let count = self.messages.edges.range(text as usize).len();
        if count == 0 {
            return;
        }
        let (layer, outputs) = (self.layer, self.layer.outputs());
        let width = outputs / layer.heads;
        let scale = 1.0 / (width as f64).sqrt();
        let query: Vec<f32> = self.queries.1[self.queries.0[text as usize] as usize * outputs..][..outputs]
            .iter()
            .zip(layer.query.bias())
            .map(|(x, bias)| x + bias)
            .collect();
        for head in 0..layer.heads {
            let part = head * width..(head + 1) * width;
            let query = &query[part.clone()];
            let bias = dot(query, &layer.key.bias()[part.clone()]);
            let start = shares.len();
            for (from, factor) in self.sent(text) {
                let key = &self.keys[from * outputs..][part.clone()];
                shares.push((f64::from(factor) * dot(query, key) + bias) * scale);
            }
            let own = &mut shares[start..];
            let most = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            own.iter_mut().for_each(|s| *s = (*s - most).exp());
            let sum: f64 = own.iter().sum();
            own.iter_mut().for_each(|s| *s /= sum);
        }
    }
}

/// Compute the products of the values of `texts`.
fn multiplied(
    matrix: &Matrix,
    h: Rows<'_>,
    texts: &[u32],
    threads: usize,
    progress: &Progress,
) -> Result<Vec<f32>> {
    matrix.product(texts.len(), threads, progress, |row, out| out.copy_from_slice(h.of(texts[row])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::Csr;

    fn layer(heads: usize) -> Result<Layer> {
        let one = || Matrix::new(&[1.0, 0.0, 0.0, 1.0], &[0.5, -3.0], 2);
        Layer::new([one()?, one()?, one()?, one()?], heads)
    }

    #[test]
    fn a_text_without_neighbours_makes_of_itself_what_it_can() {
        let edges = Csr::from_rows(&[vec![], vec![0u32]], 2).unwrap();
        let h = Rows { values: &[1.0, 2.0, 4.0, 1.0], width: 2, places: None };
        let messages = Messages::new(edges.view(), &[0.5], &[1.0, 0.5]).unwrap();
        let run = |texts: &[u32], relu, threads| {
            layer(1).unwrap().run(h, messages, texts, (relu, threads), &Progress::none()).unwrap()
        };
        // The only neighbour has all of the attention: half of [1, 2], and the bias.
        assert_eq!(run(&[0, 1], false, 1), [1.5, -1.0, 2.5 + 1.0, -2.5 - 2.0]);
        assert_eq!(run(&[0, 1], true, 2), [1.5, 0.0, 3.5, 0.0]);
        assert_eq!(run(&[1], false, 1), [3.5, -4.5]);
        let none = Progress::none();
        let toward = layer(1).unwrap().toward(h, messages, &[1, 0], &[2.0, 1.0], (1, &none)).unwrap();
        assert_eq!(toward, [2.5, 2.0]);
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        assert!(layer(3).is_err());
        assert!(layer(0).is_err());
        let edges = Csr::from_rows(&[vec![0u32]], 1).unwrap();
        assert!(Messages::new(edges.view(), &[], &[1.0]).is_err());
        assert!(Messages::new(edges.view(), &[1.0], &[]).is_err());
        let messages = Messages::new(edges.view(), &[1.0], &[1.0]).unwrap();
        let with = |values: &[f32], vector: &[f32]| {
            let (one, none) = (layer(1).unwrap(), Progress::none());
            let h = Rows { values, width: values.len(), places: None };
            let toward = one.toward(h, messages, &[0], vector, (1, &none)).is_ok();
            (one.run(h, messages, &[0], (false, 1), &none).is_ok(), toward)
        };
        assert_eq!(with(&[1.0, 2.0], &[1.0, 1.0]), (true, true));
        assert_eq!(with(&[1.0], &[1.0, 1.0]), (false, false));
        assert_eq!(with(&[1.0, 2.0], &[1.0]), (true, false));
    }
}
