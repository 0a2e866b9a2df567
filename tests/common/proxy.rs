//! A SOCKS5 proxy on loopback that notes what it is asked for and connects to one port whatever
//! that was.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What a client asked the proxy to connect to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Asked {
    Address(SocketAddr),
    Name(String, u16),
}

/// The proxy; its threads end with the connections they serve.
pub(crate) struct SocksProxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl SocksProxy {
    /// A proxy that connects everyone to this port of loopback.
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let for_thread = Arc::clone(&asked);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let asked = Arc::clone(&for_thread);
                thread::spawn(move || serve(client, port, &asked));
            }
        });
        Self { address, asked }
    }

    /// Where it listens, as `host:port`.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// What it was asked for so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut client: TcpStream, port: u16, asked: &Mutex<Vec<Asked>>) -> io::Result<()> {
    let methods = read::<2>(&mut client)?[1];
    client.read_exact(&mut vec![0; methods.into()])?;
    client.write_all(&[5, 0])?;
    let target = read_target(&mut client)?;
    asked.lock().unwrap().push(target);
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    client.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0])?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || io::copy(&mut from_client, &mut to_server));
    io::copy(&mut server, &mut client)?;
    Ok(())
}

fn read_target(client: &mut TcpStream) -> io::Result<Asked> {
    let kind = read::<4>(client)?[3];
    if kind == 1 {
        let address = Ipv4Addr::from(read::<4>(client)?);
        let port = u16::from_be_bytes(read::<2>(client)?);
        return Ok(Asked::Address(SocketAddrV4::new(address, port).into()));
    }
    let mut name = vec![0; read::<1>(client)?[0].into()];
    client.read_exact(&mut name)?;
    let port = u16::from_be_bytes(read::<2>(client)?);
    Ok(Asked::Name(
        String::from_utf8_lossy(&name).into_owned(),
        port,
    ))
}

fn read<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}
