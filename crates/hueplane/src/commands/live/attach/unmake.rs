//! What detach removes.
//!
//! Flow: marks → hosts → segments that no host is on any more. Invariants: nothing without a mark is removed; a namespace is deleted only
//! without other interfaces and without processes.

use hue_host::links::{Link, Links};
use hue_host::{HostError, Namespace, netns};

use super::mark::{MARK, Segment};

/// Interfaces that the kernel puts into new namespaces when it has these modules.
const KERNELS: [&str; 9] =
    ["tunl0", "sit0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6tnl0", "ip6gre0"];

/// Deletes a namespace that attach created, if nothing else is in it. Returns whether, and why it stays.
pub fn release(name: &str) -> Result<(bool, Option<String>), HostError> {
    let namespace = match Namespace::open(name) {
        Ok(namespace) => namespace,
        // A path, or gone.
        Err(HostError::NoNamespace(_) | HostError::NamespaceName(_)) => return Ok((false, None)),
        Err(error) => return Err(error),
    };
    let links = Links::inside(&namespace)?.list()?;
    if !links.iter().any(|link| link.loopback && link.alias.as_deref() == Some(MARK)) {
        return Ok((false, None));
    }
    let foreign = |link: &&Link| !link.loopback && !KERNELS.contains(&link.name.as_str());
    if let Some(link) = links.iter().find(foreign) {
        return Ok((false, Some(format!("it has interface {}", link.name))));
    }
    let identity = namespace.identity()?;
    if let Some((pid, _)) = netns::processes().find(|(_, place)| *place == identity) {
        return Ok((false, Some(format!("process {pid} runs in it"))));
    }
    Ok((netns::delete(name)?, None))
}

/// Removes segments that no host is on. Returns those that stay because of an interface that attach did not make.
pub fn sweep(here: &mut Links) -> Result<Vec<Segment>, HostError> {
    let mut kept = Vec::new();
    for segment in Segment::all(&here.list()?) {
        if segment.is_unused() {
            remove(here, &segment)?;
        } else if segment.hosts.is_empty() {
            kept.push(segment);
        }
    }
    Ok(kept)
}

/// Removes a segment.
pub fn remove(here: &mut Links, segment: &Segment) -> Result<(), HostError> {
    for part in &segment.parts {
        // The end of a wire is gone with the other.
        here.delete(part)?;
    }
    Ok(())
}
