//! Shared tools of the kernels' tests: every machine, seeded numbers, and memory that ends at an inaccessible
//! page.

use super::simd::low;
use memmap2::MmapMut;

/// Calls `$f::<machine, LOW>(args)` for every set of instructions that this machine has, and for
/// plain lanes of the widths that it may lack.
macro_rules! on_each_machine {
    ($f:ident, $($arg:expr),*) => {{
        use $crate::simd::plain::Plain;
        $f::<Plain<4, 2>, false>($($arg),*);
        $f::<Plain<4, 2>, true>($($arg),*);
        $f::<Plain<16, 4>, false>($($arg),*);
        $f::<Plain<16, 4>, true>($($arg),*);
        #[cfg(target_arch = "x86_64")]
        {
            use $crate::kernel::Kernel;
            use $crate::simd::{avx2::Avx2, avx512::{Avx512, Avx512Bf16}};
            let all = Kernel::all();
            if all.contains(&Kernel::Avx2) {
                $f::<Avx2, false>($($arg),*);
                $f::<Avx2, true>($($arg),*);
            }
            if all.contains(&Kernel::Avx512) {
                $f::<Avx512, false>($($arg),*);
                $f::<Avx512, true>($($arg),*);
            }
            if all.contains(&Kernel::Avx512Bf16) {
                $f::<Avx512Bf16, true>($($arg),*);
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            use $crate::simd::{neon::Neon, pair::Pair};
            $f::<Neon, false>($($arg),*);
            $f::<Neon, true>($($arg),*);
            $f::<Pair<Pair<Neon>>, false>($($arg),*);
        }
    }};
}
pub(crate) use on_each_machine;

/// Calls `$f::<machine>(args)` for every machine that computes by tiles or as they do, the portable one
/// first, and returns the results.
macro_rules! on_each_tiles {
    ($f:ident, $($arg:expr),*) => {{
        use $crate::simd::plain::PortableWide;
        #[allow(unused_mut)]
        let mut all = vec![("portable", $f::<PortableWide>($($arg),*))];
        #[cfg(target_arch = "x86_64")]
        {
            use $crate::kernel::Kernel;
            use $crate::simd::{avx2::Avx2, avx512::Avx512, pair::Pair};
            use $crate::tiles::amx::Amx;
            if Kernel::Avx2.here() {
                all.push(("avx2", $f::<Pair<Avx2>>($($arg),*)));
            }
            if Kernel::Avx512.here() {
                all.push(("avx512", $f::<Avx512>($($arg),*)));
            }
            if Kernel::Amx.here() {
                all.push(("amx", $f::<Amx>($($arg),*)));
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            use $crate::simd::{neon::Neon, pair::Pair};
            all.push(("neon", $f::<Pair<Pair<Neon>>>($($arg),*)));
        }
        all
    }};
}
pub(crate) use on_each_tiles;

/// Fails unless all machines have the bits of the first.
pub fn same_bits(all: &[(&str, Vec<f32>)], what: &str) {
    for (name, got) in &all[1..] {
        assert_eq!(got.len(), all[0].1.len());
        for (i, (x, y)) in got.iter().zip(&all[0].1).enumerate() {
            assert!(x.to_bits() == y.to_bits(), "{what}: {name} has {x:e} at {i}, portable {y:e}");
        }
    }
}

/// `n` numbers in -1..1 of a seed (SplitMix64).
pub fn numbers(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..n).map(|_| (next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0).collect()
}

/// Return `x` rounded to an operand.
pub fn operand(x: f32, is_low: bool) -> f32 {
    if is_low {
        f32::from_bits(u32::from(low(x)) << 16)
    } else {
        x
    }
}

/// Rows of `width` values as operands, padded to `padded` with zeros.
pub fn operands(rows: &[f32], width: usize, padded: usize, is_low: bool) -> Vec<f32> {
    let mut out = Vec::new();
    for row in rows.chunks_exact(width) {
        let mut line = row.to_vec();
        line.resize(padded, 0.0);
        if is_low {
            out.extend(line.chunks_exact(2).map(|pair| super::simd::word(pair[0], pair[1])));
        } else {
            out.extend(line);
        }
    }
    out
}

/// The values behind operands.
pub fn values(words: &[f32], is_low: bool) -> Vec<f32> {
    if !is_low {
        return words.to_vec();
    }
    let halves = |w: &f32| [w.to_bits() << 16, w.to_bits() & 0xffff_0000].map(f32::from_bits);
    words.iter().flat_map(halves).collect()
}

/// Pages are not larger on any platform with a wheel: 16 KB on Apple silicon, 4 KB on the others.
const PAGE: usize = 16_384;

/// Floats right before memory that cannot be touched, so that a read or write past the end ends the test.
pub struct Walled {
    map: MmapMut,
    start: usize,
    length: usize,
}

impl Walled {
    pub fn new(content: &[f32]) -> Self {
        let bytes = content.len() * 4;
        let whole = bytes.next_multiple_of(PAGE).max(PAGE);
        let mut walled = Self { map: map_before_wall(whole), start: whole - bytes, length: content.len() };
        walled.get().copy_from_slice(content);
        walled
    }

    pub fn get(&mut self) -> &mut [f32] {
        // SAFETY: `start` is a multiple of 4 from a page's begin, and `length` floats end where the
        // file ends; the slice borrows the mapping.
        unsafe {
            let first = self.map.as_mut_ptr().add(self.start).cast::<f32>();
            std::slice::from_raw_parts_mut(first, self.length)
        }
    }
}

/// Maps `whole` bytes and a page behind them. The mapping is longer than its file, so touching that page is SIGBUS.
#[cfg(unix)]
fn map_before_wall(whole: usize) -> MmapMut {
    let id = std::thread::current().id();
    let path = std::env::temp_dir().join(format!("ketrag-wall-{}-{id:?}", std::process::id()));
    let open = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path);
    let file = open.unwrap();
    file.set_len(whole as u64).unwrap();
    // SAFETY: no other code uses the file, which is removed at once.
    let map = unsafe { memmap2::MmapOptions::new().len(whole + PAGE).map_mut(&file).unwrap() };
    std::fs::remove_file(&path).unwrap();
    map
}

/// Maps `whole` bytes and a page behind them that is protected: on Windows a file grows to its mapping.
#[cfg(windows)]
fn map_before_wall(whole: usize) -> MmapMut {
    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn VirtualProtect(
            start: *mut std::ffi::c_void,
            size: usize,
            protection: u32,
            before: *mut u32,
        ) -> i32;
    }
    const PAGE_NOACCESS: u32 = 1;
    let mut map = MmapMut::map_anon(whole + PAGE).unwrap();
    let mut before = 0;
    // SAFETY: the page belongs to the mapping, of which `Walled` makes slices that end before it.
    let done =
        unsafe { VirtualProtect(map.as_mut_ptr().add(whole).cast(), PAGE, PAGE_NOACCESS, &mut before) };
    assert_ne!(done, 0, "{}", std::io::Error::last_os_error());
    map
}
