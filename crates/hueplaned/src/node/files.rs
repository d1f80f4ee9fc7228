//! Estimates the file descriptors that a desired state needs, so that a change that needs too many is refused as a whole.
//!
//! Flow: change → **here** → refused, or stored and applied. Only changes that need more than the state in force are refused:
//! a daemon that was restarted with a lower limit can still delete networks.

use hue_intent::Intent;
use hue_planes::Kind;

use crate::api::{Problem, ProblemKind};

/// Descriptors of the daemon itself: at most 576 connections of the API, the store, the log, control sockets, and a reserve.
const OWN: u64 = 640;
/// Descriptors of a port of the node: sockets, rings, programs and their maps.
const PER_PORT: u64 = 24;
/// Descriptors of a network: its namespace, and the socket that watches it.
const PER_NETWORK: u64 = 2;
/// Descriptors of a virtual port: its TAP device, three times (the worker, settings, and for restarts).
const PER_VIRTUAL_PORT: u64 = 3;

/// Descriptors of a network's program: pipes, and the process.
const PER_PROGRAM: u64 = 5;
/// Descriptors of a virtual port whose program uses AF_XDP: program, link, map (twice) and type information, rounded up.
const PER_REDIRECT: u64 = 7;

/// Descriptors that a daemon with this desired state needs, rounded up.
fn needed(intent: &Intent) -> u64 {
    let of = |network: &hue_intent::Network| {
        let plane = &network.spec.plane;
        let program = if plane.kind == Kind::Process { PER_PROGRAM } else { 0 };
        let per_port = PER_VIRTUAL_PORT + if plane.xdp { PER_REDIRECT } else { 0 };
        PER_NETWORK + program + per_port * network.spec.ports.len() as u64
    };
    let networks: u64 = intent.networks.iter().map(of).sum();
    OWN + PER_PORT * intent.node.spec.ports.len() as u64 + networks
}

/// Checks a change.
///
/// # Errors
/// `full` if it needs more descriptors than the state in force, and more than this process may open.
pub fn check(now: &Intent, next: &Intent, files_max: u64) -> Result<(), Problem> {
    let (before, after) = (needed(now), needed(next));
    if after <= files_max || after <= before {
        return Ok(());
    }
    let count = next.networks.len();
    let detail = format!(
        "{count} networks need about {after} open files, but the daemon's limit is {files_max}: \
         start it with a higher limit (`ulimit -n`, or `LimitNOFILE=` of the service)"
    );
    Err(Problem::new(ProblemKind::Full, detail))
}

#[cfg(test)]
mod tests {
    use hue_intent::Source;

    use super::*;

    fn networks(count: usize) -> Intent {
        let network = |n: usize| {
            format!(
                "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: n{n}}}\nspec: {{plane: {{kind: ipv4}}, \
                 ports: [{{name: a, port: p0, mac: \"02:00:00:00:{:02x}:{:02x}\", addresses: [10.{}.{}.1/24]}}]}}\n",
                n / 256,
                n % 256,
                n / 256,
                n % 256
            )
        };
        let text: String = (0..count).map(network).collect();
        hue_intent::parse(vec![Source { name: "all".to_owned(), bytes: text.into_bytes() }]).unwrap()
    }

    #[test]
    fn a_change_that_needs_too_many_files_is_refused() {
        let (none, few, many) = (networks(1), networks(10), networks(300));
        let limit = needed(&many);
        assert!(check(&none, &many, limit).is_ok());
        let problem = check(&few, &many, limit - 1).unwrap_err().to_string();
        assert!(problem.contains("300 networks") && problem.contains(&(limit - 1).to_string()), "{problem}");
        // A change that needs fewer descriptors is always allowed.
        assert!(check(&many, &few, 1).is_ok() && check(&many, &many, 1).is_ok());
        assert!(check(&few, &networks(11), 1).is_err());
    }
}
