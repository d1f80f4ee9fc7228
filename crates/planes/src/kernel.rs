//! The `kernel` kind: Linux forwards, in the network's namespace. Source: ADR 0069.

crate::delegated::delegated!(Kernel kernel);
