//! The callers that may use the service: the holders of tokens, by the SHA-256 digest of their token.

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The SHA-256 digest of a token.
pub type TokenDigest = [u8; 32];

/// The holder of a token.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The name that the log has.
    pub name: String,
    /// The condition on documents that the holder may see; empty for all.
    pub allow: String,
    /// Whether the holder may query.
    pub reads: bool,
}

/// The holders of tokens; `None` if no token is needed.
#[derive(Debug, Default)]
pub struct Access(RwLock<Option<HashMap<TokenDigest, Arc<Holder>>>>);

impl Access {
    /// Return the access of some holders.
    pub fn of(holders: Option<Vec<(TokenDigest, Holder)>>) -> Self {
        let access = Self::default();
        access.replace(holders);
        access
    }

    /// Replace all holders; requests that are running are not affected.
    pub fn replace(&self, holders: Option<Vec<(TokenDigest, Holder)>>) {
        let map = holders.map(|all| all.into_iter().map(|(key, holder)| (key, Arc::new(holder))).collect());
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = map;
    }

    /// Return the holder of a token that may query; everybody if no token is needed.
    ///
    /// Digests are compared, so the time of the search reveals nothing that leads to a token.
    pub fn reader(&self, token: Option<&str>) -> Option<Arc<Holder>> {
        let holders = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(holders) = holders.as_ref() else {
            return Some(Arc::new(Holder { reads: true, ..Holder::default() }));
        };
        let digest: TokenDigest = Sha256::digest(token?.as_bytes()).into();
        holders.get(&digest).filter(|holder| holder.reads).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(name: &str, reads: bool) -> (TokenDigest, Holder) {
        let digest = Sha256::digest(format!("token of {name}").as_bytes()).into();
        (digest, Holder { name: name.into(), allow: String::new(), reads })
    }

    #[test]
    fn only_holders_that_read_are_returned() {
        let access = Access::of(Some(vec![holder("anna", true), holder("robot", false)]));
        assert_eq!(access.reader(Some("token of anna")).unwrap().name, "anna");
        for wrong in [None, Some(""), Some("token of robot"), Some("token of bert"), Some("token of anna ")] {
            assert_eq!(access.reader(wrong), None, "{wrong:?}");
        }
        access.replace(Some(vec![holder("bert", true)]));
        assert_eq!(access.reader(Some("token of anna")), None);
        assert_eq!(access.reader(Some("token of bert")).unwrap().name, "bert");
        access.replace(Some(Vec::new()));
        assert_eq!(access.reader(Some("token of bert")), None);
        access.replace(None);
        assert_eq!(access.reader(None).unwrap().name, "");
    }
}
