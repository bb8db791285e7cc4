//! A ranking supplied by the caller, as a channel.

use super::channel::Channel;
use super::query::{Query, Ranking};
use super::scratch::Scratch;
use crate::error::{Error, Result};
use crate::generation::Parts;
use crate::progress::Progress;
use crate::sparse::{leaves, Scored};

/// A checked ranking.
#[derive(Debug)]
pub struct Given<'a>(Ranking<'a>);

impl<'a> Given<'a> {
    /// Check that the ranking is valid for `units` units.
    pub fn new(ranking: Ranking<'a>, units: usize) -> Result<Self> {
        let Ranking { channel, ids, scores } = ranking;
        let wrong = |text: String| Err(Error::input(format!("the ranking of channel {channel} {text}")));
        if ids.len() != scores.len() {
            return wrong(format!("has {} ids and {} scores", ids.len(), scores.len()));
        }
        if let Some(id) = ids.iter().find(|&&id| id as usize >= units) {
            return wrong(format!("names unit {id}, but there are {units} units"));
        }
        if let Some(place) = scores.iter().position(|score| score.is_nan()) {
            return wrong(format!("has no number as the score of unit {}", ids[place]));
        }
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => wrong(format!("names unit {} twice", pair[0])),
            None => Ok(Self(ranking)),
        }
    }
}

impl Channel for Given<'_> {
    fn name(&self) -> &str {
        self.0.channel
    }

    fn missing(&self, _parts: &Parts<'_>) -> Option<&'static str> {
        None
    }

    /// The order is the caller's, regardless of the scores.
    fn rank(
        &self,
        query: &Query<'_, '_>,
        wanted: usize,
        _budget: u64,
        _scratch: &mut Scratch,
        _progress: &Progress,
    ) -> Result<Vec<Scored>> {
        let ranked = self.0.ids.iter().zip(self.0.scores).filter(|(&id, _)| leaves(query.mask, id));
        Ok(ranked.take(wanted).map(|(&id, &score)| Scored { id, score }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_ranking_is_refused() {
        let told = |ids: &[u32], scores: &[f64]| {
            Given::new(Ranking { channel: "mine", ids, scores }, 3).unwrap_err().to_string()
        };
        assert_eq!(told(&[0, 1], &[1.0]), "the ranking of channel mine has 2 ids and 1 scores");
        assert_eq!(
            told(&[0, 3], &[1.0, 0.5]),
            "the ranking of channel mine names unit 3, but there are 3 units"
        );
        assert_eq!(told(&[2, 1, 2], &[1.0; 3]), "the ranking of channel mine names unit 2 twice");
        assert!(told(&[2, 1], &[1.0, f64::NAN]).contains("no number as the score of unit 1"));
        assert!(Given::new(Ranking { channel: "mine", ids: &[2, 0], scores: &[0.1, 0.7] }, 3).is_ok());
    }
}
