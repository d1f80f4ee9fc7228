//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is locked is replaced as a whole, so it is consistent even after a panic elsewhere.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
