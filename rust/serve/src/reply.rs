//! The bodies of requests and replies.

use crate::application::Exchange;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use std::future::{poll_fn, Future};
use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{sleep, Instant, Sleep};

/// How long the rest of a request is read after its reply, so that the reply is not lost.
pub const LINGER: Duration = Duration::from_secs(1);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The body of a reply: whole, or as it comes from the application.
pub struct Reply {
    content: Content,
    /// Held until the reply has been taken for sending.
    held: Option<(Busy, oneshot::Sender<()>)>,
}

enum Content {
    Whole(Option<Bytes>),
    Passed(Incoming, Exchange),
}

/// Marks a connection as busy while it exists.
pub struct Busy(Arc<AtomicBool>);

impl Busy {
    pub fn new(flag: &Arc<AtomicBool>) -> Self {
        flag.store(true, Ordering::Relaxed);
        Self(flag.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Reply {
    pub fn whole(bytes: Vec<u8>) -> Self {
        Self { content: Content::Whole(Some(bytes.into())), held: None }
    }

    pub fn passed(body: Incoming, mut exchange: Exchange) -> Self {
        exchange.is_over = body.is_end_stream();
        Self { content: Content::Passed(body, exchange), held: None }
    }

    /// Hold `busy` until the reply is taken for sending, and let `sent` know then.
    pub fn hold(mut self, busy: Busy, sent: oneshot::Sender<()>) -> Self {
        self.held = Some((busy, sent));
        self
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.get_mut().content {
            Content::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Passed(body, exchange) => {
                let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
                exchange.is_over = frame.is_none() || body.is_end_stream();
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_none(),
            Content::Passed(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Content::Passed(body, _) => body.size_hint(),
        }
    }
}

/// The body of a request, which fails if it does not come in time. What was read of it can be put back.
pub struct Request {
    read: Option<Bytes>,
    rest: Incoming,
    late: Pin<Box<Sleep>>,
    /// Completed by the reply.
    answered: Option<oneshot::Receiver<()>>,
}

impl Request {
    pub fn new(rest: Incoming, time: Duration) -> Self {
        Self { read: None, rest, late: Box::pin(sleep(time)), answered: None }
    }

    /// Wait from now on for another time, or until a moment after the reply.
    pub fn wait(&mut self, time: Duration, answered: oneshot::Receiver<()>) {
        self.late.as_mut().reset(Instant::now() + time);
        self.answered = Some(answered);
    }

    /// Return the whole body, of `length` bytes, which can still be read as if it had not been; `None` if it does
    /// not come in time.
    pub async fn whole(&mut self, length: usize) -> Option<Bytes> {
        let (mut parts, mut size) = (Vec::new(), 0);
        while size < length {
            let frame = poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await;
            let Some(Ok(Ok(part))) = frame.map(|frame| frame.map(Frame::into_data)) else { break };
            size += part.len();
            parts.push(part);
        }
        let all = match parts.as_slice() {
            [one] => one.clone(),
            _ => parts.concat().into(),
        };
        self.read = Some(all.clone()).filter(|all| !all.is_empty());
        (all.len() == length).then_some(all)
    }
}

impl Body for Request {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let this = self.get_mut();
        if let Some(read) = this.read.take() {
            return Poll::Ready(Some(Ok(Frame::data(read))));
        }
        if let Poll::Ready(frame) = Pin::new(&mut this.rest).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Failure::from)));
        }
        if this.answered.as_mut().is_some_and(|answered| Pin::new(answered).poll(cx).is_ready()) {
            this.answered = None;
            this.late.as_mut().reset(Instant::now() + LINGER);
        }
        let late = || Failure::from(Error::new(ErrorKind::TimedOut, "the body is late"));
        this.late.as_mut().poll(cx).map(|()| Some(Err(late())))
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_none() && self.rest.is_end_stream()
    }
}
