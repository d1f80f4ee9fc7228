//! Whether an image has as much of something as a network needs.
//!
//! Place: wherever a program is checked. Pure.

use hue_substrate::SubstrateError;

use crate::device::Description;

/// Checks that an image has `max` of what a network needs, at least as many as it needs.
///
/// # Errors
/// `Room`.
pub fn room(
    description: &Description,
    name: &str,
    what: &'static str,
    needed: usize,
    max: u32,
) -> Result<(), SubstrateError> {
    if needed > max as usize {
        let (name, substrate) = (name.to_owned(), format!("image {}", description.name));
        return Err(SubstrateError::Room { name, substrate, what, needed, max: max as usize });
    }
    Ok(())
}
