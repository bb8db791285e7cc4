//! The threads that answer requests. If they drop a request, the application answers it.

use crate::backend::{Answer, Model, Plan, Replied, Vector, Vectors};
use crate::queue::Job;
use crate::shared::Shared;
use ketrag_base::error::caught;
use ketrag_base::progress::Progress;
use ketrag_base::reserve;
use std::sync::Arc;
use std::time::Instant;

/// Answer requests until the queue is closed. Each worker has a distinct number.
pub fn run(shared: &Shared, worker: usize) {
    while let Some(jobs) = shared.queue.next(worker, shared.limits.batch) {
        match jobs.first().and_then(Job::model) {
            Some(model) => embed(shared, worker, model, jobs),
            None => jobs.into_iter().for_each(|job| answer_one(shared, job)),
        }
    }
}

/// Answer a request, or put it back with its plan because a model must embed its question first.
fn answer_one(shared: &Shared, mut job: Job) {
    if is_over(shared, &job) {
        return;
    }
    if let Some(call) = &job.call {
        if let Ok(Some(reply)) = caught(|| Ok(shared.backend.call(call))) {
            let _ = job.reply.send(reply);
        }
        return;
    }
    let plan = match job.plan.take() {
        Some(plan) => plan,
        None => match caught(|| Ok(shared.plan(&job.request.fields, job.until))) {
            Ok(Some(plan)) => plan,
            _ => return,
        },
    };
    if job.embedded.is_some() {
        return answer(shared, job, &*plan);
    }
    let Some(job) = reply_cached(shared, job, &*plan) else { return };
    if !plan.takes(&job.request.question) {
        return;
    }
    if plan.model().is_some() {
        return shared.queue.put_back(vec![Job { plan: Some(plan), ..job }]);
    }
    shared.counters.batch(1);
    answer(shared, job, &*plan);
}

/// Embed the questions of several requests together, and put the requests back with their vectors, so that
/// other workers help to answer them.
fn embed(shared: &Shared, worker: usize, model: Model, jobs: Vec<Job>) {
    let mut waiting: Vec<Job> = Vec::with_capacity(jobs.len());
    for job in jobs {
        let Some(plan) = job.plan.clone() else { continue };
        if !is_over(shared, &job) && plan.takes(&job.request.question) {
            waiting.extend(reply_cached(shared, job, &*plan));
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
    if let Some(vectors) = vectors.filter(whole).map(Arc::new) {
        for (row, job) in waiting.iter_mut().enumerate() {
            job.embedded = Some((vectors.clone(), row));
        }
        shared.queue.put_back(waiting);
    }
}

/// Reply from the cache, or return the request.
fn reply_cached(shared: &Shared, job: Job, plan: &dyn Plan) -> Option<Job> {
    let Some(reply) = shared.cache.get(plan.id(), &job.request.question) else { return Some(job) };
    shared.counters.answered(job.arrived.elapsed(), true);
    let _ = job.reply.send(Replied::json(reply));
    None
}

fn answer(shared: &Shared, job: Job, plan: &dyn Plan) {
    let question = job.request.question.as_str();
    let reply = compute(shared, plan, question, job.vector(), &job.progress, job.arrived);
    if let Some(reply) = reply {
        let _ = job.reply.send(Replied::json(reply));
    }
}

/// Return the reply to a question. If that fails, the application repeats the request and reports the error.
pub fn compute(
    shared: &Shared,
    plan: &dyn Plan,
    question: &str,
    vector: Option<Vector<'_>>,
    progress: &Progress,
    arrived: Instant,
) -> Option<Vec<u8>> {
    let began = Instant::now();
    let mut out = Vec::new();
    let answered =
        reserve::keep().and_then(|()| caught(|| plan.answer(question, vector, progress, &mut out)));
    match answered {
        Ok(Answer::Cached) => shared.cache.add(plan.id(), question, &out),
        Ok(Answer::Once) => {}
        Ok(Answer::Pass) | Err(_) => return None,
    }
    shared.counters.answered(arrived.elapsed(), false);
    shared.queue.took(began.elapsed());
    Some(out)
}

/// Return whether a request no longer needs an answer.
fn is_over(shared: &Shared, job: &Job) -> bool {
    job.progress.check().is_err() || shared.is_aborting()
}
