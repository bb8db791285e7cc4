//! The characters and beginnings of lines that decide where a sentence ends: marks, closing and opening signs,
//! references, list markers and items.

/// Shorter fragments, in characters, are not sentences.
const SHORTEST: usize = 15;
/// Maximum length of a reference in brackets after a mark, and of a list marker.
const REFERENCE: usize = 24;
/// Maximum number of characters to look ahead.
pub(super) const FAR: usize = 64;

/// Quotes that close in some languages and open in others, and emphasis.
pub(super) const CLOSES_OR_OPENS: [char; 7] = ['“', '‘', '«', '‹', '*', '_', '~'];

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

pub(super) fn is_no_break_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}')
}

pub(super) fn is_stop(c: char) -> bool {
    matches!(c, '.' | '․' | '．' | '﹒')
}

/// Marks that need no blank after them.
pub(super) fn is_wide_mark(c: char) -> bool {
    matches!(c, '၊' | '။' | '។' | '៕' | '。' | '｡' | '．' | '﹒' | '﹖' | '﹗' | '！' | '？')
}

pub(super) fn is_mark(c: char) -> bool {
    is_stop(c)
        || is_wide_mark(c)
        || matches!(c, '!' | '?' | '։' | '؝'..='؟' | '۔' | '܀'..='܂' | '߹' | '।' | '॥' | '።' | '፧' | '፨' | '᙮'
            | '᠃' | '᠉' | '‼' | '‽' | '⁇'..='⁉' | '⸮' | '꓿')
}

/// Characters that are not visible.
pub(super) fn is_ignored(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}' | '\u{2066}'..='\u{2069}'
        | '\u{fe0e}' | '\u{fe0f}' | '\u{feff}')
}

pub(super) fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '_' | '~')
}

/// Return whether a character belongs to the sentence whose mark it follows.
pub(super) fn closes(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '}')
        || (!c.is_ascii() && (is_ignored(c) || "”’»›」』）】》〉〕］｝〗〙¹²³⁰⁴⁵⁶⁷⁸⁹".contains(c)))
}

/// Return whether a character comes before the first word of a sentence.
pub(super) fn opens_a_word(c: char) -> bool {
    is_emphasis(c)
        || matches!(c, '"' | '\'' | '(' | '[' | '{' | '“' | '‘' | '«' | '‹' | '„' | '‚' | '¿' | '¡')
}

/// Return whether a sentence goes on with this character.
pub(super) fn continues(c: char) -> bool {
    is_mark(c)
        || matches!(c, ',' | '-' | ':' | ';')
        || (!c.is_ascii() && "՝،؍߸᠂᠈–—、﹐﹑﹕﹘﹣，－：；".contains(c))
}

/// Return the length of the reference in brackets at the start, such as `[1]` or `[^note]`.
pub(super) fn reference(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    for (count, (at, c)) in inner.char_indices().enumerate().take(REFERENCE + 1) {
        if c == ']' {
            return (count > 0).then_some(at + 2);
        }
        if matches!(c, '[' | '`') || is_break(c) {
            return None;
        }
    }
    None
}

/// Return the number of backticks at the start.
pub(super) fn run(text: &str) -> usize {
    text.bytes().take_while(|&b| b == b'`').count()
}

/// Return whether a text is a list marker or the number of a heading, with bullets and emphasis.
pub(super) fn is_marker(text: &str) -> bool {
    if text.len() > REFERENCE * 4 || text.chars().count() > REFERENCE {
        return false;
    }
    let bullets = ['-', '*', '+', '•', '#', '>', '(', '_', ' ', '\t'];
    let bare = text.trim_start_matches(bullets).trim_end_matches(is_emphasis);
    let suffix = [".)", ".", ")"].into_iter().find(|suffix| bare.ends_with(suffix));
    let Some(core) = suffix.and_then(|suffix| bare.strip_suffix(suffix)) else { return false };
    let is_number = |part: &str| matches!(part.len(), 1..=3) && part.bytes().all(|b| b.is_ascii_digit());
    core.split('.').all(is_number)
        || (core.len() == 1 && core.bytes().all(|b| b.is_ascii_alphabetic()))
        || (matches!(core.len(), 1..=5)
            && core.bytes().all(|b| matches!(b, b'i' | b'v' | b'x' | b'l' | b'c')))
}

/// Return whether a line begins with the marker of a list: `1)`, `(1)`, `a)`, `(iv)` or `a.`, but not `z. B.`.
pub(super) fn begins_with_marker(line: &str) -> bool {
    let is_roman = |core: &str| {
        matches!(core.len(), 1..=5) && core.bytes().all(|b| matches!(b, b'i' | b'v' | b'x' | b'l' | b'c'))
    };
    let inner = line.strip_prefix('(').unwrap_or(line);
    let core = &inner[..inner.bytes().take(6).take_while(u8::is_ascii_alphanumeric).count()];
    let mut rest = inner[core.len()..].chars();
    let mark = rest.next();
    let rest = rest.as_str();
    let mut following = rest.chars();
    if !following.next().is_none_or(char::is_whitespace) {
        return false;
    }
    match mark {
        Some(')') => {
            is_roman(core)
                || (core.len() == 1 && core.bytes().all(|b| b.is_ascii_alphabetic()))
                || (matches!(core.len(), 1..=3) && core.bytes().all(|b| b.is_ascii_digit()))
        }
        Some('.') if inner.len() == line.len() => {
            let is_pair = following.next().is_some_and(char::is_alphabetic) && following.next() == Some('.');
            !is_pair && (is_roman(core) || (core.len() == 1 && core.bytes().all(|b| b.is_ascii_lowercase())))
        }
        _ => false,
    }
}

pub(super) fn shorter(text: &str) -> bool {
    // With at most four bytes per character, a text this long needs no counting.
    text.len() < SHORTEST * 4 && text.chars().count() < SHORTEST
}

/// Return whether the first letter is in lower case, with no mark or line break before it.
pub(super) fn begins_lower(after: &str) -> bool {
    let first = after.chars().take(FAR).find(|&c| is_mark(c) || is_break(c) || c.is_alphabetic());
    first.is_some_and(char::is_lowercase)
}

/// Return whether a line begins a list item, a row, a fence or a heading.
pub(super) fn opens_an_item(line: &str) -> bool {
    let mut chars = line.chars();
    let Some(first) = chars.next() else { return true };
    if line.starts_with("```") || line.starts_with("~~~") {
        return true;
    }
    if first.is_numeric() {
        let rest = line.trim_start_matches(char::is_numeric);
        let is_short = line[..line.len() - rest.len()].chars().take(4).count() <= 3;
        let mut after = rest.chars();
        return match after.next() {
            Some('|' | '\t') => true,
            Some('.' | ')') => is_short && after.next().is_none_or(char::is_whitespace),
            _ => false,
        };
    }
    match first {
        '(' | '"' | '“' | '\'' | '‘' | '«' | '„' | '‚' | '¿' | '¡' | '$' | '€' | '£' | '¥' | '`' | '@'
        | '/' | '\\' => false,
        '[' => !(chars.next().is_some_and(char::is_alphabetic) && chars.next() != Some(']')),
        _ if first.is_alphanumeric() => false,
        _ if is_emphasis(first) => {
            !line.trim_start_matches(is_emphasis).chars().next().is_some_and(char::is_alphanumeric)
        }
        _ => true,
    }
}
