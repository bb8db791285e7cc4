//! The socket of a client, with patience of two kinds: for a client that reads slowly, and for one that has stopped
//! sending while its request is answered.

use std::future::Future;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{sleep, Sleep};

/// How long a client that sends no more may wait for its reply. hyper takes the end of what a client sends for a lost
/// connection, but a client may end its side and read on.
const PATIENCE: Duration = Duration::from_secs(3);

pub struct Socket {
    stream: TcpStream,
    /// Whether a request is answered.
    busy: Arc<AtomicBool>,
    /// Whether something was written that the system has not taken.
    unsent: bool,
    /// Maximum time without progress of a reply.
    idle: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    ended: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub fn new(stream: TcpStream, busy: Arc<AtomicBool>, idle: Duration) -> Self {
        Self { stream, busy, unsent: false, idle, stalled: None, ended: None }
    }

    /// Pass on the state of a write, which fails if the client has read nothing for too long.
    fn limit<T>(&mut self, cx: &mut Context<'_>, written: Poll<Result<T>>) -> Poll<Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let idle = self.idle;
        ready!(self.stalled.get_or_insert_with(|| Box::pin(sleep(idle))).as_mut().poll(cx));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client does not read")))
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        if this.ended.is_none() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
            if buffer.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
        }
        if this.busy.load(Ordering::Relaxed) || this.unsent {
            ready!(this.ended.get_or_insert_with(|| Box::pin(sleep(PATIENCE))).as_mut().poll(cx));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let this = self.get_mut();
        this.unsent = true;
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.limit(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let this = self.get_mut();
        this.unsent = true;
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
        this.limit(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper calls this when it has written all that it holds.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.stream).poll_flush(cx))?;
        this.unsent = false;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
