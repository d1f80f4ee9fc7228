//! What `spec/codegen` wrote from `spec/kinds.toml`.

mod kinds;

pub use kinds::*;
