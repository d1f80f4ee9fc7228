//! Explains one packet: as the plane of its family does, with this kind's names of outcomes. For `hueplane trace`.

use super::{Outcome, Settings, of_ipv4, of_ipv6};
use crate::Plane;
use crate::explain::sentence;
use crate::plane::{Explanation, Looked};
use crate::reason::Reason;
use crate::{ipv4, ipv6};

/// Explains a frame that is not of IPv6.
pub(super) fn ipv4(
    frame: &[u8],
    settings: Settings,
    look: impl FnOnce(ipv4::Checked) -> Looked,
) -> Explanation {
    let explained = ipv4::Plane::explain(frame, settings, look);
    let outcome = ipv4::Outcome::from_code(explained.outcome.code()).map(of_ipv4);
    renamed(explained, outcome)
}

/// Explains a frame of IPv6.
pub(super) fn ipv6(frame: &[u8], look: impl FnOnce(ipv6::Checked) -> Looked) -> Explanation {
    let explained = ipv6::Plane::explain(frame, ipv6::Settings::default(), look);
    let outcome = ipv6::Outcome::from_code(explained.outcome.code()).map(of_ipv6);
    renamed(explained, outcome)
}

/// The same explanation, of an outcome of this kind.
fn renamed(mut explained: Explanation, outcome: Option<Outcome>) -> Explanation {
    let (before, Some(outcome)) = (explained.outcome, outcome.map(Reason::from)) else { return explained };
    if let Some(last) = explained.stages.last_mut() {
        last.outcome = Some(outcome.name());
        if let Some(what) = last.detail.strip_suffix(&sentence(before)) {
            last.detail = format!("{what}{}", sentence(outcome));
        }
    }
    Explanation { outcome, ..explained }
}
