//! The endpoint: HTTP, timeouts, retries, proxies.
