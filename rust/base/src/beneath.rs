//! Opens a file of a folder without following a link out of the folder, even if links are swapped meanwhile.
//!
//! A check of a path followed by an open reads whatever the path leads to at the second moment. On Unix, each
//! folder on the way is therefore opened relative to the one before it, and no link is followed. Links inside
//! the folder are resolved first; a resolved path has no links.

use std::fs::File;
use std::io::{Error, Result};
use std::path::{Component, Path, PathBuf};

/// Open a regular file that is in the folder `root` after all links are resolved; without `root`, anywhere.
///
/// # Errors
/// That of the system. On Unix, it is `ELOOP` if a link leads out of the folder or was swapped, and `EINVAL` if the path
/// is not that of a regular file.
pub fn open_regular(path: &Path, root: Option<&Path>) -> Result<File> {
    let file = match root {
        None => system::open(path)?,
        Some(root) => match inner(path, root).map(|inner| system::open_below(root, inner)) {
            Some(Ok(file)) => file,
            Some(Err(error)) if !system::is_of_link(&error) => return Err(error),
            _ => system::open_below(root, &resolved(path, root)?)?,
        },
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(system::not_regular()),
    }
}

/// Return the path relative to a folder, if it is written as one below the folder.
fn inner<'a>(path: &'a Path, root: &Path) -> Option<&'a Path> {
    let inner = path.strip_prefix(root).ok()?;
    let is_plain = inner.components().all(|part| matches!(part, Component::Normal(_)));
    (is_plain && !inner.as_os_str().is_empty()).then_some(inner)
}

/// Return the path relative to a folder after all links are resolved.
fn resolved(path: &Path, root: &Path) -> Result<PathBuf> {
    let (real, top) = (path.canonicalize()?, root.canonicalize()?);
    match inner(&real, &top) {
        Some(inner) => Ok(inner.to_owned()),
        None => Err(system::leads_out()),
    }
}

#[cfg(unix)]
mod system {
    use super::{Error, File, Path, Result};
    use std::ffi::{CString, OsStr};
    use std::io::ErrorKind;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::OpenOptionsExt;

    /// Opening a pipe for reading must not wait for a writer.
    const FILE: libc::c_int = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    #[cfg(target_os = "linux")]
    const FOLDER: libc::c_int = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    const FOLDER: libc::c_int = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;

    pub fn open(path: &Path) -> Result<File> {
        File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)
    }

    /// Open a file by the folders on its way, none of which may be a link except `root` itself.
    pub fn open_below(root: &Path, inner: &Path) -> Result<File> {
        let folder = open_at(None, root.as_os_str(), FOLDER)?;
        #[cfg(target_os = "linux")]
        if let Some(opened) = resolve::open_in_one_call(&folder, inner) {
            return opened;
        }
        open_by_parts(folder, inner)
    }

    /// Open a file folder by folder, none of which may be a link.
    pub(super) fn open_by_parts(mut folder: OwnedFd, inner: &Path) -> Result<File> {
        let mut parts = inner.iter().peekable();
        while let Some(part) = parts.next() {
            let flags = if parts.peek().is_some() { FOLDER } else { FILE };
            folder = open_at(Some(&folder), part, flags | libc::O_NOFOLLOW)?;
        }
        Ok(folder.into())
    }

    #[cfg(target_os = "linux")]
    mod resolve {
        use super::{CString, Error, ErrorKind, File, FromRawFd, OsStrExt, OwnedFd, Path, Result, FILE};
        use std::os::fd::{AsRawFd, RawFd};
        use std::sync::atomic::{AtomicBool, Ordering};

        /// Whether the system has no `openat2`: Linux before 5.6, and sandboxes that forbid it.
        static IS_MISSING: AtomicBool = AtomicBool::new(false);

        /// Open a file below a folder without following links, in one call; None if the system cannot do that.
        pub fn open_in_one_call(folder: &OwnedFd, inner: &Path) -> Option<Result<File>> {
            let name = CString::new(inner.as_os_str().as_bytes()).ok()?;
            while !IS_MISSING.load(Ordering::Relaxed) {
                // SAFETY: all fields are integers, for which zero is a value.
                let mut how: libc::open_how = unsafe { std::mem::zeroed() };
                how.flags = FILE as u64;
                how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS;
                // SAFETY: the name ends with a zero byte, the folder is open, and the size is that of `how`.
                let opened = unsafe {
                    libc::syscall(
                        libc::SYS_openat2,
                        folder.as_raw_fd(),
                        name.as_ptr(),
                        &raw const how,
                        size_of::<libc::open_how>(),
                    )
                };
                if opened >= 0 {
                    // SAFETY: the descriptor was just opened, and nothing else has it.
                    return Some(Ok(unsafe { OwnedFd::from_raw_fd(opened as RawFd) }.into()));
                }
                let error = Error::last_os_error();
                match error.raw_os_error() {
                    _ if error.kind() == ErrorKind::Interrupted => {}
                    Some(libc::EAGAIN) => return None, // something was renamed meanwhile
                    // EPERM and EINVAL are the answers of sandboxes that do not know the call.
                    Some(libc::ENOSYS | libc::EPERM | libc::EINVAL) => {
                        IS_MISSING.store(true, Ordering::Relaxed);
                    }
                    _ => return Some(Err(error)),
                }
            }
            None
        }
    }

    fn open_at(folder: Option<&OwnedFd>, name: &OsStr, flags: libc::c_int) -> Result<OwnedFd> {
        let name = CString::new(name.as_bytes()).map_err(|_| not_regular())?;
        let folder = folder.map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd);
        loop {
            // SAFETY: the name ends with a zero byte, and the folder is open or the working folder.
            let opened = unsafe { libc::openat(folder, name.as_ptr(), flags) };
            if opened >= 0 {
                // SAFETY: the descriptor was just opened, and nothing else has it.
                return Ok(unsafe { OwnedFd::from_raw_fd(opened) });
            }
            let error = Error::last_os_error();
            if error.kind() != ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Whether an error is that of a link where a file or folder was expected.
    pub fn is_of_link(error: &Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR))
    }

    pub fn leads_out() -> Error {
        Error::from_raw_os_error(libc::ELOOP)
    }

    pub fn not_regular() -> Error {
        Error::from_raw_os_error(libc::EINVAL)
    }
}

#[cfg(not(unix))]
mod system {
    use super::{Error, File, Path, Result};
    use std::io::ErrorKind;

    pub fn open(path: &Path) -> Result<File> {
        File::open(path)
    }

    /// Open a file if no link is on its way. A link that is swapped at this moment is followed, so only hashes are
    /// taken of such a file; texts are read by `ketrag_fast.base.open_beneath`, which compares identities.
    pub fn open_below(root: &Path, inner: &Path) -> Result<File> {
        let path = root.canonicalize()?.join(inner);
        match path.canonicalize()? == path {
            true => File::open(path),
            false => Err(leads_out()),
        }
    }

    pub fn is_of_link(error: &Error) -> bool {
        error.kind() == ErrorKind::InvalidInput
    }

    pub fn leads_out() -> Error {
        Error::new(ErrorKind::InvalidInput, "a symbolic link leads out of the folder")
    }

    pub fn not_regular() -> Error {
        Error::new(ErrorKind::InvalidInput, "not a regular file")
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_inside_are_followed_and_links_outside_are_not() {
        let top = std::env::temp_dir().join(format!("ketrag-beneath-{}", std::process::id()));
        let source = top.join("source");
        std::fs::create_dir_all(source.join("sub")).unwrap();
        std::fs::write(source.join("sub/a.md"), "public").unwrap();
        std::fs::write(top.join("a.md"), "secret").unwrap();
        for (link, target) in
            [("inner", "sub"), ("far.md", "sub/a.md"), ("out.md", "../a.md"), ("outer", "..")]
        {
            symlink(target, source.join(link)).unwrap();
        }
        symlink(&source, top.join("alias")).unwrap();
        let read = |path: PathBuf, root: Option<&Path>| {
            let mut text = String::new();
            open_regular(&path, root).and_then(|mut file| file.read_to_string(&mut text)).map(|_| text)
        };
        for inside in ["sub/a.md", "./sub/a.md", "inner/a.md", "far.md", "inner/../sub/a.md"] {
            assert_eq!(read(source.join(inside), Some(&source)).unwrap(), "public", "{inside}");
            let alias = top.join("alias");
            assert_eq!(read(alias.join(inside), Some(&alias)).unwrap(), "public", "{inside}");
        }
        for outside in ["out.md", "outer/a.md", "../a.md", "sub/../outer/a.md", "outer/source/../a.md"] {
            let error = read(source.join(outside), Some(&source)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ELOOP), "{outside}");
        }
        assert_eq!(read(source.join("out.md"), None).unwrap(), "secret");
        for (folder, root) in [("sub", Some(source.as_path())), ("sub", None), ("inner", Some(&source))] {
            assert!(read(source.join(folder), root).is_err(), "{folder}");
        }
        // The form for systems without `openat2` opens the same files.
        let by_parts = |inner: &str| {
            let folder = File::open(&source).unwrap();
            system::open_by_parts(folder.into(), Path::new(inner))
                .map(|_| ())
                .map_err(|one| system::is_of_link(&one))
        };
        assert_eq!(by_parts("sub/a.md"), Ok(()));
        assert_eq!(["inner/a.md", "out.md", "outer/a.md"].map(by_parts), [Err(true); 3]);
        std::fs::remove_dir_all(&top).unwrap();
    }
}
