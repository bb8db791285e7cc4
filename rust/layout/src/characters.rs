//! The characters of a page as PDFium gives them, and their places on the displayed page.

use ketrag_text::classes::is_space;

/// The part of a letter's box above and below that its ink seldom reaches.
pub(crate) const RIM: f64 = 0.16;

/// The characters of a page and their boxes, with y upwards and the page as it is before its rotation.
pub trait Characters {
    /// Return one code unit for each character that the page counts.
    fn units(&self) -> &[u32];
    /// Return left, top, right, bottom of the box of a character.
    fn bounds(&self, at: usize) -> [f32; 4];
    fn matrix(&self, at: usize) -> [f32; 6];
    fn font_size(&self, at: usize) -> f64;
    /// Return x and y of the point on the baseline where a character begins.
    fn origin(&self, at: usize) -> [f64; 2];
    /// Return the angle of a character in radians.
    fn angle(&self, at: usize) -> f32;
    fn is_unmapped(&self, at: usize) -> bool;
    /// Return left, top, right, bottom of the paths on the page.
    fn paths(&self) -> Vec<[f32; 4]>;
    fn has_picture(&self) -> bool;
    /// Return left, top, right, bottom of the paths, pictures and forms on the page, on which white text is seen and
    /// invisible text is the text of a picture.
    fn backgrounds(&self) -> Vec<[f32; 4]>;
    /// Return whether a character is drawn in white, is transparent or is not drawn.
    fn is_white(&self, at: usize) -> bool;
}

/// How the page is displayed: its rotation in degrees, and its width and height before the rotation.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub(crate) rotation: u16,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl View {
    /// Convert a box from PDF coordinates (unrotated, y upwards) to those of the page, y downwards.
    pub(crate) fn place(&self, [left, top, right, bottom]: [f64; 4]) -> [f64; 4] {
        match self.rotation {
            0 => [left, self.height - top, right, self.height - bottom],
            90 => [bottom, left, top, right],
            180 => [self.width - right, bottom, self.width - left, top],
            _ => [self.height - top, self.width - right, self.height - bottom, self.width - left],
        }
    }

    /// Return the box of a word from those of its first and last character. Like all numbers of a page, coordinates may
    /// be undefined, and then the result is, too.
    pub(crate) fn word(&self, first: [f32; 4], last: [f32; 4]) -> [f64; 4] {
        let (first, last) = (first.map(f64::from), last.map(f64::from));
        let last = if last[1] > last[3] { last } else { first };
        let first = if first[1] > first[3] { first } else { last };
        let [left, top, right, bottom] = self.place([
            minimum(first[0], last[0]),
            maximum(first[1], last[1]),
            maximum(first[2], last[2]),
            minimum(first[3], last[3]),
        ]);
        let rim = RIM * (bottom - top);
        [left, top + rim, right, bottom - rim]
    }
}

pub(crate) fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        a.min(b)
    }
}

pub(crate) fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        a.max(b)
    }
}

/// A word as a range of units, with its box. `is_glued`: it belongs to the word before, from which PDFium has divided it
/// at a superscript or subscript.
pub(crate) struct Mark {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) bounds: [f64; 4],
    pub(crate) is_glued: bool,
}

/// Number of characters by which a page is judged.
pub(crate) const SAMPLED: usize = 40;

/// Return the places of about `count` characters at even distances that are not spaces.
pub(crate) fn sample(units: &[u32], count: usize) -> impl Iterator<Item = usize> + '_ {
    (0..units.len()).step_by((units.len() / count).max(1)).filter(|&at| !is_blank(units[at]))
}

pub(crate) fn is_blank(unit: u32) -> bool {
    char::from_u32(unit).is_some_and(is_space)
}
