//! The interface to the service's indexes: two traits whose implementations answer the requests.

use crate::access::Holder;
use hyper::body::Bytes;
use hyper::StatusCode;
use ketrag_base::error::Result;
use ketrag_base::progress::Progress;
use std::sync::Arc;
use std::time::Instant;

/// Plans requests.
pub trait Backend: Send + Sync + 'static {
    /// Return a plan for requests with these fields (a JSON object without the question and the deadline).
    /// Returns `None` if the application must answer, or if `until` has passed. This may take long and is
    /// called from any thread.
    fn plan(&self, fields: &str, until: Instant) -> Option<Arc<dyn Plan>>;

    /// Return the reply to a call to a shard; `None` if the application must answer. Called from any thread.
    fn call(&self, _call: &Call) -> Option<Replied> {
        None
    }
}

/// A call to a shard.
#[derive(Debug, Clone)]
pub struct Call {
    pub path: String,
    pub body: Bytes,
    pub holder: Arc<Holder>,
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replied {
    pub status: StatusCode,
    /// Whether the body is bytes, not JSON.
    pub is_packed: bool,
    pub body: Vec<u8>,
}

impl Replied {
    /// A reply to a question.
    pub fn json(body: Vec<u8>) -> Self {
        Self { status: StatusCode::OK, is_packed: false, body }
    }
}

/// How a reply may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The reply is complete and stays valid as long as its plan.
    Cached,
    /// The reply is complete; the next one may differ.
    Once,
    /// There is no reply: the application must answer.
    Pass,
}

/// A model that embeds questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// The number of the model, which no other model has.
    pub id: u64,
    /// Whether the model computes on the calling thread, so that each core can embed a batch. Any other model
    /// embeds one batch at a time, and its caller waits without using a core.
    pub parallel: bool,
}

/// Answers the questions of requests with equal fields.
pub trait Plan: Send + Sync + 'static {
    /// Return a number that no other plan has.
    fn id(&self) -> u64;

    /// Return whether a question needs nothing but the core. The application answers all others.
    fn takes(&self, _question: &str) -> bool {
        true
    }

    /// Return the model that embeds the questions, or `None` if they are not embedded.
    fn model(&self) -> Option<Model>;

    /// Return the vectors of the questions, concatenated in one array, or `None` if the application must
    /// answer.
    fn embed(&self, questions: &[&str], until: Instant) -> Option<Vectors>;

    /// Append the reply to `out` as JSON.
    fn answer(
        &self,
        question: &str,
        vector: Option<Vector<'_>>,
        progress: &Progress,
        out: &mut Vec<u8>,
    ) -> Result<Answer>;
}

/// The vectors of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Vectors {
    pub values: Vec<f32>,
    pub dimension: usize,
    /// Milliseconds used for each question.
    pub milliseconds: f64,
}

/// The vector of one question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vector<'a> {
    pub values: &'a [f32],
    pub milliseconds: f64,
}

impl Vectors {
    /// Return the vector of one of the questions.
    pub fn get(&self, row: usize) -> Option<Vector<'_>> {
        let values = self.values.get(row * self.dimension..(row + 1) * self.dimension)?;
        Some(Vector { values, milliseconds: self.milliseconds })
    }
}
