//! JSON text, byte for byte as the application writes it. Invisible characters and characters that control
//! terminals are escaped.

/// Whether a byte may need escaping: controls, quotes, DEL, and the first bytes of invisible characters.
const SPECIAL: [bool; 256] = special();

const fn special() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[0x7f] = true;
    table[0xc2] = true; // U+0080 to U+009F, terminal controls
    table[0xd8] = true; // U+061C, a mark of direction
    table[0xe2] = true; // U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069
    table[0xef] = true; // U+FEFF, U+FFF9 to U+FFFB
    table[0xf3] = true; // U+E0000 to U+E007F, tags
    table
}

/// Append a JSON string.
///
/// ```
/// let mut out = Vec::new();
/// ketrag_serve::json::string(&mut out, "a \"b\"\n\u{202e}");
/// assert_eq!(out, br#""a \"b\"\n\u202e""#);
/// ```
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    let mut at = 0;
    while let Some(found) = next_special(bytes, at) {
        let byte = bytes[found];
        let (escaped, length) = match byte {
            0x80.. => invisible(text, found),
            _ => (true, 1),
        };
        if escaped {
            out.extend_from_slice(&bytes[start..found]);
            escape(out, byte, &text[found..found + length]);
            start = found + length;
        }
        at = found + length;
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}

/// Return the first special byte from `at` on.
fn next_special(bytes: &[u8], at: usize) -> Option<usize> {
    bytes[at..].iter().position(|&byte| SPECIAL[byte as usize]).map(|n| at + n)
}

/// Return whether the character at a byte is escaped, and its length in bytes.
fn invisible(text: &str, at: usize) -> (bool, usize) {
    let Some(character) = text[at..].chars().next() else { return (false, 1) };
    let hidden = matches!(
        character,
        '\u{80}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    (hidden, character.len_utf8())
}

fn escape(out: &mut Vec<u8>, byte: u8, character: &str) {
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0c => b'f',
        0x0d => b'r',
        _ => 0,
    };
    if short != 0 {
        out.extend_from_slice(&[b'\\', short]);
        return;
    }
    for unit in character.encode_utf16() {
        out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
    }
}

/// Append a whole number.
pub fn whole(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Append a number; `null` if it is not finite.
pub fn real(out: &mut Vec<u8>, number: f64) {
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(out, &number);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_character_reads_back() {
        let all: String = (0..0x11_0000).step_by(7).filter_map(char::from_u32).collect();
        assert_eq!(serde_json::from_str::<String>(&written(&all)).unwrap(), all);
        for character in ['\u{0}', '\u{1f}', '"', '\\', '\u{7f}', '\u{9b}', '\u{202e}', '\u{e0041}', 'ß', '→']
        {
            let text = format!("a{character}b");
            assert_eq!(serde_json::from_str::<String>(&written(&text)).unwrap(), text);
        }
    }

    #[test]
    fn controls_and_invisible_characters_are_escaped() {
        assert_eq!(written("\u{7f}\u{80}\u{9f}\u{a0}"), "\"\\u007f\\u0080\\u009f\u{a0}\"");
        assert_eq!(
            written("\u{61c}\u{200d}\u{200e}\u{2028}\u{202f}"),
            "\"\\u061c\u{200d}\\u200e\\u2028\u{202f}\""
        );
        assert_eq!(written("\u{2066}\u{feff}\u{fffb}\u{fffc}"), "\"\\u2066\\ufeff\\ufffb\u{fffc}\"");
        assert_eq!(written("\u{e0001}\u{e0080}"), "\"\\udb40\\udc01\u{e0080}\"");
        assert_eq!(written("\r\n\t\u{8}\u{c}\u{b}"), r#""\r\n\t\b\f\u000b""#);
    }

    #[test]
    fn numbers() {
        let mut out = Vec::new();
        for number in [0, 7, 10, u64::MAX] {
            whole(&mut out, number);
            out.push(b' ');
        }
        for number in [0.5, 1.0, -0.0, 1e-7, 1e300, f64::NAN, f64::INFINITY] {
            real(&mut out, number);
            out.push(b' ');
        }
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "0 7 10 18446744073709551615 0.5 1.0 -0.0 1e-7 1e+300 null null ".replace("e+", text_plus())
        );
    }

    /// The sign that the JSON writer puts before a positive exponent.
    fn text_plus() -> &'static str {
        match serde_json::to_string(&1e300).unwrap().contains("e+") {
            true => "e+",
            false => "e",
        }
    }
}
