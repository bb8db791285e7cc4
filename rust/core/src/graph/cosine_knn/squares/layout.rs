//! Memory layout of code lines and of squares of sums.

/// Number of rows and of columns of a square.
pub const SIDE: usize = 32;
/// Number of rows of a panel, and of words of a line.
pub(super) const LINE: usize = 16;

#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Line(pub [u32; LINE]);

/// Sums of products, stored row after row.
#[repr(C, align(64))]
pub struct Square(pub [[i32; SIDE]; SIDE]);
