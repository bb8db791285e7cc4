//! One connection of a client. Each request is answered by a worker, or by the application as if there were
//! no front.

use crate::application::{Application, Applications, Exchange};
use crate::backend::Call;
use crate::limits::respond;
use crate::queue::Job;
use crate::reply::{Busy, Reply};
use crate::request::{plain_body, plain_head, Kind, Plain, PATH};
use crate::request_body::{Request, LINGER};
use crate::request_log::Entry;
use crate::shared::Shared;
use crate::worker::compute;
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper::header::{HeaderName, HeaderValue, CONTENT_TYPE, EXPECT};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use ketrag_base::progress::Progress;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::{Duration, Instant};
#[cfg(windows)]
use tokio::net::TcpStream as Stream;
#[cfg(unix)]
use tokio::net::UnixStream as Stream;
use tokio::sync::oneshot;
use tokio::time::timeout_at;

/// If requests take less than this number of seconds on average, the next one is answered on the thread of
/// its connection, because handing it to a worker would take as long. Longer questions may take longer.
const QUICK: f64 = 0.0005;
const SHORT: usize = 1024;
/// The header with the deadline in seconds of a request whose deadline has passed.
const LATE: HeaderName = HeaderName::from_static("x-ketrag-late");
/// Media type of replies that are not JSON.
const PACKED: HeaderValue = HeaderValue::from_static("application/octet-stream");

pub struct Client {
    pub shared: Arc<Shared>,
    pub applications: Arc<Applications>,
    /// Whether a request is answered.
    pub busy: Arc<AtomicBool>,
}

/// A request that workers are processing. Dropping it stops them.
struct Waiting<'a> {
    shared: &'a Shared,
    progress: Arc<Progress>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.progress.stop();
        self.shared.queue.drop_ended();
    }
}

/// The outcome of a plain request.
enum Outcome {
    Replied(Response<Reply>),
    /// The application must answer. Contains the deadline in seconds if it has passed.
    Passed(Option<f64>),
}

impl Client {
    /// Return the reply to a request.
    pub async fn answer(&self, request: hyper::Request<Incoming>, busy: Busy) -> Response<Reply> {
        let (sent, answered) = oneshot::channel();
        let (head, body) = request.into_parts();
        let read = self.shared.limits.read;
        // If a body does not arrive soon, the application handles it and words the error.
        let mut body = Request::new(body, read / 4);
        let mut late = None;
        if let Some((kind, length, holder)) = plain_head(&head, &self.shared.rules) {
            let bytes = body.whole(length).await;
            if let (Kind::Call, Some(body)) = (kind, &bytes) {
                let call =
                    Call { path: head.uri.path().to_owned(), body: body.clone(), holder: holder.clone() };
                if let Some(response) = self.call(call).await {
                    return response.map(|reply| reply.hold(busy, sent));
                }
            }
            let bytes = bytes.filter(|_| kind == Kind::Question);
            if let Some(plain) = bytes.and_then(|bytes| plain_body(&bytes, &self.shared.rules, &holder)) {
                let (arrived, log) = (Instant::now(), self.shared.limits.log.as_ref());
                let question = log.filter(|log| log.has_questions()).map(|_| plain.question.clone());
                match self.retrieve(plain).await {
                    Outcome::Replied(response) => {
                        if let Some(log) = log {
                            log.add(&Entry {
                                user: &holder.name,
                                method: "POST",
                                path: PATH,
                                status: response.status().as_u16(),
                                took: arrived.elapsed(),
                                question: question.as_deref(),
                                may_be_slow: true,
                            });
                        }
                        return response.map(|reply| reply.hold(busy, sent));
                    }
                    Outcome::Passed(over) => late = over,
                }
            }
        }
        body.wait(read + LINGER, answered);
        self.pass(head, body, late).await.map(|reply| reply.hold(busy, sent))
    }

    /// Answer on this thread if that takes little or no time. Otherwise have a worker answer.
    async fn retrieve(&self, request: Plain) -> Outcome {
        let (shared, arrived) = (&*self.shared, Instant::now());
        let plan = shared.known_plan(&request.fields);
        if let Some(Some(plan)) = &plan {
            if let Some(reply) = shared.cache.get(plan.id(), &request.question) {
                shared.counters.answered(arrived.elapsed(), true);
                return Outcome::Replied(self.context(reply));
            }
        } else if plan.is_some() {
            return Outcome::Passed(None);
        }
        let seconds = request.seconds;
        let until = arrived + Duration::from_secs_f64(seconds);
        let progress = Arc::new(Progress::with_deadline(until));
        let plan = plan.flatten();
        let is_quick = request.question.len() <= SHORT && shared.queue.load().1 < QUICK;
        if let Some(plan) = plan.as_ref().filter(|plan| is_quick && plan.model().is_none()) {
            if !plan.takes(&request.question) {
                return Outcome::Passed(None);
            }
            shared.counters.batch(1);
            let reply = compute(shared, &**plan, &request.question, None, &progress, arrived);
            let over = || (until <= Instant::now()).then_some(seconds);
            return reply
                .map_or_else(|| Outcome::Passed(over()), |reply| Outcome::Replied(self.context(reply)));
        }
        let (reply, replied) = oneshot::channel();
        let progress_of_job = progress.clone();
        let job = Job {
            request,
            call: None,
            reply,
            arrived,
            until,
            progress: progress_of_job,
            plan,
            embedded: None,
        };
        if !shared.queue.add(job, shared.limits.queue) {
            return Outcome::Replied(self.refuse(arrived));
        }
        let waiting = Waiting { shared, progress };
        if let Ok(Ok(reply)) = timeout_at(until.into(), replied).await {
            std::mem::forget(waiting); // nothing is left to stop
            return Outcome::Replied(self.context(reply.body));
        }
        Outcome::Passed((until <= Instant::now()).then_some(seconds))
    }

    /// Have a worker answer a call to a shard. `None` if the application must answer.
    async fn call(&self, call: Call) -> Option<Response<Reply>> {
        let (shared, arrived) = (&*self.shared, Instant::now());
        let until = arrived + Duration::from_secs_f64(shared.rules.seconds);
        let progress = Arc::new(Progress::with_deadline(until));
        let (reply, replied) = oneshot::channel();
        let (request, progress_of_job) = (Plain::default(), progress.clone());
        let call = Some(call);
        let job = Job {
            request,
            call,
            reply,
            arrived,
            until,
            progress: progress_of_job,
            plan: None,
            embedded: None,
        };
        if !shared.queue.add(job, shared.limits.queue) {
            return Some(self.refuse(arrived));
        }
        let waiting = Waiting { shared, progress };
        let reply = timeout_at(until.into(), replied).await.ok()?.ok()?;
        std::mem::forget(waiting); // nothing is left to stop
        let mut headers = shared.limits.headers.clone();
        if reply.is_packed {
            headers.insert(CONTENT_TYPE, PACKED);
        }
        Some(respond(reply.status, headers, reply.body))
    }

    /// Reply that the queue is full.
    fn refuse(&self, arrived: Instant) -> Response<Reply> {
        let shared = &*self.shared;
        let (waiting, mean) = shared.queue.load();
        let wait = (waiting as f64 * mean / shared.limits.workers as f64) as usize;
        let busy = &shared.limits.errors.busy;
        shared.counters.refused(arrived.elapsed());
        busy[wait.min(busy.len() - 1)].response()
    }

    fn context(&self, body: Vec<u8>) -> Response<Reply> {
        respond(StatusCode::OK, self.shared.limits.headers.clone(), body)
    }

    /// Have the application answer.
    async fn pass(&self, mut head: Parts, body: Request, late: Option<f64>) -> Response<Reply> {
        let errors = &self.shared.limits.errors;
        head.version = Version::HTTP_11;
        head.headers.remove(EXPECT); // the body is sent even if this fails
        head.headers.remove(LATE);
        if let Some(late) = late.and_then(|seconds| HeaderValue::try_from(seconds.to_string()).ok()) {
            head.headers.insert(LATE, late);
        }
        match self.exchange(hyper::Request::from_parts(head, body)).await {
            Ok(response) => response,
            Err(Some(error)) if error.is_user() => errors.broken.response(),
            Err(_) => errors.stopping.response(),
        }
    }

    /// Send a request to the application and return the beginning of its reply. It is not an error if the
    /// application refuses a connection.
    async fn exchange(
        &self,
        request: hyper::Request<Request>,
    ) -> Result<Response<Reply>, Option<hyper::Error>> {
        let mut exchange = match self.applications.take() {
            Some(application) => Exchange::new(&self.applications, application),
            None => {
                let stream = Stream::connect(&self.shared.address).await.map_err(|_| None)?;
                let (sender, connection) = handshake(TokioIo::new(stream)).await?;
                let task = tokio::spawn(connection).abort_handle();
                Exchange::new(&self.applications, Application { sender, task })
            }
        };
        let response = exchange.send(request).await?;
        Ok(response.map(|body| Reply::passed(body, exchange)))
    }
}
