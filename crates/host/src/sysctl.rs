//! Kernel settings of a namespace, in `/proc/sys`.
//!
//! Keys use slashes (`net/ipv4/ip_forward`), because interface names can contain dots. `/proc/sys/net` shows
//! the settings of the namespace of the thread that opens it.

use std::fs;
use std::io;

use crate::error::HostError;
use crate::netns::Namespace;

/// Sets a setting of a namespace if it differs. Returns whether it changed.
///
/// # Errors
/// If the setting does not exist, or the system call fails.
pub fn set(namespace: &Namespace, key: &str, value: &str) -> Result<bool, HostError> {
    namespace.run(|| set_here(key, value))?
}

/// A setting of a namespace; `None` if it does not exist.
///
/// # Errors
/// If the system call fails.
pub fn get(namespace: &Namespace, key: &str) -> Result<Option<String>, HostError> {
    namespace.run(|| get_here(key))?
}

/// As [`set`], in the calling thread's namespace.
///
/// # Errors
/// As [`set`].
pub fn set_here(key: &str, value: &str) -> Result<bool, HostError> {
    if get_here(key)?.is_some_and(|now| same(&now, value)) {
        return Ok(false);
    }
    fs::write(path(key), value).map_err(|error| HostError::system(format!("set {key} to {value}"), error))?;
    Ok(true)
}

/// As [`get`], in the calling thread's namespace.
///
/// # Errors
/// As [`get`].
pub fn get_here(key: &str) -> Result<Option<String>, HostError> {
    match fs::read_to_string(path(key)) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(HostError::system(format!("read {key}"), error)),
    }
}

/// Raises a number in the calling thread's namespace to at least `least`. A higher value, or a missing
/// setting, stays. Returns whether it changed.
///
/// # Errors
/// If the system call fails.
pub fn raise_here(key: &str, least: u64) -> Result<bool, HostError> {
    match get_here(key)?.and_then(|now| now.parse::<u64>().ok()) {
        Some(now) if now < least => set_here(key, &least.to_string()),
        _ => Ok(false),
    }
}

/// Raises the neighbour limits for all networks together: the kernel has one table for all namespaces, and
/// rejects new entries beyond `gc_thresh3` (1,024) entries that are not permanent. Each address family has its own.
///
/// # Errors
/// If the system call fails, as in a container.
pub fn raise_neighbour_limits() -> Result<bool, HostError> {
    const NEIGHBOURS: u64 = 131_072;
    let mut changed = false;
    // From the highest limit to the lowest, so that they are always in order.
    for (key, least) in
        [("gc_thresh3", NEIGHBOURS), ("gc_thresh2", NEIGHBOURS / 2), ("gc_thresh1", NEIGHBOURS / 8)]
    {
        for family in ["ipv4", "ipv6"] {
            changed |= raise_here(&format!("net/{family}/neigh/default/{key}"), least)?;
        }
    }
    Ok(changed)
}

/// Settings with several numbers are read back with tabs between them.
fn same(now: &str, value: &str) -> bool {
    now.split_ascii_whitespace().eq(value.split_ascii_whitespace())
}

fn path(key: &str) -> String {
    format!("/proc/sys/{key}")
}
