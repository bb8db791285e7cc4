//! Text that nobody sees: outside of the page, drawn in white or not at all, or too small to be read.

use crate::characters::{sample, Characters, View, SAMPLED};

/// Which characters nobody sees, and how many words were left out because of it.
pub(crate) struct Unseen {
    checks_place: bool,
    checks_colour: bool,
    backgrounds: Vec<[f32; 4]>,
    page: [f64; 2],
    pub(crate) count: std::cell::Cell<u32>,
}

/// Letters of less than this size in points are not read by anybody.
const TINY: f64 = 1.5;

impl Unseen {
    /// A page most of whose text is outside has a box that is not known here, and one whose text is all white or invisible
    /// a background.
    pub(crate) fn new(characters: &impl Characters, view: View) -> Unseen {
        let page = if matches!(view.rotation, 90 | 270) {
            [view.height, view.width]
        } else {
            [view.width, view.height]
        };
        let places: Vec<usize> = sample(characters.units(), SAMPLED).collect();
        let few = |count: usize| 2 * count < places.len();
        let mut found = Unseen {
            checks_place: true,
            checks_colour: false,
            backgrounds: Vec::new(),
            page,
            count: std::cell::Cell::new(0),
        };
        found.checks_place = few(places
            .iter()
            .filter(|&&at| found.is_outside(view.word(characters.bounds(at), characters.bounds(at))))
            .count());
        found.checks_colour = places.iter().any(|&at| !characters.is_white(at));
        if found.checks_colour {
            found.backgrounds = characters.backgrounds();
        }
        found
    }

    fn is_outside(&self, [left, top, right, bottom]: [f64; 4]) -> bool {
        right < 0.0 || bottom < 0.0 || left > self.page[0] || top > self.page[1]
    }

    /// Return whether a word is seen; count it if it is not.
    pub(crate) fn is_seen(&self, characters: &impl Characters, at: usize, bounds: [f64; 4]) -> bool {
        let is_covered = |box_: [f32; 4]| {
            let [left, top, right, bottom] = characters.bounds(at);
            let (x, y) = ((left + right) / 2.0, (top + bottom) / 2.0);
            box_[0] <= x && x <= box_[2] && box_[3] <= y && y <= box_[1]
        };
        let is_hidden = self.checks_place && self.is_outside(bounds)
            || self.checks_colour
                && characters.is_white(at)
                && !self.backgrounds.iter().any(|&path| is_covered(path))
            || bounds[3] - bounds[1] < 2.0 * TINY && is_tiny(characters, at);
        if is_hidden {
            self.count.set(self.count.get().saturating_add(1));
        }
        !is_hidden
    }
}

/// Return whether a character is too small to be read.
fn is_tiny(characters: &impl Characters, at: usize) -> bool {
    let matrix = characters.matrix(at).map(f64::from);
    let size = characters.font_size(at) * matrix[2].hypot(matrix[3]);
    size > 0.0 && size < TINY
}
