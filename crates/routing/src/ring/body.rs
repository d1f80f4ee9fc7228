//! Messages: the payloads of packets with payload type [`PAYLOAD_TYPE`].
//!
//! A message begins with its kind, the number of its items, and a value of two bytes; fields of a fixed length follow, then the
//! items. Labels are as long as the packet's. Numbers are big-endian. ADR 0071 and docs/guide/rofl.md have the table.

use hue_wire::rofl::{self, Label};

use super::drops::Drop;

/// Payload type of messages: IEEE 802 local experimental EtherType 2 (IEEE 802 §9.2.4).
pub const PAYLOAD_TYPE: u16 = 0x88b6;
/// Bytes before the fields.
pub const HEAD_BYTES: usize = 4;
/// Most items of a message.
pub const ITEMS_MAX: usize = 64;

const HELLO: u8 = 1;
const HOST: u8 = 2;
const LINKS: u8 = 3;
const WANT: u8 = 4;
const HAVE: u8 = 5;
const GONE: u8 = 6;
const JOIN: u8 = 7;
const ASK: u8 = 8;
const ANSWER: u8 = 9;
const LEAVE: u8 = 10;

const FLAG_HAS: u16 = 1;
const FLAG_TAKEN: u16 = 2;
const FLAG_BEFORE: u16 = 4;

/// A label, and the label of the router that has it.
pub type Located = (Label, Label);

/// The links of a router.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Links {
    /// Time since the router said so, tenths of a second.
    pub age_ds: u16,
    /// Of two, the one with the larger number is newer.
    pub sequence: u64,
    /// The router.
    pub origin: Label,
    /// Its neighbours.
    pub neighbours: Vec<Label>,
}

/// What a router says about a label that it was asked about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// The label that was asked about.
    pub asked: Label,
    /// The label on whose behalf; the same if it looks for its place.
    pub asker: Label,
    /// Whether the router has the label.
    pub has: bool,
    /// Whether another router has the asker's label.
    pub taken: bool,
    /// The label before the one asked about.
    pub before: Option<Located>,
    /// Those behind it, the nearest first.
    pub behind: Vec<Located>,
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Between neighbours, to all: the sender is here.
    Hello {
        /// Time between two of them.
        interval_ms: u16,
        /// Which links the sender knows: equal if it is the same ones.
        digest: u64,
        /// The routers that it hears on this link.
        heard: Vec<Label>,
    },
    /// From a host: the sender's label is here for so long; 0 if it leaves.
    Host {
        /// Tenths of a second.
        hold_ds: u16,
    },
    /// Between neighbours: the links of a router.
    Links(Links),
    /// Between neighbours: the sender wants to send packets for these labels to the receiver.
    Want(Vec<Located>),
    /// Between neighbours: the sender takes packets for these labels.
    Have(Vec<Label>),
    /// Between neighbours: not for these, or not any more.
    Gone(Vec<Label>),
    /// For the router with the closest label: a label looks for its place, or has found it.
    Join {
        /// The label.
        label: Label,
        /// Whether it has found it.
        found: bool,
    },
    /// Does the receiver have the label, and which one is before it? The asker is.
    Ask {
        /// The label.
        asked: Label,
        /// The label before it, as far as the sender knows.
        asker: Label,
    },
    /// The answer to [`Body::Ask`] and [`Body::Join`].
    Answer(Answer),
    /// A label leaves.
    Leave {
        /// The label.
        label: Label,
        /// The one behind it, if there is one.
        next: Option<Located>,
    },
}

impl Body {
    /// Whether it goes from neighbour to neighbour.
    #[must_use]
    pub const fn is_link(&self) -> bool {
        matches!(
            self,
            Self::Hello { .. }
                | Self::Host { .. }
                | Self::Links(_)
                | Self::Want(_)
                | Self::Have(_)
                | Self::Gone(_)
        )
    }

    /// Reads a message with labels of so many bytes.
    ///
    /// # Errors
    /// The reason to drop it.
    pub fn read(bytes: &[u8], label_bytes: usize) -> Result<Self, Drop> {
        let ([kind, count, high, low], rest) = bytes.split_first_chunk().ok_or(Drop::Length)?;
        let value = u16::from_be_bytes([*high, *low]);
        let mut reader = Reader { rest, label_bytes };
        let count = usize::from(*count);
        if count > ITEMS_MAX {
            return Err(Drop::Length);
        }
        let body = match *kind {
            HELLO => {
                Self::Hello { interval_ms: value, digest: reader.number()?, heard: reader.labels(count)? }
            }
            HOST => Self::Host { hold_ds: value },
            LINKS => Self::Links(Links {
                age_ds: value,
                sequence: reader.number()?,
                origin: reader.label()?,
                neighbours: reader.labels(count)?,
            }),
            WANT => Self::Want(reader.located(count)?),
            HAVE => Self::Have(reader.labels(count)?),
            GONE => Self::Gone(reader.labels(count)?),
            JOIN => Self::Join { label: reader.label()?, found: value & FLAG_HAS != 0 },
            ASK => Self::Ask { asked: reader.label()?, asker: reader.label()? },
            ANSWER => {
                let (asked, asker) = (reader.label()?, reader.label()?);
                let before = (reader.label()?, reader.label()?);
                Self::Answer(Answer {
                    asked,
                    asker,
                    has: value & FLAG_HAS != 0,
                    taken: value & FLAG_TAKEN != 0,
                    before: (value & FLAG_BEFORE != 0).then_some(before),
                    behind: reader.located(count)?,
                })
            }
            LEAVE => {
                let label = reader.label()?;
                let next = (reader.label()?, reader.label()?);
                Self::Leave { label, next: (value & FLAG_HAS != 0).then_some(next) }
            }
            _ => return Err(Drop::Kind),
        };
        if reader.rest.is_empty() { Ok(body) } else { Err(Drop::Length) }
    }

    /// Writes a message. Items beyond [`ITEMS_MAX`] are left out.
    #[must_use]
    pub fn bytes(&self, label_bytes: usize) -> Vec<u8> {
        let mut out = Writer { out: vec![0; HEAD_BYTES], label_bytes };
        let (kind, value, count) = match self {
            Self::Hello { interval_ms, digest, heard } => {
                out.out.extend(digest.to_be_bytes());
                (HELLO, *interval_ms, out.labels(heard))
            }
            Self::Host { hold_ds } => (HOST, *hold_ds, 0),
            Self::Links(links) => {
                out.out.extend(links.sequence.to_be_bytes());
                out.label(links.origin);
                (LINKS, links.age_ds, out.labels(&links.neighbours))
            }
            Self::Want(labels) => (WANT, 0, out.located(labels)),
            Self::Have(labels) => (HAVE, 0, out.labels(labels)),
            Self::Gone(labels) => (GONE, 0, out.labels(labels)),
            Self::Join { label, found } => {
                out.label(*label);
                (JOIN, u16::from(*found) * FLAG_HAS, 0)
            }
            Self::Ask { asked, asker } => {
                out.label(*asked);
                out.label(*asker);
                (ASK, 0, 0)
            }
            Self::Answer(answer) => {
                out.label(answer.asked);
                out.label(answer.asker);
                let (before, router) = answer.before.unwrap_or_default();
                out.label(before);
                out.label(router);
                let value = u16::from(answer.has) * FLAG_HAS
                    + u16::from(answer.taken) * FLAG_TAKEN
                    + u16::from(answer.before.is_some()) * FLAG_BEFORE;
                (ANSWER, value, out.located(&answer.behind))
            }
            Self::Leave { label, next } => {
                let (behind, router) = next.unwrap_or_default();
                [*label, behind, router].into_iter().for_each(|one| out.label(one));
                (LEAVE, u16::from(next.is_some()) * FLAG_HAS, 0)
            }
        };
        let [high, low] = value.to_be_bytes();
        let mut out = out.out;
        out.splice(..HEAD_BYTES, [kind, count, high, low]);
        out
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    label_bytes: usize,
}

impl Reader<'_> {
    fn number(&mut self) -> Result<u64, Drop> {
        let (number, rest) = self.rest.split_first_chunk().ok_or(Drop::Length)?;
        self.rest = rest;
        Ok(u64::from_be_bytes(*number))
    }

    fn label(&mut self) -> Result<Label, Drop> {
        let label = rofl::label(self.rest, self.label_bytes).ok_or(Drop::Length)?;
        self.rest = self.rest.get(self.label_bytes..).unwrap_or_default();
        Ok(label)
    }

    fn labels(&mut self, count: usize) -> Result<Vec<Label>, Drop> {
        (0..count).map(|_| self.label()).collect()
    }

    fn located(&mut self, count: usize) -> Result<Vec<Located>, Drop> {
        (0..count).map(|_| Ok((self.label()?, self.label()?))).collect()
    }
}

struct Writer {
    out: Vec<u8>,
    label_bytes: usize,
}

impl Writer {
    fn label(&mut self, label: Label) {
        self.out.extend(label.to_be_bytes().get(..self.label_bytes).unwrap_or_default());
    }

    fn labels(&mut self, labels: &[Label]) -> u8 {
        labels.iter().take(ITEMS_MAX).for_each(|label| self.label(*label));
        labels.len().min(ITEMS_MAX) as u8
    }

    fn located(&mut self, labels: &[Located]) -> u8 {
        for (label, router) in labels.iter().take(ITEMS_MAX) {
            self.label(*label);
            self.label(*router);
        }
        labels.len().min(ITEMS_MAX) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        for size in [4, 7, 16] {
            let label = |n: u128| (n << 120 | n << (128 - 8 * size)) & Label::MAX << (128 - 8 * size);
            let [a, b, c] = [1, 2, 0xfe].map(label);
            let answer = Answer { asked: a, asker: b, has: true, before: Some((c, a)), ..Answer::default() };
            let all = [
                (Body::Hello { interval_ms: 1000, digest: 7 << 60 | 3, heard: vec![a, b] }, 12 + 2 * size),
                (Body::Host { hold_ds: 35 }, 4),
                (
                    Body::Links(Links { age_ds: 9, sequence: 1 << 40, origin: a, neighbours: vec![b, c] }),
                    12 + 3 * size,
                ),
                (Body::Want(vec![(a, b), (c, b)]), 4 + 4 * size),
                (Body::Have(vec![a]), 4 + size),
                (Body::Gone(vec![b, c]), 4 + 2 * size),
                (Body::Join { label: a, found: true }, 4 + size),
                (Body::Ask { asked: a, asker: c }, 4 + 2 * size),
                (Body::Answer(Answer { behind: vec![(b, c)], taken: true, ..answer }), 4 + 6 * size),
                (Body::Leave { label: a, next: Some((b, c)) }, 4 + 3 * size),
                (Body::Leave { label: a, next: None }, 4 + 3 * size),
            ];
            for (body, length) in all {
                let bytes = body.bytes(size);
                assert_eq!((Body::read(&bytes, size), bytes.len()), (Ok(body.clone()), length), "{body:?}");
                for end in 0..length {
                    assert_eq!(Body::read(&bytes[..end], size), Err(Drop::Length), "{body:?}");
                }
                assert_eq!(Body::read(&[&bytes[..], &[0]].concat(), size), Err(Drop::Length), "{body:?}");
            }
        }
        assert_eq!(Body::read(&[0, 0, 0, 0], 4), Err(Drop::Kind));
        assert_eq!(Body::read(&[11, 0, 0, 0], 4), Err(Drop::Kind));
        assert_eq!(Body::read(&[&[5, 65, 0, 0][..], &[0; 260]].concat(), 4), Err(Drop::Length));
    }
}
