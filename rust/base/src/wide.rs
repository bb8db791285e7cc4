//! Functions compiled twice, for the baseline processor and for AVX2. Only the speed differs, never the
//! result.

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
