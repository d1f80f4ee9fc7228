//! What `spec/codegen` wrote from `spec/kinds.toml` and `spec/kinds/`.

mod kinds;

pub use kinds::*;
