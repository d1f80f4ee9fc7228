//! The `process` kind: a program of the owner's forwards, in the network's namespace. Source: ADR 0069.

crate::delegated::delegated!(Process process);
