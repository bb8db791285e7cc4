//! Functions between the products: exponential and activations, on vectors.

// Coefficients are written with more digits than f32 keeps, as they were fitted.
#![allow(clippy::excessive_precision)]

use super::Lanes;

/// The activation between the two products of a feed-forward layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `x * Phi(x)` with the error function.
    Gelu,
    /// The same with the hyperbolic tangent (Hendrycks and Gimpel, 2016, section 2).
    GeluTanh,
    Relu,
    Silu,
}

impl Activation {
    /// Return the activation by its name in a `config.json`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "gelu" | "gelu_python" => Self::Gelu,
            "gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" => Self::GeluTanh,
            "relu" => Self::Relu,
            "silu" | "swish" => Self::Silu,
            _ => return None,
        })
    }
}

/// `2^y` for `y` up to 127; below -126 it stays at `2^-126`. Relative error under 2e-7.
///
/// # Safety
/// The instructions of `S`.
#[inline(always)]
pub unsafe fn exp2<S: Lanes>(y: S::V) -> S::V {
    // Minimax over -0.5..=0.5 for the relative error; fitted for this file.
    const P: [f32; 7] = [
        1.0,
        std::f32::consts::LN_2,
        0.240_226_46,
        0.055_503_286,
        0.009_618_489,
        0.001_339_993_1,
        0.000_153_458_08,
    ];
    let y = S::max(y, S::splat(-126.0));
    let whole = S::round(y);
    let part = S::sub(y, whole);
    let mut p = S::splat(P[6]);
    for k in (0..6).rev() {
        p = S::fma(p, part, S::splat(P[k]));
    }
    S::mul(p, S::power(whole))
}

/// The activation of one vector; `LOW` takes the cheaper gelu, whose error of 3e-5 of `x` is far
/// below that of bf16.
///
/// # Safety
/// The instructions of `S`.
#[inline(always)]
pub unsafe fn activate<S: Lanes, const LOW: bool>(kind: Activation, x: S::V) -> S::V {
    match kind {
        Activation::Gelu if LOW => gelu_low::<S>(x),
        Activation::Gelu => gelu::<S>(x),
        Activation::GeluTanh => {
            // x * sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
            let cubic = S::fma(S::mul(x, x), S::splat(0.044_715), S::splat(1.0));
            logistic::<S>(x, S::mul(S::mul(x, cubic), S::splat(1.595_769_1)))
        }
        Activation::Relu => S::max(x, S::splat(0.0)),
        Activation::Silu => logistic::<S>(x, x),
    }
}

/// `x / (1 + e^-u)`.
#[inline(always)]
unsafe fn logistic<S: Lanes>(x: S::V, u: S::V) -> S::V {
    let y = S::min(S::mul(u, S::splat(-std::f32::consts::LOG2_E)), S::splat(126.0));
    S::div(x, S::add(S::splat(1.0), exp2::<S>(y)))
}

/// `x / 2 * erfc(-x / sqrt 2)` with erfc of Abramowitz and Stegun 7.1.26 (error 1.5e-7).
#[inline(always)]
unsafe fn gelu<S: Lanes>(x: S::V) -> S::V {
    const A: [f32; 5] = [0.254_829_6, -0.284_496_73, 1.421_413_7, -1.453_152, 1.061_405_4];
    let zero = S::splat(0.0);
    let magnitude = S::max(x, S::sub(zero, x));
    // p / sqrt 2 with p = 0.3275911
    let t = S::div(S::splat(1.0), S::fma(magnitude, S::splat(0.231_641_9), S::splat(1.0)));
    let mut p = S::splat(A[4]);
    for k in (0..4).rev() {
        p = S::fma(p, t, S::splat(A[k]));
    }
    // e^(-x^2 / 2) = 2^(-x^2 / (2 ln 2))
    let tail = exp2::<S>(S::mul(S::mul(x, x), S::splat(-0.721_347_5)));
    let below = S::mul(S::mul(S::mul(p, t), tail), S::mul(magnitude, S::splat(0.5)));
    S::sub(S::max(x, zero), below)
}

/// `x / 2 * (1 + x P(x^2))` with `x` held within -4..=4 in the odd polynomial for erf(x / sqrt 2).
#[inline(always)]
unsafe fn gelu_low<S: Lanes>(x: S::V) -> S::V {
    let held = S::max(S::min(x, S::splat(4.0)), S::splat(-4.0));
    let square = S::mul(held, held);
    let mut p = S::splat(ERF[8]);
    for k in (0..8).rev() {
        p = S::fma(p, square, S::splat(ERF[k]));
    }
    let half = S::mul(x, S::splat(0.5));
    S::fma(half, S::mul(p, held), half)
}

/// Minimax for the error of gelu over -4..=4; fitted for this file.
const ERF: [f32; 9] = [
    0.7977620363235474, -0.13264723122119904, 0.019631588831543922, -0.0022257077507674694,
    0.00018987969087902457, -1.1721112969098613e-05, 4.881635504716542e-07, -1.2133630100663595e-08,
    1.3480533356258206e-10,
];
