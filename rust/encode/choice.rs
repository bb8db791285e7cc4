//! Which kernel computes a model here: measured on the model's own shapes, not read from flags.
//!
//! The same instruction is not equally fast everywhere: `vdpbf16ps` runs at twice the rate of f32 products
//! on one processor with it, at half on another.

use super::body::Scratch;
use super::encoder::Precision;
use super::load::Weights;
use super::machine::Kernel;
use crate::error::{Error, Result};
use crate::progress::Progress;
use std::time::{Duration, Instant};

/// A kernel, in bf16 or f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub kernel: Kernel,
    pub low: bool,
}

impl Way {
    /// "f32" or "bf16".
    pub fn precision(self) -> &'static str {
        if self.low {
            "bf16"
        } else {
            "f32"
        }
    }
}

/// What a token took in one layer, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    pub way: Way,
    pub microseconds: f64,
}

/// How long a way is measured, once it is warm.
const LONG: Duration = Duration::from_millis(4);
/// The texts of a measurement: so many, of so many tokens.
const TEXTS: usize = 4;
const TOKENS: usize = 32;

/// The ways that may serve `precision` by `kernel` (a name, or auto), the plainest first. Those that are
/// slower on every machine are left out: portable where there are vectors, bf16 without the hardware
/// where f32 is allowed. Errors: the kernel is unknown, not here, or not of this precision.
pub fn ways(precision: Precision, kernel: &str) -> Result<Vec<Way>> {
    if kernel != "auto" {
        let kernel = Kernel::named(kernel)?;
        if precision == Precision::F32 && kernel.has_bf16() {
            return Err(Error::input(format!("kernel {} computes in bf16 alone, not in f32", kernel.name())));
        }
        let low = precision == Precision::Bf16 || kernel.has_bf16();
        return Ok(vec![Way { kernel, low }]);
    }
    let (fast, wide): (Vec<Kernel>, Vec<Kernel>) = Kernel::all().into_iter().partition(|k| k.has_bf16());
    let low = fast.iter().map(|&kernel| Way { kernel, low: true });
    let exact = wide.iter().filter(|&&k| k != Kernel::Portable || wide.len() == 1);
    let exact = exact.map(|&kernel| Way { kernel, low: false });
    Ok(match precision {
        Precision::F32 => exact.collect(),
        Precision::Auto => exact.chain(low).collect(),
        Precision::Bf16 if fast.is_empty() => {
            wide.last().map(|&kernel| Way { kernel, low: true }).into_iter().collect()
        }
        Precision::Bf16 => low.collect(),
    })
}

/// The ways by what they take, the fastest first; one alone is not measured.
pub fn measure(weights: &Weights, ways: &[Way], threads: usize, progress: &Progress) -> Result<Vec<Timing>> {
    if let [way] = ways {
        return Ok(vec![Timing { way: *way, microseconds: f64::NAN }]);
    }
    let mut timings = Vec::new();
    for &way in ways {
        progress.check()?;
        timings.push(Timing { way, microseconds: time(weights, way, threads, progress)? });
    }
    timings.sort_by(|a, b| a.microseconds.total_cmp(&b.microseconds));
    Ok(timings)
}

/// One layer of the model on one thread: the least of several runs, since other work can only add to it.
fn time(weights: &Weights, way: Way, threads: usize, progress: &Progress) -> Result<f64> {
    let body = weights.pack_some(way.kernel, way.low, 1, threads, progress)?;
    let length = TOKENS.min(body.room());
    let ids: Vec<u32> = (0..length).map(|i| (i * 31 % weights.config.vocabulary) as u32).collect();
    let sequences = [ids.as_slice(); TEXTS];
    let mut scratch = Scratch::default();
    let mut run = || -> Result<Duration> {
        let start = Instant::now();
        body.run(&sequences, &mut scratch, progress)?;
        Ok(start.elapsed())
    };
    run()?;
    let (begin, mut least) = (Instant::now(), Duration::MAX);
    while least == Duration::MAX || begin.elapsed() < LONG {
        least = least.min(run()?);
    }
    Ok(least.as_secs_f64() * 1e6 / (TEXTS * length) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_precision_has_a_way() {
        for precision in [Precision::Auto, Precision::F32, Precision::Bf16] {
            let found = ways(precision, "auto").unwrap();
            assert!(!found.is_empty());
            assert!(found.iter().all(|way| way.kernel.here()));
            assert!(precision != Precision::F32 || found.iter().all(|way| !way.low));
            assert!(precision != Precision::Bf16 || found.iter().all(|way| way.low));
        }
    }

    #[test]
    fn a_kernel_can_be_forced() {
        for kernel in Kernel::all() {
            let low = kernel.has_bf16();
            assert_eq!(ways(Precision::Auto, kernel.name()).unwrap(), [Way { kernel, low }]);
            assert_eq!(ways(Precision::Bf16, kernel.name()).unwrap(), [Way { kernel, low: true }]);
            assert_eq!(ways(Precision::F32, kernel.name()).is_err(), low);
        }
        assert!(ways(Precision::Auto, "mmx").is_err());
    }
}
