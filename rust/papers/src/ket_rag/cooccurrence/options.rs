//! Options of the co-occurrence kernel: which words to count, which instructions to use, and block sizes.

use crate::error::{Error, Result};
use std::ops::Range;

/// The instruction set of the adders. All of them give the same neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kernel {
    /// The widest instruction set of this machine.
    #[default]
    Auto,
    Avx512,
    Avx2,
    Neon,
    Portable,
}

impl Kernel {
    /// Return the kernels that this machine supports, widest first, without `Auto`.
    pub fn available() -> Vec<Self> {
        let mut all = vec![];
        #[cfg(target_arch = "x86_64")]
        {
            if crate::cpu::has!("avx512f") {
                all.push(Self::Avx512);
            }
            if crate::cpu::has!("avx2") {
                all.push(Self::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if crate::cpu::has!("neon") {
            all.push(Self::Neon);
        }
        all.push(Self::Portable);
        all
    }

    pub(super) fn resolve(self) -> Result<Self> {
        let available = Self::available();
        match self {
            Self::Auto => Ok(available[0]),
            one if available.contains(&one) => Ok(one),
            one => Err(Error::input(format!("this machine has no {one:?} kernel"))),
        }
    }
}

/// Sizes that affect only the speed, never the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Words found in at least this many texts are stored as bitmaps. The default depends on the number of
    /// texts.
    pub frequent_df: Option<u32>,
    /// Maximum number of texts that one thread compares with a block together.
    pub group: usize,
    /// Number of blocks of 512 texts for which rare words are collected at once.
    pub run: usize,
    /// Approximate maximum number of shared rare words collected at once (4 bytes each).
    pub rare: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { frequent_df: None, group: 16_384, run: 64, rare: 4 << 20 }
    }
}

/// What to count, and how.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Words found in more than this share of the texts are not counted, from 0 to 1.
    pub max_df_ratio: Option<f64>,
    /// Fill missing neighbours with texts that have no word in common, by id.
    pub allow_zero: bool,
    /// Number of threads; 0 for every core.
    pub threads: usize,
    pub kernel: Kernel,
    /// Find neighbours only for these texts (default: all). The neighbours still come from all texts.
    pub rows: Option<Range<usize>>,
    pub tuning: Tuning,
}
