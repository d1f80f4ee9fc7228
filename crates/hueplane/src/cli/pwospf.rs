//! `hueplane pwospf`.

use std::net::Ipv4Addr;

use clap::Args;
use hue_routing::pwospf::RouterId;
use hue_tables::{AnyPrefix, Prefix4};
use hueplaned::number::whole;

use super::Output;

/// Route by PW-OSPF in a network's namespace
///
/// A small routing daemon for PW-OSPF, the protocol of the papers' control plane. It runs in the network namespace in which
/// it is started, until SIGTERM or Ctrl-C: it greets neighbours on the interfaces, learns the topology, and gives the
/// kernel the shortest paths, as routes with protocol 80 and metric 120. It removes them when it ends. If it is killed, they
/// stay, and the next one takes them over. Needs root. For networks that matter, use FRR or BIRD.
///
/// With --show, a running one says what it knows.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane exec red -- hueplane pwospf
  hueplane exec red -- hueplane pwospf --router-id 10.0.0.1 --interface left --default-route
  hueplane exec red -- hueplane pwospf --show -o json")]
pub struct Pwospf {
    /// Id of this router, unique in the area [default: its highest IPv4 address]
    #[arg(long, value_name = "ID", value_parser = router_id)]
    pub router_id: Option<RouterId>,
    /// Area, as a number or an address
    #[arg(long, value_name = "AREA", default_value = "0", value_parser = area)]
    pub area: Ipv4Addr,
    /// Seconds between hellos, the same for all routers of a link; a neighbour is lost after three of them
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = whole::<u16>(1..=3_600))]
    pub hello_interval: u16,
    /// Seconds between link state updates without a change
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = whole::<u16>(1..=3_600))]
    pub lsu_interval: u16,
    /// Interface to use (repeatable) [default: all with an IPv4 address, except the loopback]
    #[arg(long = "interface", value_name = "NAME")]
    pub interfaces: Vec<String>,
    /// Also advertise this subnet, which the router reaches by a route of its own (repeatable)
    #[arg(long = "static", value_name = "PREFIX", value_parser = prefix)]
    pub statics: Vec<Prefix4>,
    /// Also advertise the default route, as --static 0.0.0.0/0
    #[arg(long)]
    pub default_route: bool,
    /// Accept link state updates also from addresses that have not sent a hello, for routers that pass them on with the
    /// originator's address. Then hosts that are not on a link of this router can send some
    #[arg(long)]
    pub any_source: bool,
    /// Show neighbours, database, routes and counters of the one that runs in this namespace
    #[arg(long, conflicts_with_all = ["router_id", "area", "hello_interval", "lsu_interval", "interfaces", "statics", "default_route", "any_source"])]
    pub show: bool,
    #[command(flatten)]
    pub output: Output,
}

fn router_id(text: &str) -> Result<RouterId, String> {
    let id = text.parse().ok().and_then(RouterId::new);
    id.ok_or_else(|| {
        "expected the form of an address, such as 10.0.0.1, except 0.0.0.0 and 255.255.255.255".to_owned()
    })
}

fn area(text: &str) -> Result<Ipv4Addr, String> {
    let number = text.parse().map(Ipv4Addr::from_bits);
    number
        .or_else(|_| text.parse())
        .map_err(|_| "expected a number below 4294967296, or the form of an address".to_owned())
}

fn prefix(text: &str) -> Result<Prefix4, String> {
    match text.parse() {
        Ok(AnyPrefix::V4(prefix)) => {
            // What other routers would refuse.
            if hue_routing::pwospf::packet::is_routed(prefix) {
                Ok(prefix)
            } else {
                Err("expected a prefix that is routed, not one of 0.0.0.0/8, 127.0.0.0/8 or 224.0.0.0/3"
                    .to_owned())
            }
        }
        Ok(AnyPrefix::V6(_)) => Err("found IPv6, expected a prefix of IPv4: PW-OSPF has no other".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked() {
        assert_eq!(area("0.0.0.7"), area("7"));
        for wrong in ["", "-1", "4294967296", "1.2.3", "a"] {
            assert!(area(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0.0.0.0", "255.255.255.255", "7", "::1"] {
            assert!(router_id(wrong).is_err(), "{wrong}");
        }
        assert!(prefix("0.0.0.0/0").is_ok() && prefix("10.0.0.0/8").is_ok());
        for wrong in ["10.0.0.1/8", "127.0.0.0/8", "224.0.0.0/4", "0.0.0.0/8", "2001:db8::/32", "10.0.0.0"] {
            assert!(prefix(wrong).is_err(), "{wrong}");
        }
    }
}
