//! A log with a line for each request. A thread writes it, so that a slow or full disk delays no request.

use crate::json::string;
use crate::locks::lock;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum bytes of lines that wait to be written; further lines are counted and dropped.
const MOST: usize = 1 << 20;
/// How long lines are gathered before they are written. Waking the thread for every line took 14 % of the processor
/// time of a `bm25` request (227 microseconds instead of 194); with one wake for the lines of 20 ms the log takes less
/// than 1 % (`benches/serving.py --team`, questions of MuSiQue). Other times were not compared.
const GATHER: Duration = Duration::from_millis(20);
/// How long the end of the service waits for the last lines.
const LAST: Duration = Duration::from_secs(2);

/// What the lines contain.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// JSON instead of text.
    pub json: bool,
    /// Write a line for every request, not only for slow and refused ones.
    pub all: bool,
    /// Add the question.
    pub questions: bool,
    /// Requests that take longer are marked.
    pub slow: Duration,
}

/// A request that was answered.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The name of the user; empty if there are no users.
    pub user: &'a str,
    pub method: &'a str,
    /// The path of the endpoint, without its parameters.
    pub path: &'a str,
    pub status: u16,
    pub took: Duration,
    pub question: Option<&'a str>,
    /// Whether it counts as slow after the limit; answers of a language model do not.
    pub may_be_slow: bool,
}

/// A log of requests.
pub struct RequestLog {
    style: Style,
    pending: Arc<(Mutex<Pending>, Condvar)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Pending {
    lines: Vec<u8>,
    dropped: u64,
    is_closed: bool,
    has_ended: bool,
}

impl RequestLog {
    /// Start a log that writes to a file. Errors of the file are ignored, and counted when it can be written again.
    pub fn start(file: File, style: Style) -> std::io::Result<Self> {
        let pending = Arc::<(Mutex<Pending>, Condvar)>::default();
        let shared = pending.clone();
        let thread =
            Builder::new().name("ketrag-log".into()).spawn(move || write_all(&shared, file, style))?;
        Ok(Self { style, pending, thread: Mutex::new(Some(thread)) })
    }

    /// Return whether lines have the question.
    pub fn has_questions(&self) -> bool {
        self.style.questions
    }

    /// Add the line of a request, if the log has it.
    pub fn add(&self, entry: &Entry<'_>) {
        let is_slow = entry.may_be_slow && entry.took > self.style.slow;
        if self.style.all || is_slow || matches!(entry.status, 401 | 403) {
            let question = entry.question.filter(|_| self.style.questions);
            self.push(|out, style| write_entry(out, style.json, entry, question, is_slow));
        }
    }

    /// Add a line about the service, such as that its users have changed.
    pub fn note(&self, level: &str, message: &str) {
        self.push(|out, style| write_note(out, style.json, level, message));
    }

    fn push(&self, write: impl FnOnce(&mut Vec<u8>, Style)) {
        let (state, ready) = &*self.pending;
        let mut state = lock(state);
        if state.lines.len() >= MOST {
            state.dropped += 1;
            return;
        }
        let is_first = state.lines.is_empty();
        write(&mut state.lines, self.style);
        drop(state);
        if is_first {
            ready.notify_one();
        }
    }

    /// Write what is left, for a short time at most, and end the thread.
    pub fn close(&self) {
        let (state, ready) = &*self.pending;
        lock(state).is_closed = true;
        ready.notify_all();
        let held = lock(state);
        let (held, _) = ready
            .wait_timeout_while(held, LAST, |state| !state.has_ended)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if held.has_ended {
            drop(held);
            if let Some(thread) = lock(&self.thread).take() {
                let _ = thread.join();
            }
        }
    }
}

impl std::fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestLog").field("style", &self.style).finish_non_exhaustive()
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        self.close();
    }
}

/// Write lines as they come until the log is closed.
fn write_all(shared: &(Mutex<Pending>, Condvar), mut file: File, style: Style) {
    let (state, ready) = shared;
    let mut failed = 0u64;
    loop {
        let mut held = lock(state);
        while held.lines.is_empty() && !held.is_closed {
            held = ready.wait(held).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        (held, _) = ready
            .wait_timeout_while(held, GATHER, |state| !state.is_closed && state.lines.len() < MOST / 2)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let lines = std::mem::take(&mut held.lines);
        let lost = std::mem::take(&mut held.dropped) + std::mem::take(&mut failed);
        if lines.is_empty() {
            held.has_ended = true;
            drop(held);
            ready.notify_all();
            return;
        }
        drop(held);
        let count = lines.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let mut whole = Vec::new();
        if lost > 0 {
            let message = format!("{lost} lines of this log could not be written");
            write_note(&mut whole, style.json, "warning", &message);
        }
        whole.extend_from_slice(&lines);
        if file.write_all(&whole).is_err() {
            failed = lost + count;
        }
    }
}

fn write_entry(out: &mut Vec<u8>, json: bool, entry: &Entry<'_>, question: Option<&str>, is_slow: bool) {
    let milliseconds = entry.took.as_secs_f64() * 1000.0;
    let time = utc(SystemTime::now());
    if !json {
        let user = if entry.user.is_empty() { "-" } else { entry.user };
        let _ = write!(
            out,
            "{time} {user} {} {} {} {milliseconds:.1} ms",
            entry.method, entry.path, entry.status
        );
        if is_slow {
            out.extend_from_slice(b" slow");
        }
        if let Some(question) = question {
            out.push(b' ');
            string(out, question);
        }
        out.push(b'\n');
        return;
    }
    let _ = write!(out, "{{\"time\":\"{time}\",\"user\":");
    match entry.user {
        "" => out.extend_from_slice(b"null"),
        user => string(out, user),
    }
    out.extend_from_slice(b",\"method\":");
    string(out, entry.method);
    out.extend_from_slice(b",\"path\":");
    string(out, entry.path);
    let _ = write!(out, ",\"status\":{},\"ms\":{milliseconds:.1}", entry.status);
    if is_slow {
        out.extend_from_slice(b",\"slow\":true");
    }
    if let Some(question) = question {
        out.extend_from_slice(b",\"question\":");
        string(out, question);
    }
    out.extend_from_slice(b"}\n");
}

fn write_note(out: &mut Vec<u8>, json: bool, level: &str, message: &str) {
    let time = utc(SystemTime::now());
    if json {
        let _ = write!(out, "{{\"time\":\"{time}\",\"level\":");
        string(out, level);
        out.extend_from_slice(b",\"message\":");
        string(out, message);
        out.extend_from_slice(b"}\n");
        return;
    }
    let mut text = Vec::new();
    string(&mut text, message); // control characters are escaped
    let _ = write!(out, "{time} {level}: ");
    out.extend_from_slice(&text[1..text.len() - 1]);
    out.push(b'\n');
}

/// Return a time as `2026-11-28T23:40:01.123Z`.
fn utc(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// Return year, month and day of a number of days since 1970 (Howard Hinnant's `civil_from_days`).
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    fn entry(status: u16, milliseconds: u64) -> Entry<'static> {
        Entry {
            user: "anna",
            method: "POST",
            path: "/v1/retrieve",
            status,
            took: Duration::from_millis(milliseconds),
            question: Some("who \"built\"\nit?"),
            may_be_slow: true,
        }
    }

    fn logged(style: Style, entries: &[Entry<'_>]) -> Vec<String> {
        let path = std::env::temp_dir().join(format!("ketrag-log-{}-{:?}", std::process::id(), style));
        let path = path
            .with_file_name(path.file_name().unwrap().to_string_lossy().replace([' ', ':', '{', '}'], ""));
        let mut file =
            File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        let log = RequestLog::start(file.try_clone().unwrap(), style).unwrap();
        entries.iter().for_each(|entry| log.add(entry));
        log.note("warning", "a \u{1b}[31m note");
        log.close();
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        std::fs::remove_file(path).unwrap();
        text.lines().map(|line| line.to_owned()).collect()
    }

    const SLOW: Duration = Duration::from_secs(2);

    #[test]
    fn lines_of_requests() {
        let style = Style { json: false, all: true, questions: false, slow: SLOW };
        let lines = logged(style, &[entry(200, 12), entry(200, 2500)]);
        assert!(lines[0].ends_with(" anna POST /v1/retrieve 200 12.0 ms"), "{lines:?}");
        assert!(lines[1].ends_with(" 2500.0 ms slow"));
        assert!(lines[2].ends_with(r"warning: a \u001b[31m note"));
        let lines = logged(Style { questions: true, ..style }, &[entry(200, 12)]);
        assert!(lines[0].ends_with(r#" 12.0 ms "who \"built\"\nit?""#));
        let few = Style { all: false, ..style };
        assert_eq!(logged(few, &[entry(200, 12), entry(200, 2500), entry(401, 1)]).len(), 3);
        let quick = Entry { may_be_slow: false, ..entry(200, 2500) };
        assert_eq!(logged(few, &[quick]).len(), 1);
    }

    #[test]
    fn lines_in_json() {
        let style = Style { json: true, all: true, questions: true, slow: SLOW };
        let nobody = Entry { user: "", question: None, ..entry(429, 2500) };
        for line in logged(style, &[entry(200, 12), nobody]) {
            let read: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert!(read["time"].as_str().unwrap().ends_with('Z'));
            if read["status"] == 429 {
                assert!(read["user"].is_null() && read["slow"] == true && read.get("question").is_none());
            } else if read["status"] == 200 {
                assert_eq!(read["question"], "who \"built\"\nit?");
                assert_eq!(read["ms"], 12.0);
            }
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_does_not_end_the_log() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let style = Style { json: false, all: true, questions: false, slow: SLOW };
        let log = RequestLog::start(full, style).unwrap();
        for _ in 0..50_000 {
            log.add(&entry(200, 1));
        }
        let begun = std::time::Instant::now();
        log.close();
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn times() {
        let at = |seconds: u64| utc(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7));
        assert_eq!(at(0), "1970-01-01T00:00:00.007Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.007Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_795_909_201), "2026-11-28T23:40:01.007Z");
        assert_eq!(at(4_107_542_399), "2100-02-28T23:59:59.007Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.007Z");
    }
}
