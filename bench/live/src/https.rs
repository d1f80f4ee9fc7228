//! A client of the API without patience or manners: requests over the Unix socket or TLS, from any local address, also incomplete
//! ones.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use socket2::{Domain, Socket, Type};

/// Longest time that anything may take; then it counts as failed.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Port of the API.
pub const PORT: u16 = 7443;

/// A connection after its handshake.
pub type Tls = StreamOwned<ClientConnection, TcpStream>;

/// TLS with the certificate `NAME.pem` of a folder; without a name, without a certificate.
///
/// # Errors
/// When a file is missing or wrong.
pub fn config(authority: &Path, identity: Option<(&Path, &str)>) -> Result<Arc<ClientConfig>, String> {
    let wrong = |path: PathBuf, error: String| format!("{}: {error}", path.display());
    let certificates = |path: PathBuf| -> Result<Vec<CertificateDer<'static>>, String> {
        let read = CertificateDer::pem_file_iter(&path).and_then(Iterator::collect);
        read.map_err(|error| wrong(path, error.to_string()))
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(authority.join("ca.pem"))?);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?.with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some((folder, name)) => {
            let key = folder.join(format!("{name}.key"));
            let read = PrivateKeyDer::from_pem_file(&key).map_err(|error| wrong(key, error.to_string()))?;
            let chain = certificates(folder.join(format!("{name}.pem")))?;
            builder.with_client_auth_cert(chain, read).map_err(|error| error.to_string())?
        }
    };
    // Each connection does a whole handshake, as each run of the command line does.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

/// A TCP connection to the API from a local address.
///
/// # Errors
/// When it is refused.
pub fn connect(from: Ipv4Addr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, PORT);
    socket.connect_timeout(&SocketAddr::from(to).into(), PATIENCE)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// A client's side of TLS that has said nothing yet.
///
/// # Errors
/// Never for this name.
pub fn session(config: &Arc<ClientConfig>) -> io::Result<ClientConnection> {
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)
}

/// A connection after its handshake.
///
/// # Errors
/// When it is refused.
pub fn tls(from: Ipv4Addr, config: &Arc<ClientConfig>) -> io::Result<Tls> {
    let (mut stream, mut session) = (connect(from)?, session(config)?);
    while session.is_handshaking() {
        session.complete_io(&mut stream)?;
    }
    Ok(StreamOwned::new(session, stream))
}

/// A connection to the Unix socket.
///
/// # Errors
/// When it is refused.
pub fn unix(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// The bytes of a request; with `last`, the server closes after its answer.
pub fn request(line: &str, body: &[u8], last: bool) -> Vec<u8> {
    let close = if last { "connection: close\r\n" } else { "" };
    let content = if line.starts_with("POST") {
        format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len())
    } else {
        String::new()
    };
    let mut bytes = format!("{line} HTTP/1.1\r\nhost: localhost\r\n{close}{content}\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Reads until the server closes: the status of the first answer, and the number of bytes.
///
/// # Errors
/// When there is no answer in time.
pub fn answer(stream: &mut impl Read) -> io::Result<(u16, usize)> {
    let (mut head, mut bytes, mut buffer) = (Vec::new(), 0, vec![0; 65_536]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                bytes += count;
                if head.len() < 12 {
                    head.extend_from_slice(&buffer[..count.min(12)]);
                }
            }
            // A server may close without saying so in TLS.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
                    && bytes > 0 =>
            {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.get(..3)?.parse().ok());
    status.map(|status| (status, bytes)).ok_or_else(|| io::Error::other(format!("no answer: {text:?}")))
}

/// Sends all of a request and reads its answer.
///
/// # Errors
/// When there is no answer.
pub fn ask(mut stream: impl Read + Write, request: &[u8]) -> io::Result<(u16, usize)> {
    // The server may answer, and close, before it has read everything.
    let written = stream.write_all(request).and_then(|()| stream.flush());
    answer(&mut stream).or_else(|error| Err(written.err().unwrap_or(error)))
}
