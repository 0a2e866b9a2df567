//! The way to the endpoint: proxies and TLS roots (SPEC B10).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::{ClientBuilder, NoProxy, Proxy, Url, redirect};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::address::{is_loopback, is_loopback_host, without_credentials};
use crate::error::{Error, Result};

/// A connection that nobody used for so long is closed.
const IDLE: Duration = Duration::from_secs(30);

/// Proxies and additional TLS roots, as the environment names them.
///
/// Reading it costs nothing: certificates are read when a connection needs them.
#[derive(Debug, Clone, Default)]
pub struct Network {
    socks: Option<String>,
    http: Option<String>,
    https: Option<String>,
    all: Option<String>,
    direct: String,
    certificate_file: Option<PathBuf>,
    certificate_dirs: Vec<PathBuf>,
}

impl Network {
    /// Reads the environment through `get`.
    ///
    /// # Errors
    /// [`Error::Config`] for a `SOCKS_PROXY` with a scheme that is none of SOCKS: going direct
    /// instead would show the network what it was meant to be kept from.
    pub fn from_env(get: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let set = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        let either = |name: &str| set(name).or_else(|| set(&name.to_ascii_lowercase()));
        let socks = either("SOCKS_PROXY");
        Ok(Self {
            socks: socks.map(|value| socks_url(&value)).transpose()?,
            http: either("HTTP_PROXY"),
            https: either("HTTPS_PROXY"),
            all: either("ALL_PROXY"),
            direct: either("NO_PROXY").unwrap_or_default(),
            certificate_file: set("SSL_CERT_FILE").map(PathBuf::from),
            certificate_dirs: set("SSL_CERT_DIR")
                .map(|dirs| std::env::split_paths(&dirs).collect())
                .unwrap_or_default(),
        })
    }

    /// An HTTP client for one endpoint.
    ///
    /// `connects` counts the connections it opens, where that can be seen.
    pub(super) fn client(
        &self,
        endpoint: &Url,
        connect_timeout: Duration,
        connects: &Arc<AtomicUsize>,
    ) -> Result<reqwest::Client> {
        let builder = ClientBuilder::new()
            .redirect(redirect::Policy::none())
            .connect_timeout(connect_timeout)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(1)
            .tls_backend_preconfigured(self.tls(endpoint)?);
        self.proxied(builder, endpoint, connects)?
            .build()
            .map_err(|error| Error::Config {
                message: format!("cannot set up the connection: {error}"),
                hint: None,
            })
    }

    fn proxied(
        &self,
        builder: ClientBuilder,
        endpoint: &Url,
        connects: &Arc<AtomicUsize>,
    ) -> Result<ClientBuilder> {
        let is_local = is_loopback(endpoint);
        let has_any = [&self.socks, &self.http, &self.https, &self.all]
            .iter()
            .any(|proxy| proxy.is_some());
        if !is_local && !has_any && cfg!(any(windows, target_os = "macos")) {
            // The system's own settings count there; any proxy of ours would switch them off.
            return Ok(builder);
        }
        let connects = Arc::clone(connects);
        // The proxies are asked once for each connection that is opened; this one only counts.
        let mut builder = builder.no_proxy().proxy(Proxy::custom(move |_| {
            connects.fetch_add(1, Ordering::Relaxed);
            None::<Url>
        }));
        if is_local {
            return Ok(builder);
        }
        let (name, value) = match (&self.socks, endpoint.scheme()) {
            (Some(socks), _) => ("SOCKS_PROXY", Some(socks)),
            (None, "https") => ("HTTPS_PROXY", self.https.as_ref().or(self.all.as_ref())),
            (None, _) => ("HTTP_PROXY", self.http.as_ref().or(self.all.as_ref())),
        };
        if let Some(value) = value {
            let proxy = Proxy::all(proxy_url(name, value)?).map_err(|_| bad_proxy(name, value))?;
            builder = builder.proxy(proxy.no_proxy(NoProxy::from_string(&self.direct)));
        }
        Ok(builder)
    }

    /// The TLS configuration, with no roots where none are needed.
    fn tls(&self, endpoint: &Url) -> Result<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        let proxy_is_https = [&self.http, &self.https, &self.all]
            .into_iter()
            .flatten()
            .any(|proxy| proxy.trim_start().starts_with("https:"));
        if endpoint.scheme() == "https" || proxy_is_https {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            roots.add_parsable_certificates(self.certificates());
        }
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Config {
                message: format!("cannot set up TLS: {error}"),
                hint: None,
            })?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }

    /// The certificates that `SSL_CERT_FILE` and `SSL_CERT_DIR` add. What cannot be read adds none:
    /// the bundled roots may do, and where they do not, the error names the two variables.
    fn certificates(&self) -> Vec<CertificateDer<'static>> {
        let in_dirs = self
            .certificate_dirs
            .iter()
            .filter_map(|dir| std::fs::read_dir(dir).ok())
            .flat_map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())))
            .filter(|path| path.is_file());
        let files = self.certificate_file.iter().cloned().chain(in_dirs);
        files
            .filter_map(|file| CertificateDer::pem_file_iter(file).ok())
            .flat_map(|certificates| certificates.filter_map(std::result::Result::ok))
            .collect()
    }
}

/// The endpoint's address, checked, with the trailing slashes of its path dropped.
pub(super) fn endpoint_url(endpoint: &str) -> Result<Url> {
    let trimmed = endpoint.trim();
    let bad = |why: &str, hint: String| Error::Config {
        message: format!("the endpoint `{}` {why}", without_credentials(trimmed)),
        hint: Some(hint),
    };
    let example = "for example endpoint=https://api.example.com/v1".to_owned();
    if trimmed.is_empty() {
        return Err(bad("is empty", example));
    }
    let Some((scheme, _)) = trimmed.split_once("://") else {
        let first = trimmed.split(['/', ':']).next().unwrap_or_default();
        let scheme = if is_loopback_host(first) {
            "http"
        } else {
            "https"
        };
        return Err(bad(
            "has no scheme",
            format!("try endpoint={scheme}://{trimmed}"),
        ));
    };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(bad("is neither http:// nor https://", example));
    }
    let mut url =
        Url::parse(trimmed).map_err(|error| bad(&format!("is no address: {error}"), example))?;
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    url.set_fragment(None);
    Ok(url)
}

/// The address of something below the endpoint.
pub(super) fn below(endpoint: &Url, path: &str) -> Url {
    let mut url = endpoint.clone();
    url.set_path(&format!("{}{path}", endpoint.path().trim_end_matches('/')));
    url
}

/// `SOCKS_PROXY` as an address: without a scheme, names are resolved at the proxy.
fn socks_url(value: &str) -> Result<String> {
    let value = value.trim();
    let Some((scheme, rest)) = value.split_once("://") else {
        return Ok(format!("socks5h://{value}"));
    };
    match scheme.to_ascii_lowercase().as_str() {
        scheme @ ("socks5" | "socks5h") => Ok(format!("{scheme}://{rest}")),
        "socks" => Ok(format!("socks5h://{rest}")),
        _ => Err(Error::Config {
            message: format!("SOCKS_PROXY has the unknown scheme `{scheme}://`"),
            hint: Some("use socks5://, socks5h:// or a bare host:port".into()),
        }),
    }
}

/// Any proxy as an address that the HTTP library does not misread.
fn proxy_url(name: &str, value: &str) -> Result<Url> {
    let value = value.trim();
    let text = match value.split_once("://") {
        None => format!("http://{value}"),
        Some((scheme, _)) if scheme.to_ascii_lowercase().starts_with("socks") => {
            socks_url(value).map_err(|_| bad_proxy(name, value))?
        }
        Some(_) => value.to_owned(),
    };
    let url = Url::parse(&text).map_err(|_| bad_proxy(name, value))?;
    match url.scheme() {
        "http" | "https" | "socks5" | "socks5h" => Ok(url),
        _ => Err(bad_proxy(name, value)),
    }
}

fn bad_proxy(name: &str, value: &str) -> Error {
    Error::Config {
        message: format!(
            "{name} is no proxy address: `{}`",
            without_credentials(value)
        ),
        hint: Some("use http://host:port, socks5://host:port or socks5h://host:port".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(variables: &[(&str, &str)]) -> Result<Network> {
        let variables: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        Network::from_env(&move |name: &str| {
            let found = variables.iter().find(|(variable, _)| variable == name);
            found.map(|(_, value)| value.clone())
        })
    }

    #[test]
    fn b10_socks_proxies_resolve_there_unless_told_otherwise() {
        for (value, url) in [
            ("127.0.0.1:1080", "socks5h://127.0.0.1:1080"),
            ("socks5://h:1", "socks5://h:1"),
            ("SOCKS5H://h:1", "socks5h://h:1"),
            ("socks://u:p@h:1", "socks5h://u:p@h:1"),
        ] {
            assert_eq!(
                network(&[("SOCKS_PROXY", value)]).unwrap().socks.unwrap(),
                url
            );
            assert_eq!(
                network(&[("socks_proxy", value)]).unwrap().socks.unwrap(),
                url
            );
        }
        assert!(network(&[("SOCKS_PROXY", "")]).unwrap().socks.is_none());
    }

    #[test]
    fn b10_an_unknown_socks_scheme_is_an_error() {
        for value in ["http://h:1", "ftp://h", "socks6://h:1"] {
            let error = network(&[("SOCKS_PROXY", value)]).unwrap_err();
            assert!(matches!(error, Error::Config { .. }));
            assert!(error.to_string().contains("SOCKS_PROXY"), "{error}");
        }
    }

    #[test]
    fn b10_other_proxies_are_checked_when_they_are_needed() {
        let endpoint = endpoint_url("http://example.com").unwrap();
        let build = |value: &str, endpoint: &Url| {
            let network = network(&[("HTTP_PROXY", value)]).unwrap();
            network.client(endpoint, IDLE, &Arc::default()).map(|_| ())
        };
        for value in [
            "h:3128",
            "http://u:p@h:3128",
            "socks5://127.0.0.1:1",
            "https://h",
        ] {
            assert!(build(value, &endpoint).is_ok(), "{value}");
        }
        let error = build("ftp://me:secret@h", &endpoint)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("HTTP_PROXY") && !error.contains("secret"),
            "{error}"
        );
        let local = endpoint_url("http://localhost:1").unwrap();
        assert!(build("ftp://h", &local).is_ok(), "loopback needs none");
    }

    #[test]
    fn c1_trailing_slashes_of_the_endpoint_are_dropped() {
        for (endpoint, url) in [
            ("http://h", "http://h/chat/completions"),
            ("http://h/", "http://h/chat/completions"),
            (" http://h/v1// ", "http://h/v1/chat/completions"),
            ("HTTP://h/v1", "http://h/v1/chat/completions"),
            (
                "https://h/a?api-version=1",
                "https://h/a/chat/completions?api-version=1",
            ),
        ] {
            let endpoint = endpoint_url(endpoint).unwrap();
            assert_eq!(below(&endpoint, "/chat/completions").as_str(), url);
        }
    }

    #[test]
    fn c1_an_endpoint_that_is_none_is_an_error_with_a_hint() {
        for (endpoint, hint) in [
            ("", "https://"),
            ("localhost:8080/v1", "endpoint=http://localhost:8080/v1"),
            ("127.0.0.1:8080", "endpoint=http://127.0.0.1:8080"),
            ("api.example.com/v1", "endpoint=https://api.example.com/v1"),
            ("ftp://h", "https://"),
            ("http://", "https://"),
            ("http://h:99999", "https://"),
        ] {
            let error = endpoint_url(endpoint).unwrap_err();
            assert!(matches!(error, Error::Config { .. }), "{endpoint}");
            assert!(
                error.hint().unwrap().contains(hint),
                "{endpoint}: {error:?}"
            );
        }
        let error = endpoint_url("ftp://me:secret@h/x").unwrap_err().to_string();
        assert!(
            error.contains("ftp://h/x") && !error.contains("secret"),
            "{error}"
        );
    }

    #[test]
    fn b10_certificates_are_added_from_a_file_and_directories() {
        const PEM: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("roots.pem");
        std::fs::write(&file, PEM.repeat(2)).unwrap();
        let more = dir.path().join("more");
        std::fs::create_dir(&more).unwrap();
        std::fs::write(more.join("a.0"), PEM).unwrap();
        std::fs::write(more.join("README"), "none").unwrap();
        let network = network(&[
            ("SSL_CERT_FILE", file.to_str().unwrap()),
            ("SSL_CERT_DIR", more.to_str().unwrap()),
        ])
        .unwrap();
        assert_eq!(network.certificates().len(), 3);
        let https = endpoint_url("https://example.com").unwrap();
        assert!(
            network.tls(&https).is_ok(),
            "a bad certificate is passed over"
        );
    }
}
