//! Formulas as one line of text: `mλ/a`, `√(x + 1)`, `10^-6`, `∑_(i=1)^n`.

/// Relations that have blanks around them.
const RELATIONS: &str = "=≈≠≤≥<>≡∼≃→⇒⇔∈⊂≪≫∝";

/// Return a part of a formula with its own parts, whose texts are given in the order of MathML.
///
/// `kind` is `fraction`, `root` (with its degree), `square root`, `power`, `index`, `index and power`, or `row`.
///
/// ```
/// use ketrag_text::formulas::part;
///
/// assert_eq!(part("fraction", &["a + b", "2"]), "(a + b)/2");
/// assert_eq!(part("power", &["10", "−6"]), "10^-6");
/// assert_eq!(part("square root", &["x"]), "√x");
/// ```
pub fn part(kind: &str, texts: &[&str]) -> String {
    let text = |at: usize| texts.get(at).map_or("", |text| text.trim());
    match kind {
        "fraction" => format!("{}/{}", grouped(text(0)), grouped(text(1))),
        "square root" => format!("√{}", grouped(&texts.concat())),
        "root" if text(1).is_empty() || text(1) == "2" => format!("√{}", grouped(text(0))),
        "root" if text(1) == "3" => format!("∛{}", grouped(text(0))),
        "root" => format!("{}√{}", grouped(text(1)), grouped(text(0))),
        "power" => format!("{}{}", base(text(0)), sign('^', text(1))),
        "index" => format!("{}{}", base(text(0)), sign('_', text(1))),
        "index and power" => format!("{}{}{}", base(text(0)), sign('_', text(1)), sign('^', text(2))),
        _ => texts.concat(),
    }
}

/// Return a formula without invisible operators, with blanks around its relations.
///
/// ```
/// assert_eq!(ketrag_text::formulas::spaced("sin\u{2061}θ=mλ/a"), "sinθ = mλ/a");
/// ```
pub fn spaced(formula: &str) -> String {
    let mut out = String::with_capacity(formula.len());
    let mut depth = 0_u32;
    for c in formula.chars().filter(|c| !matches!(c, '\u{2061}'..='\u{2064}' | '\u{200b}')) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && RELATIONS.contains(c) {
            out.push(' ');
            out.push(c);
            out.push(' ');
        } else {
            out.push(if c.is_whitespace() { ' ' } else { c });
        }
    }
    out.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn sign(mark: char, text: &str) -> String {
    let text: String = text.chars().map(|c| if matches!(c, '−' | '–') { '-' } else { c }).collect();
    let inner = text.strip_prefix('-').unwrap_or(&text);
    match () {
        () if text.is_empty() => String::new(),
        () if matches!(text.as_str(), "′" | "″" | "*" | "†" | "∘" | "°") => text,
        () if is_simple(inner) => format!("{mark}{text}"),
        () => format!("{mark}({text})"),
    }
}

/// Return the base of a power, in parentheses if it is a sum or a fraction.
fn base(text: &str) -> String {
    if text.contains(['+', '-', '−', '/', ' ', '√']) {
        grouped(text)
    } else {
        text.to_owned()
    }
}

/// Return a text in parentheses unless it is one number, name or product without blanks.
fn grouped(text: &str) -> String {
    let text = text.trim();
    if is_simple(text) || is_enclosed(text) {
        text.to_owned()
    } else {
        format!("({text})")
    }
}

fn is_simple(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_alphanumeric() || matches!(c, '.' | ',' | '_' | '^' | '′' | '°' | '∘' | '%' | '∞' | '∂')
    })
}

/// Return whether the first bracket closes with the last character.
fn is_enclosed(text: &str) -> bool {
    if !text.starts_with('(') || !text.ends_with(')') {
        return false;
    }
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 {
            return at + 1 == text.len();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_nest() {
        let root = part("square root", &["a", "+", "1"]);
        assert_eq!(root, "√(a+1)");
        assert_eq!(part("fraction", &[&root, "(a)(b)"]), "(√(a+1))/((a)(b))");
        assert_eq!(part("index and power", &["∑", "i=1", "n"]), "∑_(i=1)^n");
        assert_eq!(part("root", &["x", "3"]), "∛x");
        assert_eq!(part("power", &["a+b", "2"]), "(a+b)^2");
        assert_eq!(spaced("∑_(i=1)^n a_i≤1"), "∑_(i=1)^n a_i ≤ 1");
    }
}
