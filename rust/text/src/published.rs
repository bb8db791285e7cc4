//! The two tokenisations of KET-RAG's reference implementation, for parity tests and the `published`
//! profiles.

use crate::classes::{is_decimal, is_letter, is_space, is_word, is_word_re};
use crate::punkt::Parameters;
use std::collections::{HashMap, HashSet};

/// Python's `string.punctuation`.
const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/// Maximum number of words of a text that co-occurrence counts; the most frequent are kept.
const MOST: usize = 2000;

/// NLTK's `word_tokenize`: sentences, then the words of each.
pub fn word_tokenize(parameters: &Parameters, text: &str) -> Vec<String> {
    parameters.sentences(text).into_iter().flat_map(|s| tokenize(&text[s])).collect()
}

/// Profile `published-cooccurrence`: return the distinct words of a text in lower case, alphabetic and not
/// stop words; the 2,000 most frequent, ties by first occurrence, in that order.
pub fn cooccurrence_words(parameters: &Parameters, stop_words: &HashSet<&str>, text: &str) -> Vec<String> {
    let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
    for (place, word) in word_tokenize(parameters, &text.to_lowercase()).into_iter().enumerate() {
        if word.chars().all(is_letter) && !stop_words.contains(word.as_str()) {
            counts.entry(word).or_insert((0, place)).0 += 1;
        }
    }
    let mut words: Vec<(String, (usize, usize))> = counts.into_iter().collect();
    words.sort_unstable_by_key(|(_, (count, place))| (std::cmp::Reverse(*count), *place));
    words.truncate(MOST);
    words.into_iter().map(|(word, _)| word).collect()
}

/// A sentence as the reference implementation embeds it, with the keywords that occur in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// Its tokens, joined by spaces.
    pub text: String,
    /// One entry for each occurrence, in order.
    pub keywords: Vec<String>,
}

/// Profile `published-keywords`: case is kept, the stop words are compared with case (so `The` is a
/// keyword), and a token is punctuation if it is a *substring* of [`PUNCTUATION`] (so `''` is a keyword).
pub fn keyword_sentences(parameters: &Parameters, stop_words: &HashSet<&str>, text: &str) -> Vec<Sentence> {
    let sentence = |span| {
        let mut tokens = word_tokenize(parameters, &text[span]);
        let text = tokens.join(" ");
        tokens.retain(|w| !stop_words.contains(w.as_str()) && !PUNCTUATION.contains(w.as_str()));
        Sentence { text, keywords: tokens }
    };
    // The reference implementation cuts sentences of more than 8,000 tokens; no embedding model reads that
    // many.
    parameters.sentences(text).into_iter().map(sentence).collect()
}

// NLTK's word tokeniser (`NLTKWordTokenizer` of NLTK 3.10), without a regex engine.
//
// NLTK defines it as about 35 successive substitutions on one sentence. Each is a function here, in the same
// order and with the same left-to-right, non-overlapping matching; later functions see the output of earlier
// ones.

type Text = Vec<char>;

/// Return the tokens of one sentence. Quotes become `` `` `` and `''`, as in NLTK.
fn tokenize(sentence: &str) -> Vec<String> {
    let mut t: Text = sentence.chars().collect();
    starting_quotes(&mut t);
    punctuation(&mut t);
    pad(&mut t, |c| matches!(c, ']' | '[' | '(' | ')' | '{' | '}' | '<' | '>'));
    pad_pairs(&mut t, '-', " -- ");
    t.insert(0, ' ');
    t.push(' ');
    ending_quotes(&mut t);
    contractions(&mut t);
    t.split(|&c| is_space(c)).filter(|w| !w.is_empty()).map(|w| w.iter().collect()).collect()
}

fn starting_quotes(t: &mut Text) {
    // ([«“‘„]|[`]+) -> " \1 "
    rewrite(t, |t, i, out| {
        let run = match t[i] {
            '«' | '“' | '‘' | '„' => 1,
            _ => run_of(t, i, |c| c == '`'),
        };
        (run > 0).then(|| {
            out.push(' ');
            out.extend(&t[i..i + run]);
            out.push(' ');
            run
        })
    });
    // ^" -> ``
    if t.first() == Some(&'"') {
        t.splice(0..1, ['`', '`']);
    }
    pad_pairs(t, '`', " `` ");
    // ([ (\[{<])("|'') -> \1 ``
    rewrite(t, |t, i, out| {
        if !matches!(t[i], ' ' | '(' | '[' | '{' | '<') {
            return None;
        }
        let quote = match (t.get(i + 1), t.get(i + 2)) {
            (Some('"'), _) => 1,
            (Some('\''), Some('\'')) => 2,
            _ => return None,
        };
        out.push(t[i]);
        out.extend(" `` ".chars());
        Some(1 + quote)
    });
    // An apostrophe that opens a word other than a clitic:
    // (?<!\w)(')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w) -> "\1 "
    rewrite(t, |t, i, out| {
        let opens = t[i] == '\''
            && (i == 0 || !is_word(t[i - 1]))
            && t.get(i + 1).is_some_and(|&c| is_word(c))
            && !["re", "ve", "ll", "m", "t", "s", "d", "n"].iter().any(|clitic| {
                let end = i + 1 + clitic.len();
                matches_folded(t, i + 1, clitic) && !t.get(end).is_some_and(|&c| is_word(c))
            });
        opens.then(|| {
            out.extend(['\'', ' ']);
            1
        })
    });
}

fn punctuation(t: &mut Text) {
    final_period(t, |c| matches!(c, ']' | ')' | '}' | '>' | '"' | '\'' | '»' | '”' | '’' | ' '), " ");
    // ([:,])([^\d]) -> " \1 \2"
    rewrite(t, |t, i, out| {
        let next = *t.get(i + 1)?;
        (matches!(t[i], ':' | ',') && !is_decimal(next)).then(|| {
            out.extend([' ', t[i], ' ', next]);
            2
        })
    });
    // ([:,])$ -> " \1 ", where $ is also before a last line break
    let end = if t.last() == Some(&'\n') { t.len() - 1 } else { t.len() };
    if end > 0 && matches!(t[end - 1], ':' | ',') {
        t.insert(end, ' ');
        t.insert(end - 1, ' ');
    }
    // \.{2,} -> " \0 "
    rewrite(t, |t, i, out| {
        let run = run_of(t, i, |c| c == '.');
        (run > 1).then(|| {
            out.push(' ');
            out.extend(&t[i..i + run]);
            out.push(' ');
            run
        })
    });
    pad(t, |c| matches!(c, ';' | '@' | '#' | '$' | '%' | '&'));
    pad(t, |c| matches!(c, '\u{2012}'..='\u{2015}'));
    final_period(t, |c| matches!(c, ']' | ')' | '}' | '>' | '"' | '\''), "");
    pad(t, |c| matches!(c, '?' | '!'));
    // ([^'])'<space> -> "\1 ' "
    rewrite(t, |t, i, out| {
        let found = t[i] != '\'' && t.get(i + 1) == Some(&'\'') && t.get(i + 2) == Some(&' ');
        found.then(|| {
            out.extend([t[i], ' ', '\'', ' ']);
            3
        })
    });
    pad(t, |c| c == '*');
}

/// ([^.])(\.)([closing]*)\s*$ -> "\1 \2" + gap + "\3 ": the period that ends the sentence.
fn final_period(t: &mut Text, closing: fn(char) -> bool, gap: &str) {
    for i in 1..t.len() {
        if t[i] != '.' || t[i - 1] == '.' {
            continue;
        }
        let end = i + 1 + run_of(t, i + 1, closing);
        if t[end..].iter().all(|c| c.is_whitespace()) {
            let closers: Text = t[i + 1..end].to_vec();
            t.truncate(i);
            t.extend([' ', '.']);
            t.extend(gap.chars());
            t.extend(closers);
            t.push(' ');
            return;
        }
    }
}

fn ending_quotes(t: &mut Text) {
    pad(t, |c| matches!(c, '»' | '”' | '’'));
    pad_pairs(t, '\'', " '' ");
    rewrite(t, |t, i, out| {
        (t[i] == '"').then(|| {
            out.extend(" '' ".chars());
            1
        })
    });
    rewrite(t, |t, i, out| {
        let run = run_of(t, i, char::is_whitespace);
        (run > 0).then(|| {
            out.push(' ');
            run
        })
    });
    // ([^' ])('s|'m|'d|') -> "\1 \2 " before a space, then the clitics of two letters
    clitics(t, &["'s", "'S", "'m", "'M", "'d", "'D", "'"]);
    clitics(t, &["'ll", "'LL", "'re", "'RE", "'ve", "'VE", "n't", "N'T"]);
}

fn clitics(t: &mut Text, words: &[&str]) {
    rewrite(t, |t, i, out| {
        if matches!(t[i], '\'' | ' ') {
            return None;
        }
        let word = words.iter().find(|word| {
            let end = i + 1 + word.len();
            t.get(end) == Some(&' ') && word.chars().eq(t[i + 1..end].iter().copied())
        })?;
        out.extend([t[i], ' ']);
        out.extend(word.chars());
        out.push(' ');
        Some(word.len() + 2)
    });
}

/// MacIntyre's contractions: "cannot" -> "can not" and the like.
fn contractions(t: &mut Text) {
    let pairs = [
        ("can", "not"),
        ("d", "'ye"),
        ("gim", "me"),
        ("gon", "na"),
        ("got", "ta"),
        ("lem", "me"),
        ("more", "'n"),
        ("wan", "na"),
    ];
    for (first, second) in pairs {
        rewrite(t, |t, i, out| {
            let (middle, end) = (i + first.len(), i + first.len() + second.len());
            let found = matches_folded(t, i, first)
                && matches_folded(t, middle, second)
                && (i == 0 || !is_word_re(t[i - 1]))
                && match first {
                    "wan" => t.get(end).is_some_and(|&c| is_space(c)),
                    _ => !t.get(end).is_some_and(|&c| is_word_re(c)),
                };
            found.then(|| split_in_two(t, i, middle, end, out))
        });
    }
    for second in ["is", "was"] {
        rewrite(t, |t, i, out| {
            let (middle, end) = (i + 3, i + 3 + second.len());
            let found = matches_folded(t, i, " 't")
                && matches_folded(t, middle, second)
                && !t.get(end).is_some_and(|&c| is_word_re(c));
            found.then(|| 1 + split_in_two(t, i + 1, middle, end, out))
        });
    }
}

/// Append " \1 \2 " for the two parts and return the number of characters that they have.
fn split_in_two(t: &[char], start: usize, middle: usize, end: usize, out: &mut Text) -> usize {
    out.push(' ');
    out.extend(&t[start..middle]);
    out.push(' ');
    out.extend(&t[middle..end]);
    out.push(' ');
    end - start
}

/// Return whether `word` (ASCII, lower case) occurs at `i`, in any case: Python also folds ı, İ and ſ.
fn matches_folded(t: &[char], i: usize, word: &str) -> bool {
    let fold = |c: char| match c {
        'ı' | 'İ' => 'i',
        'ſ' => 's',
        c => c.to_ascii_lowercase(),
    };
    t.len() >= i + word.len() && t[i..i + word.len()].iter().map(|&c| fold(c)).eq(word.chars())
}

fn run_of(t: &[char], i: usize, class: impl Fn(char) -> bool) -> usize {
    t[i.min(t.len())..].iter().take_while(|&&c| class(c)).count()
}

/// Put a space on both sides of each character of a class.
fn pad(t: &mut Text, class: fn(char) -> bool) {
    rewrite(t, |t, i, out| {
        class(t[i]).then(|| {
            out.extend([' ', t[i], ' ']);
            1
        })
    });
}

/// Replace each pair of `c` with `with`.
fn pad_pairs(t: &mut Text, c: char, with: &str) {
    rewrite(t, |t, i, out| {
        (t[i] == c && t.get(i + 1) == Some(&c)).then(|| {
            out.extend(with.chars());
            2
        })
    });
}

/// Rewrite the text in one pass from left to right. `step` appends the replacement of a match at `i` and
/// returns its length, or returns `None` if nothing matches. Nothing is copied before the first match.
fn rewrite(t: &mut Text, mut step: impl FnMut(&[char], usize, &mut Text) -> Option<usize>) {
    let mut out = Text::new();
    let (mut i, mut copied) = (0, 0);
    let mut changed = false;
    while i < t.len() {
        // `step` writes only if it matches, so pending text is copied after the call.
        let before = out.len();
        match step(t, i, &mut out) {
            None => i += 1,
            Some(length) => {
                if copied < i {
                    let pending = t[copied..i].iter().copied();
                    out.splice(before..before, pending);
                }
                i += length;
                copied = i;
                changed = true;
            }
        }
    }
    if changed {
        out.extend(&t[copied..]);
        *t = out;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_tokenised(text in r#"([a-z'`".,: n\n\[\])(]|\PC|['n]t |cannot ){0,40}"#) {
            for token in tokenize(&text) {
                prop_assert!(!token.is_empty() && !token.chars().any(is_space));
            }
        }
    }
}
