//! What goes out beside the body: the address and the headers.

use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use reqwest::{Method, Url};

use super::Settings;
use crate::error::{Error, Result};

/// What we call ourselves (SPEC C1).
const AGENT: &str = "Mozilla/5.0 (compatible; Bantam/1.0)";

/// The request, once for all its attempts.
pub(super) fn request(
    method: Method,
    url: Url,
    settings: &Settings,
    body: Option<Vec<u8>>,
) -> Result<reqwest::Request> {
    let mut request = reqwest::Request::new(method, url);
    *request.headers_mut() = headers(settings)?;
    *request.body_mut() = body.map(reqwest::Body::from);
    Ok(request)
}

fn headers(settings: &Settings) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    if let Some(key) = settings.api_key.as_deref().filter(|key| !key.is_empty()) {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
            .map_err(|_| bad_header("api_key has characters that a key cannot have"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    for (name, value) in &settings.headers {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| bad_header(&format!("header.{name} is no name of a header")))?;
        let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
            bad_header(&format!(
                "header.{name} has a value that a header cannot have"
            ))
        })?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

fn bad_header(message: &str) -> Error {
    Error::Config {
        message: message.into(),
        hint: None,
    }
}
