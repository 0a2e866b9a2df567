//! One request and its answer: headers, time limits, and what went wrong in words.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use reqwest::header::LOCATION;
use reqwest::{Response, Url};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::failure::{Failure, cause, connection_failure, host};
use super::network::{Network, endpoint_url};
use super::{Settings, retry};
use crate::error::Result;
use crate::event::{Event, Sink};
use crate::model::Reply;
use crate::wire::{Decoder, Fed, Refusal, Stage};

/// The most that connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// As good as no limit, and can be added to any instant.
const FOREVER: Duration = Duration::from_secs(365 * 86_400);
/// How long the end of an answer is waited for, so that its connection can be used again.
const END_GRACE: Duration = Duration::from_millis(100);
/// How long token figures are waited for once the model has finished.
const USAGE_GRACE: Duration = Duration::from_secs(2);
/// How much may come before it is shown, while more is there already.
const UNSHOWN_LIMIT: usize = 16 << 10;
/// How much of the body of an error is read.
const ERROR_LIMIT: usize = 1 << 20;

type Outcome<T> = std::result::Result<T, Failure>;

/// The connection to one endpoint, opened when it is first needed and kept.
#[derive(Debug)]
pub(super) struct Connection {
    network: Network,
    endpoint: String,
    timeout: Duration,
    client: OnceLock<reqwest::Client>,
    /// How many connections have been opened.
    connects: Arc<AtomicUsize>,
    /// Whether an answer has been read to its end.
    used: AtomicBool,
}

impl Connection {
    pub(super) fn new(network: Network, settings: &Settings) -> Self {
        let timeout = settings.timeout;
        Self {
            network,
            endpoint: settings.endpoint.clone(),
            timeout: if timeout.is_zero() {
                FOREVER
            } else {
                timeout.min(FOREVER)
            },
            client: OnceLock::new(),
            connects: Arc::default(),
            used: AtomicBool::new(false),
        }
    }

    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    pub(super) fn url(&self) -> Result<Url> {
        endpoint_url(&self.endpoint)
    }

    fn client(&self) -> Result<&reqwest::Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let limit = CONNECT_LIMIT.min(self.timeout);
        let client = self.network.client(&self.url()?, limit, &self.connects)?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Makes a request and reads its answer, telling `sink` of pieces as they come.
    pub(super) async fn ask(
        &self,
        request: &reqwest::Request,
        mut decoder: Box<dyn Decoder>,
        sink: &mut dyn Sink,
        cancel: &CancellationToken,
    ) -> Outcome<Reply> {
        let response = self.send(request, cancel).await?;
        let response = self.accepted(response, cancel).await?;
        self.read(response, decoder.as_mut(), sink, cancel).await?;
        decoder.finish(sink).map_err(Failure::from)
    }

    /// The body of the answer to a request, as text; for what is no question to the model.
    pub(super) async fn text(
        &self,
        request: &reqwest::Request,
        limit: usize,
        cancel: &CancellationToken,
    ) -> Outcome<String> {
        let response = self.send(request, cancel).await?;
        let response = self.accepted(response, cancel).await?;
        self.whole(response, limit, cancel).await
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// A kept connection may have died while nobody looked. That says nothing about the server, so
    /// the request goes out once more on a new one.
    async fn send(
        &self,
        request: &reqwest::Request,
        cancel: &CancellationToken,
    ) -> Outcome<Response> {
        let client = self.client().map_err(Failure::Config)?;
        let deadline = Instant::now() + self.timeout;
        let mut may_replace = true;
        loop {
            let Some(request) = request.try_clone() else {
                return Err(Failure::broken("the request cannot be repeated".into()));
            };
            let url = request.url().clone();
            let sending = client.execute(request);
            let connects = self.connects.load(Ordering::Relaxed);
            let outcome = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Failure::Cancelled),
                outcome = timeout_at(deadline, sending) => outcome,
            };
            let error = match outcome {
                Err(_) => {
                    return Err(Failure::broken(format!(
                        "no answer from {} within {}",
                        host(&url),
                        seconds(self.timeout)
                    )));
                }
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => error,
            };
            let was_kept = self.used.load(Ordering::Relaxed)
                && connects == self.connects.load(Ordering::Relaxed)
                && !error.is_connect();
            if !was_kept || !std::mem::take(&mut may_replace) {
                return Err(connection_failure(&error, &url));
            }
        }
    }

    /// The answer, if its status says that it is one.
    async fn accepted(&self, response: Response, cancel: &CancellationToken) -> Outcome<Response> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let target = response.headers().get(LOCATION);
        if status.is_redirection()
            && let Some(target) = target.map(|target| String::from_utf8_lossy(target.as_bytes()))
        {
            let target = target.into_owned();
            let mut refusal = Refusal::from_answer(status.as_u16(), None, "");
            refusal.error.message = format!(
                "HTTP {}: the endpoint redirects to {target}, which is not followed",
                status.as_u16()
            );
            refusal.error.hint =
                Some("if that is where the requests belong, set the endpoint to it".into());
            return Err(Failure::Refused(refusal));
        }
        let wait = retry::named_in(response.headers(), SystemTime::now());
        let body = match self.whole(response, ERROR_LIMIT, cancel).await {
            Ok(body) => body,
            Err(Failure::Cancelled) => return Err(Failure::Cancelled),
            Err(_) => String::new(),
        };
        Err(Failure::Refused(Refusal::from_answer(
            status.as_u16(),
            wait,
            &body,
        )))
    }

    /// Feeds the body to the decoder until it has ended or nothing more is awaited.
    async fn read(
        &self,
        mut response: Response,
        decoder: &mut dyn Decoder,
        sink: &mut dyn Sink,
        cancel: &CancellationToken,
    ) -> Outcome<()> {
        let mut cancelled = pin!(cancel.cancelled());
        let mut awaited = Awaited::new(self.timeout);
        let mut timer = pin!(sleep_until(awaited.until));
        let mut started = false;
        let mut unshown = 0;
        loop {
            let chunk = tokio::select! {
                biased;
                () = &mut cancelled => return Err(Failure::Cancelled),
                chunk = response.chunk() => chunk,
                // Nothing more is there at the moment: time to show what came.
                () = tokio::task::yield_now(), if unshown > 0 => {
                    unshown = 0;
                    show(sink)?;
                    continue;
                }
                () = &mut timer => match awaited.stage {
                    _ if !awaited.is_over() => {
                        timer.as_mut().reset(awaited.until);
                        continue;
                    }
                    Stage::Open => return Err(self.stalled()),
                    Stage::Finished | Stage::Closed => return Ok(()),
                }
            };
            let bytes = match chunk {
                Ok(Some(bytes)) => bytes,
                Ok(None) => {
                    self.used.store(true, Ordering::Relaxed);
                    return Ok(());
                }
                Err(_) if awaited.stage != Stage::Open => return Ok(()),
                Err(error) => {
                    let reason = format!("the answer broke off: {}", cause(&error));
                    return Err(Failure::broken(reason));
                }
            };
            if !std::mem::replace(&mut started, true) {
                sink.event(Event::Replying);
            }
            awaited.take(decoder.feed(&bytes, sink)?);
            if awaited.stage != Stage::Open && awaited.is_over() {
                return Ok(());
            }
            // Setting the timer costs, and later times are noticed when it goes off.
            if awaited.until < timer.deadline() {
                timer.as_mut().reset(awaited.until);
            }
            unshown += bytes.len();
            if unshown >= UNSHOWN_LIMIT {
                unshown = 0;
                show(sink)?;
            }
        }
    }

    fn stalled(&self) -> Failure {
        Failure::broken(format!("nothing came for {}", seconds(self.timeout)))
    }

    /// The whole body as text, cut at `limit` bytes.
    async fn whole(
        &self,
        mut response: Response,
        limit: usize,
        cancel: &CancellationToken,
    ) -> Outcome<String> {
        let mut body = Vec::new();
        let deadline = Instant::now() + self.timeout;
        while body.len() < limit {
            let chunk = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Failure::Cancelled),
                chunk = timeout_at(deadline, response.chunk()) => chunk,
            };
            match chunk {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                Ok(Ok(None)) => {
                    self.used.store(true, Ordering::Relaxed);
                    break;
                }
                Ok(Err(_)) | Err(_) if !body.is_empty() => break,
                Ok(Err(error)) => return Err(Failure::broken(cause(&error))),
                Err(_) => return Err(self.stalled()),
            }
        }
        body.truncate(limit);
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

/// How long more of an answer is awaited.
struct Awaited {
    /// The longest gap in an answer that goes on.
    gap: Duration,
    stage: Stage,
    until: Instant,
}

impl Awaited {
    fn new(gap: Duration) -> Self {
        Self {
            gap,
            stage: Stage::Open,
            until: Instant::now() + gap,
        }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Takes in what some bytes amounted to.
    fn take(&mut self, fed: Fed) {
        let patience = match fed.stage {
            Stage::Open if fed.progress => Some(self.gap),
            Stage::Finished if fed.progress => Some(USAGE_GRACE),
            Stage::Closed if self.stage != Stage::Closed => Some(END_GRACE),
            _ => None,
        };
        if let Some(patience) = patience {
            self.until = Instant::now() + patience;
        }
        self.stage = fed.stage;
    }
}

/// Shows what came, and ends it all where nobody looks any more.
fn show(sink: &mut dyn Sink) -> Outcome<()> {
    sink.flush();
    if sink.closed() {
        return Err(Failure::Cancelled);
    }
    Ok(())
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
