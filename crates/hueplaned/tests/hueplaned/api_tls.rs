//! Mutual TLS over real TCP: certificates give roles, and nothing else gives access.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::world::{Served, document};
use hueplaned::api::*;
use hueplaned::client::{Client, ClientError};
use hueplaned::http::{ServeLimits, TlsListener};
use hueplaned::tls::{TlsError, TlsFiles, server_config};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use tokio::net::TcpListener;

/// An authority and where its certificates are kept.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// Files of a certificate that it signs.
    fn files(&self, name: &str, units: &[&str], change: impl FnOnce(&mut CertificateParams)) -> TlsFiles {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        for unit in units {
            // The library keeps only one name of each type; the second is given by its number.
            let kind = match params.distinguished_name.get(&DnType::OrganizationalUnitName) {
                Some(_) => DnType::CustomDnType(vec![2, 5, 4, 11]),
                None => DnType::OrganizationalUnitName,
            };
            params.distinguished_name.push(kind, *unit);
        }
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = |what: &str| self.folder.join(format!("{name}-{}-{what}.pem", units.join("-")));
        let files = TlsFiles { ca: self.folder.join("ca.pem"), certificate: path("crt"), key: path("key") };
        std::fs::write(&files.certificate, certificate.pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }

    fn of(&self, name: &str, units: &[&str]) -> TlsFiles {
        self.files(name, units, |_| {})
    }
}

struct Setting {
    served: Served,
    authority: Authority,
    address: SocketAddr,
}

impl Setting {
    fn new(limits: ServeLimits) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("hueplaned-tls-{}-{number}", std::process::id()));
        let authority = Authority::new(&folder, "ca");
        let config = server_config(&authority.of("server", &[])).unwrap();
        let mut address = None;
        let served = Served::with(limits, async || {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            address = Some(listener.local_addr().unwrap());
            Some(TlsListener { listener, config })
        });
        Self { served, authority, address: address.unwrap() }
    }

    fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    fn client(&self, files: &TlsFiles) -> Client {
        Client::tls(&self.url(), files).unwrap()
    }

    fn role(&self, unit: &str, name: &str) -> Client {
        self.client(&self.authority.of(name, &[unit]))
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.authority.folder.parent().unwrap());
    }
}

fn kind<T>(result: Result<T, ClientError>) -> Option<ProblemKind> {
    result.err().map(|error| error.problem().unwrap_or_else(|| panic!("no problem: {error}")).kind)
}

#[test]
fn the_certificate_determines_its_owners_role() {
    let setting = Setting::new(ServeLimits::default());
    let apply = |text: String| ApplyRequest {
        sources: vec![SourceText { name: "a".to_owned(), text }],
        ..ApplyRequest::default()
    };
    let forbidden = Some(ProblemKind::Forbidden);
    for (client, changes, ends) in [
        (setting.role("viewer", "somebody"), forbidden, forbidden),
        (setting.role("operator", "somebody"), None, forbidden),
        (setting.role("admin", "somebody"), None, None),
    ] {
        assert_eq!(client.networks().unwrap().len(), 2);
        assert_eq!(kind(client.apply(&apply(document("red")), TurnQuery::default())), changes);
        let drain = DrainRequest { drained: true, force: false, fail: None };
        assert_eq!(kind(client.drain(&drain, TurnQuery::default())), ends);
        assert_eq!(kind(client.down(&DownOptions::default())), ends);
    }
    let tenant = setting.role("tenant", "red");
    let names: Vec<String> = tenant.networks().unwrap().into_iter().map(|network| network.name).collect();
    assert_eq!(names, ["red"]);
    assert_eq!(kind(tenant.network("blue")), Some(ProblemKind::NotFound));
    assert_eq!(kind(tenant.apply(&apply(document("red")), TurnQuery::default())), None);
    assert_eq!(
        kind(
            tenant.apply(
                &apply(document("red").replace("\"weight\": 5", "\"weight\": 6")),
                TurnQuery::default()
            )
        ),
        forbidden
    );
    assert!(!tenant.metrics().unwrap().contains("blue"));
    setting.served.world.happen(EventKind::NetworkChanged, Some("blue"));
    setting.served.world.happen(EventKind::NetworkChanged, Some("red"));
    let mut events = tenant.follow_events(0).unwrap();
    assert_eq!(events.next().unwrap().unwrap().sequence, 2);
}

#[test]
fn a_certificate_without_a_role_gets_an_error() {
    let setting = Setting::new(ServeLimits::default());
    for (name, units) in [
        ("a", &[] as &[&str]),
        ("b", &["Admin"]),
        ("c", &["viewer", "admin"]),
        ("d", &["root"]),
        ("not a network", &["tenant"]),
    ] {
        let client = setting.client(&setting.authority.of(name, units));
        let error = client.status().unwrap_err();
        assert_eq!(error.problem().unwrap().kind, ProblemKind::Unauthenticated, "{name}: {error}");
        assert!(error.to_string().contains("expected"), "{error}");
    }
    assert_eq!(setting.served.world.calls.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn only_known_certificates_connect() {
    let setting = Setting::new(ServeLimits::default());
    let other = Authority::new(setting.authority.folder.parent().unwrap(), "other");
    // A client of another authority that trusts ours.
    let stranger = TlsFiles { ca: setting.authority.folder.join("ca.pem"), ..other.of("a", &["admin"]) };
    let expired = setting.authority.files("late", &["admin"], |params| {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    });
    let only_server = setting.authority.files("server-only", &["admin"], |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    for files in [stranger, expired, only_server] {
        let error = setting.client(&files).status().unwrap_err();
        assert!(matches!(error, ClientError::Connection { .. }), "{}: {error}", files.certificate.display());
    }
    // The client refuses a server with a certificate of another authority.
    let error = setting.client(&other.of("a", &["admin"])).status().unwrap_err();
    assert!(matches!(error, ClientError::Connection { .. }), "{error}");
    // Without TLS.
    let mut plain = TcpStream::connect(setting.address).unwrap();
    plain.write_all(b"GET /v1/status HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert_eq!(setting.served.world.calls.load(std::sync::atomic::Ordering::Relaxed), 0);
    assert_eq!(setting.role("viewer", "x").status().unwrap().node, "box");
}

#[test]
fn connections_without_a_handshake_block_no_others() {
    let limits =
        ServeLimits { handshakes: 16, handshake: Duration::from_secs(600), ..ServeLimits::default() };
    let setting = Setting::new(limits);
    let admin = setting.role("admin", "x");
    // More connections than places, and none of them closes by itself.
    let mut silent: Vec<_> = (0..400).map(|_| TcpStream::connect(setting.address).unwrap()).collect();
    for _ in 0..20 {
        assert_eq!(admin.status().unwrap().node, "box");
        silent.extend((0..16).map(|_| TcpStream::connect(setting.address).unwrap()));
    }
    assert_eq!(setting.served.client().status().unwrap().node, "box");
    // Connections that begin a handshake and do not complete it are treated in the same way.
    let begun = |_| {
        let mut stream = TcpStream::connect(setting.address).unwrap();
        // The first bytes of a handshake record of 512 bytes.
        stream.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]).unwrap();
        stream
    };
    let begun: Vec<_> = (0..400).map(begun).collect();
    assert_eq!(admin.status().unwrap().node, "box");
    // The oldest silent ones have been disconnected.
    silent[0].set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert!(!matches!(silent[0].read(&mut [0]), Ok(1..)));
    drop((silent, begun));
}

#[test]
fn known_callers_that_take_all_connections_leave_some_to_administrators() {
    let limits = ServeLimits { connections: 8, tenant_connections: 8, ..ServeLimits::default() };
    let setting = Setting::new(limits);
    let (tenant, viewer) = (setting.role("tenant", "red"), setting.role("viewer", "x"));
    let mut open = Vec::new();
    while let Ok(stream) = tenant.follow_events(0) {
        open.push(stream);
    }
    assert_eq!(open.len(), 6);
    assert_eq!(kind(tenant.networks()), Some(ProblemKind::Busy));
    while let Ok(stream) = viewer.follow_events(0) {
        open.push(stream);
    }
    assert_eq!(open.len(), 7);
    assert_eq!(kind(viewer.networks()), Some(ProblemKind::Busy));
    assert_eq!(setting.role("admin", "a").networks().unwrap().len(), 2);
}

#[test]
fn a_tenant_takes_no_connection_from_others() {
    let setting = Setting::new(ServeLimits { tenant_connections: 3, ..ServeLimits::default() });
    let (red, blue) = (setting.role("tenant", "red"), setting.role("tenant", "blue"));
    let mut open: Vec<_> = (0..3).map(|_| red.follow_events(0).unwrap()).collect();
    assert_eq!(kind(red.networks()), Some(ProblemKind::Busy));
    assert_eq!(blue.networks().unwrap().len(), 1);
    open.pop();
    crate::world::eventually("its place is free", || red.networks().is_ok());
}

#[test]
fn wrong_files_are_named() {
    let setting = Setting::new(ServeLimits::default());
    let good = setting.authority.of("a", &["admin"]);
    let missing = TlsFiles { key: "/nonexistent/key.pem".into(), ..good.clone() };
    let swapped = TlsFiles { certificate: good.key.clone(), ..good.clone() };
    let foreign = TlsFiles { key: setting.authority.of("b", &["admin"]).key, ..good.clone() };
    for (files, file) in
        [(&missing, &missing.key), (&swapped, &swapped.certificate), (&foreign, &foreign.certificate)]
    {
        let error = server_config(files).unwrap_err();
        assert!(error.to_string().contains(&*file.to_string_lossy()), "{error}");
    }
    assert!(matches!(server_config(&missing), Err(TlsError::Read { .. })));
    for url in ["http://localhost:1", "https://localhost", "localhost:1", "https://:1", ""] {
        assert!(matches!(Client::tls(url, &good), Err(ClientError::Address { .. })), "{url}");
    }
}
