//! Choice of the kernel for a model on this machine, by timing the model's shapes instead of reading CPU
//! flags.
//!
//! The same instruction is not equally fast on every processor: on one processor `vdpbf16ps` runs at twice
//! the rate of f32 products, and on another at half that rate.

use super::body::Scratch;
use super::kernel::{Form, Kernel};
use super::load::Weights;
use crate::error::{Error, Result};
use crate::progress::Progress;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A kernel, and the number format in which it computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Way {
    pub kernel: Kernel,
    pub form: Form,
}

/// Time per token in one layer, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    pub way: Way,
    pub microseconds: f64,
}

/// Minimum duration and number of runs of a measurement after warm-up.
const LONG: Duration = Duration::from_millis(4);
const RUNS: usize = 3;
/// The texts of a measurement: their number, and their number of tokens.
const TEXTS: usize = 2;
const TOKENS: usize = 32;

/// Return the candidates for `precision` with `kernel` (a name, or auto). For each number format this is the
/// last kernel of `Kernel::all`, which has the widest instructions. Narrower kernels were slower on every
/// machine. Also, kernels that add in different orders differ in the last bits of a vector, and a measurement
/// must not decide between them. bf16 without hardware support is left out if another format is allowed.
/// Errors: the kernel is unknown, unavailable, or does not support this precision.
pub fn ways(precision: Precision, kernel: &str) -> Result<Vec<Way>> {
    let form = precision.form();
    if kernel != "auto" {
        let kernel = Kernel::named(kernel)?;
        let form = form.unwrap_or(kernel.forms()[0]);
        if !kernel.serves(form) {
            let own: Vec<&str> = kernel.forms().iter().map(|form| form.name()).collect();
            return Err(Error::input(format!(
                "kernel {} only supports {}, not {}",
                kernel.name(),
                own.join(" and "),
                form.name()
            )));
        }
        return Ok(vec![Way { kernel, form }]);
    }
    let all = Kernel::all();
    let mut found = Vec::new();
    for one in [Form::F32, Form::Bf16, Form::Int8] {
        if !precision.allows(one) {
            continue;
        }
        let widest = all.iter().rev().find(|kernel| kernel.forms().contains(&one));
        found.extend(widest.map(|&kernel| Way { kernel, form: one }));
    }
    if found.is_empty() {
        let widest = all.into_iter().rev().find(|kernel| kernel.serves(Form::Bf16));
        found.extend(widest.map(|kernel| Way { kernel, form: Form::Bf16 }));
    }
    Ok(found)
}

/// Return the candidates for pairs of texts, which int8 does not support. With the kernel auto, `avx512-bf16`
/// is a candidate only if bf16 is requested and the processor has no other hardware for it: `vdpbf16ps` adds
/// in a different order, while all other kernels give the same bits as the tiles. Errors: a kernel that
/// supports only int8, and the errors of [`ways`].
pub fn float_ways(precision: Precision, kernel: &str) -> Result<Vec<Way>> {
    let mut all = ways(precision, kernel)?;
    all.retain(|way| way.form != Form::Int8);
    if all.is_empty() {
        return Err(Error::input(format!(
            "kernel {kernel} only supports int8, but pairs of texts need f32 or bf16"
        )));
    }
    let is_own_order = |way: &Way| way.kernel == Kernel::Avx512Bf16;
    if !all.iter().all(is_own_order) {
        all.retain(|way| !is_own_order(way));
    }
    Ok(all)
}

/// The inputs that determine the time of a layer: the candidates, and the sizes of the products.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Shape {
    ways: Vec<Way>,
    hidden: usize,
    heads: usize,
    intermediate: usize,
    length: usize,
}

/// The measurements of this process. Models of the same shape always get the same kernel, because the last
/// bits of a vector depend on the kernel.
static MEASURED: LazyLock<Mutex<HashMap<Shape, Vec<Timing>>>> = LazyLock::new(Mutex::default);

/// Minimum speed-up of int8 over another format to be preferred, because int8 changes vectors more.
const GAIN: f64 = 1.25;

impl Timing {
    /// Return the key by which candidates are ordered, smallest first: microseconds, multiplied by [`GAIN`]
    /// for int8.
    pub fn preference(&self) -> f64 {
        self.microseconds * if self.way.form == Form::Int8 { GAIN } else { 1.0 }
    }
}

/// Return the candidates with their times, the preferred first. A single candidate is not measured, and each
/// shape is measured only once in a process.
pub fn measure(weights: &Weights, ways: &[Way], threads: usize, progress: &Progress) -> Result<Vec<Timing>> {
    if let [way] = ways {
        return Ok(vec![Timing { way: *way, microseconds: f64::NAN }]);
    }
    let config = &weights.config;
    let shape = Shape {
        ways: ways.to_vec(),
        hidden: config.hidden,
        heads: config.heads,
        intermediate: config.intermediate,
        length: TOKENS.min(config.room()),
    };
    let known = || MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(timings) = known().get(&shape) {
        return Ok(timings.clone());
    }
    let timings = compare(weights, ways, threads, progress)?;
    // If two measurements run at the same time, the first to finish is used.
    Ok(known().entry(shape).or_insert(timings).clone())
}

fn compare(weights: &Weights, ways: &[Way], threads: usize, progress: &Progress) -> Result<Vec<Timing>> {
    let mut timings = Vec::new();
    for &way in ways {
        progress.check()?;
        timings.push(Timing { way, microseconds: time(weights, way, threads, progress)? });
    }
    timings.sort_by(|a, b| a.preference().total_cmp(&b.preference()));
    Ok(timings)
}

/// Measure one layer of the model on one thread. Returns the minimum of several runs, because other processes
/// can only add time.
fn time(weights: &Weights, way: Way, threads: usize, progress: &Progress) -> Result<f64> {
    let length = TOKENS.min(weights.config.room());
    let ids: Vec<u32> = (0..length).map(|i| (i * 31 % weights.config.vocabulary) as u32).collect();
    let body = weights.pack_some(way.kernel, way.form, &[&ids], 1, threads, progress)?;
    let sequences = [ids.as_slice(); TEXTS];
    let mut scratch = Scratch::default();
    let mut run = || -> Result<Duration> {
        let start = Instant::now();
        body.run(&sequences, &mut scratch, progress)?;
        Ok(start.elapsed())
    };
    run()?;
    let (begin, mut least, mut runs) = (Instant::now(), Duration::MAX, 0);
    while runs < RUNS || begin.elapsed() < LONG {
        least = least.min(run()?);
        runs += 1;
    }
    Ok(least.as_secs_f64() * 1e6 / (TEXTS * length) as f64)
}

/// Return the widest kernel in f32.
pub fn exact_way() -> Way {
    let kernel = Kernel::all().into_iter().rev().find(|kernel| kernel.serves(Form::F32));
    Way { kernel: kernel.unwrap_or(Kernel::Portable), form: Form::F32 }
}

/// How numbers are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// The fastest format that was measured; other than f32 only if the model's vectors keep their direction.
    Auto,
    /// The same without int8: f32, or bf16 if it is faster and keeps the direction. For the queries of an index whose
    /// vectors are not in int8.
    Float,
    F32,
    /// Emulated, and slower than f32, if the processor lacks it.
    Bf16,
    /// Linear layers on bytes.
    Int8,
}

impl Precision {
    pub fn named(name: &str) -> Result<Self> {
        Ok(match name {
            "auto" => Self::Auto,
            "float" => Self::Float,
            "f32" => Self::F32,
            "bf16" => Self::Bf16,
            "int8" => Self::Int8,
            _ => {
                let names = "auto, float, f32, bf16, int8";
                return Err(Error::input(format!("precision must be one of {names}, not {name:?}")));
            }
        })
    }

    /// Return whether it allows a format.
    pub fn allows(self, form: Form) -> bool {
        match self {
            Self::Float => form != Form::Int8,
            _ => self.form().is_none_or(|only| only == form),
        }
    }

    /// Return the one format that it allows, or `None` for several.
    pub fn form(self) -> Option<Form> {
        match self {
            Self::Auto | Self::Float => None,
            Self::F32 => Some(Form::F32),
            Self::Bf16 => Some(Form::Bf16),
            Self::Int8 => Some(Form::Int8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_precision_has_a_way() {
        for precision in [Precision::Auto, Precision::Float, Precision::F32, Precision::Bf16, Precision::Int8]
        {
            let found = ways(precision, "auto").unwrap();
            assert!(found.iter().all(|way| precision.allows(way.form)));
            assert!(!found.is_empty());
            assert!(found.iter().all(|way| way.kernel.here() && way.kernel.serves(way.form)));
            if let Some(form) = precision.form() {
                assert!(found.iter().all(|way| way.form == form));
            } else {
                assert!(found.iter().any(|way| way.form == Form::F32));
            }
        }
    }

    #[test]
    fn int8_must_be_a_quarter_faster() {
        let of = |form, microseconds| {
            Timing { way: Way { kernel: Kernel::Portable, form }, microseconds }.preference()
        };
        assert!(of(Form::Int8, 4.1) > of(Form::Bf16, 5.0));
        assert!(of(Form::Int8, 3.9) < of(Form::F32, 5.0));
    }

    #[test]
    fn every_precision_has_a_way_for_pairs() {
        for precision in [Precision::Auto, Precision::F32, Precision::Bf16] {
            let found = float_ways(precision, "auto").unwrap();
            assert!(!found.is_empty() && found.iter().all(|way| way.form != Form::Int8));
            let is_own_order = found.iter().any(|way| way.kernel == Kernel::Avx512Bf16);
            assert!(!is_own_order || (precision == Precision::Bf16 && found.len() == 1));
        }
        for kernel in Kernel::all() {
            let is_scored = float_ways(Precision::Auto, kernel.name()).is_ok();
            assert_eq!(is_scored, kernel.forms() != [Form::Int8], "{}", kernel.name());
        }
    }

    #[test]
    fn a_kernel_can_be_forced() {
        for kernel in Kernel::all() {
            let form = kernel.forms()[0];
            assert_eq!(ways(Precision::Auto, kernel.name()).unwrap(), [Way { kernel, form }]);
            for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
                let form = precision.form().unwrap();
                match ways(precision, kernel.name()) {
                    Ok(found) => assert_eq!(found, [Way { kernel, form }]),
                    Err(_) => assert!(!kernel.serves(form)),
                }
            }
        }
        assert!(ways(Precision::Auto, "mmx").is_err());
    }

    #[test]
    fn float_allows_all_but_int8() {
        let allowed =
            |precision: Precision| [Form::F32, Form::Bf16, Form::Int8].map(|form| precision.allows(form));
        assert_eq!(allowed(Precision::Auto), [true, true, true]);
        assert_eq!(allowed(Precision::Float), [true, true, false]);
        assert_eq!(allowed(Precision::Int8), [false, false, true]);
    }

    #[test]
    fn names_of_precisions() {
        assert_eq!(Precision::named("bf16"), Ok(Precision::Bf16));
        assert!(Precision::named("int4").is_err());
    }
}
