//! Identity and rights of callers.
//!
//! Over the Unix socket everyone is an admin: the file system lets only root and the socket's group connect. Over TCP
//! the role is the organisational unit (OU) of the client's certificate, one of `viewer`, `operator`, `admin` and
//! `tenant`; a tenant's common name (CN) is its network. A certificate with anything else is refused.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use nix::unistd::{Uid, User};
use thiserror::Error;

use crate::api::{Author, Problem, ProblemKind};
use crate::tls::Subject;

/// Role of a caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// Sees everything but packet contents, and changes nothing.
    Viewer,
    /// Also changes networks, captures packets, and runs commands in networks.
    Operator,
    /// Also changes the node, and stops the daemon.
    Admin,
    /// Sees only one network, and changes only what affects nobody else.
    Tenant(Arc<str>),
}

impl Role {
    /// Its name in certificates.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Tenant(_) => Author::TENANT,
        }
    }
}

/// A certificate gives no role; its issuer is at fault.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum RoleError {
    /// There is no certificate, it is not X.509, or its subject is not text.
    #[error("the subject of the certificate cannot be read")]
    Unreadable,
    /// There is not exactly one organisational unit, or it is not a role.
    #[error("found the organisational units {0:?}, expected one of viewer, operator, admin or tenant")]
    Unit(Vec<String>),
    /// A tenant does not have exactly one common name that is the name of a network.
    #[error("found the common names {0:?}, expected the name of the tenant's network")]
    Network(Vec<String>),
}

impl TryFrom<&Subject> for Role {
    type Error = RoleError;

    fn try_from(subject: &Subject) -> Result<Self, RoleError> {
        let [unit] = subject.units.as_slice() else { return Err(RoleError::Unit(subject.units.clone())) };
        match unit.as_str() {
            "viewer" => Ok(Self::Viewer),
            "operator" => Ok(Self::Operator),
            "admin" => Ok(Self::Admin),
            "tenant" => match subject.common_names.as_slice() {
                [name] if name.parse::<hue_intent::Name>().is_ok() => Ok(Self::Tenant(name.as_str().into())),
                names => Err(RoleError::Network(names.to_vec())),
            },
            _ => Err(RoleError::Unit(subject.units.clone())),
        }
    }
}

/// Right that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    /// No right: every authenticated caller may call it.
    Known,
    /// See what runs; for a tenant, its network.
    See,
    /// See what concerns all networks together.
    Oversee,
    /// See packets and run commands in networks; for a tenant, in its own.
    Enter,
    /// Change networks; for a tenant, parts of its own.
    Change,
    /// Delete networks, stop their planes, and move them between card and software.
    Delete,
    /// Change the node, and stop the daemon.
    Rule,
}

impl Right {
    /// Whether operations with this right change the running state, and so may take longer.
    #[must_use]
    pub const fn is_change(self) -> bool {
        matches!(self, Self::Change | Self::Delete | Self::Rule)
    }
}

/// Characters of a caller's name that are kept.
const NAME_CHARS_MAX: usize = 64;

/// Name of a caller. It gives no rights.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Called {
    /// The common name of its certificate.
    Certificate(Arc<str>),
    /// The system user of its process, for a caller on the Unix socket.
    User(u32),
}

/// The sender of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Its role.
    pub role: Role,
    /// Its name, if it has one.
    pub called: Option<Called>,
}

impl Caller {
    /// Any caller that the file system lets use the Unix socket, and the user of its process.
    #[must_use]
    pub fn local(user: Option<u32>) -> Self {
        Self { role: Role::Admin, called: user.map(Called::User) }
    }

    /// The owner of a certificate.
    ///
    /// # Errors
    /// When the certificate gives no role.
    pub fn of_certificate(certificate: &[u8]) -> Result<Self, RoleError> {
        let subject = crate::tls::subject(certificate).ok_or(RoleError::Unreadable)?;
        let called = subject.common_names.first().map(|name| Called::Certificate(name.as_str().into()));
        Ok(Self { role: Role::try_from(&subject)?, called })
    }

    /// The caller as the history names it. May wait for the system's list of users.
    #[must_use]
    pub fn author(&self) -> Author {
        let name = self.called.as_ref().map(|called| match called {
            Called::Certificate(name) => name.to_string(),
            Called::User(id) => match User::from_uid(Uid::from_raw(*id)) {
                Ok(Some(user)) => user.name,
                Ok(None) | Err(_) => format!("user {id}"),
            },
        });
        // A certificate's name can be any text, and it is shown on terminals.
        let name = name.map(|name| name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect());
        Author { role: self.role.name().to_owned(), name }
    }

    /// Checks that the caller has a right.
    ///
    /// # Errors
    /// `forbidden`, when it does not.
    pub fn may(&self, right: Right) -> Result<(), Problem> {
        let may = match (&self.role, right) {
            (Role::Admin, _) | (_, Right::Known | Right::See) => true,
            (Role::Viewer | Role::Operator, Right::Oversee) => true,
            (Role::Operator, Right::Enter | Right::Change | Right::Delete) => true,
            (Role::Tenant(_), Right::Enter | Right::Change) => true,
            (Role::Viewer | Role::Operator | Role::Tenant(_), _) => false,
        };
        if may { Ok(()) } else { Err(self.forbidden("this")) }
    }

    /// The only network it may see, if it may see just one.
    #[must_use]
    pub fn only(&self) -> Option<&str> {
        match &self.role {
            Role::Tenant(network) => Some(network),
            Role::Viewer | Role::Operator | Role::Admin => None,
        }
    }

    /// Whether it may see a network.
    #[must_use]
    pub fn sees(&self, network: &str) -> bool {
        self.only().is_none_or(|only| only == network)
    }

    /// The problem that its role does not allow `what`.
    #[must_use]
    pub fn forbidden(&self, what: &str) -> Problem {
        let detail = match &self.role {
            Role::Tenant(network) => format!("the role tenant (of network {network}) does not allow {what}"),
            role => format!("the role {} does not allow {what}", role.name()),
        };
        Problem::new(ProblemKind::Forbidden, detail)
    }
}

/// A caller that only gets an error: its certificate gives no role, or its tenant has no connection left.
#[derive(Clone, Debug)]
pub(super) struct Stranger(pub(super) Problem);

impl From<RoleError> for Stranger {
    fn from(error: RoleError) -> Self {
        Self(Problem::new(ProblemKind::Unauthenticated, error.to_string()))
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        if let Some(known) = parts.extensions.get::<Self>() {
            return Ok(known.clone());
        }
        Err(match parts.extensions.get::<Stranger>() {
            Some(Stranger(problem)) => problem.clone(),
            None => Problem::new(ProblemKind::Unauthenticated, "the caller is not authenticated"),
        })
    }
}

/// An operation of the API.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Method; HEAD counts as GET.
    pub method: Method,
    /// Path, with parameters in braces.
    pub path: &'static str,
    /// Right that it needs.
    pub right: Right,
}

const fn operation(method: Method, path: &'static str, right: Right) -> Operation {
    Operation { method, path, right }
}

impl Operation {
    /// Whether it is answered from the running state, which a starting daemon does not know yet.
    #[must_use]
    pub fn needs_networks(&self) -> bool {
        const OTHERS: [&str; 6] =
            ["/healthz", "/openapi.json", "/v1/status", "/v1/config", "/v1/history", "/v1/events"];
        match self.method {
            Method::GET => !OTHERS.contains(&self.path),
            _ => self.path == "/v1/trace",
        }
    }
}

/// All operations of the API, and the rights they need. Anything else is refused.
pub static OPERATIONS: [Operation; 33] = [
    operation(Method::GET, "/healthz", Right::Known),
    operation(Method::GET, "/openapi.json", Right::Known),
    operation(Method::GET, "/metrics", Right::See),
    operation(Method::GET, "/v1/status", Right::See),
    operation(Method::GET, "/v1/node", Right::See),
    operation(Method::GET, "/v1/config", Right::See),
    operation(Method::GET, "/v1/history", Right::See),
    operation(Method::GET, "/v1/networks", Right::See),
    operation(Method::GET, "/v1/networks/{name}", Right::See),
    operation(Method::DELETE, "/v1/networks/{name}", Right::Delete),
    operation(Method::GET, "/v1/networks/{name}/exec", Right::Enter),
    operation(Method::POST, "/v1/networks/{name}/migrate", Right::Delete),
    operation(Method::POST, "/v1/networks/{name}/gate", Right::Delete),
    operation(Method::GET, "/v1/images", Right::Oversee),
    operation(Method::POST, "/v1/images/{name}/load", Right::Rule),
    operation(Method::POST, "/v1/card/drain", Right::Rule),
    operation(Method::GET, "/v1/ports", Right::See),
    operation(Method::GET, "/v1/routes", Right::See),
    operation(Method::GET, "/v1/neighbours", Right::See),
    operation(Method::GET, "/v1/macs", Right::See),
    operation(Method::GET, "/v1/entries", Right::See),
    operation(Method::GET, "/v1/tables", Right::See),
    operation(Method::GET, "/v1/stats", Right::See),
    operation(Method::GET, "/v1/placements", Right::See),
    operation(Method::GET, "/v1/plan", Right::Oversee),
    operation(Method::GET, "/v1/events", Right::See),
    operation(Method::GET, "/v1/capture", Right::Enter),
    operation(Method::POST, "/v1/apply", Right::Change),
    operation(Method::POST, "/v1/diff", Right::Change),
    operation(Method::POST, "/v1/rollback", Right::Change),
    operation(Method::POST, "/v1/confirm", Right::Delete),
    operation(Method::POST, "/v1/trace", Right::See),
    operation(Method::POST, "/v1/down", Right::Rule),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn role(units: &[&str], names: &[&str]) -> Result<Role, RoleError> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Role::try_from(&Subject { common_names: owned(names), units: owned(units) })
    }

    #[test]
    fn a_certificate_gives_one_role_or_none() {
        assert_eq!(role(&["viewer"], &["anybody"]), Ok(Role::Viewer));
        assert_eq!(role(&["operator"], &[]), Ok(Role::Operator));
        assert_eq!(role(&["admin"], &["a", "b"]), Ok(Role::Admin));
        assert_eq!(role(&["tenant"], &["red"]), Ok(Role::Tenant("red".into())));
        for units in
            [&[] as &[&str], &["Admin"], &["admin "], &["root"], &["viewer", "admin"], &["admin", "admin"]]
        {
            assert!(matches!(role(units, &["red"]), Err(RoleError::Unit(_))), "{units:?}");
        }
        for names in [&[] as &[&str], &["red", "blue"], &[""], &["red/blue"], &["*"]] {
            assert!(matches!(role(&["tenant"], names), Err(RoleError::Network(_))), "{names:?}");
        }
    }

    #[test]
    fn an_author_is_text_for_a_terminal() {
        let called =
            |name: &str| Caller { role: Role::Operator, called: Some(Called::Certificate(name.into())) };
        assert_eq!(called("alice").author(), Author { role: "operator".into(), name: Some("alice".into()) });
        let long = "a\u{1b}[31m\n".to_owned() + &"b".repeat(1000);
        let name = called(&long).author().name.unwrap();
        assert!(name.starts_with("a[31mb") && name.chars().count() == NAME_CHARS_MAX, "{name:?}");
        assert_eq!(Caller::local(Some(0)).author().name.as_deref(), Some("root"));
        assert_eq!(Caller::local(None).author(), Author { role: "admin".into(), name: None });
    }

    #[test]
    fn each_role_may_what_it_should() {
        let rights = [
            Right::Known,
            Right::See,
            Right::Oversee,
            Right::Enter,
            Right::Change,
            Right::Delete,
            Right::Rule,
        ];
        let may =
            |role: Role| rights.map(|right| Caller { role: role.clone(), called: None }.may(right).is_ok());
        assert_eq!(may(Role::Viewer), [true, true, true, false, false, false, false]);
        assert_eq!(may(Role::Operator), [true, true, true, true, true, true, false]);
        assert_eq!(may(Role::Admin), [true; 7]);
        assert_eq!(may(Role::Tenant("red".into())), [true, true, false, true, true, false, false]);
    }
}
