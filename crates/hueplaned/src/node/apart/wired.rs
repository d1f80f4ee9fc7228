//! The ports of a card's process, as the next daemon finds them.

use hue_demux::PortId;
use hue_ports::{Driver, OpenOptions, Wanted};

/// A port that was opened.
#[derive(Clone)]
pub(super) struct Wired {
    /// The port, as networks name it.
    pub id: PortId,
    /// Its interface.
    pub interface: String,
    /// How it was opened.
    pub options: OpenOptions,
    /// Its driver.
    pub driver: Driver,
    /// A note about it.
    pub note: Option<String>,
    /// Whether an earlier daemon has opened it, and the present one has not asked for it yet.
    pub is_left: bool,
}

impl Wired {
    /// Whether opening the interface in this way would give the same port.
    pub fn is_as(&self, options: &OpenOptions) -> bool {
        let has = &self.options;
        let same = (has.ring, has.pass_unknown, has.group, has.persist)
            == (options.ring, options.pass_unknown, options.group, options.persist);
        same && (has.driver == options.driver || self.is_afxdp_as(options))
    }

    /// Whether AF_XDP is asked for, and was the first choice before. The next daemon asks in this way while the one before ends.
    fn is_afxdp_as(&self, options: &OpenOptions) -> bool {
        (self.options.driver, options.driver) == (Wanted::Auto, Wanted::AfXdp)
            && matches!(self.driver, Driver::AfXdp { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_the_same_if_it_would_be_opened_alike() {
        let wired = |driver, wanted| Wired {
            id: PortId::new(1),
            interface: "eth0".to_owned(),
            options: OpenOptions { driver: wanted, ..OpenOptions::default() },
            driver,
            note: None,
            is_left: true,
        };
        let afxdp = wired(Driver::AfXdp { zero_copy: false }, Wanted::Auto);
        let packet = wired(Driver::Packet, Wanted::Auto);
        let options = |driver| OpenOptions { driver, ..OpenOptions::default() };
        assert!(afxdp.is_as(&options(Wanted::Auto)) && packet.is_as(&options(Wanted::Auto)));
        assert!(afxdp.is_as(&options(Wanted::AfXdp)) && !packet.is_as(&options(Wanted::AfXdp)));
        assert!(!afxdp.is_as(&options(Wanted::Packet)) && !packet.is_as(&options(Wanted::Packet)));
        assert!(!afxdp.is_as(&OpenOptions { ring: 64, ..options(Wanted::Auto) }));
        assert!(!afxdp.is_as(&OpenOptions { pass_unknown: true, ..options(Wanted::Auto) }));
    }
}
