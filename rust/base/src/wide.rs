//! Wider registers where the machine has them: they change the time alone, never a result.

/// Compiles a function twice, for the base machine and for AVX2 (without FMA, which rounds
/// otherwise), and picks at run time. AVX-512 was a quarter slower where rows are gathered: they begin
/// anywhere, so that each of its loads crosses a line of the cache.
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
                // Asked once: short rows call this millions of times.
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
