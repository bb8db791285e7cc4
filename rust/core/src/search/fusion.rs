//! Fusion of ranked lists by reciprocal rank.

use crate::error::{Error, Result};
use crate::sparse::{top_k, Scored};

/// Fuse lists by reciprocal rank (Cormack, Clarke, Buettcher 2009): the score of an id is the sum over the
/// lists of `1 / (constant + rank)`, ranks from 1. Best first, ties by id. `constant` is usually 60.
///
/// ```
/// use ketrag_core::search::fusion::fuse;
///
/// let fused = fuse(&[&[7, 3], &[3, 5]], 60.0)?;
/// assert_eq!(fused.iter().map(|row| row.id).collect::<Vec<_>>(), [3, 7, 5]);
/// # Ok::<(), ketrag_base::Error>(())
/// ```
pub fn fuse(lists: &[&[u32]], constant: f64) -> Result<Vec<Scored>> {
    if !constant.is_finite() || constant < 0.0 {
        return Err(Error::input("the constant of a fusion must be finite and not negative"));
    }
    let mut parts: Vec<(u32, usize, usize)> = Vec::with_capacity(lists.iter().map(|l| l.len()).sum());
    for (list, ids) in lists.iter().enumerate() {
        parts.extend(ids.iter().enumerate().map(|(rank, &id)| (id, list, rank)));
    }
    // Sort by id, then by list, so that sums run in the order of the lists.
    parts.sort_unstable();
    let mut fused: Vec<Scored> = Vec::new();
    let mut before = None;
    for (id, list, rank) in parts {
        if before == Some((id, list)) {
            return Err(Error::input(format!("id {id} occurs twice in list {list} of a fusion")));
        }
        before = Some((id, list));
        let share = 1.0 / (constant + (rank + 1) as f64);
        match fused.last_mut() {
            Some(last) if last.id == id => last.score += share,
            _ => fused.push(Scored { id, score: share }),
        }
    }
    Ok(top_k(fused, usize::MAX))
}
