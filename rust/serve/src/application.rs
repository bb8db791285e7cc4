//! Connections to the application. Only a few are open, regardless of the number of clients: each one serves
//! clients in turn.

use crate::locks::lock;
use crate::request_body::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::Response;
use std::sync::{Arc, Mutex};
use tokio::task::AbortHandle;

/// Maximum number of connections that wait for a request.
const IDLE: usize = 64;

pub struct Application {
    pub sender: SendRequest<Request>,
    pub task: AbortHandle,
}

/// The connections of one thread that wait for a request.
#[derive(Default)]
pub struct Applications(Mutex<Vec<Application>>);

impl Applications {
    /// Return a connection that can send immediately. A connection whose last request is still being read
    /// after its reply is not returned.
    pub fn take(&self) -> Option<Application> {
        let mut idle = lock(&self.0);
        idle.retain(|one| !one.sender.is_closed());
        let at = idle.iter().rposition(|one| one.sender.is_ready())?;
        Some(idle.swap_remove(at))
    }

    fn put_back(&self, application: Application) {
        let mut idle = lock(&self.0);
        if idle.len() < IDLE {
            idle.push(application); // without room it ends by itself
        }
    }
}

/// A request that the application answers. Dropping it before the end of the reply closes the connection, so
/// that the application stops work that nobody waits for.
pub struct Exchange {
    idle: Arc<Applications>,
    application: Option<Application>,
    pub is_over: bool,
}

impl Exchange {
    pub fn new(idle: &Arc<Applications>, application: Application) -> Self {
        Self { idle: idle.clone(), application: Some(application), is_over: false }
    }

    /// Send a request and return the beginning of its reply. Having no connection is not an error.
    pub async fn send(
        &mut self,
        request: hyper::Request<Request>,
    ) -> Result<Response<Incoming>, Option<hyper::Error>> {
        let application = self.application.as_mut().ok_or(None)?;
        application.sender.send_request(request).await.map_err(Some)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        match self.application.take() {
            Some(application) if self.is_over => self.idle.put_back(application),
            Some(application) => application.task.abort(),
            None => {}
        }
    }
}
