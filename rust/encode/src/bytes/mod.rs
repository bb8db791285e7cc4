//! The encoder in int8: weights and activations of 8 bits, with a scale for each [`GROUP`] of inputs.
//!
//! Linear layers multiply bytes; attention, norms and activations stay in f32. Three techniques make this
//! accurate enough:
//! * each 64 neighbouring weights of an output have one scale, and so have each 64 neighbouring values of
//!   a token, so that a large one spoils the precision of few others;
//! * each input channel is scaled before it is rounded, by `sqrt(w / a)` of its largest weight and the
//!   largest activation measured on built-in texts, and its weights by the inverse (Xiao et al. 2023,
//!   SmoothQuant, section 4, with a strength of 0.5), which dampens outlier channels;
//! * a group's values are spread over all steps of a byte from 0 to [`TOP`] between their minimum and maximum
//!   (`rows`).
//!
//! Sums of bytes are integers, so every processor has the same results (`dot`), and the f32 parts run on the
//! sixteen lanes of `simd::wide`: the vectors are bit-identical on all machines. For this purpose calibration
//! uses fused f32 products, too (`body`).

#[cfg(target_arch = "x86_64")]
pub mod amx;
#[cfg(target_arch = "aarch64")]
pub mod arm;
pub mod body;
pub mod dot;
pub mod machine;
pub mod product;
pub mod rows;
#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
pub mod x86;

/// Outputs per panel of weights.
pub const PANEL: usize = 32;
/// Words (four bytes) per step: 64 inputs.
pub const STEP: usize = 16;
/// Words of the weights of a step and half a panel, and of a step and a panel.
pub const HALF_WORDS: usize = STEP * 16;
pub const STEP_WORDS: usize = 2 * HALF_WORDS;
/// Steps of a group, whose weights and values have their own scales; the last group of a row may be shorter.
pub const GROUP_STEPS: usize = 1;
/// Words and inputs of a group.
pub const GROUP_WORDS: usize = GROUP_STEPS * STEP;
pub const GROUP: usize = GROUP_WORDS * 4;
/// The largest byte of a value. With fewer steps for values, weights may be larger before four products
/// overflow 16 bits (`product`). At 191 the errors of both are equal, and the vectors are closest to those of
/// f32.
pub const TOP: u8 = 191;
