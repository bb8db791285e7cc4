//! The precision that a user may request.

use super::kernel::Form;
use crate::error::{Error, Result};

/// How numbers are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// The fastest format that was measured; other than f32 only if the model's vectors keep their direction.
    Auto,
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
            "f32" => Self::F32,
            "bf16" => Self::Bf16,
            "int8" => Self::Int8,
            _ => {
                let names = "auto, f32, bf16, int8";
                return Err(Error::input(format!("precision must be one of {names}, not {name:?}")));
            }
        })
    }

    /// Return the one format that it allows, or `None` for any.
    pub fn form(self) -> Option<Form> {
        match self {
            Self::Auto => None,
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
    fn names_of_precisions() {
        assert_eq!(Precision::named("bf16"), Ok(Precision::Bf16));
        assert!(Precision::named("int4").is_err());
    }
}
