//! The channel `text`: units ranked by their vectors.

use super::channel::{published, Channel};
use super::options::Options;
use super::query::{need, silent, Query};
use super::scratch::Scratch;
use crate::error::Result;
use crate::generation::Parts;
use crate::progress::Progress;
use crate::search::render::Style;
use crate::sparse::{top_k, Scored};
use crate::vector::simd::Level;
use crate::vector::Filter;

pub struct Text;

/// Name of the vectors for which the caller may supply candidates of an approximate search.
const LIST: &str = "units";

impl Channel for Text {
    fn name(&self) -> &str {
        "text"
    }

    fn missing(&self, parts: &Parts<'_>) -> Option<&'static str> {
        (!parts.has_vectors()).then_some("vectors of the units (stage vectors)")
    }

    /// The reference implementation prints this channel with headers even if it is alone.
    fn style(&self, options: &Options, alone: bool) -> Result<Style> {
        Ok(match (published(self.name(), options)?, alone) {
            (true, _) => Style::Published,
            (false, true) => Style::Cited,
            (false, false) => Style::Ket,
        })
    }

    fn rank(
        &self,
        query: &Query<'_, '_>,
        wanted: usize,
        _budget: u64,
        scratch: &mut Scratch,
        _progress: &Progress,
    ) -> Result<Vec<Scored>> {
        let units = need(query.parts.unit_vectors()?)?;
        let vector = query.vector()?;
        if silent(vector) {
            return Ok(Vec::new());
        }
        if let Some(mask) = query.mask {
            let left = Filter::Bits(mask.bits());
            return units.top_k(vector, wanted, left, Level::best(), scratch.of());
        }
        if let Some(near) = query.near(LIST).filter(|near| near.len() >= wanted) {
            Filter::Ids(near).check(units.len())?;
            return Ok(top_k(units.ask(vector)?.score_many(near), wanted));
        }
        units.top_k(vector, wanted, Filter::All, Level::best(), scratch.of())
    }
}
