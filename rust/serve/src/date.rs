//! The `Date` header.

use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The present date as HTTP writes it, formatted once a second.
#[derive(Debug, Default)]
pub struct Clock(Mutex<(u64, String)>);

impl Clock {
    /// Append the present date.
    pub fn write(&self, out: &mut Vec<u8>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut kept = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if kept.0 != now || kept.1.is_empty() {
            *kept = (now, format_date(now));
        }
        out.extend_from_slice(kept.1.as_bytes());
    }
}

/// Return the date of some seconds after 1970.
///
/// ```
/// assert_eq!(ketrag_serve::date::format_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
/// ```
pub fn format_date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March, in cycles of 400 years (the proleptic Gregorian calendar).
    let since = days + 719_468;
    let (cycle, day) = (since / 146_097, since % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let calendar = if month < 10 { month + 3 } else { month - 9 };
    let year = year + cycle * 400 + u64::from(calendar <= 2);
    format!(
        "{}, {date:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[(calendar - 1) as usize],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_around_leap_years() {
        assert_eq!(format_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(format_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(format_date(951_868_799), "Tue, 29 Feb 2000 23:59:59 GMT");
        assert_eq!(format_date(951_868_800), "Wed, 01 Mar 2000 00:00:00 GMT");
        assert_eq!(format_date(4_107_542_400), "Mon, 01 Mar 2100 00:00:00 GMT");
        assert_eq!(format_date(1_798_761_599), "Thu, 31 Dec 2026 23:59:59 GMT");
    }
}
