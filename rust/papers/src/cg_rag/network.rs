//! A trained LeSeGR model (CG-RAG): a network that weighs edges, and layers of a graph transformer that score
//! texts for a query.

use super::layer::{Layer, Messages, Rows};
use crate::error::{Error, Result};
use crate::memory::filled;
use crate::progress::Progress;
use ketrag_encode::graph_matrix::Matrix;

/// The weights, packed once for all queries.
pub struct Network {
    weigh: [Matrix; 3],
    layers: Vec<Layer>,
}

impl Network {
    /// Check that the shapes of successive parts match, and that the last layer outputs what the first takes.
    pub fn new(weigh: [Matrix; 3], layers: Vec<Layer>) -> Result<Self> {
        let [first, second, third] = &weigh;
        let fits =
            second.inputs() == first.outputs() && third.inputs() == second.outputs() && third.outputs() == 1;
        if !fits {
            return Err(Error::input("the matrices of the network that weighs edges do not fit together"));
        }
        let (Some(one), Some(last)) = (layers.first(), layers.last()) else {
            return Err(Error::input("a network needs at least one layer"));
        };
        let chained = layers.windows(2).all(|two| two[0].outputs() == two[1].inputs());
        if !chained || last.outputs() != one.inputs() || one.inputs() != first.inputs() {
            return Err(Error::input("the layers of the network do not fit together"));
        }
        Ok(Self { weigh, layers })
    }

    /// Return the number of values of a vector.
    pub fn dimension(&self) -> usize {
        self.weigh[0].inputs()
    }

    /// Compute `sigmoid(third(relu(second(relu(first(c_i - c_j))))))` for the edges from j (`senders`) to i
    /// (`texts`), two parallel lists. The first product is linear, so it is computed once per text.
    pub fn weigh(
        &self,
        vectors: &[f32],
        texts: &[u32],
        senders: &[u32],
        threads: usize,
        progress: &Progress,
    ) -> Result<Vec<f32>> {
        let d = self.dimension();
        let n = vectors.len() / d;
        if !vectors.len().is_multiple_of(d) || texts.len() != senders.len() {
            return Err(Error::input(format!(
                "the network of {d} inputs does not fit {} values and edges of {} and {} ends",
                vectors.len(),
                texts.len(),
                senders.len()
            )));
        }
        let mut ends: Vec<u32> = texts.iter().chain(senders).copied().collect();
        ends.sort_unstable();
        ends.dedup();
        if let Some(&text) = ends.last().filter(|&&text| text as usize >= n) {
            return Err(Error::input(format!("text {text} does not exist")));
        }
        let mut places = filled(0u32, n, "places of texts")?;
        (0u32..).zip(&ends).for_each(|(place, &text)| places[text as usize] = place);
        let [first, second, third] = &self.weigh;
        progress.expect((ends.len() + texts.len()) as u64);
        let turned = first.product(ends.len(), threads, progress, |row, out| {
            out.copy_from_slice(&vectors[ends[row] as usize * d..][..d]);
        })?;
        let width = first.outputs();
        let of = |text: u32| &turned[places[text as usize] as usize * width..][..width];
        let hidden = second.product(texts.len(), threads, progress, |edge, out| {
            let ends = of(texts[edge]).iter().zip(of(senders[edge]));
            for ((out, (own, other)), bias) in out.iter_mut().zip(ends).zip(first.bias()) {
                *out = (own - other + bias).max(0.0);
            }
        })?;
        let (last, bias) = third.toward(0..1, &[1.0]);
        let score = |row: &[f32]| {
            let terms = row.iter().zip(second.bias()).zip(&last);
            let sum: f64 = terms.map(|((x, bias), last)| f64::from((x + bias).max(0.0)) * last).sum();
            (1.0 / (1.0 + (-(sum + bias)).exp())) as f32
        };
        Ok(hidden.chunks_exact(second.outputs()).map(score).collect())
    }

    /// Return the products of a query's vector with the layers' output for `ranked`, given the vectors `h` of
    /// the texts. Nothing else is computed.
    pub fn scores(
        &self,
        h: &[f32],
        messages: Messages<'_>,
        vector: &[f32],
        ranked: &[u32],
        threads: usize,
        progress: &Progress,
    ) -> Result<Vec<f64>> {
        if let Some(text) = ranked.iter().find(|&&text| text as usize >= messages.texts()) {
            return Err(Error::input(format!("text {text} does not exist")));
        }
        let Some((last, before)) = self.layers.split_last() else {
            return Err(Error::Internal("a network without layers".into()));
        };
        // From the last layer back: the texts whose values each layer needs.
        let mut needed = vec![messages.with_senders(ranked)];
        for _ in 1..before.len() {
            let own = messages.with_senders(&needed[needed.len() - 1]);
            needed.push(own);
        }
        let (mut values, mut places) = (Vec::new(), None);
        for (number, (layer, texts)) in before.iter().zip(needed.iter().rev()).enumerate() {
            let rows = if number == 0 { h } else { &values };
            let rows = Rows { values: rows, width: layer.inputs(), places: places.as_deref() };
            values = layer.run(rows, messages, texts, (true, threads), progress)?;
            places = Some(messages.places(texts)?);
        }
        let rows = if before.is_empty() { h } else { &values };
        let rows = Rows { values: rows, width: last.inputs(), places: places.as_deref() };
        last.toward(rows, messages, ranked, vector, (threads, progress))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(inputs: usize, outputs: usize, seed: usize) -> Matrix {
        let drawn = |k: usize| ((k * 37 + seed * 11) % 23) as f32 / 11.0 - 1.0;
        let weights: Vec<f32> = (0..inputs * outputs).map(drawn).collect();
        Matrix::new(&weights, &(0..outputs).map(drawn).collect::<Vec<_>>(), inputs).unwrap()
    }

    fn layer(inputs: usize, outputs: usize, seed: usize) -> Layer {
        let one = |k| matrix(inputs, outputs, 4 * seed + k);
        Layer::new([one(0), one(1), one(2), one(3)], 2).unwrap()
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let weigh = || [matrix(4, 5, 1), matrix(5, 3, 2), matrix(3, 1, 3)];
        assert!(Network::new(weigh(), vec![]).is_err());
        assert!(Network::new(weigh(), vec![layer(4, 6, 1)]).is_err());
        assert!(Network::new(weigh(), vec![layer(4, 6, 1), layer(8, 4, 1)]).is_err());
        assert!(Network::new(weigh(), vec![layer(2, 2, 1)]).is_err());
        assert!(Network::new(weigh(), vec![layer(4, 6, 1), layer(6, 4, 1)]).is_ok());
    }
}
