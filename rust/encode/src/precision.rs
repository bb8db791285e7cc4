//! The precision that a user may request.

use super::kernel::Form;
use crate::error::{Error, Result};

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
