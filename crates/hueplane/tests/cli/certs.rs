//! `certs`: files, their rights, and what is refused. The end-to-end tests use the certificates.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::Scratch;

#[test]
fn certificates_are_made_once_and_keys_are_private() {
    let dir = Scratch::new();
    let said = dir.hueplane("certs init certs --for node1.example.net --for 192.0.2.7").ok().stdout;
    for text in [
        "made certs/ca.pem, certs/ca.key, certs/daemon.pem, certs/daemon.key, certs/admin.pem, certs/admin.key",
        "valid for 365 days",
        "hueplane up --listen 0.0.0.0:7443 --tls-ca certs/ca.pem --tls-cert certs/daemon.pem --tls-key certs/daemon.key",
        "hueplane --server https://node1.example.net:7443 --ca certs/ca.pem --cert certs/admin.pem --key certs/admin.key",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
    let made = dir.hueplane("certs add certs red --role tenant --days 90 -o json").ok().json();
    assert_eq!((&made["files"][1], &made["days"]), (&"certs/red.key".into(), &90.into()));
    let mode = |name: &str| fs::metadata(dir.path(name)).unwrap().permissions().mode() & 0o777;
    for name in ["ca", "daemon", "admin", "red"] {
        assert_eq!(mode(&format!("certs/{name}.key")), 0o600, "{name}");
    }

    // Nothing is replaced, and what fails leaves nothing.
    let before: Vec<_> =
        dir.files("certs").iter().map(|name| fs::read(dir.path(&format!("certs/{name}"))).unwrap()).collect();
    dir.hueplane("certs init certs").fails(3, "certs/ca.pem: already exists; nothing was written");
    dir.hueplane("certs add certs red --role viewer").fails(3, "certs/red.pem: already exists");
    dir.hueplane("certs add certs ca --role viewer")
        .fails(2, "'ca': expected a name that can be that of a file");
    dir.hueplane("certs add certs ../x --role viewer").fails(2, "'../x': expected a name");
    let blank = ["certs", "add", "certs", "a b", "--role", "tenant"];
    dir.hueplane_with(&blank, "").fails(2, "'a b': expected the name of the tenant's network");
    dir.hueplane("certs add certs d2 --role daemon").fails(2, "--for <NAME|ADDRESS>");
    dir.hueplane("certs add certs d2 --role viewer --for x").fails(2, "--for: only for --role daemon");
    dir.hueplane("certs add certs d2 --role daemon --for x..y").fails(2, "'x..y': expected a DNS name");
    dir.hueplane("certs add none x --role viewer").fails(3, "none/ca.pem: No such file");
    let after: Vec<_> =
        dir.files("certs").iter().map(|name| fs::read(dir.path(&format!("certs/{name}"))).unwrap()).collect();
    assert_eq!(before, after);
    dir.hueplane_with(&["certs", "init", "other", "--for", "two words"], "")
        .fails(2, "'two words': expected a DNS name");
    assert!(dir.files("other").is_empty());
    dir.write("half/daemon.key", "mine");
    dir.hueplane("certs init half").fails(3, "half/daemon.key: already exists; nothing was written");
    assert_eq!(dir.files("half"), ["daemon.key"]);
    assert_eq!(fs::read(dir.path("half/daemon.key")).unwrap(), b"mine");
}

#[test]
fn authorities_that_cannot_sign_are_refused() {
    let dir = Scratch::new();
    for name in ["one", "two"] {
        dir.hueplane(&format!("certs init {name} --for localhost")).ok();
    }
    let copy = |from: &str, to: &str| dir.write(to, fs::read(dir.path(from)).unwrap());
    let add = |name: &str| dir.hueplane(&format!("certs add {name} x --role viewer"));
    copy("two/ca.key", "mixed/ca.key");
    copy("one/ca.pem", "mixed/ca.pem");
    add("mixed").fails(3, "mixed/ca.key: this is not the key of the certificate beside it");
    copy("one/admin.key", "leaf/ca.key");
    copy("one/admin.pem", "leaf/ca.pem");
    add("leaf").fails(3, "leaf/ca.pem: this certificate may not sign others");
    copy("one/ca.pem", "text/ca.pem");
    dir.write("text/ca.key", "no key");
    add("text").fails(3, "text/ca.key: expected a private key in PEM");
    copy("one/ca.key", "bad/ca.key");
    dir.write("bad/ca.pem", "no certificate");
    add("bad").fails(3, "bad/ca.pem: expected a certificate in PEM");
    for name in ["mixed", "leaf", "text", "bad"] {
        assert_eq!(dir.files(name), ["ca.key", "ca.pem"], "{name}");
    }
}
