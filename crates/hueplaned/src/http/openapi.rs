//! The OpenAPI description, from the handlers, the types, and the rights in [`OPERATIONS`].
//!
//! Published as `docs/reference/openapi.json`; a test compares it with the generated one.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::Operation as Described;
use utoipa::openapi::security::SecurityScheme;

use super::access::{OPERATIONS, Operation, Right};
use super::{change, events, history, read, stream};
use crate::api;

/// Extension of an operation: the roles that may call it.
const ROLES: &str = "x-hueplane-roles";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "hueplane",
        description = "The API of the hueplane daemon, on its Unix socket and, with mutual TLS, on TCP. Errors are RFC \
                       9457 problem details. `x-hueplane-roles` says which roles may call an operation.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    paths(
        read::healthz,
        get,
        read::metrics,
        read::status,
        read::node,
        read::config,
        history::history,
        read::networks,
        read::network,
        change::delete_network,
        read::exec_info,
        change::gate_network,
        change::migrate,
        read::images,
        change::load_image,
        change::drain,
        read::ports,
        read::routes,
        read::neighbours,
        read::macs,
        read::entries,
        read::tables,
        read::stats,
        read::placements,
        read::plan,
        events::events,
        stream::capture,
        change::apply,
        change::diff,
        history::rollback,
        history::confirm,
        change::trace,
        change::down,
    ),
    components(schemas(api::Event))
)]
struct Description;

/// This OpenAPI description.
#[utoipa::path(get, path = "/openapi.json", tag = "daemon", responses(
    (status = 200, description = "OpenAPI 3.1.", body = Object, content_type = "application/json"),
))]
pub(super) async fn get() -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], openapi_text()).into_response()
}

/// The description as data.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut openapi = Description::openapi();
    let components = openapi.components.get_or_insert_default();
    components.add_security_scheme(
        "certificate",
        SecurityScheme::MutualTls { description: None, extensions: None },
    );
    for operation in &OPERATIONS {
        if let Some(described) = described(&mut openapi, operation) {
            let roles: Vec<&str> = roles(operation.right).to_vec();
            described.extensions = Some(Extensions::builder().add(ROLES, roles).build());
        }
    }
    openapi
}

/// The description as published.
#[must_use]
pub fn openapi_text() -> String {
    openapi().to_pretty_json().unwrap_or_default() + "\n"
}

fn described<'o>(
    openapi: &'o mut utoipa::openapi::OpenApi,
    operation: &Operation,
) -> Option<&'o mut Described> {
    let item = openapi.paths.paths.get_mut(operation.path)?;
    match operation.method.as_str() {
        "GET" => item.get.as_mut(),
        "POST" => item.post.as_mut(),
        "DELETE" => item.delete.as_mut(),
        _ => None,
    }
}

/// Roles that have a right.
fn roles(right: Right) -> &'static [&'static str] {
    match right {
        Right::Known | Right::See => &["viewer", "operator", "admin", "tenant"],
        Right::Oversee => &["viewer", "operator", "admin"],
        Right::Enter | Right::Change => &["operator", "admin", "tenant"],
        Right::Delete => &["operator", "admin"],
        Right::Rule => &["admin"],
    }
}
