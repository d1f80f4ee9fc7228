//! Small argument types: `NAME=FILE`, and sizes in bytes.

use std::path::PathBuf;
use std::str::FromStr;

/// An argument `NAME=FILE`; the name ends at the first `=`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedFile {
    /// Name.
    pub name: String,
    /// File.
    pub file: PathBuf,
}

impl FromStr for NamedFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, file)) if !name.is_empty() && !file.is_empty() => {
                if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
                    return Err(format!("found name '{name}', expected a name without blanks"));
                }
                Ok(Self { name: name.to_owned(), file: file.into() })
            }
            _ => Err("expected NAME=FILE".to_owned()),
        }
    }
}

/// What a size must be, for errors.
const SIZE: &str = "expected a size below 16 EiB, such as 1048576, 1024KiB or 1GiB";

/// A size in bytes: `1048576`, `1024KiB` or `1MiB`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let shift = match unit {
            "" | "B" => 0,
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            _ if number.is_empty() => return Err(SIZE.to_owned()),
            _ => return Err(format!("found unit '{unit}', expected KiB, MiB or GiB")),
        };
        let number: u64 = number.parse().map_err(|_| SIZE.to_owned())?;
        number.checked_mul(1 << shift).map(Self).ok_or_else(|| SIZE.to_owned())
    }
}
