//! The endpoint: a [`Model`] over HTTP.
//!
//! It owns the connection, the retries and what it has learnt of the endpoint. It knows neither
//! the loop nor the screen, and of a wire format only that it turns questions into bytes and bytes
//! into replies.

mod exchange;
mod failure;
mod ladder;
mod models;
mod network;
mod request;
mod retry;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Map, Value};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::{ApiErrorKind, Error, Result};
use crate::event::{Event, Sink};
use crate::model::{BoxFuture, Model, Reply, Request};
use crate::wire::{ChatCompletions, Dialect, Question, Refusal, Wire, stated_limit};

use exchange::Connection;
use failure::Failure;

pub use network::Network;
pub use retry::BACKOFF;

/// How long the discovery of the context window may take (SPEC B8).
const DISCOVERY_LIMIT: Duration = Duration::from_secs(10);
/// How long a second look for it may take.
const PROPS_LIMIT: Duration = Duration::from_secs(2);
/// How long a list of models may be, in bytes.
const LIST_LIMIT: usize = 32 << 20;

/// What a client needs to know of the configuration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// The address that paths are appended to.
    pub endpoint: String,
    /// The model's id.
    pub model: String,
    /// The key, if there is one; an empty one is none.
    pub api_key: Option<String>,
    /// Headers beside our own, which they replace where they have the same name.
    pub headers: Vec<(String, String)>,
    /// What is forwarded in the body, in file order, without `model` and `stream`.
    pub parameters: Map<String, Value>,
    /// Whether answers are to come in pieces.
    pub stream: bool,
    /// The time to the first byte, and the longest gap afterwards; zero is no limit.
    pub timeout: Duration,
}

/// A model behind an endpoint.
pub struct Client {
    settings: Arc<Settings>,
    connection: Arc<Connection>,
    wire: Box<dyn Wire>,
    backoff: &'static [Duration],
    /// What endpoints and models have refused in this run.
    learnt: Vec<Learnt>,
    /// The context window that an error has stated.
    stated_window: Option<u64>,
}

/// A request that can be made again and again.
struct Body {
    request: reqwest::Request,
    size: usize,
}

/// How an endpoint and model want things spelt, as found out in this run.
struct Learnt {
    endpoint: String,
    model: String,
    dialect: Dialect,
}

impl Client {
    /// A client that opens no connection yet. `backoff` holds the delays before the retries.
    pub fn new(settings: Settings, network: Network, backoff: &'static [Duration]) -> Self {
        Self {
            connection: Arc::new(Connection::new(network, &settings)),
            settings: Arc::new(settings),
            wire: Box::new(ChatCompletions),
            backoff,
            learnt: Vec::new(),
            stated_window: None,
        }
    }

    /// Takes changed settings over. The connection is kept where it still fits.
    pub fn configure(&mut self, settings: Settings) {
        let old = &self.settings;
        if settings.endpoint != old.endpoint || settings.timeout != old.timeout {
            let network = self.connection.network().clone();
            self.connection = Arc::new(Connection::new(network, &settings));
        }
        if settings.endpoint != old.endpoint || settings.model != old.model {
            self.stated_window = None;
        }
        self.settings = Arc::new(settings);
    }

    /// The context window that the endpoint has stated in an error, in tokens.
    pub fn stated_window(&self) -> Option<u64> {
        self.stated_window
    }

    /// Asks the endpoint for the model's context window, in tokens (SPEC B8).
    ///
    /// It runs beside everything else, says nothing, and gives up after ten seconds.
    pub fn discover_window(&self) -> impl Future<Output = Option<u64>> + Send + 'static + use<> {
        let connection = Arc::clone(&self.connection);
        let settings = Arc::clone(&self.settings);
        async move {
            let search = find_window(&connection, &settings);
            timeout(DISCOVERY_LIMIT, search).await.ok().flatten()
        }
    }

    /// The ids of the endpoint's models, in its order (SPEC E10).
    pub async fn models(&self, cancel: &CancellationToken) -> Result<Vec<String>> {
        let list = list(&self.connection, &self.settings, cancel).await;
        let list = list.map_err(|failure| self.explained(failure).into_error(None))?;
        let ids = models::ids(&list);
        if ids.is_empty() {
            return Err(Error::BadReply("the endpoint lists no models".into()));
        }
        Ok(ids)
    }

    /// Asks until there is a reply or an error that nothing mends.
    async fn ask(
        &mut self,
        request: Request<'_>,
        sink: &mut dyn Sink,
        cancel: &CancellationToken,
    ) -> Result<Reply> {
        let settings = Arc::clone(&self.settings);
        let question = question(&settings, request);
        let mut dialect = self.dialect();
        let mut body = self.body(&question, &dialect)?;
        let mut steps = 0;
        let mut retries = 0;
        loop {
            sink.event(Event::Requesting);
            sink.flush();
            let decoder = self.wire.decoder(&question, body.size);
            let outcome = self.connection.ask(&body.request, decoder, sink, cancel);
            let failure = match outcome.await {
                Ok(reply) => {
                    sink.event(Event::ReplyEnd);
                    sink.flush();
                    self.remember(dialect);
                    return Ok(reply);
                }
                Err(failure) => failure,
            };
            if steps < ladder::MOST_STEPS
                && let Some(change) = ladder::step(&mut dialect, &question, &failure)
            {
                steps += 1;
                sink.event(Event::Notice(&change));
                body = self.body(&question, &dialect)?;
                continue;
            }
            self.learn_window(&failure);
            let failure = self.explained(failure);
            let retry = retry::decide(failure, retries, self.backoff)?;
            retries += 1;
            sink.event(Event::Retrying {
                attempt: retries,
                of: self.backoff.len(),
                delay: retry.delay,
                reason: &retry.reason,
            });
            sink.flush();
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Error::Cancelled),
                () = sleep(retry.delay) => {}
            }
        }
    }

    fn body(&self, question: &Question<'_>, dialect: &Dialect) -> Result<Body> {
        let bytes = self.wire.body(question, dialect);
        let url = network::below(&self.connection.url()?, self.wire.path());
        Ok(Body {
            size: bytes.len(),
            request: request::request(Method::POST, url, &self.settings, Some(bytes))?,
        })
    }

    /// What this endpoint and model want, as far as it is known.
    fn dialect(&self) -> Dialect {
        let known = self
            .learnt
            .iter()
            .find(|learnt| learnt.is_of(&self.settings));
        known
            .map(|learnt| learnt.dialect.clone())
            .unwrap_or_default()
    }

    fn remember(&mut self, dialect: Dialect) {
        if dialect == self.dialect() {
            return;
        }
        self.learnt.retain(|learnt| !learnt.is_of(&self.settings));
        self.learnt.push(Learnt {
            endpoint: self.settings.endpoint.clone(),
            model: self.settings.model.clone(),
            dialect,
        });
    }

    fn learn_window(&mut self, failure: &Failure) {
        if let Failure::Refused(refusal) = failure
            && refusal.error.kind == ApiErrorKind::ContextLength
        {
            let window = stated_limit(&refusal.error.message);
            self.stated_window = window.or(self.stated_window);
        }
    }

    /// The failure with a hint, where one helps.
    fn explained(&self, mut failure: Failure) -> Failure {
        match &mut failure {
            Failure::Refused(refusal) => {
                let hint = self.hint(refusal);
                refusal.error.hint = refusal.error.hint.take().or(hint.map(Into::into));
            }
            Failure::Foreign(message) if !self.settings.endpoint.contains("/v1") => {
                message.push_str(" (does the endpoint need `/v1` at its end?)");
            }
            _ => {}
        }
        failure
    }

    fn hint(&self, refusal: &Refusal) -> Option<&'static str> {
        let Settings {
            endpoint, api_key, ..
        } = &*self.settings;
        let has_key = api_key.as_ref().is_some_and(|key| !key.is_empty());
        if ladder::refuses_tools(refusal) {
            return Some(
                "bantam works by calling tools; choose a model that can (/models lists them)",
            );
        }
        match refusal.error.kind {
            ApiErrorKind::Auth if has_key => {
                Some("check api_key, and whether it belongs to this endpoint")
            }
            ApiErrorKind::Auth => {
                Some("set api_key in .bantam.cfg, or OPENAI_API_KEY in the environment")
            }
            ApiErrorKind::NotFound if endpoint.contains(self.wire.path()) => {
                Some("leave `/chat/completions` off the endpoint; it is appended to it")
            }
            ApiErrorKind::NotFound if endpoint.contains("/v1") => Some(
                "is the endpoint right up to its `/v1`, and the model's name (/models lists them)?",
            ),
            ApiErrorKind::NotFound => {
                Some("does the endpoint need `/v1` at its end? Otherwise check the model's name")
            }
            _ => None,
        }
    }
}

impl Model for Client {
    fn complete<'a>(
        &'a mut self,
        request: Request<'a>,
        sink: &'a mut dyn Sink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply>> {
        Box::pin(self.ask(request, sink, cancel))
    }
}

impl Learnt {
    fn is_of(&self, settings: &Settings) -> bool {
        self.endpoint == settings.endpoint && self.model == settings.model
    }
}

fn question<'a>(settings: &'a Settings, request: Request<'a>) -> Question<'a> {
    Question {
        request,
        endpoint: &settings.endpoint,
        model: &settings.model,
        parameters: &settings.parameters,
        stream: settings.stream,
    }
}

/// What the endpoint answers to `GET {endpoint}/models`.
async fn list(
    connection: &Connection,
    settings: &Settings,
    cancel: &CancellationToken,
) -> std::result::Result<Value, Failure> {
    let url = connection.url().map_err(Failure::Config)?;
    get(
        connection,
        settings,
        network::below(&url, "/models"),
        cancel,
    )
    .await
}

async fn get(
    connection: &Connection,
    settings: &Settings,
    url: reqwest::Url,
    cancel: &CancellationToken,
) -> std::result::Result<Value, Failure> {
    let request = request::request(Method::GET, url, settings, None).map_err(Failure::Config)?;
    let text = connection.text(&request, LIST_LIMIT, cancel).await?;
    serde_json::from_str(&text).map_err(|_| {
        Failure::Foreign("the endpoint answered with something that is no JSON".into())
    })
}

async fn find_window(connection: &Connection, settings: &Settings) -> Option<u64> {
    let never = CancellationToken::new();
    let listed = list(connection, settings, &never).await.ok();
    if let Some(window) = listed.and_then(|list| models::window(&list, &settings.model)) {
        return Some(window);
    }
    // A llama.cpp server tells it beside the API.
    let mut url = connection.url().ok()?;
    let root = url.path().strip_suffix("/v1")?.to_owned();
    url.set_path(&format!("{root}/props"));
    let props = timeout(PROPS_LIMIT, get(connection, settings, url, &never));
    models::window_of_props(&props.await.ok()?.ok()?)
}
