//! The vector space that needs no model: fitted on the corpus itself.
