//! The threads that answer requests.

use crate::backend::{Answer, Model, Plan, Vectors};
use crate::locks::lock;
use crate::queue::Job;
use crate::shared::{Handed, Shared};
use ketrag_base::error::{caught, Error};
use ketrag_base::reserve;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

/// Bytes before a body for its head.
const ROOM: usize = 1024;
/// Reply buffers above this size are not kept.
const USUAL: usize = 1 << 20;

/// Answer requests until the queue is closed. Each worker has another number.
pub fn run(shared: &Shared, worker: usize) {
    let mut out = Vec::new();
    while let Some(jobs) = shared.queue.next(worker, shared.limits.batch) {
        match jobs.first().and_then(Job::model) {
            Some(model) => embed(shared, worker, model, jobs, &mut out),
            None => jobs.into_iter().for_each(|job| answer_one(shared, job, &mut out)),
        }
        if out.capacity() > USUAL {
            out = Vec::new();
        }
    }
}

/// Answer a request, or put it back with its plan because a model must embed its question first.
fn answer_one(shared: &Shared, mut job: Job, out: &mut Vec<u8>) {
    if is_over(shared, &job) {
        return give_up(shared, job);
    }
    let plan = match job.plan.take() {
        Some(plan) => plan,
        None => match caught(|| Ok(shared.plan(&job.request.fields, job.until))) {
            Ok(Some(plan)) => plan,
            _ if is_over(shared, &job) => return give_up(shared, job),
            _ => return pass(shared, job, None),
        },
    };
    if job.embedded.is_some() {
        return answer(shared, job, &*plan, out);
    }
    let Some(job) = reply_cached(shared, job, &*plan, out) else { return };
    if plan.model().is_some() {
        return shared.queue.put_back(vec![Job { plan: Some(plan), ..job }]);
    }
    shared.counters.batch(1);
    answer(shared, job, &*plan, out);
}

/// Embed the questions of requests together, and put the requests back with their vectors: other workers help to
/// answer them.
fn embed(shared: &Shared, worker: usize, model: Model, jobs: Vec<Job>, out: &mut Vec<u8>) {
    let mut waiting: Vec<Job> = Vec::with_capacity(jobs.len());
    for job in jobs {
        let Some(plan) = job.plan.clone() else { continue };
        if is_over(shared, &job) {
            give_up(shared, job);
        } else if let Some(job) = reply_cached(shared, job, &*plan, out) {
            waiting.push(job);
        }
    }
    let vectors = waiting.first().and_then(|job| job.plan.clone()).and_then(|plan| {
        shared.counters.batch(waiting.len());
        let questions: Vec<&str> = waiting.iter().map(|job| job.request.question.as_str()).collect();
        let until = waiting.iter().map(|job| job.until).min()?;
        if !model.parallel {
            shared.queue.uses_core(worker, false);
        }
        let vectors = caught(|| Ok(plan.embed(&questions, until))).ok().flatten();
        if !model.parallel {
            shared.queue.uses_core(worker, true);
        }
        vectors
    });
    shared.queue.embedded(model);
    let whole = |vectors: &Vectors| vectors.values.len() == waiting.len() * vectors.dimension;
    match vectors.filter(whole).map(Arc::new) {
        Some(vectors) => {
            for (row, job) in waiting.iter_mut().enumerate() {
                job.embedded = Some((vectors.clone(), row));
            }
            shared.queue.put_back(waiting);
        }
        None => waiting.into_iter().for_each(|job| match is_over(shared, &job) {
            true => give_up(shared, job),
            false => pass(shared, job, None),
        }),
    }
}

/// Reply from the cache, or return the request.
fn reply_cached(shared: &Shared, job: Job, plan: &dyn Plan, out: &mut Vec<u8>) -> Option<Job> {
    out.clear();
    out.resize(ROOM, 0);
    if !shared.cache.get(plan.id(), &job.request.question, out) {
        return Some(job);
    }
    reply(shared, &job, out, true);
    None
}

fn answer(shared: &Shared, job: Job, plan: &dyn Plan, out: &mut Vec<u8>) {
    let began = Instant::now();
    out.clear();
    out.resize(ROOM, 0);
    let question = job.request.question.as_str();
    let answered =
        reserve::keep().and_then(|()| caught(|| plan.answer(question, job.vector(), &job.progress, out)));
    match answered {
        Ok(Answer::Cached) => shared.cache.add(plan.id(), question, &out[ROOM..]),
        Ok(Answer::Once) => {}
        Ok(Answer::Pass) => return pass(shared, job, None),
        Err(Error::Deadline | Error::Cancelled) => return give_up(shared, job),
        Err(_) => return pass(shared, job, None), // the application reports it
    }
    reply(shared, &job, out, false);
    shared.queue.took(began.elapsed());
}

/// Send what is in `out` after the room for a head.
fn reply(shared: &Shared, job: &Job, out: &mut [u8], cached: bool) {
    let last = !job.request.keep || shared.stopping.load(Ordering::Relaxed);
    let mut head = Vec::with_capacity(ROOM);
    head.extend_from_slice(b"HTTP/1.1 200 OK\r\ndate: ");
    shared.clock.write(&mut head);
    head.extend_from_slice(format!("\r\ncontent-length: {}\r\n", out.len() - ROOM).as_bytes());
    head.extend_from_slice(&shared.limits.headers);
    if last {
        head.extend_from_slice(b"connection: close\r\n");
    }
    head.extend_from_slice(b"\r\n");
    let start = ROOM - head.len(); // `Front::start` has checked the length of the headers
    out[start..ROOM].copy_from_slice(&head);
    shared.counters.answered(job.arrived.elapsed(), cached);
    if job.connection.with(|state| state.reply(&out[start..], last)) {
        shared.look_again(job.connection.token);
    }
}

/// Return whether a request does not have to be answered any more.
fn is_over(shared: &Shared, job: &Job) -> bool {
    job.until <= Instant::now() || job.progress.check().is_err() || shared.is_aborting()
}

/// Have the application reply to a request whose time is over. A client that is gone gets nothing.
pub fn give_up(shared: &Shared, job: Job) {
    let late = (job.until <= Instant::now()).then_some(job.request.seconds);
    pass(shared, job, late);
}

/// Have the application answer.
pub fn pass(shared: &Shared, job: Job, late: Option<f64>) {
    let (connection, mut bytes) = (job.connection, job.bytes);
    let socket = connection.with(|state| {
        bytes.append(&mut state.input);
        state.take_socket(&shared.registry)
    });
    if let Some(socket) = socket {
        shared.hand_over(Handed { socket, bytes, refused: false, late });
    }
    lock(&shared.again).push(connection.token);
    let _ = shared.waker.wake();
}
