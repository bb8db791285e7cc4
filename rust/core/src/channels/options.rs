//! Options of a query: an open map from which each channel reads and checks its own entries.
//!
//! There are no defaults here: callers send the value of every setting. A channel ignores the options of
//! other channels.

use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// The value of an option.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    None,
    Flag(bool),
    Whole(i64),
    Real(f64),
    Text(String),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options(BTreeMap<String, Value>);

impl Options {
    pub fn new(values: BTreeMap<String, Value>) -> Self {
        Self(values)
    }

    fn get(&self, channel: &str, name: &str) -> Result<&Value> {
        self.0.get(name).ok_or_else(|| Error::input(format!("channel {channel} needs the option {name}")))
    }

    /// Return a non-negative integer, or `None` for no limit.
    pub fn bound(&self, channel: &str, name: &str) -> Result<Option<usize>> {
        match self.get(channel, name)? {
            Value::None => Ok(None),
            Value::Whole(n) if *n >= 0 => Ok(Some(usize::try_from(*n).unwrap_or(usize::MAX))),
            other => Err(refused(channel, name, "a whole number from 0 up, or nothing", other)),
        }
    }

    /// Return a non-negative integer.
    pub fn count(&self, channel: &str, name: &str) -> Result<usize> {
        match self.bound(channel, name)? {
            Some(count) => Ok(count),
            None => Err(refused(channel, name, "a whole number from 0 up", &Value::None)),
        }
    }

    /// Return a number from 0 to 1.
    pub fn real(&self, channel: &str, name: &str) -> Result<f64> {
        match self.get(channel, name)? {
            Value::Real(x) if (0.0..=1.0).contains(x) => Ok(*x),
            Value::Whole(n) if matches!(n, 0 | 1) => Ok(*n as f64),
            other => Err(refused(channel, name, "a number from 0 to 1", other)),
        }
    }

    /// Return a number from 0 to 1, or `None` if there is no value.
    pub fn real_or_none(&self, channel: &str, name: &str) -> Result<Option<f64>> {
        match self.get(channel, name)? {
            Value::None => Ok(None),
            _ => self.real(channel, name).map(Some),
        }
    }

    /// Return whether the caller set an option.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Return one of several allowed keywords.
    pub fn choice(&self, channel: &str, name: &str, choices: &[&'static str]) -> Result<&'static str> {
        let value = self.get(channel, name)?;
        let found = choices.iter().find(|choice| matches!(value, Value::Text(text) if text == *choice));
        found.copied().ok_or_else(|| refused(channel, name, &choices.join(" or "), value))
    }
}

fn refused(channel: &str, name: &str, wanted: &str, value: &Value) -> Error {
    let value = match value {
        Value::None => "nothing".to_owned(),
        Value::Flag(flag) => flag.to_string(),
        Value::Whole(n) => n.to_string(),
        Value::Real(x) => x.to_string(),
        Value::Text(text) => format!("{text:?}"),
    };
    Error::input(format!("channel {channel}: the option {name} must be {wanted}, not {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_or_absent_option_is_named() {
        let values = [
            ("most", Value::Whole(3)),
            ("all", Value::None),
            ("less", Value::Whole(-1)),
            ("flag", Value::Flag(true)),
            ("kind", Value::Text("own".into())),
        ];
        let options = Options::new(values.map(|(name, value)| (name.to_owned(), value)).into());
        assert_eq!(options.bound("c", "most"), Ok(Some(3)));
        assert_eq!(options.bound("c", "all"), Ok(None));
        assert_eq!(options.count("c", "most"), Ok(3));
        assert_eq!(options.real_or_none("c", "all"), Ok(None));
        assert_eq!(options.choice("c", "kind", &["published", "own"]), Ok("own"));
        let told = |found: Result<()>| found.unwrap_err().to_string();
        assert!(told(options.count("c", "all").map(drop))
            .contains("must be a whole number from 0 up, not nothing"));
        assert!(told(options.bound("c", "less").map(drop)).contains("not -1"));
        assert!(told(options.bound("c", "flag").map(drop)).contains("option flag must be a whole number"));
        assert!(told(options.choice("c", "kind", &["a", "b"]).map(drop)).contains("a or b, not \"own\""));
        assert_eq!(told(options.count("walk", "depth").map(drop)), "channel walk needs the option depth");
    }
}
