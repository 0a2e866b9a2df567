//! Redirects, proxies, certificates (SPEC B9, B10).

use super::{NOWHERE, interrupt_in_back_off};
use crate::common::cli::Cli;
use crate::common::proxy::{Asked, SocksProxy};
use crate::common::server::{Reply, Server};
use crate::common::tls::{self, TlsServer};

#[test]
fn b9_a_redirect_is_not_followed_and_its_target_is_named() {
    for status in [301, 302, 307, 308] {
        let thief = Server::start([]);
        let target = format!("{}/stolen", thief.url());
        let redirect = Reply::body(status, "text/plain", "over there").header("Location", &target);
        let server = Server::start([redirect]);
        let run = Cli::against(&server)
            .config("api_key=sk-0123456789")
            .prompt("x")
            .run();
        run.code(1).stderr_has(&target);
        assert!(thief.everything().is_empty());
    }
}

#[test]
fn b10_a_proxy_of_the_environment_is_used() {
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        let server = Server::start([Reply::answer("ok")]);
        let proxy = format!("http://127.0.0.1:{}", server.port());
        Cli::new()
            .config(NOWHERE)
            .env(name, proxy)
            .prompt("x")
            .run()
            .success();
        let path = server.request(0).path;
        assert_eq!(path, "http://bantam.invalid/v1/chat/completions", "{name}");
    }
}

#[test]
fn b10_loopback_is_never_proxied() {
    for name in ["HTTP_PROXY", "ALL_PROXY", "SOCKS_PROXY", "socks_proxy"] {
        let server = Server::start([Reply::answer("ok")]);
        let proxy = if name.to_lowercase().starts_with("socks") {
            "127.0.0.1:1"
        } else {
            "http://127.0.0.1:1"
        };
        Cli::against(&server)
            .env(name, proxy)
            .prompt("x")
            .run()
            .success();
    }
}

#[test]
fn b10_no_proxy_is_obeyed() {
    let server = Server::start([]);
    let run = Cli::new()
        .config(NOWHERE)
        .env("HTTP_PROXY", format!("http://127.0.0.1:{}", server.port()))
        .env("NO_PROXY", "example.org,.invalid")
        .prompt("x")
        .start();
    interrupt_in_back_off(run, "bantam.invalid");
    assert!(server.everything().is_empty());
}

#[test]
fn b10_socks5h_and_a_bare_address_let_the_proxy_resolve() {
    for scheme in ["socks5h://", ""] {
        for name in ["SOCKS_PROXY", "socks_proxy"] {
            let server = Server::start([Reply::answer("ok")]);
            let proxy = SocksProxy::to(server.port());
            Cli::new()
                .config(NOWHERE)
                .env(name, format!("{scheme}{}", proxy.address()))
                .env("HTTP_PROXY", "http://127.0.0.1:1")
                .prompt("x")
                .run()
                .success();
            let asked = proxy.asked();
            assert_eq!(
                asked[0],
                Asked::Name("bantam.invalid".to_owned(), 80),
                "{scheme}"
            );
        }
    }
}

#[test]
fn b10_socks5_gives_the_proxy_an_address() {
    let server = Server::start([Reply::answer("ok")]);
    let proxy = SocksProxy::to(server.port());
    Cli::new()
        .config("endpoint=http://192.0.2.7:8080/v1")
        .env("SOCKS_PROXY", format!("socks5://{}", proxy.address()))
        .prompt("x")
        .run()
        .success();
    assert_eq!(
        proxy.asked()[0],
        Asked::Address("192.0.2.7:8080".parse().unwrap())
    );
}

#[test]
fn b10_socks5_resolves_here() {
    let server = Server::start([]);
    let proxy = SocksProxy::to(server.port());
    let run = Cli::new()
        .config(NOWHERE)
        .env("SOCKS_PROXY", format!("socks5://{}", proxy.address()))
        .prompt("x")
        .start();
    interrupt_in_back_off(run, "9");
    assert!(proxy.asked().is_empty(), "{:?}", proxy.asked());
}

#[test]
fn b10_an_unknown_scheme_of_a_socks_proxy_is_an_error_and_never_a_direct_connection() {
    let server = Server::start([]);
    let run = Cli::new()
        .config("endpoint=http://192.0.2.7/v1")
        .env(
            "SOCKS_PROXY",
            format!("socks9://127.0.0.1:{}", server.port()),
        )
        .prompt("x")
        .run();
    run.code(1).stderr_has("SOCKS_PROXY").stderr_has("socks9");
    assert!(server.everything().is_empty());
}

#[test]
fn b10_a_certificate_nobody_knows_is_refused_with_the_two_variables_named() {
    let server = TlsServer::start();
    let run = Cli::new()
        .config(&format!("endpoint={}", server.url()))
        .prompt("x")
        .start();
    run.wait_for_stderr("SSL_CERT_FILE");
    run.wait_for_stderr("SSL_CERT_DIR");
}

#[test]
fn b10_the_certificates_of_ssl_cert_file_and_ssl_cert_dir_are_trusted() {
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
        let server = TlsServer::start();
        let cli = Cli::new()
            .config(&format!("endpoint={}", server.url()))
            .file("roots/mine.pem", tls::CERTIFICATE);
        let directory = cli.directory().join("roots");
        let value = if name == "SSL_CERT_FILE" {
            directory.join("mine.pem")
        } else {
            directory
        };
        cli.env(name, value)
            .prompt("x")
            .run()
            .success()
            .stdout_has("over TLS");
    }
}
