//! Addresses of endpoints and proxies: which are on this machine, and how they may be shown.
//!
//! What an address means is read by the parser that requests are made with, so that nothing is
//! taken for local that is sent elsewhere. Knows nothing of settings and connections.

use std::net::IpAddr;

use reqwest::Url;

/// Whether an address is on this machine: no proxy belongs in between, and a key sent there stays.
pub fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(is_loopback_host)
}

/// Whether a host, by name or number, is this machine.
pub fn is_loopback_host(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<IpAddr>() {
        let address = address.to_canonical();
        return address.is_loopback() || address.is_unspecified();
    }
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// An address, valid or not, without the name and password that may stand before its host.
pub fn without_credentials(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    // Web addresses take a backslash for a slash.
    let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_local(url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| is_loopback(&url))
    }

    #[test]
    fn b10_loopback_is_known_in_every_spelling() {
        for url in [
            "http://localhost:8080",
            "http://LOCALHOST./v1",
            "https://u:p@localhost/",
            "http://api.localhost",
            "http://127.0.0.1",
            "http://127.9.9.9",
            "http://[::1]:11434/v1",
            "http://[::ffff:127.0.0.1]",
            "http://0.0.0.0:8080",
        ] {
            assert!(is_local(url), "{url}");
        }
    }

    #[test]
    fn b9_an_address_that_only_looks_local_is_not() {
        for url in [
            "http://10.0.0.1",
            "https://localhost.example.com",
            "https://[2001:db8::1]",
            "http://127.0.0.1@far.example/",
            "http://far.example\\@127.0.0.1/v1",
            "https://far.example/?localhost",
            "https://far.example#@localhost",
            "localhost",
            "",
        ] {
            assert!(!is_local(url), "{url}");
        }
    }

    #[test]
    fn b9_credentials_are_left_out_and_the_host_stays() {
        for (address, shown) in [
            ("https://me:secret@host/v1", "https://host/v1"),
            ("me:secret@host:3128", "host:3128"),
            ("http://host/a@b", "http://host/a@b"),
            (
                "http://far.example\\@127.0.0.1/v1",
                "http://far.example\\@127.0.0.1/v1",
            ),
            ("", ""),
        ] {
            assert_eq!(without_credentials(address), shown);
        }
    }
}
