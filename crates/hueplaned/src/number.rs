//! Numbers on the command line: a parser whose errors name the valid range.
//!
//! clap's own parsers say "invalid digit found in string" and name the range only to numbers that fit the type.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

/// A parser of whole numbers in a range, for `value_parser`.
pub fn whole<T>(
    range: impl RangeBounds<T> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + 'static,
{
    move |text| {
        let value = text.parse::<T>().ok().filter(|value| range.contains(value));
        value.ok_or_else(|| expected(range.start_bound(), range.end_bound()))
    }
}

/// The same for a number whose 0 means that the program chooses.
pub fn whole_or_automatic<T>(
    range: impl RangeBounds<T> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + 'static,
{
    let parse = whole(range);
    move |text| parse(text).map_err(|error| error + "; 0 selects it automatically")
}

/// Parses the address and port of a socket.
///
/// # Errors
/// When the text is something else; the message says what is expected.
pub fn address_and_port(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an IP address and a port from 0 to 65535, such as 0.0.0.0:7443 or [::]:7443";
    text.parse().map_err(|_| expected.to_owned())
}

fn expected<T: Display>(from: Bound<&T>, to: Bound<&T>) -> String {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => {
            format!("expected a whole number from {from} to {to}")
        }
        (Bound::Included(from), _) => format!("expected a whole number of at least {from}"),
        _ => "expected a whole number".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_range() {
        let workers = whole_or_automatic(0..=64_usize);
        assert_eq!((workers("0"), workers("64")), (Ok(0), Ok(64)));
        for text in ["-1", "65", "99999999999999999999", "x", "", "1.5"] {
            let error = workers(text).unwrap_err();
            assert_eq!(error, "expected a whole number from 0 to 64; 0 selects it automatically", "{text}");
        }
        assert_eq!(whole(1_u64..)("0").unwrap_err(), "expected a whole number of at least 1");
        assert_eq!(whole::<u64>(..)("x").unwrap_err(), "expected a whole number");
    }
}
