//! Certificates for the API over TCP: an authority in a directory, and the certificates that it signs.
//!
//! Flow: `NAME.pem` and `NAME.key` of the authority → a new key → a signed certificate, in two new files. Invariants: a file that
//! exists is never replaced; a private key is readable by its owner only; what fails leaves none of its files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use rustls::pki_types::ServerName;
use thiserror::Error;

use crate::http::Role;

/// Base name of the authority's files.
pub const AUTHORITY: &str = "ca";
/// Time for which an authority is valid.
const AUTHORITY_DAYS: u32 = 3650;
/// Clocks of other machines may be this much behind.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// Why a certificate was not made.
#[derive(Debug, Error)]
pub enum CertError {
    /// A file exists.
    #[error("{0}: already exists; nothing was written. Choose another directory or name, or delete it first")]
    Exists(PathBuf),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The authority's files are not usable.
    #[error("{path}: {what}")]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A certificate with this name or these names is not possible.
    #[error("{0}")]
    Name(String),
}

/// For whom a certificate is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Holder {
    /// The daemon, with the names and addresses that clients use for it.
    Daemon(Vec<String>),
    /// A client. The name of a tenant is that of its network.
    Client(Role),
}

/// A certificate and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Files {
    /// The certificate, PEM.
    pub certificate: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
}

impl Files {
    /// The files of a certificate in a directory.
    #[must_use]
    pub fn of(dir: &Path, name: &str) -> Self {
        Self { certificate: dir.join(format!("{name}.pem")), key: dir.join(format!("{name}.key")) }
    }

    /// Fails if one of them exists.
    ///
    /// # Errors
    /// `Exists`.
    pub fn must_be_new(&self) -> Result<(), CertError> {
        match [&self.certificate, &self.key].into_iter().find(|path| path.symlink_metadata().is_ok()) {
            Some(path) => Err(CertError::Exists(path.clone())),
            None => Ok(()),
        }
    }

    /// Writes both, or none.
    fn write(&self, certificate: &str, key: &str) -> Result<(), CertError> {
        create(&self.key, key, 0o600)?;
        create(&self.certificate, certificate, 0o644).inspect_err(|_| {
            let _ = fs::remove_file(&self.key); // new
        })
    }
}

/// An authority that signs certificates.
pub struct Authority {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority in a directory, which is created if necessary.
    ///
    /// # Errors
    /// `Exists` if there is an authority; `File` if a file cannot be written.
    pub fn create(dir: &Path) -> Result<Self, CertError> {
        let files = Files::of(dir, AUTHORITY);
        files.must_be_new()?;
        fs::create_dir_all(dir).map_err(|source| CertError::File { path: dir.to_owned(), source })?;
        let key = new_key()?;
        let mut params = params(Vec::new(), AUTHORITY_DAYS)?;
        params.distinguished_name.push(DnType::CommonName, "hueplane authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key).map_err(broken)?;
        files.write(&certificate.pem(), &key.serialize_pem())?;
        Ok(Self { dir: dir.to_owned(), issuer: Issuer::new(params, key) })
    }

    /// Opens the authority in a directory.
    ///
    /// # Errors
    /// `File` if a file cannot be read, `Authority` if it is not what it should be.
    pub fn open(dir: &Path) -> Result<Self, CertError> {
        let files = Files::of(dir, AUTHORITY);
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|source| CertError::File { path: path.to_owned(), source })
        };
        let wrong =
            |path: &Path, what: &str| CertError::Authority { path: path.to_owned(), what: what.to_owned() };
        let (certificate, key) = (read(&files.certificate)?, read(&files.key)?);
        let key = KeyPair::from_pem(&key).map_err(|_| wrong(&files.key, "expected a private key in PEM"))?;
        let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes())
            .map_err(|_| wrong(&files.certificate, "expected a certificate in PEM"))?;
        let parsed =
            pem.parse_x509().map_err(|_| wrong(&files.certificate, "expected a certificate in PEM"))?;
        if !parsed.is_ca() {
            return Err(wrong(&files.certificate, "this certificate may not sign others"));
        }
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(wrong(&files.key, "this is not the key of the certificate beside it"));
        }
        if !parsed.validity().is_valid() {
            return Err(wrong(&files.certificate, "the authority has expired, or is not valid yet"));
        }
        let issuer = Issuer::from_ca_cert_pem(&certificate, key)
            .map_err(|_| wrong(&files.certificate, "expected a certificate in PEM"))?;
        Ok(Self { dir: dir.to_owned(), issuer })
    }

    /// Makes a certificate and its key beside the authority's files.
    ///
    /// # Errors
    /// `Exists`, `File`, or `Name` if the name cannot be that of a file or of the holder.
    pub fn sign(&self, name: &str, holder: &Holder, days: u32) -> Result<Files, CertError> {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) || name == AUTHORITY {
            return Err(CertError::Name(format!(
                "'{name}': expected a name that can be that of a file, but not '{AUTHORITY}'"
            )));
        }
        let files = Files::of(&self.dir, name);
        files.must_be_new()?;
        let key = new_key()?;
        let mut params = match holder {
            Holder::Daemon(names) => params(names.clone(), days)?,
            Holder::Client(_) => params(Vec::new(), days)?,
        };
        params.distinguished_name.push(DnType::CommonName, name);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match holder {
            Holder::Daemon(_) => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Holder::Client(role) => {
                if let Role::Tenant(network) = role
                    && network.parse::<hue_intent::Name>().is_err()
                {
                    return Err(CertError::Name(format!(
                        "'{network}': expected the name of the tenant's network"
                    )));
                }
                params.distinguished_name.push(DnType::OrganizationalUnitName, role.name());
                vec![ExtendedKeyUsagePurpose::ClientAuth]
            }
        };
        let certificate = params.signed_by(&key, &self.issuer).map_err(broken)?;
        files.write(&certificate.pem(), &key.serialize_pem())?;
        Ok(files)
    }
}

fn params(names: Vec<String>, days: u32) -> Result<CertificateParams, CertError> {
    let wrong = |name: &str| CertError::Name(format!("'{name}': expected a DNS name or an IP address"));
    if let Some(name) = names.iter().find(|name| ServerName::try_from(name.as_str()).is_err()) {
        return Err(wrong(name));
    }
    let shown = names.join(", ");
    let mut params = CertificateParams::new(names).map_err(|_| wrong(&shown))?;
    let now = SystemTime::now();
    params.not_before = (now - CLOCK_SKEW).into();
    params.not_after = (now + Duration::from_secs(u64::from(days) * 86_400)).into();
    Ok(params)
}

fn new_key() -> Result<KeyPair, CertError> {
    KeyPair::generate().map_err(broken)
}

fn broken(error: rcgen::Error) -> CertError {
    CertError::Name(format!("the certificate cannot be made: {error}"))
}

/// Writes a new file with this mode.
fn create(path: &Path, text: &str, mode: u32) -> Result<(), CertError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => CertError::Exists(path.to_owned()),
        _ => CertError::File { path: path.to_owned(), source },
    };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(failed)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|source| {
        let _ = fs::remove_file(path); // new
        failed(source)
    })
}
