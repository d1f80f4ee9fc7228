//! The history of the documents, and rollbacks.
//!
//! A rollback needs the rights of an apply of the same documents, which its own dry run tells: an operator may change
//! networks, but not the node; a tenant restores only its network, and only the parts that it may change.
#![allow(unused_qualifications)] // written by the macros of utoipa

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::access::{Caller, Role};
use super::change::{TENANTS_OWN, again, refused_to_operator, this, turn};
use super::input::{Ask, answer, json};
use super::{App, BODY_BYTES_MAX, scope};
use crate::api::{
    Action, ConfirmRequest, ConfirmResult, History, ObjectKind, Problem, ProblemKind, RollbackRequest,
    RollbackResult, TurnQuery, Verb,
};
use crate::backend::Turn;

/// Revisions of the documents, newest first: each accepted change of the desired state is one. The daemon keeps the
/// latest 100, and at most 64 MiB of them.
#[utoipa::path(get, path = "/v1/history", tag = "desired state", responses(
    (status = 200, description = "The revisions that are kept; a tenant gets those of its network.", body = History),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn history(State(app): State<App>, caller: Caller) -> Response {
    answer(app.backend.history().await.map(|history| scope::history(&caller, history)))
}

/// Restores the documents of a revision, as an apply of these documents would: only what differs changes, and documents
/// that the revision did not have stay without `prune`. A tenant restores its network.
#[utoipa::path(post, path = "/v1/rollback", tag = "desired state", request_body = RollbackRequest, params(TurnQuery),
    responses(
        (status = 200, description = "Changes that were made.", body = RollbackResult),
        (status = 404, description = "The revision is not kept.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Desired state has another generation; with `no_wait`: another change is under way.",
            body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "Documents of the revision are not valid any more; `findings` says why.", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "The error; nothing has changed.", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn rollback(
    State(app): State<App>,
    caller: Caller,
    Ask(query): Ask<TurnQuery>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let work = async || {
        // It holds documents in memory, as an apply does.
        let _place = app.places.change(&caller, query).await?;
        let request: RollbackRequest = json(&app, &headers, body, BODY_BYTES_MAX).await?;
        let mut result = rolled_back(&app, &caller, request, turn(&caller, query).await?).await?;
        result.networks.retain(|network| caller.sees(&network.name));
        Ok(result)
    };
    answer::<RollbackResult>(work().await)
}

/// Confirms the change that waits for it, so that the daemon does not undo it. Only who may make the change may confirm it.
#[utoipa::path(post, path = "/v1/confirm", tag = "desired state", request_body = ConfirmRequest, params(TurnQuery),
    responses(
        (status = 200, description = "The change stays.", body = ConfirmResult),
        (status = 409, description = "No change waits for a confirmation, or another one; with `no_wait`: another change is under way.",
            body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn confirm(
    State(app): State<App>,
    caller: Caller,
    Ask(query): Ask<TurnQuery>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let work = async || {
        let mut request: ConfirmRequest = json(&app, &headers, body, BODY_BYTES_MAX).await?;
        if caller.role != Role::Admin
            && let Some(pending) = app.backend.status().await?.pending
        {
            if let Some(other) = pending.changes.iter().find(|change| change.object != ObjectKind::Network) {
                let (verb, object) = (other.verb.name(), other.object.name());
                return Err(caller.forbidden(&format!("this: {verb} {object} {}", other.name)));
            }
            // What was judged is what is confirmed.
            request.revision = request.revision.or(Some(pending.revision));
        }
        app.backend.confirm(request, turn(&caller, query).await?).await
    };
    answer::<ConfirmResult>(work().await)
}

/// Fails for a tenant while a change waits for its confirmation, without saying whose it is.
pub(super) async fn none_waits(app: &App, caller: &Caller) -> Result<(), Problem> {
    if caller.only().is_some()
        && let Some(pending) = app.backend.status().await?.pending
    {
        let seconds = pending.remaining_s;
        let detail =
            format!("a change waits for its confirmation for another {seconds} s: try again after that");
        return Err(Problem::new(ProblemKind::Conflict, detail));
    }
    Ok(())
}

/// Rolls back if the caller may make all of the changes.
async fn rolled_back(
    app: &App,
    caller: &Caller,
    request: RollbackRequest,
    turn: Turn,
) -> Result<RollbackResult, Problem> {
    let only = caller.only().map(str::to_owned);
    if caller.role == Role::Admin {
        return app.backend.rollback(request, only, turn).await;
    }
    if only.is_some() && request.prune {
        return Err(caller.forbidden("a prune of all networks"));
    }
    let (named, request, only) = (request.if_generation, &request, &only);
    again(named, || {
        let turn = turn.clone();
        async move {
            let trial = RollbackRequest { dry_run: true, ..request.clone() };
            let trial = app.backend.rollback(trial, only.clone(), Turn::default()).await?;
            if let Some(refused) = trial.actions.iter().find_map(|action| refused(caller, action)) {
                return Err(caller.forbidden(&refused));
            }
            if request.dry_run {
                return Ok(trial);
            }
            none_waits(app, caller).await?;
            // What was judged is what is made: this revision, on this generation.
            let bound = RollbackRequest {
                revision: Some(trial.revision),
                if_generation: named.or(Some(trial.generation)),
                ..request.clone()
            };
            app.backend.rollback(bound, only.clone(), turn).await
        }
    })
    .await
}

/// What of an action a caller may not do, if anything.
fn refused(caller: &Caller, action: &Action) -> Option<String> {
    let Some(only) = caller.only() else { return refused_to_operator(action) };
    if action.object != ObjectKind::Network || action.name != only {
        return Some("changes outside its own network".to_owned());
    }
    if action.verb != Verb::Change {
        return Some(this(action));
    }
    let own = |field: &str| {
        let field = field.strip_prefix("spec.").unwrap_or_default();
        TENANTS_OWN.iter().any(|own| {
            field.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
        })
    };
    // A list that is cut off may hide a field: it is refused.
    let cut = action.changes.len() >= hue_control::CHANGES_MAX;
    let other = action.changes.iter().find(|change| !own(&change.field));
    match other {
        Some(change) => Some(format!("a change of {}", change.field)),
        None => cut.then(|| format!("a change of {} fields at once", action.changes.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::FieldChange;

    #[test]
    fn a_tenant_restores_only_its_own_parts() {
        let caller = Caller { role: Role::Tenant("red".into()), called: None };
        let action = |verb, name: &str, fields: &[&str]| {
            let change = |field: &&str| FieldChange { field: (*field).into(), before: None, after: None };
            let changes = fields.iter().map(change).collect();
            Action { verb, object: ObjectKind::Network, name: name.into(), changes }
        };
        let may = |action: Action| refused(&caller, &action).is_none();
        assert!(may(action(Verb::Change, "red", &["spec.routes[0].via", "spec.colour", "spec.neighbours"])));
        assert!(may(action(Verb::Change, "red", &["spec.static_macs[3].port", "spec.static_macs"])));
        assert!(!may(action(Verb::Change, "red", &["spec.static_macs[3].port", "spec.plane.sticky"])));
        assert!(!may(action(Verb::Change, "red", &["spec.routes[0].via", "spec.weight"])));
        assert!(!may(action(Verb::Change, "red", &["spec.routesfoo"])));
        assert!(!may(action(Verb::Change, "blue", &["spec.colour"])));
        assert!(!may(action(Verb::Create, "red", &[])) && !may(action(Verb::Delete, "red", &[])));
        assert!(!may(action(Verb::Change, "red", &["spec.colour"; hue_control::CHANGES_MAX])));
    }
}
