//! The instructions that this process may use: those that the processor reports, less those that the
//! environment hides.
//!
//! `KETRAG_CPU_WITHOUT=amx,avx512` makes a process behave as on a processor (or under a hypervisor) without
//! these instructions: for tests, and to rule out a faulty instruction set. A name hides all features that
//! begin with it.

use std::sync::OnceLock;

/// Environment variable that lists the hidden features.
pub const VARIABLE: &str = "KETRAG_CPU_WITHOUT";

/// Whether `feature` is hidden. The variable is read once in a process.
pub fn hidden(feature: &str) -> bool {
    static HIDDEN: OnceLock<Vec<String>> = OnceLock::new();
    let names = HIDDEN.get_or_init(|| {
        let value = std::env::var(VARIABLE).unwrap_or_default();
        value.split(',').map(|name| name.trim().to_lowercase()).filter(|name| !name.is_empty()).collect()
    });
    names.iter().any(|name| feature.starts_with(name.as_str()))
}

/// `has!("avx2", "fma")` is true if this process may use all of these features.
#[cfg(target_arch = "x86_64")]
#[macro_export]
#[doc(hidden)]
macro_rules! __ketrag_has {
    ($($feature:tt),+) => {
        ($(std::arch::is_x86_feature_detected!($feature) && !$crate::cpu::hidden($feature))&&+)
    };
}
#[cfg(target_arch = "aarch64")]
#[macro_export]
#[doc(hidden)]
macro_rules! __ketrag_has {
    ($($feature:tt),+) => {
        ($(std::arch::is_aarch64_feature_detected!($feature) && !$crate::cpu::hidden($feature))&&+)
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub use __ketrag_has as has;

// Functions compiled twice, for the baseline processor and for AVX2. Only the speed differs, never the
// result.

/// Compile a function for the baseline and for AVX2 (without FMA, which rounds differently) and choose at run
/// time. AVX-512 was 25 % slower on gathered rows: they start at any address, so each of its loads crosses a
/// cache line.
#[macro_export]
#[doc(hidden)]
macro_rules! __ketrag_wide {
    ($name:ident, $body:ident, ($($arg:ident: $kind:ty),*)) => {
        fn $name($($arg: $kind),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wider($($arg: $kind),*) {
                    $body($($arg),*)
                }
                // Detected once: short rows call this millions of times.
                static WIDER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
                if *WIDER.get_or_init(|| $crate::cpu::has!("avx2")) {
                    // SAFETY: the processor has AVX2; the body itself is safe code.
                    return unsafe { wider($($arg),*) };
                }
            }
            $body($($arg),*)
        }
    };
}
pub use __ketrag_wide as wide;

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_is_hidden_by_itself() {
        if std::env::var_os(super::VARIABLE).is_none() {
            assert!(!super::hidden("avx2") && !super::hidden(""));
        }
    }
}
