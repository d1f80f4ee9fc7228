//! `hueplane rofl-host` and `hueplane rofl-ring`.

use std::net::IpAddr;
use std::str::FromStr;

use clap::Args;
use hue_tables::AnyPrefix;
use hue_wire::Mac;
use hue_wire::rofl::{LABEL_BYTES_MAX, LABEL_BYTES_MIN, Label};
use hueplaned::number::whole;

use super::Output;

/// Give IP to programs over a network of flat labels
///
/// The endpoint of a host of a network of kind `rofl`: a TAP device on one side, packets with flat labels on the other. IP
/// packets that the kernel sends to the device leave with the label of their destination (--to); those that arrive for the
/// host's own label come out of it. Runs until SIGTERM or Ctrl-C, then prints what it counted. Needs root.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane rofl-host --interface eth0 --router 02:00:00:00:08:00 --label 0x20000000 \\
    --address 10.8.0.1/24 --to 10.8.0.2=0xa0000000
  hueplane rofl-host --interface eth0 --router 02:00:00:00:08:00 --label 0x20000000 --teach \\
    --address fd08::1/64 --to fd08::2=0xa0000000 --to ::/0=0x80000000")]
pub struct RoflHost {
    /// Interface towards the router
    #[arg(long, value_name = "NAME")]
    pub interface: String,
    /// MAC address of the router, as the network's document has it
    #[arg(long, value_name = "MAC", value_parser = router)]
    pub router: Mac,
    /// The host's own label, in hexadecimal digits; all labels of a network have as many
    #[arg(long, value_name = "LABEL")]
    pub label: HostLabel,
    /// Destinations and the label that has them (repeatable); the longest prefix counts
    #[arg(long = "to", value_name = "PREFIX=LABEL", required = true)]
    pub to: Vec<Mapping>,
    /// Name of the TAP device
    #[arg(long, value_name = "NAME", default_value = "rofl0")]
    pub tap: String,
    /// Address of the TAP device, with the length of its prefix (repeatable)
    #[arg(long = "address", value_name = "ADDRESS/LENGTH", value_parser = address)]
    pub addresses: Vec<(IpAddr, u8)>,
    /// How many routers may forward a packet
    #[arg(long, value_name = "HOPS", default_value_t = 64, value_parser = whole::<u8>(1..=254))]
    pub hops: u8,
    /// Tell the router each second that the label is here, for its `hueplane rofl-ring`
    #[arg(long)]
    pub join: bool,
    /// Put the own label into the source route of each packet, so that routers cache the way back
    #[arg(long)]
    pub teach: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Route by a ring of flat labels in a network's namespace
///
/// The routing daemon of a network of kind `rofl`. It runs in the network's namespace, until SIGTERM or Ctrl-C: it greets other
/// routers on all ports, learns from them where labels are, and gives the network these entries, besides those of its
/// document. Labels of hosts that say so (rofl-host --join) and of the document join the ring. It takes the entries back when
/// it ends. If it is killed, they stay for a minute. Needs root.
///
/// With --show, a running one says what it knows.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane exec flat -- hueplane rofl-ring
  hueplane exec flat -- hueplane rofl-ring --label 0x10000000 --interval 500
  hueplane exec flat -- hueplane rofl-ring --show -o json")]
pub struct RoflRing {
    /// The router's own label, which no other router and no host has [default: the first own label of the network's document;
    /// without one, a label made of the MAC address of its first port]
    #[arg(long, value_name = "LABEL")]
    pub label: Option<HostLabel>,
    /// Milliseconds between hellos, the same for all routers; a neighbour is lost after three and a half of them
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = whole::<u16>(50..=60_000))]
    pub interval: u16,
    /// Show neighbours, routers, labels and counters of the one that runs in this namespace
    #[arg(long, conflicts_with_all = ["label", "interval"])]
    pub show: bool,
    #[command(flatten)]
    pub output: Output,
}

/// A label and its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostLabel {
    /// The label, left-aligned.
    pub label: Label,
    /// Its bytes.
    pub bytes: usize,
}

impl FromStr for HostLabel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let label: Option<hue_intent::Digits> = text.parse().ok();
        let label = label.filter(|digits| (LABEL_BYTES_MIN..=LABEL_BYTES_MAX).contains(&digits.bytes));
        let digits = label.ok_or_else(|| {
            format!(
                "expected {} to {} hexadecimal digits, two for each byte, such as 0x0a000001",
                2 * LABEL_BYTES_MIN,
                2 * LABEL_BYTES_MAX
            )
        })?;
        Ok(Self { label: digits.bits, bytes: digits.bytes })
    }
}

/// A prefix and the label that has its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The prefix.
    pub prefix: AnyPrefix,
    /// The label.
    pub label: HostLabel,
}

impl FromStr for Mapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected an address or a prefix, =, and a label, such as 10.8.0.2=0xa0000000";
        let (prefix, label) = text.split_once('=').ok_or(expected)?;
        let prefix = match prefix.parse::<IpAddr>() {
            Ok(address) => format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 }),
            Err(_) => prefix.to_owned(),
        };
        let prefix = prefix.parse().map_err(|error| format!("{expected}: {error}"))?;
        Ok(Self { prefix, label: label.parse()? })
    }
}

fn router(text: &str) -> Result<Mac, String> {
    let mac: Option<Mac> = text.parse().ok();
    mac.filter(|mac| mac.is_unicast())
        .ok_or_else(|| "expected the MAC address of one interface, such as 02:00:00:00:08:00".to_owned())
}

fn address(text: &str) -> Result<(IpAddr, u8), String> {
    let expected = "expected an address and the length of its prefix, such as 10.8.0.1/24";
    let (address, len) = text.split_once('/').ok_or(expected)?;
    let (address, len): (IpAddr, u8) = address.parse().ok().zip(len.parse().ok()).ok_or(expected)?;
    let max = if address.is_ipv4() { 32 } else { 128 };
    if len > max { Err(expected.to_owned()) } else { Ok((address, len)) }
}
