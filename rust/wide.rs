//! Wider registers where the machine has them: they change the time alone, never a result.

/// Compiles a function for the base machine, for AVX2 and for AVX-512, and picks at run time. Products and
/// sums stay apart: the compiler never fuses them by itself, which would round otherwise.
macro_rules! wide {
    ($name:ident, $body:ident, ($($arg:ident: $kind:ty),*)) => {
        fn $name($($arg: $kind),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wider($($arg: $kind),*) {
                    $body($($arg),*)
                }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                fn widest($($arg: $kind),*) {
                    $body($($arg),*)
                }
                if $crate::cpu::has!("avx512f", "avx512bw", "avx512dq", "avx512vl") {
                    // SAFETY: the processor has these; the body itself is safe code.
                    return unsafe { widest($($arg),*) };
                }
                if $crate::cpu::has!("avx2") {
                    // SAFETY: the processor has AVX2; the body itself is safe code.
                    return unsafe { wider($($arg),*) };
                }
            }
            $body($($arg),*)
        }
    };
}
pub(crate) use wide;
