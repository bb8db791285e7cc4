//! Parsing of requests: what is plain, what is not complete, and everything else, which the application reads.

use serde_json::{Map, Value};

/// The line that a plain request begins with.
const LINE: &[u8] = b"POST /v1/retrieve HTTP/1.1\r\n";
/// Maximum bytes of a plain request.
pub const MOST: usize = 65_536;
const HEADERS: usize = 100;

/// What a plain request must meet.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Names and addresses that `Host` may have, in lower case; `None` allows all.
    pub hosts: Option<Vec<String>>,
    /// The token that requests must send.
    pub token: Option<String>,
    /// Maximum bytes of a body.
    pub body: usize,
    /// Maximum characters of a question.
    pub question: usize,
    /// Maximum and usual seconds of a request.
    pub seconds: f64,
}

/// A plain request.
#[derive(Debug, Clone, PartialEq)]
pub struct Plain {
    pub question: String,
    /// All other fields but the deadline, as JSON with sorted names.
    pub fields: String,
    pub seconds: f64,
    /// Whether the connection stays open.
    pub keep: bool,
}

/// What the bytes of a connection begin with.
#[derive(Debug, Clone, PartialEq)]
pub enum Parsed {
    /// A plain request, and its number of bytes.
    Plain(Box<Plain>, usize),
    /// The beginning of a request that may be plain.
    Incomplete,
    /// A request for the application.
    Other,
}

/// The headers of a plain request.
#[derive(Default)]
struct Head<'a> {
    host: Option<&'a str>,
    length: Option<usize>,
    kind: Option<&'a str>,
    authorization: Option<&'a str>,
    connection: Option<&'a str>,
}

/// Return what the bytes begin with.
pub fn parse(bytes: &[u8], rules: &Rules) -> Parsed {
    if bytes.len() < LINE.len() {
        return if LINE.starts_with(bytes) { Parsed::Incomplete } else { Parsed::Other };
    }
    if !bytes.starts_with(LINE) {
        return Parsed::Other;
    }
    let Some(end) = end_of_head(bytes) else {
        return if bytes.len() < MOST { Parsed::Incomplete } else { Parsed::Other };
    };
    let Some((length, keep)) = checked_head(&bytes[LINE.len()..end], rules) else { return Parsed::Other };
    let start = end + 4;
    if length > rules.body || start + length > MOST {
        return Parsed::Other;
    }
    let Some(body) = bytes.get(start..start + length) else { return Parsed::Incomplete };
    match plain_body(body, rules, keep) {
        Some(plain) => Parsed::Plain(Box::new(plain), start + length),
        None => Parsed::Other,
    }
}

/// Return the offset of the empty line after the headers.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let from = LINE.len() - 2;
    bytes[from..bytes.len().min(MOST)].windows(4).position(|four| four == b"\r\n\r\n").map(|at| from + at)
}

/// Return the length of the body and whether the connection stays open; `None` if the application must decide.
fn checked_head(lines: &[u8], rules: &Rules) -> Option<(usize, bool)> {
    let head = read_head(std::str::from_utf8(lines).ok()?)?;
    if let Some(hosts) = &rules.hosts {
        let name = host_name(head.host?)?;
        if !hosts.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return None;
        }
    }
    head.host?;
    if let Some(token) = &rules.token {
        let sent = head.authorization?.strip_prefix("Bearer ")?;
        if !equal(sent.as_bytes(), token.as_bytes()) {
            return None;
        }
    }
    let kind = head.kind.unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !(kind.is_empty() || ["application/json", "text/json"].iter().any(|k| kind.eq_ignore_ascii_case(k))) {
        return None;
    }
    let keep = match head.connection {
        None => true,
        Some(value) if value.eq_ignore_ascii_case("keep-alive") => true,
        Some(value) if value.eq_ignore_ascii_case("close") => false,
        Some(_) => return None,
    };
    Some((head.length?, keep))
}

/// Return the headers; `None` if one of them is repeated, malformed, or changes how the request is read.
fn read_head(lines: &str) -> Option<Head<'_>> {
    let mut head = Head::default();
    for (n, line) in lines.split("\r\n").enumerate() {
        let (name, value) = line.split_once(':')?;
        let named =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        let printable = value.bytes().all(|b| b == b'\t' || (b' '..=b'~').contains(&b));
        if n >= HEADERS || !named || !printable {
            return None;
        }
        let value = value.trim_matches([' ', '\t']);
        let known = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        let slot = if known("host") {
            &mut head.host
        } else if known("content-type") {
            &mut head.kind
        } else if known("authorization") {
            &mut head.authorization
        } else if known("connection") {
            &mut head.connection
        } else if known("content-length") {
            let digits = (1..=9).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_digit());
            if !digits || head.length.is_some() {
                return None;
            }
            head.length = value.parse().ok();
            continue;
        } else if ["origin", "transfer-encoding", "expect", "upgrade", "trailer"].iter().any(|n| known(n)) {
            return None;
        } else {
            continue;
        };
        if slot.replace(value).is_some() {
            return None;
        }
    }
    Some(head)
}

/// Return the name in a `Host` header, without its port.
fn host_name(host: &str) -> Option<&str> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(address) => address.split_once(']').filter(|(name, _)| name.contains(':'))?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port = rest.strip_prefix(':').unwrap_or(rest);
    (port.bytes().all(|b| b.is_ascii_digit()) && (rest.is_empty() || rest.starts_with(':'))).then_some(name)
}

/// Compare two secrets in a time that depends on their lengths only.
fn equal(a: &[u8], b: &[u8]) -> bool {
    let different = a.iter().zip(b).fold(0, |all, (x, y)| std::hint::black_box(all | (x ^ y)));
    a.len() == b.len() && different == 0
}

/// Return the fields of a body that may be plain.
fn plain_body(body: &[u8], rules: &Rules, keep: bool) -> Option<Plain> {
    let mut fields: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let Some(Value::String(question)) = fields.remove("question") else { return None };
    let blank = question.chars().all(|c| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c));
    if blank || question.len() > rules.question && question.chars().count() > rules.question {
        return None;
    }
    let seconds = match fields.remove("deadline") {
        None | Some(Value::Null) => rules.seconds,
        Some(value) => value.as_f64().filter(|&seconds| seconds > 0.0 && seconds <= rules.seconds)?,
    };
    if let None | Some(Value::Null | Value::Bool(false)) = fields.get("explain") {
        fields.remove("explain");
    }
    if fields.values().any(|value| value.is_array() || value.is_object()) {
        return None; // their numbers may be larger than this parser's
    }
    let fields = serde_json::to_string(&fields).ok()?;
    Some(Plain { question, fields, seconds, keep })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules {
            hosts: Some(vec!["localhost".into(), "::1".into()]),
            token: None,
            body: 1_000_000,
            question: 20_000,
            seconds: 30.0,
        }
    }

    fn request(headers: &str, body: &str) -> Vec<u8> {
        format!("POST /v1/retrieve HTTP/1.1\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
            .into_bytes()
    }

    fn plain(headers: &str, body: &str) -> Option<Plain> {
        match parse(&request(headers, body), &rules()) {
            Parsed::Plain(plain, _) => Some(*plain),
            Parsed::Other => None,
            Parsed::Incomplete => panic!("incomplete"),
        }
    }

    const HOST: &str = "Host: localhost:8765\r\n";

    #[test]
    fn a_plain_request() {
        let bytes =
            request(HOST, r#"{"question": "a", "mode": "bm25", "budget": 60, "top": null, "deadline": 2}"#);
        let Parsed::Plain(plain, used) = parse(&bytes, &rules()) else { panic!() };
        assert_eq!((plain.question.as_str(), plain.seconds, plain.keep), ("a", 2.0, true));
        assert_eq!((plain.fields.as_str(), used), (r#"{"budget":60,"mode":"bm25","top":null}"#, bytes.len()));
        for end in 0..bytes.len() {
            assert_eq!(parse(&bytes[..end], &rules()), Parsed::Incomplete, "{end}");
        }
        let two = [bytes.clone(), bytes.clone()].concat();
        assert!(matches!(parse(&two, &rules()), Parsed::Plain(_, n) if n == bytes.len()));
    }

    #[test]
    fn headers_that_the_application_must_read() {
        let body = r#"{"question": "a"}"#;
        assert!(plain(HOST, body).is_some());
        assert!(plain("host: [::1]:80\r\nAccept: */*\r\nConnection: Keep-Alive\r\n", body).is_some());
        assert!(!plain("Host: localhost\r\nConnection: close\r\n", body).unwrap().keep);
        for wrong in [
            "",
            "Host: evil.example\r\n",
            "Host: localhost:80:80\r\n",
            "Host: [localhost]\r\n",
            "Host: localhost\r\nhost: localhost\r\n",
            "Host: localhost\r\nContent-Length: 17\r\n",
            "Host: localhost\r\nTransfer-Encoding: chunked\r\n",
            "Host: localhost\r\nTransfer-Encoding : chunked\r\n",
            "Host: localhost\r\nOrigin: http://localhost\r\n",
            "Host: localhost\r\nExpect: 100-continue\r\n",
            "Host: localhost\r\nConnection: keep-alive, x\r\n",
            "Host: localhost\r\nContent-Type: text/plain\r\n",
            "Host: localhost\r\nContent-Type: application/json\r\nContent-Type: application/json\r\n",
            "Host: localhost\r\nX: a\r\n b: c\r\n",
            "Host: localhost\r\nX: \u{1}\r\n",
            "Host: localhost\r\nX: a\nb: c\r\n",
            "Host: localhost\r\n: a\r\n",
            "Host: localhost\r\nX\r\n",
        ] {
            assert!(plain(wrong, body).is_none(), "{wrong:?}");
        }
        let many: String = (0..100).map(|n| format!("X-{n}: a\r\n")).collect();
        assert!(plain(&format!("{HOST}{many}"), body).is_none());
    }

    #[test]
    fn bodies_that_the_application_must_read() {
        for wrong in [
            "",
            "{",
            "[]",
            "{}",
            r#"{"question": 1}"#,
            r#"{"question": ""}"#,
            r#"{"question": " \u001c\u00a0\n"}"#,
            r#"{"question": "a"} x"#,
            r#"{"question": "\ud800"}"#,
            r#"{"question": "a", "questions": ["b"]}"#,
            r#"{"question": "a", "filter": {"a": 1}}"#,
            r#"{"question": "a", "deadline": 0}"#,
            r#"{"question": "a", "deadline": 31}"#,
            r#"{"question": "a", "deadline": "1"}"#,
        ] {
            assert!(plain(HOST, wrong).is_none(), "{wrong}");
        }
        assert!(plain(HOST, &format!(r#"{{"question": "{}"}}"#, "ß".repeat(20_000))).is_some());
        assert!(plain(HOST, &format!(r#"{{"question": "{}"}}"#, "ß".repeat(20_001))).is_none());
        assert!(plain(HOST, &format!(r#"{{"question": "{}"}}"#, "a".repeat(70_000))).is_none());
        let explained = plain(HOST, r#"{"question": "a", "explain": true}"#).unwrap();
        assert_eq!(explained.fields, r#"{"explain":true}"#);
        assert_eq!(plain(HOST, r#"{"question": "a", "explain": false}"#).unwrap().fields, "{}");
    }

    #[test]
    fn a_token_is_compared_as_a_whole() {
        let with = |header: &str| {
            let rules = Rules { token: Some("secret".into()), ..rules() };
            let bytes = request(&format!("{HOST}{header}"), r#"{"question": "a"}"#);
            matches!(parse(&bytes, &rules), Parsed::Plain(..))
        };
        assert!(with("Authorization: Bearer secret\r\n"));
        for wrong in [
            "",
            "Authorization: Bearer secre\r\n",
            "Authorization: Bearer secrets\r\n",
            "Authorization: secret\r\n",
        ] {
            assert!(!with(wrong), "{wrong}");
        }
    }

    #[test]
    fn other_paths_methods_and_versions() {
        for line in
            ["GET /v1/retrieve HTTP/1.1", "POST /v1/retrieve HTTP/1.0", "POST /v1/retrieve?a HTTP/1.1", "x"]
        {
            assert_eq!(parse(format!("{line}\r\n\r\n").as_bytes(), &rules()), Parsed::Other, "{line}");
        }
        assert_eq!(parse(b"POST /v1/retr\n", &rules()), Parsed::Other);
        let mut long = [LINE, b"X: "].concat();
        long.resize(MOST, b'a');
        assert_eq!(parse(&long, &rules()), Parsed::Other);
    }
}
