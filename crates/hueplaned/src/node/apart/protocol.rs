//! Messages between the daemon and a card's process: their length, then their contents in postcard's format.
//!
//! A process that outlives its daemon can be of another version of the program, so a daemon that connects to one first sends
//! [`GREETING`], which names the [`VERSION`] of all that follows. Source of the format: the `postcard` crate's specification.

use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use hue_card::{CardCommand, CardEvent, CardQuestion, CardReply, CardTotals, Description, Images};
use hue_demux::PortId;
use hue_host::rights;
use hue_ports::{Driver, OpenOptions};
use hue_substrate::Program;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Version of the messages, of the memory that both processes map, and of what commands mean. A test says when the format of
/// messages has changed.
const VERSION: u8 = 2;
/// The first bytes from a daemon that connects to a card's process.
pub(super) const GREETING: [u8; 8] = [b'h', b'u', b'e', b'c', b'a', b'r', b'd', VERSION];
/// Longest message, bytes. The longest ones load all networks at once.
const MESSAGE_BYTES_MAX: usize = 1 << 28;

/// To the card's process.
#[derive(Serialize, Deserialize)]
pub(super) enum ToCard {
    /// The first message: start this card, or be the one that runs already. Descriptors came before.
    Start(Start),
    /// For the card.
    Command(Box<CardCommand>),
    /// For the card, with a number for [`FromCard::Reply`].
    Ask(u64, CardQuestion),
    /// Open a port, with a number for [`FromCard::Opened`].
    Open(u64, String, OpenOptions),
    /// Give the port that was opened with this number to the card: its number there, and its id.
    SetPort(u64, u8, PortId),
    /// Close the port that was opened with this number, unless the card has it.
    ClosePort(u64),
    /// Start a card with this image and these networks in software, with a number for [`FromCard::Made`].
    Make(u64, String, Vec<Program>),
    /// Replace the card by the one that was made.
    Replace,
    /// End, after closing the card's ports.
    End,
}

/// Which card a daemon wants.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Start {
    /// Where images are.
    pub images: Images,
    /// Name of the image.
    pub image: String,
    /// Packet memory: slots, and bytes of each.
    pub memory: (u32, u32),
    /// Whether its thread shall have priority over ordinary threads.
    pub real_time: bool,
    /// Workers of the daemon.
    pub workers: usize,
    /// The card's ports: number, id, interface.
    pub ports: Vec<(u8, PortId, String)>,
}

/// From the card's process.
#[derive(Serialize, Deserialize)]
pub(super) enum FromCard {
    /// The card runs, or why it does not. The first message.
    Started(Result<Started, String>),
    /// The process will not serve the next daemon, which wants another card or none.
    RefusesNext,
    /// The card reports.
    Event(CardEvent),
    /// The answer with this number.
    Reply(u64, CardReply),
    /// The card's totals have changed.
    Totals(CardTotals),
    /// A port is open, with its driver and a note about it; or why it is not.
    Opened(u64, Result<(Driver, Option<String>), String>),
    /// A card was made, or why not.
    Made(u64, Result<Description, String>),
}

/// A card that runs.
#[derive(Serialize, Deserialize)]
pub(super) struct Started {
    /// Description of its image.
    pub description: Description,
    /// Why its thread does not have the desired priority.
    pub why_fair: Option<String>,
    /// The time by its clock, nanoseconds.
    pub now_ns: u64,
    /// How long the card has run.
    pub age: Duration,
}

/// Writes a message.
pub(super) fn write<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
    let len = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= MESSAGE_BYTES_MAX);
    let len =
        len.ok_or_else(|| io::Error::other(format!("a message of {} bytes is too long", bytes.len())))?;
    to.write_all(&len.to_ne_bytes())?;
    to.write_all(&bytes)
}

/// Sends messages until nobody is left who could make one.
///
/// # Errors
/// If the other end is closed, or a message is too long.
pub(super) fn send_all<T: Serialize>(messages: &Receiver<T>, to: UnixStream) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    while let Ok(message) = messages.recv() {
        write(&mut to, &message)?;
        for message in messages.try_iter() {
            write(&mut to, &message)?;
        }
        to.flush()?;
    }
    Ok(())
}

/// Receives what a daemon shares and which card it wants. Later messages follow.
pub(super) fn hear(socket: &UnixStream) -> io::Result<(Vec<OwnedFd>, BufReader<UnixStream>, Start)> {
    let fds = rights::receive(socket.as_fd())?;
    let mut from = BufReader::new(socket.try_clone()?);
    match read(&mut from)? {
        Some(ToCard::Start(start)) => Ok((fds, from, start)),
        _ => Err(io::Error::other("the first message does not start a card")),
    }
}

/// Reads a message; `None` if the other end is closed, also in the middle of a message.
///
/// A process that ends before it has read all that was sent to it resets the connection instead of closing it.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    match read_bytes(from) {
        Ok(bytes) => postcard::from_bytes(&bytes).map(Some).map_err(io::Error::other),
        Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn read_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    from.read_exact(&mut len)?;
    let len = u32::from_ne_bytes(len) as usize;
    if len > MESSAGE_BYTES_MAX {
        return Err(io::Error::other(format!("a message of {len} bytes is too long")));
    }
    let mut bytes = vec![0; len];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hue_card::{OnFailure, Seats, TableWork};
    use hue_demux::{Match, Row};
    use hue_planes::{Adjacency, Rate, RateLimit, Settings};
    use hue_substrate::{Entries, VirtualPort};
    use hue_tables::{NextHop, Vid};

    use super::*;

    fn program() -> Program {
        let (vid, port, mac) =
            (Vid::new(4095).unwrap(), PortId::new(3), "02:00:00:00:00:07".parse().unwrap());
        let hop = NextHop::new(1).unwrap();
        Program {
            vid,
            name: "grün".to_owned(),
            settings: Settings::of(hue_planes::Kind::Dual),
            ports: vec![VirtualPort { name: "left".to_owned(), port, mac, mtu_bytes: 1500, tunnel: None }],
            rows: vec![
                Row { vid, vport: 0, select: Match::Mac { port, mac } },
                Row {
                    vid,
                    vport: 0,
                    select: Match::Inner { port: None, prefix: "10.0.0.0/9".parse().unwrap() },
                },
            ],
            next_hops: vec![Adjacency::NONE, Adjacency::local()],
            groups: Vec::new(),
            entries: Entries::Dual(
                vec![("0.0.0.0/0".parse().unwrap(), hop)],
                vec![("2001:db8::1/128".parse().unwrap(), hop)],
            ),
            rate_limit: Some(RateLimit { packets: Some(Rate::new(5, 6).unwrap()), bits: None }),
            weight: 3,
            policies: None,
            gated: true,
        }
    }

    /// The command as it arrives.
    fn crossed(command: CardCommand) -> CardCommand {
        let mut bytes = Vec::new();
        write(&mut bytes, &ToCard::Command(Box::new(command))).unwrap();
        let mut from = &bytes[..];
        let Some(ToCard::Command(found)) = read(&mut from).unwrap() else { panic!("another message") };
        assert!(from.is_empty() && read::<ToCard>(&mut from).unwrap().is_none());
        *found
    }

    #[test]
    fn commands_arrive_as_they_were_sent() {
        let seat = Seats::new().unwrap().take(Vid::new(9).unwrap());
        let hop = NextHop::new(0).unwrap();
        let commands = [
            CardCommand::Load { homes: vec![(seat.vid, None)], programs: vec![program(); 3] },
            CardCommand::Follow {
                deltas: Vec::new(),
                seats: BTreeMap::from([(seat.vid, (seat, OnFailure::Falls))]),
            },
            CardCommand::Table {
                seat,
                work: TableWork::Routes(vec![("192.0.2.0/24".parse().unwrap(), Some(hop))]),
                on_failure: OnFailure::IsNotKept,
            },
            CardCommand::EndBypass,
        ];
        for command in commands {
            assert_eq!(crossed(command.clone()), command);
        }
    }

    #[test]
    fn nodes_of_a_table_arrive_as_they_were_sent() {
        let limits = hue_tables::Limits { image_bytes_max: 1 << 20, ..Default::default() };
        let (mut dag, vid) = (hue_tables::Dag::new(limits).unwrap(), Vid::new(2).unwrap());
        dag.enable_deltas();
        dag.add_network::<u32>(vid).unwrap();
        let routes: Vec<hue_tables::Change<u32>> = [("10.0.0.0/8", 1), ("10.1.0.0/16", 2), ("0.0.0.0/0", 3)]
            .map(|(prefix, hop)| (prefix.parse().unwrap(), NextHop::new(hop)))
            .to_vec();
        dag.apply(vid, &routes).unwrap();
        let deltas = dag.take_deltas();
        assert!(deltas.len() > 2, "{deltas:?}");
        let command = CardCommand::Follow { deltas, seats: BTreeMap::new() };
        assert_eq!(crossed(command.clone()), command);
    }

    /// Processes of different versions of the program talk to each other, so the version must tell formats apart.
    #[test]
    fn the_version_names_the_format_of_messages() {
        let vid = Vid::new(9).unwrap();
        let start = Start {
            images: Images::in_folders(vec!["/images".into()]),
            image: "default".to_owned(),
            memory: (16_384, 2048),
            real_time: true,
            workers: 2,
            ports: vec![(0, PortId::new(3), "eth0".to_owned())],
        };
        let from_daemon = [
            ToCard::Start(start),
            ToCard::Command(Box::new(CardCommand::Load {
                homes: vec![(vid, None)],
                programs: vec![program()],
            })),
            ToCard::Command(Box::new(CardCommand::Bypass(vec![program()]))),
            ToCard::Command(Box::new(CardCommand::EndBypass)),
            ToCard::Ask(1, CardQuestion::Counts(vec![vid])),
            ToCard::Ask(2, CardQuestion::OnCard),
            ToCard::Open(3, "eth0".to_owned(), OpenOptions::default()),
            ToCard::SetPort(4, 0, PortId::new(3)),
            ToCard::ClosePort(5),
            ToCard::Make(6, "default".to_owned(), vec![program()]),
            ToCard::Replace,
            ToCard::End,
        ];
        let from_card = [
            FromCard::Event(CardEvent::Stays(vid)),
            FromCard::Event(CardEvent::Bypassed(Ok(()))),
            FromCard::Reply(2, CardReply::OnCard(vec![vid])),
            FromCard::Totals(CardTotals::default()),
            FromCard::Opened(3, Ok((Driver::AfXdp { zero_copy: false }, None))),
            FromCard::Made(6, Err(String::new())),
            FromCard::RefusesNext,
        ];
        let mut bytes = Vec::new();
        from_daemon.iter().for_each(|message| write(&mut bytes, message).unwrap());
        from_card.iter().for_each(|message| write(&mut bytes, message).unwrap());
        // FNV-1a.
        let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        let found = (VERSION, bytes.len(), bytes.iter().fold(0xcbf2_9ce4_8422_2325, hash));
        assert_eq!(
            found,
            (2, 543, 17_312_923_064_248_071_681),
            "messages have another format: give them another version"
        );
    }

    #[test]
    fn a_message_that_is_cut_is_not_taken() {
        let mut bytes = Vec::new();
        write(&mut bytes, &ToCard::Command(Box::new(CardCommand::Strip(Box::new(program()))))).unwrap();
        for len in 0..bytes.len() {
            assert!(read::<ToCard>(&mut &bytes[..len]).unwrap().is_none(), "{len} bytes");
        }
    }

    /// The kernel reports what the other end had not read, not its end.
    #[test]
    fn who_ends_with_messages_unread_has_closed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        write(&mut &ours, &FromCard::RefusesNext).unwrap();
        drop(theirs);
        assert!(read::<FromCard>(&mut &ours).unwrap().is_none());
    }

    #[test]
    fn a_message_that_makes_no_sense_is_an_error() {
        // A VID that no network can have.
        let mut bytes = Vec::new();
        write(&mut bytes, &(1u32, 5u32, 4096u16)).unwrap();
        assert!(read::<ToCard>(&mut &bytes[..]).is_err());
        assert!(read::<ToCard>(&mut &[255; 8][..]).is_err(), "too long");
    }
}
