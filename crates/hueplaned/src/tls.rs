//! Mutual TLS: configurations of both sides from files, and identities from certificates.
//!
//! Flow: PEM files → [`server_config`] and [`client_config`] → `http::serve` and `client`; after the handshake,
//! certificate → [`Subject`] → `http::access`, which derives a role from it.
//! Invariants: TLS 1.2 and later only; every client has to present a certificate, which is checked against the one
//! authority of the files; nothing else is trusted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The protocol inside TLS.
const PROTOCOL: &[u8] = b"http/1.1";

/// PEM files of one side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// Certificates of the authority that issued the other side's certificate.
    pub ca: PathBuf,
    /// Our certificate, followed by the intermediate certificates up to the authority.
    pub certificate: PathBuf,
    /// The private key of our certificate.
    pub key: PathBuf,
}

/// TLS cannot be set up; a file is wrong.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A file has unexpected content.
    #[error("{}: found {found}, expected {expected} in PEM form", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The files do not match.
    #[error("{}: {reason}", path.display())]
    Refused {
        /// The file of the certificate, or of the authority.
        path: PathBuf,
        /// The library's error.
        reason: String,
    },
}

/// The owner named in a certificate.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Subject {
    /// Common names.
    pub common_names: Vec<String>,
    /// Organisational units.
    pub units: Vec<String>,
}

/// Configuration of a TLS server that authenticates its clients.
///
/// # Errors
/// When a file cannot be read, has the wrong content, or does not match the others.
pub fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = provider();
    let roots = Arc::new(authority(&files.ca)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .map_err(refused(&files.ca))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(refused(&files.certificate))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates(&files.certificate)?, key(&files.key)?)
        .map_err(refused(&files.certificate))?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

/// Configuration of a client for such a server.
///
/// # Errors
/// As [`server_config`].
pub fn client_config(files: &TlsFiles) -> Result<Arc<ClientConfig>, TlsError> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(refused(&files.certificate))?
        .with_root_certificates(authority(&files.ca)?)
        .with_client_auth_cert(certificates(&files.certificate)?, key(&files.key)?)
        .map_err(refused(&files.certificate))?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

/// The subject of a certificate; `None` when it is not X.509, or not text.
#[must_use]
pub fn subject(certificate: &[u8]) -> Option<Subject> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let name = certificate.subject();
    let texts = |values: &mut dyn Iterator<Item = &x509_parser::x509::AttributeTypeAndValue<'_>>| {
        values.map(|value| value.as_str().ok().map(str::to_owned)).collect::<Option<Vec<_>>>()
    };
    Some(Subject {
        common_names: texts(&mut name.iter_common_name())?,
        units: texts(&mut name.iter_organizational_unit())?,
    })
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn refused<E: std::fmt::Display>(path: &Path) -> impl FnOnce(E) -> TlsError {
    let path = path.to_owned();
    move |error| TlsError::Refused { path, reason: error.to_string() }
}

fn authority(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(refused(path))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    const EXPECTED: &str = "certificates";
    let list: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect).map_err(fault(path, EXPECTED));
    match list? {
        list if list.is_empty() => Err(content(path, "none".to_owned(), EXPECTED)),
        list => Ok(list),
    }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(fault(path, "a private key"))
}

fn fault(path: &Path, expected: &'static str) -> impl FnOnce(pem::Error) -> TlsError {
    let path = path.to_owned();
    move |error| match error {
        pem::Error::Io(source) => TlsError::Read { path, source },
        pem::Error::NoItemsFound => content(&path, "none".to_owned(), expected),
        other => content(&path, other.to_string(), expected),
    }
}

fn content(path: &Path, found: String, expected: &'static str) -> TlsError {
    TlsError::Content { path: path.to_owned(), found, expected }
}
