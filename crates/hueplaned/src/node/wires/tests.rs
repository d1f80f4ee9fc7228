//! Inputs and effects of wires, without ports and a data plane.

use super::*;

/// The wires of a test, and what the core would do for them.
struct Bench {
    wires: Wires,
    network: Network,
    /// The effects so far, as text.
    seen: Vec<String>,
    /// The NIC has a link.
    has_wire: bool,
    announces: bool,
    /// Frames by the old wire, and by NICs.
    late: u64,
    by_nic: u64,
    /// Whether the network can be switched.
    switches: bool,
    waits_for_card: bool,
    seat: Option<SeatId>,
    now: Instant,
}

const CARD: PortId = PortId::new(1);
const NIC: PortId = PortId::new(2);

fn vid() -> Vid {
    Vid::new(1).unwrap()
}

impl Bench {
    /// A running network in software, whose neighbours send to the card's port.
    fn new(keeps_macs: bool) -> Self {
        let (is_running, stage, ports) = (true, Some(Stage::Software), vec![CARD]);
        let loaded = Loaded { vid: vid(), is_running, stage, keeps_macs, by_mac: !keeps_macs, ports };
        let mut bench = Self {
            wires: Wires::default(),
            network: Network { on_nic: false, loaded: Some(loaded) },
            seen: Vec::new(),
            has_wire: true,
            announces: false,
            late: 0,
            by_nic: 0,
            switches: true,
            waits_for_card: false,
            seat: None,
            now: Instant::now(),
        };
        bench.give(Input::SetNics(vec![(CARD, NIC)]));
        bench
    }

    fn give(&mut self, input: Input) {
        let mut wires = std::mem::take(&mut self.wires);
        let Self { network, has_wire, announces, late, by_nic, now, .. } = &*self;
        let around = Around {
            names: &|all| if all || network.on_nic { vec!["red".to_owned()] } else { Vec::new() },
            network: &|_| {
                let loaded = network.loaded.as_ref().map(|one| Loaded { ports: one.ports.clone(), ..*one });
                Some(Network { on_nic: network.on_nic, loaded })
            },
            has_wire: &|port| port == NIC && *has_wire,
            is_announcing: &|_| *announces,
            late_frames: &|_| *late,
            by_nic: &|_| *by_nic,
            on_nic: &|_| Some(network.on_nic),
            now: *now,
        };
        let effects = wires.take(input, &around);
        self.wires = wires;
        for effect in effects {
            self.apply(effect);
        }
    }

    fn apply(&mut self, effect: Effect) {
        let text = match effect {
            Effect::Then(input) => return self.give(input),
            Effect::Steered(_, on_nic) => return self.network.on_nic = on_nic,
            Effect::Begin(begin) => {
                let (seat, began, waits_for_card) = (self.seat, self.now, self.waits_for_card);
                let begun = Begun { seat, began, neighbours: 3, by_nic: self.by_nic, waits_for_card };
                return self.give(Input::Begun(begin, Some(begun).filter(|_| self.switches)));
            }
            Effect::Tell(_, _, text) => text,
            Effect::Changed => return,
            Effect::TellCarriers(name) => format!("carriers of {name}"),
            Effect::AskCard(_) => "ask the card".to_owned(),
            Effect::End(_) => "announce again".to_owned(),
            Effect::GoOn(_, _, None) => "go on".to_owned(),
            Effect::GoOn(_, _, Some((steering, _))) => format!("go on, {} late", steering.late),
        };
        self.seen.push(text);
    }

    fn rewire(&mut self) -> Vec<String> {
        self.give(Input::Rewire("red".to_owned(), None, Then::Nothing));
        std::mem::take(&mut self.seen)
    }

    /// Time passes.
    fn after(&mut self, time: Duration) -> Vec<String> {
        self.now += time;
        self.give(Input::Tend(self.now));
        std::mem::take(&mut self.seen)
    }

    fn stage(&mut self, stage: Stage) {
        self.network.loaded.as_mut().unwrap().stage = Some(stage);
    }
}

#[test]
fn neighbours_send_to_nics_while_the_network_is_in_software() {
    let mut bench = Bench::new(false);
    assert_eq!(bench.rewire(), ["ARP announcements redirect 3 neighbours to the NICs", "carriers of red"]);
    assert!(bench.wires.is_turning() && bench.after(TURN / 2).is_empty());
    assert_eq!(bench.after(TURN / 2), ["announce again", "go on, 0 late"]);
    assert!(!bench.wires.is_turning());
    assert_eq!(bench.rewire(), ["go on"], "they send there already");
    bench.stage(Stage::Coming);
    assert_eq!(bench.rewire(), ["go on"], "until it has arrived");
    bench.stage(Stage::Card);
    let told = "ARP announcements redirect 3 neighbours to the card's ports";
    assert_eq!(bench.rewire(), [told, "carriers of red"]);
    bench.by_nic += 5;
    assert_eq!(bench.after(TURN), ["announce again", "go on, 5 late"]);
    bench.stage(Stage::Leaving);
    assert_eq!(bench.rewire()[1..], ["carriers of red"], "before it moves to software");
}

#[test]
fn a_network_that_keeps_its_macs_moves_on_the_wire_of_the_card() {
    let mut bench = Bench::new(true);
    let told = "announcements of 3 MAC addresses make outside switches send to the NICs";
    assert_eq!(bench.rewire()[0], told);
    bench.announces = true;
    assert!(bench.after(TURN).is_empty(), "it tells its hosts one after another");
    bench.announces = false;
    assert!(bench.after(TURN).is_empty(), "it is watched once more");
    assert_eq!(bench.after(TURN), ["announce again", "go on, 0 late"]);
    bench.stage(Stage::Coming);
    assert_eq!(bench.rewire().len(), 2);
    // What is told again meanwhile is no longer true of the first turn.
    bench.stage(Stage::Software);
    assert_eq!(bench.rewire().len(), 2);
    assert_eq!(bench.after(TURN_MAX), ["go on, 0 late", "announce again", "go on, 0 late"]);
}

#[test]
fn an_old_wire_is_not_taken_for_quiet_while_the_card_has_not_run() {
    let mut bench = Bench::new(true);
    let seat = hue_card::Seats::new().unwrap().take(vid());
    bench.seat = Some(seat);
    assert_eq!(bench.rewire().len(), 2);
    assert_eq!(bench.after(TURN), ["ask the card"]);
    assert!(bench.after(10 * TURN).is_empty(), "the card's thread does not answer");
    bench.give(Input::Drained(seat, Some(TURN), Some(1)));
    assert!(bench.after(TURN - Duration::from_millis(1)).is_empty());
    // A frame that has waited in the card.
    bench.late += 1;
    assert!(bench.after(Duration::from_millis(1)).is_empty());
    assert_eq!(bench.after(TURN), ["ask the card"]);
    bench.give(Input::Drained(seat, None, None));
    assert_eq!(bench.after(TURN), ["announce again", "go on, 0 late"]);
}

#[test]
fn a_nic_without_a_link_is_not_used_and_others_stay_as_they_are() {
    let mut bench = Bench::new(false);
    bench.has_wire = false;
    assert_eq!(bench.rewire(), ["go on"]);
    bench.has_wire = true;
    bench.network.loaded.as_mut().unwrap().by_mac = false;
    assert_eq!(bench.rewire(), ["go on"], "the NICs have other frames too");
    bench.network.loaded.as_mut().unwrap().by_mac = true;
    bench.switches = false;
    assert_eq!(bench.rewire(), ["go on"], "it cannot be switched");
    bench.network.loaded.as_mut().unwrap().is_running = false;
    bench.give(Input::RewireAll);
    assert_eq!((std::mem::take(&mut bench.seen), bench.network.on_nic), (vec!["go on".to_owned()], true));
    bench.give(Input::SetNics(Vec::new()));
    bench.network.on_nic = false;
    bench.give(Input::RewireAll);
    assert!(bench.seen.is_empty(), "there are no NICs");
}

#[test]
fn a_turn_waits_for_the_card_but_not_for_ever() {
    let mut bench = Bench::new(false);
    bench.waits_for_card = true;
    bench.rewire();
    assert!(bench.after(TURN).is_empty());
    assert_eq!(bench.after(TURN_MAX), ["announce again", "go on, 0 late"]);
}

/// A turn to the card's ports, of a network that keeps its MAC addresses with so many late frames, or of a router.
fn turn(late: Option<u64>, began: Instant) -> Turn {
    Turn {
        vid: Vid::new(1).unwrap(),
        seat: None,
        began,
        again: began,
        neighbours: 2,
        late,
        is_quiet: false,
        by_nic: 0,
        to_nic: false,
        waits_for_card: false,
        overlap: None,
        by_card: None,
        then: Then::Nothing,
    }
}

#[test]
fn a_turn_lasts_until_the_old_wire_is_quiet() {
    let mut now = Instant::now();
    let mut listening = turn(Some(7), now);
    // Hosts still send there; then it is quiet, but a frame waits in a port; then it is quiet.
    for late in [9, 10, 10, 11, 11] {
        now = listening.due();
        assert!(listening.goes_on(late, now));
        assert_eq!(listening.due() - now, TURN, "{late}");
    }
    assert!(!listening.goes_on(11, now), "it ends");
    assert!(!turn(None, now).goes_on(3, now), "a router accepts both wires at any time");
}
