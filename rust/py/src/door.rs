//! The single path from Python to the kernels: it releases the interpreter, watches for Ctrl-C, reports
//! progress, turns a panic into an error, and maps errors to Python exceptions.

use ketrag_base::error::{caught, Detail, Error, Result};
use ketrag_base::progress::Progress;
use ketrag_base::reserve;
use pyo3::prelude::*;
use std::error::Error as _;
use std::io::ErrorKind;
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::Duration;

/// Interval at which the caller of a long kernel checks for signals and reports progress.
const WATCH: Duration = Duration::from_millis(50);

const FREE: &str = "free some space and run the same command again: it continues from there";
const INTACT: &str = "the published generation is intact: run the same command again, or on another disk";

/// Kernel errors as exceptions of `ketrag_fast.errors`.
pub fn to_python(error: Error) -> PyErr {
    let name = match &error {
        Error::Input(_) => "InputError",
        Error::Damaged(_) => "IndexDamaged",
        Error::Io(detail) if is_full(detail) => "StorageFull",
        Error::Io(detail) if has_no_descriptor(detail) => "TooManyFiles",
        Error::Io(detail) if is_failing(detail) => "StorageFailed",
        Error::Io(_) => "IndexDamaged",
        Error::Memory(_) => "OutOfMemory",
        Error::Limit(_) => "TooManyFiles",
        Error::Internal(_) => "InternalError",
        Error::Cancelled => "Cancelled",
        Error::Deadline => "DeadlineExceeded",
    };
    Python::attach(|py| {
        let class = py.import("ketrag_fast.errors").and_then(|errors| errors.getattr(name));
        match class.and_then(|class| class.call1((error.to_string(),))) {
            Ok(instance) => {
                let hint = match name {
                    "StorageFull" => Some(FREE),
                    "StorageFailed" => Some(INTACT),
                    _ => None,
                };
                if let Some(hint) = hint {
                    let _ = instance.setattr("hint", hint); // report the error even if its hint fails
                }
                PyErr::from_value(instance)
            }
            Err(failure) => failure,
        }
    })
}

/// Return whether the disk or the caller's quota is full.
fn is_full(detail: &Detail) -> bool {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    cause(detail).is_some_and(|error| full.contains(&error.kind()))
}

/// Return whether the process or the system cannot open more files: EMFILE, ENFILE.
fn has_no_descriptor(detail: &Detail) -> bool {
    cause(detail).is_some_and(|error| matches!(error.raw_os_error(), Some(24 | 23)))
}

/// Return whether the disk, or the network share it is on, fails: EIO, ENXIO, ENODEV, ESTALE (70 on macOS),
/// ETIMEDOUT (60 on macOS), EREMOTEIO, EUCLEAN.
fn is_failing(detail: &Detail) -> bool {
    let number = cause(detail).and_then(std::io::Error::raw_os_error);
    cfg!(unix) && matches!(number, Some(5 | 6 | 19 | 70 | 116 | 110 | 60 | 121 | 117))
}

fn cause(detail: &Detail) -> Option<&std::io::Error> {
    detail.source().and_then(|cause| cause.downcast_ref())
}

/// Return the same error. If it reports damage of an index and has no hint, add one.
pub fn of_index(py: Python<'_>, error: PyErr) -> PyErr {
    const REPAIR: &str = "run `ketrag index` again: whatever is damaged is made anew";
    let hint = || {
        let value = error.value(py);
        let damaged = value.getattr("code")?.extract::<String>()? == "index_damaged";
        if damaged && value.getattr("hint")?.is_none() {
            value.setattr("hint", REPAIR)?;
        }
        PyResult::Ok(())
    };
    let _ = hint(); // an error without these attributes is not from this package
    error
}

/// A function of Python that is called with (done, total).
pub type Report<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Run a short kernel on this thread with the interpreter released.
pub fn quick<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(|| reserve::keep().and_then(|()| caught(work))).map_err(to_python)
}

/// Run a long kernel on another thread while this one watches for signals and calls `report(done, total)` (if
/// given) about twenty times a second. A signal, or `False` from `report`, stops the kernel at its next
/// check.
pub fn long<T: Send>(
    py: Python<'_>,
    report: Report<'_, '_>,
    work: impl FnOnce(&Progress) -> Result<T> + Send,
) -> PyResult<T> {
    let (mut work, mut result) = (Some(work), None);
    watch(py, report, &mut |progress| {
        result = work.take().map(|work| caught(|| work(progress)));
    })?;
    result.unwrap_or_else(|| Err(Error::Internal("a kernel returned no result".into()))).map_err(to_python)
}

/// Run `work` on another thread, as [`long`] does. This function is not generic: threads and signals are compiled once
/// and not for every kernel.
fn watch(py: Python<'_>, report: Report<'_, '_>, work: &mut (dyn FnMut(&Progress) + Send)) -> PyResult<()> {
    let progress = Progress::none();
    let report: Option<Py<PyAny>> = report.map(|report| report.clone().unbind());
    let see = || {
        Python::attach(|py| -> PyResult<bool> {
            py.check_signals()?;
            let Some(report) = &report else { return Ok(true) };
            let (done, total) = progress.state();
            Ok(report.call1(py, (done, total))?.extract::<Option<bool>>(py)? != Some(false))
        })
    };
    let mut stopped: Option<PyErr> = None;
    let started = py.detach(|| {
        reserve::keep()?;
        std::thread::scope(|scope| {
            let (send, receive) = channel();
            let watched = &progress;
            let started = std::thread::Builder::new().spawn_scoped(scope, move || {
                work(watched);
                // The receiver waits for this value, so it still exists.
                let _ = send.send(());
            });
            if let Err(error) = started {
                return Err(Error::memory(format!("cannot start a thread: {error}")).caused_by(error));
            }
            while let Err(RecvTimeoutError::Timeout) = receive.recv_timeout(WATCH) {
                if stopped.is_some() {
                    continue;
                }
                stopped = match see() {
                    Ok(true) => continue,
                    Ok(false) => Some(to_python(Error::Cancelled)),
                    Err(error) => Some(error),
                };
                progress.stop();
            }
            Ok(())
        })
    });
    match stopped {
        Some(error) => Err(error),
        None => started.map_err(to_python),
    }
}

/// Return an error about the shape or type of an argument.
pub fn wrong(text: impl Into<String>) -> PyErr {
    to_python(Error::Input(text.into()))
}
