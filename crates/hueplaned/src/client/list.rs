//! Reads a JSON array element by element, so that a full route table is never in memory at once.

use std::fmt;
use std::io::{BufReader, Read};
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, SeqAccess, Visitor};

struct Each<T, F> {
    each: F,
    of: PhantomData<T>,
}

impl<'de, T: DeserializeOwned, F: FnMut(T)> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: DeserializeOwned, F: FnMut(T)> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            (self.each)(item);
        }
        Ok(())
    }
}

/// Passes each element of the array to `each`.
pub(super) fn each<T: DeserializeOwned>(from: impl Read, each: impl FnMut(T)) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_reader(BufReader::new(from));
    Each { each, of: PhantomData }.deserialize(&mut deserializer)?;
    deserializer.end()
}

#[cfg(test)]
mod tests {
    #[test]
    fn elements_come_until_it_breaks_off() {
        let mut seen = Vec::new();
        super::each("[1, 2,3]\n".as_bytes(), |number: u8| seen.push(number)).unwrap();
        super::each("[]".as_bytes(), |number: u8| seen.push(number)).unwrap();
        super::each("[4, 5".as_bytes(), |number: u8| seen.push(number)).unwrap_err();
        super::each("[6] 7".as_bytes(), |number: u8| seen.push(number)).unwrap_err();
        assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    }
}
