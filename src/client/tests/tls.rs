//! TLS against a server whose root only these tests know (both files are made for them, and
//! good for nothing else).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;

const ROOT: &str = include_str!("root.pem");
const LOCALHOST: &str = include_str!("localhost.pem");

/// Serves one whole answer on each connection, and gives the port.
fn start() -> u16 {
    let certificate = CertificateDer::from_pem_slice(LOCALHOST.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(LOCALHOST.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            // A client that does not trust us goes away in the middle of it.
            let _ = serve(StreamOwned::new(connection, stream.unwrap()));
        }
    });
    port
}

fn serve(stream: impl Read + Write) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    stream.read_exact(&mut vec![0; length])?;
    let body = r#"{"choices":[{"message":{"content":"secure"},"finish_reason":"stop"}]}"#;
    write!(
        stream.get_mut(),
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    stream.get_mut().flush()
}

fn reply(network: Network, port: u16) -> Result<Reply> {
    let settings = settings(format!("https://localhost:{port}/v1"));
    run(ask(
        &mut Client::new(settings, network, NO_DELAY),
        &mut Log::default(),
    ))
}

#[test]
fn b10_an_unknown_certificate_is_an_error_that_names_the_variables() {
    let error = reply(Network::default(), start()).unwrap_err();
    assert!(matches!(error, Error::Transport { .. }), "{error:?}");
    let hint = error.hint().unwrap();
    assert!(
        hint.contains("SSL_CERT_FILE") && hint.contains("SSL_CERT_DIR"),
        "{error:?}"
    );
}

#[test]
fn b10_roots_are_added_by_file_and_by_directory() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("root.pem");
    std::fs::write(&file, ROOT).unwrap();
    for (variable, path) in [
        ("SSL_CERT_FILE", file.as_path()),
        ("SSL_CERT_DIR", dir.path()),
    ] {
        let value = path.to_str().unwrap().to_owned();
        let network = Network::from_env(&|name| (name == variable).then(|| value.clone())).unwrap();
        assert_eq!(
            reply(network, start()).unwrap().message.text(),
            "secure",
            "{variable}"
        );
    }
}
