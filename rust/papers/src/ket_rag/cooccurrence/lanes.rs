//! Vector operations for bit slices, with one implementation per instruction set.
//!
//! A lane is a group of 64-bit words that are processed together. The algorithms in [`super::slices`] are
//! written once, generically over this trait. Only these operations differ.

// The trait says once what a caller promises.
#![allow(unsafe_op_in_unsafe_fn)]

/// A vector of [`Self::WORDS`] 64-bit words.
///
/// # Safety
/// Methods may only run on a processor that has the instruction set of the type; pointers must be valid for
/// `WORDS` words. (No alignment is required.)
pub unsafe trait Lane: Copy {
    const WORDS: usize;

    unsafe fn zero() -> Self;
    unsafe fn ones() -> Self;
    unsafe fn load(from: *const u64) -> Self;
    unsafe fn store(self, to: *mut u64);
    unsafe fn and(self, other: Self) -> Self;
    unsafe fn or(self, other: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn is_zero(self) -> bool;

    /// Adds three bits of equal weight at every position: (sum, carry).
    #[inline(always)]
    unsafe fn full_add(a: Self, b: Self, c: Self) -> (Self, Self) {
        let half = a.xor(b);
        (half.xor(c), a.and(b).or(half.and(c)))
    }

    /// Adds two bits of equal weight at every position: (sum, carry).
    #[inline(always)]
    unsafe fn half_add(a: Self, b: Self) -> (Self, Self) {
        (a.xor(b), a.and(b))
    }
}

/// Prefetch the cache line at `address`. Any address is allowed: nothing is read.
#[inline(always)]
pub fn prefetch(address: *const u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch does not affect memory; SSE is part of every x86-64 processor.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; `prfm` neither reads memory nor writes registers or flags.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Plain 64-bit words, four at a time so that the compiler can vectorise them.
#[derive(Clone, Copy)]
pub struct Plain([u64; 4]);

// SAFETY: needs no instruction set; `load` and `store` access `WORDS` words at the pointer.
unsafe impl Lane for Plain {
    const WORDS: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0; 4])
    }
    #[inline(always)]
    unsafe fn ones() -> Self {
        Self([u64::MAX; 4])
    }
    #[inline(always)]
    unsafe fn load(from: *const u64) -> Self {
        // The caller passes four readable words.
        Self(from.cast::<[u64; 4]>().read_unaligned())
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // The caller passes four writable words.
        to.cast::<[u64; 4]>().write_unaligned(self.0)
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] ^ other.0[i]))
    }
    #[inline(always)]
    unsafe fn is_zero(self) -> bool {
        self.0 == [0; 4]
    }
}

#[cfg(target_arch = "x86_64")]
pub mod x86 {
    //! Wrappers without target features: they are always inlined into the `#[target_feature]` functions of
    //! [`super::super::slices`], where the intrinsics become single instructions.
    use super::Lane;
    use std::arch::x86_64::*;

    /// 256 bits, AVX2.
    #[derive(Clone, Copy)]
    pub struct Avx2(__m256i);

    // SAFETY: needs AVX2, which `Kernel::resolve` has checked before any call.
    unsafe impl Lane for Avx2 {
        const WORDS: usize = 4;

        #[inline(always)]
        unsafe fn zero() -> Self {
            Self(_mm256_setzero_si256())
        }
        #[inline(always)]
        unsafe fn ones() -> Self {
            Self(_mm256_set1_epi64x(-1))
        }
        #[inline(always)]
        unsafe fn load(from: *const u64) -> Self {
            // Four readable words.
            Self(_mm256_loadu_si256(from.cast()))
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut u64) {
            // Four writable words.
            _mm256_storeu_si256(to.cast(), self.0)
        }
        #[inline(always)]
        unsafe fn and(self, other: Self) -> Self {
            Self(_mm256_and_si256(self.0, other.0))
        }
        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            Self(_mm256_or_si256(self.0, other.0))
        }
        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            Self(_mm256_xor_si256(self.0, other.0))
        }
        #[inline(always)]
        unsafe fn is_zero(self) -> bool {
            _mm256_testz_si256(self.0, self.0) != 0
        }
    }

    /// Truth tables of `vpternlogq`: exclusive or of three, and majority of three.
    pub const XOR3: i32 = 0x96;
    pub const MAJORITY: i32 = 0xe8;

    /// 512 bits, AVX-512F.
    #[derive(Clone, Copy)]
    pub struct Avx512(__m512i);

    // SAFETY: needs AVX-512F, which `Kernel::resolve` has checked before any call.
    unsafe impl Lane for Avx512 {
        const WORDS: usize = 8;

        #[inline(always)]
        unsafe fn zero() -> Self {
            Self(_mm512_setzero_si512())
        }
        #[inline(always)]
        unsafe fn ones() -> Self {
            Self(_mm512_set1_epi64(-1))
        }
        #[inline(always)]
        unsafe fn load(from: *const u64) -> Self {
            // Eight readable words.
            Self(_mm512_loadu_si512(from.cast()))
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut u64) {
            // Eight writable words.
            _mm512_storeu_si512(to.cast(), self.0)
        }
        #[inline(always)]
        unsafe fn and(self, other: Self) -> Self {
            Self(_mm512_and_si512(self.0, other.0))
        }
        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            Self(_mm512_or_si512(self.0, other.0))
        }
        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            Self(_mm512_xor_si512(self.0, other.0))
        }
        #[inline(always)]
        unsafe fn is_zero(self) -> bool {
            _mm512_test_epi64_mask(self.0, self.0) == 0
        }
        #[inline(always)]
        unsafe fn full_add(a: Self, b: Self, c: Self) -> (Self, Self) {
            (
                Self(_mm512_ternarylogic_epi64::<XOR3>(a.0, b.0, c.0)),
                Self(_mm512_ternarylogic_epi64::<MAJORITY>(a.0, b.0, c.0)),
            )
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub mod arm {
    use super::Lane;
    use std::arch::aarch64::*;

    /// 256 bits as two NEON vectors: two independent sums hide the latency of an adder.
    #[derive(Clone, Copy)]
    pub struct Neon([uint64x2_t; 2]);

    impl Neon {
        #[inline(always)]
        fn zip(self, other: Self, apply: impl Fn(uint64x2_t, uint64x2_t) -> uint64x2_t) -> Self {
            Self([apply(self.0[0], other.0[0]), apply(self.0[1], other.0[1])])
        }
    }

    // SAFETY: needs NEON, which `Kernel::resolve` has checked before any call.
    unsafe impl Lane for Neon {
        const WORDS: usize = 4;

        #[inline(always)]
        unsafe fn zero() -> Self {
            Self([vdupq_n_u64(0); 2])
        }
        #[inline(always)]
        unsafe fn ones() -> Self {
            Self([vdupq_n_u64(u64::MAX); 2])
        }
        #[inline(always)]
        unsafe fn load(from: *const u64) -> Self {
            // Four readable words.
            Self([vld1q_u64(from), vld1q_u64(from.add(2))])
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut u64) {
            // Four writable words.
            vst1q_u64(to, self.0[0]);
            vst1q_u64(to.add(2), self.0[1]);
        }
        #[inline(always)]
        unsafe fn and(self, other: Self) -> Self {
            self.zip(other, |a, b| vandq_u64(a, b))
        }
        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            self.zip(other, |a, b| vorrq_u64(a, b))
        }
        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            self.zip(other, |a, b| veorq_u64(a, b))
        }
        #[inline(always)]
        unsafe fn is_zero(self) -> bool {
            vmaxvq_u32(vreinterpretq_u32_u64(vorrq_u64(self.0[0], self.0[1]))) == 0
        }
        /// Three instructions for each vector: the carry is a selection, `c` where `a` and `b` differ, else `a`. The
        /// intrinsic `vbslq_u64` would become three instructions again (`a & b | half & c`).
        #[inline(always)]
        unsafe fn full_add(a: Self, b: Self, c: Self) -> (Self, Self) {
            let half = a.xor(b);
            let carry = |v: usize| {
                let mut selected = half.0[v];
                // SAFETY: `bsl` changes nothing but the mask, its first register.
                unsafe {
                    std::arch::asm!(
                        "bsl {0:v}.16b, {1:v}.16b, {2:v}.16b",
                        inout(vreg) selected, in(vreg) c.0[v], in(vreg) a.0[v],
                        options(pure, nomem, nostack, preserves_flags)
                    );
                }
                selected
            };
            (half.xor(c), Self([carry(0), carry(1)]))
        }
    }
}
