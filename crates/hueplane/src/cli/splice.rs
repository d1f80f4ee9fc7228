//! `hueplane splice-host`.

use std::net::Ipv4Addr;

use clap::{Args, ValueEnum};
use hue_planes::splice::{Bits, SLICES};
use hueplaned::number::whole;

/// Most lanes to a peer: the bits of a word of a keepalive.
pub const LANES_MAX: u8 = 16;

/// Set the splicing bits of a host's packets, and others when a path fails
///
/// For a host beside routers of kind `splice`: packets to the given peers get splicing bits, which choose their path. The same program
/// runs at each peer. Both say on each path, in short intervals, that they are there, and what they hear of the other; a path on which
/// nothing arrives gets other bits: each slice in turn, then any. So packets are on another path after about five intervals, long
/// before routing notices a failure that no interface shows.
///
/// It makes a device (by default splice0) with a route for each peer, and sends what the kernel sends there on --interface, with bits.
/// With `--bits ip_id` it sets DF in all packets, and what comes from peers needs nothing. With `--bits shim` it takes the header
/// with the bits out of what comes from peers. It ends with SIGTERM or Ctrl-C; device and routes then go. Needs root.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane splice-host --interface eth0 --peer 10.2.0.2
  hueplane splice-host --interface eth0 --peer 10.2.0.2 --slices 4 --lanes 4 --bits shim --interval 20")]
pub struct SpliceHost {
    /// Interface that leads to the routers
    #[arg(long, value_name = "NAME")]
    pub interface: String,
    /// Address of a host at which the same program runs (repeatable)
    #[arg(long = "peer", value_name = "ADDRESS", required = true)]
    pub peers: Vec<Ipv4Addr>,
    /// Slices of the routers, as plane.slices
    #[arg(long, value_name = "NUMBER", default_value_t = SLICES.default, value_parser = whole::<u8>(SLICES.min..=SLICES.max))]
    pub slices: u8,
    /// Where the splicing bits are, as plane.bits
    #[arg(long, value_name = "PLACE", value_enum, default_value_t = Place::IpId)]
    pub bits: Place,
    /// How many paths to use at once; each flow stays on one of them
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = whole::<u8>(1..=LANES_MAX.into()))]
    pub lanes: u8,
    /// Milliseconds between messages to a peer on a path; the same at both ends
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 50, value_parser = whole::<u16>(5..=10_000))]
    pub interval: u16,
    /// Name of the device
    #[arg(long, value_name = "NAME", default_value = "splice0")]
    pub device: String,
}

/// Where splicing bits are.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the identification of the IPv4 header
    #[value(name = "ip_id")]
    IpId,
    /// In a header behind it
    Shim,
}

impl Place {
    /// As routers have it.
    pub const fn bits(self) -> Bits {
        match self {
            Self::IpId => Bits::IpId,
            Self::Shim => Bits::Shim,
        }
    }
}
