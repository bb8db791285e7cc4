//! The bodies of requests.

use hyper::body::{Body, Bytes, Frame, Incoming};
use std::future::{poll_fn, Future};
use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{sleep, Instant, Sleep};

/// How long the rest of a request is read after the reply, so that the client does not lose the reply.
pub const LINGER: Duration = Duration::from_secs(1);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request. Reading fails if it does not arrive in time. The part that was read can be put
/// back.
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

    /// From now on, wait for a different time, or until shortly after the reply.
    pub fn wait(&mut self, time: Duration, answered: oneshot::Receiver<()>) {
        self.late.as_mut().reset(Instant::now() + time);
        self.answered = Some(answered);
    }

    /// Return the whole body of `length` bytes, which can still be read again afterwards. Returns `None` if
    /// it does not arrive in time.
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
