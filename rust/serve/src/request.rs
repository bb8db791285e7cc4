//! Recognition of plain requests, which the core can answer without any decision by the application.

use crate::access::{Access, Holder};
use hyper::header::{
    HeaderName, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::Method;
use serde_json::{Map, Value};
use std::sync::Arc;

pub const PATH: &str = "/v1/retrieve";
/// The beginning of the paths of calls to a shard.
const SHARD: &str = "/v1/shard/";
const ALLOW: &str = "allow";
/// Maximum bytes of the body of a plain request.
const MOST: usize = 65_536;
/// Maximum bytes of the body of a call to a shard, which has the texts of up to 28 candidates.
const MOST_OF_CALL: usize = 4 << 20;

/// The conditions for a plain request.
#[derive(Debug, Default)]
pub struct Rules {
    /// Names and addresses that `Host` may have, in lower case; `None` allows all.
    pub hosts: Option<Vec<String>>,
    /// The callers that may query, by the token that requests must send.
    pub access: Access,
    /// Maximum bytes of a body.
    pub body: usize,
    /// Maximum characters of a question.
    pub question: usize,
    /// Maximum and default time limit of a request in seconds.
    pub seconds: f64,
    /// Returns whether a question has marks of the query language, which the application reads; `None`: never.
    pub has_marks: Option<fn(&str) -> bool>,
}

/// A plain request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plain {
    pub question: String,
    /// All fields except the question and the deadline, as JSON with sorted names; `allow` is the condition on the
    /// documents that the holder of the token may see.
    pub fields: String,
    pub seconds: f64,
}

/// What a plain request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Question,
    Call,
}

fn kind_of(head: &Parts) -> Option<Kind> {
    let path = head.uri.path_and_query().filter(|_| head.uri.authority().is_none())?.as_str();
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    match path {
        PATH => Some(Kind::Question),
        _ => path.strip_prefix(SHARD).filter(|name| is_name(name)).map(|_| Kind::Call),
    }
}

/// Return the kind, the length of the body and the holder of the token if the head belongs to a plain request.
pub fn plain_head(head: &Parts, rules: &Rules) -> Option<(Kind, usize, Arc<Holder>)> {
    let kind = kind_of(head)?;
    let odd = [ORIGIN, TRANSFER_ENCODING, UPGRADE].iter().any(|name| head.headers.contains_key(name));
    if head.method != Method::POST || odd {
        return None;
    }
    let name = host_name(single(head, HOST)?)?;
    if rules.hosts.as_ref().is_some_and(|hosts| !hosts.iter().any(|known| known.eq_ignore_ascii_case(name))) {
        return None;
    }
    let sent = single(head, AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let holder = rules.access.reader(sent)?;
    if head.headers.contains_key(CONTENT_TYPE) {
        let media = single(head, CONTENT_TYPE)?.split(';').next().unwrap_or_default().trim();
        let is_json = ["", "application/json", "text/json"].iter().any(|k| media.eq_ignore_ascii_case(k));
        is_json.then_some(())?;
    }
    let most = if kind == Kind::Call { MOST_OF_CALL } else { MOST };
    let length = single(head, CONTENT_LENGTH)?.parse().ok().filter(|&length| length <= most.min(rules.body));
    length.map(|length| (kind, length, holder))
}

/// Return the text of a header that occurs exactly once.
fn single(head: &Parts, name: HeaderName) -> Option<&str> {
    let mut values = head.headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())?.to_str().ok()
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

/// Return the request of a body, if it is plain.
pub fn plain_body(body: &[u8], rules: &Rules, holder: &Holder) -> Option<Plain> {
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
        return None; // they may contain numbers larger than this parser reads
    }
    let is_literal = fields.get("literal").is_some_and(|literal| *literal == Value::Bool(true));
    if !is_literal && rules.has_marks.is_some_and(|has_marks| has_marks(&question)) {
        return None;
    }
    if fields.contains_key(ALLOW) {
        return None; // no request has this field
    }
    if !holder.allow.is_empty() {
        fields.insert(ALLOW.into(), Value::String(holder.allow.clone()));
    }
    let fields = serde_json::to_string(&fields).ok()?;
    Some(Plain { question, fields, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;
    use sha2::{Digest, Sha256};

    fn rules() -> Rules {
        Rules {
            hosts: Some(vec!["localhost".into(), "::1".into()]),
            access: Access::default(),
            body: 1_000_000,
            question: 20_000,
            seconds: 30.0,
            has_marks: Some(|question| question.contains('"')),
        }
    }

    fn head(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn is_plain(headers: &[(&str, &str)], rules: &Rules) -> bool {
        let headers = [headers, &[("content-length", "17")]].concat();
        plain_head(&head("POST", "/v1/retrieve", &headers), rules).is_some()
    }

    fn body(text: &str) -> Option<Plain> {
        plain_body(text.as_bytes(), &rules(), &Holder::default())
    }

    const HOST: (&str, &str) = ("host", "localhost:8765");

    #[test]
    fn a_plain_request() {
        let headers = [HOST, ("content-type", "Application/JSON; charset=utf-8"), ("content-length", "17")];
        assert_eq!(plain_head(&head("POST", "/v1/retrieve", &headers), &rules()).unwrap().1, 17);
        let plain =
            body(r#"{"question": "a", "mode": "bm25", "budget": 60, "top": null, "deadline": 2}"#).unwrap();
        assert_eq!((plain.question.as_str(), plain.seconds), ("a", 2.0));
        assert_eq!(plain.fields.as_str(), r#"{"budget":60,"mode":"bm25","top":null}"#);
    }

    #[test]
    fn headers_that_the_application_must_read() {
        assert!(is_plain(&[HOST], &rules()));
        assert!(is_plain(&[("host", "[::1]:80"), ("accept", "*/*")], &rules()));
        for wrong in [
            &[][..],
            &[("host", "evil.example")],
            &[("host", "localhost:80:80")],
            &[("host", "[localhost]")],
            &[HOST, HOST],
            &[HOST, ("content-length", "17")],
            &[HOST, ("transfer-encoding", "chunked")],
            &[HOST, ("origin", "http://localhost")],
            &[HOST, ("upgrade", "h2c")],
            &[HOST, ("content-type", "text/plain")],
            &[HOST, ("content-type", "application/json"), ("content-type", "application/json")],
        ] {
            assert!(!is_plain(wrong, &rules()), "{wrong:?}");
        }
        for length in ["65537", "-1", "a", ""] {
            let headers = [HOST, ("content-length", length)];
            assert_eq!(plain_head(&head("POST", "/v1/retrieve", &headers), &rules()), None, "{length}");
        }
        let foreign = [("host", "evil.example")];
        assert!(is_plain(&foreign, &Rules { hosts: None, ..rules() }));
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
            r#"{"question": "a", "allow": "team=red"}"#,
            r#"{"question": "\"a\""}"#,
            r#"{"question": "\"a\"", "literal": false}"#,
            r#"{"question": "a", "deadline": 0}"#,
            r#"{"question": "a", "deadline": 31}"#,
            r#"{"question": "a", "deadline": "1"}"#,
        ] {
            assert!(body(wrong).is_none(), "{wrong}");
        }
        assert!(body(&format!(r#"{{"question": "{}"}}"#, "ß".repeat(20_000))).is_some());
        assert!(body(&format!(r#"{{"question": "{}"}}"#, "ß".repeat(20_001))).is_none());
        let explained = body(r#"{"question": "a", "explain": true}"#).unwrap();
        assert_eq!(explained.fields, r#"{"explain":true}"#);
        assert_eq!(body(r#"{"question": "a", "explain": false}"#).unwrap().fields, "{}");
        assert!(body(r#"{"question": "\"a\"", "literal": true}"#).is_some());
    }

    #[test]
    fn a_token_is_compared_as_a_whole() {
        let digest = Sha256::digest(b"secret").into();
        let anna = Holder { name: "anna".into(), allow: "team=red".into(), reads: true };
        let rules = Rules { access: Access::of(Some(vec![(digest, anna)])), ..rules() };
        let with = |value: &str| is_plain(&[HOST, ("authorization", value)], &rules);
        assert!(with("Bearer secret"));
        assert!(!is_plain(&[HOST], &rules));
        for wrong in ["", "Bearer secre", "Bearer secrets", "secret"] {
            assert!(!with(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_rights_of_a_holder_are_part_of_the_fields() {
        let anna = Holder { name: "anna".into(), allow: "team=red".into(), reads: true };
        let plain = plain_body(br#"{"question": "a", "top": 3}"#, &rules(), &anna).unwrap();
        assert_eq!(plain.fields, r#"{"allow":"team=red","top":3}"#);
        assert_eq!(plain_body(br#"{"question": "a", "allow": "team=blue"}"#, &rules(), &anna), None);
    }

    #[test]
    fn calls_to_a_shard() {
        let kind = |uri: &str, length: &str| {
            let headers = [HOST, ("content-length", length)];
            plain_head(&head("POST", uri, &headers), &rules()).map(|found| found.0)
        };
        assert_eq!(kind("/v1/retrieve", "17"), Some(Kind::Question));
        assert_eq!(kind("/v1/shard/look-up", "17"), Some(Kind::Call));
        assert_eq!(kind("/v1/shard/candidates", "900000"), Some(Kind::Call));
        for (uri, length) in [
            ("/v1/shard/plan?a", "17"),
            ("/v1/shard/plan/", "17"),
            ("/v1/shards/plan", "17"),
            ("/v1/shard/PLAN", "17"),
            ("/v1/shard/plan", "1000001"),
        ] {
            assert_eq!(kind(uri, length), None, "{uri} {length}");
        }
    }

    #[test]
    fn other_paths_and_methods() {
        let headers = [HOST, ("content-length", "17")];
        for (method, uri) in [
            ("GET", "/v1/retrieve"),
            ("POST", "/v1/retrieve?a"),
            ("POST", "/v1/retrieve/"),
            ("POST", "http://localhost/v1/retrieve"),
        ] {
            assert_eq!(plain_head(&head(method, uri, &headers), &rules()), None, "{method} {uri}");
        }
    }
}
