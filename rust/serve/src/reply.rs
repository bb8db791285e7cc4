//! The bodies of replies.

use crate::application::Exchange;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use tokio::sync::oneshot;

/// The body of a reply: complete, or streamed from the application.
pub struct Reply {
    content: Content,
    /// Held until the reply has been handed over for sending.
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

    /// Hold `busy` until the reply is handed over for sending, then notify `sent`.
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
