//! Words that English texts also write short. A query with one form finds the other.

/// Pairs of a word and its short form that mean nothing else: not "St.", "No.", "Mar." or "Sun.".
const PAIRS: [(&str, &str); 19] = [
    ("doctor", "dr"),
    ("professor", "prof"),
    ("january", "jan"),
    ("february", "feb"),
    ("april", "apr"),
    ("june", "jun"),
    ("july", "jul"),
    ("august", "aug"),
    ("september", "sept"),
    ("september", "sep"),
    ("october", "oct"),
    ("november", "nov"),
    ("december", "dec"),
    ("department", "dept"),
    ("government", "govt"),
    ("university", "univ"),
    ("approximately", "approx"),
    ("appointment", "appt"),
    ("versus", "vs"),
];

/// Return the other forms of a word in lower case.
pub(super) fn other_forms(word: &str) -> impl Iterator<Item = &'static str> + '_ {
    PAIRS.iter().filter_map(move |&(long, short)| match word {
        _ if word == long => Some(short),
        _ if word == short => Some(long),
        _ => None,
    })
}
