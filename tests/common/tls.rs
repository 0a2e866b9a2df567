//! A TLS server on loopback whose certificate nobody knows, for tests of what is trusted.
//!
//! The certificate signs itself, is good for 127.0.0.1 until 2120, and is used for nothing else;
//! its key is no secret.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What a client must trust to talk to a [`TlsServer`].
pub(crate) const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBPDCB5KADAgECAgEBMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC2JhbnRhbSB0
ZXN0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAWMRQwEgYDVQQD
DAtiYW50YW0gdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIv18GgIJnI9
LZP8tjEFEBV4BriszrUvO7eXhmPPXzAwoD6WynA+OepZHU11wgJT4M4oPBYdJF0b
69RkcDFActGjITAfMA8GA1UdEQQIMAaHBH8AAAEwDAYDVR0TAQH/BAIwADAKBggq
hkjOPQQDAgNHADBEAiBNaXcCLftwDc7fv2f1Pzeljerk9Rq5scjnv8vfldDS1gIg
EUC5FCG9796KCpT0DIoM3wPWrNm+QPMIlV2WIaGcVI8=
-----END CERTIFICATE-----
";

const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg9Hk400pe3P4rRPqm
KXvHjK7CV+BSQNLD9tZPtb6rKyGhRANCAASL9fBoCCZyPS2T/LYxBRAVeAa4rM61
Lzu3l4Zjz18wMKA+lspwPjnqWR1NdcICU+DOKDwWHSRdG+vUZHAxQHLR
-----END PRIVATE KEY-----
";

/// A server that answers every chat request with `over TLS`.
pub(crate) struct TlsServer {
    port: u16,
}

impl TlsServer {
    /// A server that runs until the tests end.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = Arc::new(config());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                // A client that does not trust us hangs up.
                thread::spawn(move || serve(stream, config));
            }
        });
        Self { port }
    }

    /// The endpoint to configure.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}/v1", self.port)
    }
}

fn config() -> ServerConfig {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap()
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"over TLS"},"finish_reason":"stop"}]}"#;
    let mut stream = reader.into_inner();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.conn.send_close_notify();
    stream.flush()
}
