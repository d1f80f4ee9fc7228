//! Invariants of a node: at any moment, and when it is quiet.

use hue_card::Inside;
use hueplaned::api::{ImageLoaded, NetworkState};
use hueplaned::node::by_hand::{Look, NetworkLook, Seated};

use crate::IMAGES_MIXED;
use crate::world::{Families, Family, Net, Place, World, name, number};

/// Most additional routes of a network for which a ternary plane has rows.
const EXTRA_MAX: u8 = 20;

/// Whether a card with this image has the kind of a network, groups and routes by source if it needs them, and room for its routes.
fn fits(image: &str, net: &Net) -> bool {
    let is_plain =
        net.families == Families::Only(Family::Four) && net.shares.is_none() && net.by_source.is_none();
    let large = image.starts_with("tcam") && net.extra > EXTRA_MAX;
    (is_plain || image == IMAGES_MIXED[1]) && !large
}

/// Checks the invariants that hold at any moment between two steps.
///
/// # Errors
/// The invariant that does not hold.
pub fn always(look: &Look) -> Result<(), String> {
    for network in &look.networks {
        let words = |what: &str| Err(format!("{}: {what}: {network:?}", network.name));
        let believed = matches!(network.seated, Some(Seated::Card | Seated::Leaving));
        if network.on_card != believed {
            return words("control says two places");
        }
        if let Some(card) = &network.card {
            let row = (network.vid.map_or(0, |vid| vid.get()), card.software);
            if card.row != Some(row) {
                return words("its row on the card is not what the driver believes");
            }
        }
        if let Some(totals) = &network.totals {
            let waiting = totals.waiting_packets;
            if totals.crossing_packets > 1 << 40 || waiting > 1 << 20 {
                return words("its counters have passed below zero");
            }
        }
    }
    Ok(())
}

/// Checks the invariants after an image was loaded.
///
/// # Errors
/// The invariant that does not hold.
pub fn loaded(look: &Look, answer: &ImageLoaded, world: &World) -> Result<(), String> {
    let words =
        |what: &str| Err(format!("image {} is loaded, and {what}: {answer:?}, {look:?}", answer.image));
    let moves = |network: &NetworkLook| matches!(network.seated, Some(Seated::Coming | Seated::Leaving));
    if look.unsettled || look.networks.iter().any(moves) {
        return words("something moves");
    }
    let on_card = |name: &str| {
        let mut told = answer.networks.iter().filter(|one| one.network == name);
        told.any(|one| one.substrate == "card")
    };
    if look.networks.iter().any(|network| on_card(&network.name) != network.on_card) {
        return words("networks are not where the answer says");
    }
    let Some(card) = &look.card else { return words("there is no card") };
    let place = |network: &NetworkLook| world.net(number(&network.name)).map(|net| net.place);
    let crowded = look.networks.iter().filter(|network| network.on_card).count() >= card.planes as usize;
    let auto = look.networks.iter().find(|one| one.on_card && place(one) == Some(Place::Auto));
    let stays_out = |network: &&NetworkLook| {
        let net = world.net(number(&network.name));
        let wants = net
            .is_some_and(|net| net.place == Place::Card && net.extra <= EXTRA_MAX && fits(&card.image, net));
        // It was on the card before, or the answer lists it.
        let told = answer.networks.iter().any(|one| one.network == network.name);
        wants && network.fits_ports && !network.on_card && told && network.state == NetworkState::Running
    };
    if let (true, Some(auto), Some(out)) = (crowded, auto, look.networks.iter().find(stays_out)) {
        return words(&format!("{} has the place of {}, whose document names the card", auto.name, out.name));
    }
    Ok(())
}

/// Checks the invariants that hold when nothing moves.
///
/// # Errors
/// The invariant that does not hold.
pub fn quiet(look: &Look, world: &World) -> Result<(), String> {
    nothing_left(look)?;
    let desired: Vec<String> = world.numbers().into_iter().map(name).collect();
    if !look.desired.iter().eq(desired.iter()) || look.networks.len() != desired.len() {
        return Err(format!("networks {:?}, and desired are {desired:?}", look.networks));
    }
    if look.in_software != desired.len() {
        return Err(format!("software has {} networks of {}", look.in_software, desired.len()));
    }
    for network in &look.networks {
        one_place(network, look, world)?;
        settled(network, look, world)?;
    }
    Ok(())
}

/// Checks that no hold, fence, index, aside or frame is left over.
fn nothing_left(look: &Look) -> Result<(), String> {
    if look.unsettled {
        return Err("an image is being loaded, or the scheduler asked, and nothing happens".to_owned());
    }
    if !look.closed.is_empty() {
        return Err(format!("ports {:?} are not open", look.closed));
    }
    for worker in &look.workers {
        let (slots, free) = worker.slots;
        if (worker.frames, worker.fences, worker.held, worker.handed) != (0, 0, 0, 0) || slots != free {
            return Err(format!("a worker is not empty: {worker:?}"));
        }
        if worker.networks != look.in_software {
            return Err(format!("a worker does not have all networks: {worker:?}"));
        }
    }
    let Some(card) = &look.card else { return Ok(()) };
    let Some(inside) = card.inside else { return Err("a card that failed is still there".to_owned()) };
    let slots = inside.slots;
    let empty = Inside { moves: 0, aside: 0, bypass: false, idle: true, handed: 0, closing: false, slots };
    if inside != empty || slots.0 != slots.1 {
        return Err(format!("the card is not empty: {inside:?}"));
    }
    if card.lent || card.hold_clocks != 0 || card.waits != 0 {
        return Err(format!("something of a move is left on the card: {card:?}"));
    }
    Ok(())
}

/// Checks that control, driver, row and table agree on where a network is.
fn one_place(network: &NetworkLook, look: &Look, world: &World) -> Result<(), String> {
    let words = |what: &str| Err(format!("{}: {what}: {network:?}", network.name));
    let Some(vid) = network.vid else { return words("it is not loaded") };
    match &network.totals {
        Some(totals) => totals.check().map_err(|sum| format!("{}: {sum}: {totals:?}", network.name))?,
        None => return words("software does not know it"),
    }
    let known = look.card.as_ref().is_some_and(|card| card.networks.contains(&vid));
    if known != network.seated.is_some() {
        return words("control and the card do not agree whether the card knows it");
    }
    let Some(seated) = network.seated else { return Ok(()) };
    if world.net(number(&network.name)).is_some_and(Net::is_switch) {
        // It has no routes: where its frames go says what the card knows.
        return match seated {
            Seated::Coming | Seated::Leaving => words("it is half moved"),
            Seated::Card | Seated::Software => Ok(()),
        };
    }
    let Some(card) = &network.card else { return words("the card has no such network") };
    match seated {
        Seated::Card if card.software => words("control has it on the card, the card in software"),
        Seated::Card if !card.same_table => words("its table on the card is not its table"),
        Seated::Card if !card.same_groups => words("its groups of next hops on the card are not its groups"),
        Seated::Software if !card.software => words("control has it in software, the card on itself"),
        Seated::Software if card.routes != 0 => words("its table is still on the card"),
        Seated::Coming | Seated::Leaving => words("it is half moved"),
        Seated::Card | Seated::Software => Ok(()),
    }
}

/// Checks that a network is as its document and the scheduler require, as far as possible.
fn settled(network: &NetworkLook, look: &Look, world: &World) -> Result<(), String> {
    let words = |what: &str| Err(format!("{}: {what}: {network:?}; {:?}", network.name, look.card));
    if network.state != NetworkState::Running || !network.as_wanted {
        return words("it is not as desired");
    }
    let Some(net) = world.net(number(&network.name)) else { return words("nobody wants it") };
    let Some(card) = &look.card else {
        return if network.on_card { words("it is on no card") } else { Ok(()) };
    };
    let told = network.why_soft.as_ref().is_some_and(|why| why.contains("the card is drained"));
    if told != (world.drained && network.fits_ports && net.place != Place::Soft) {
        return words("a reason is that the card is drained, and it is not, or the other way");
    }
    let wanted = match net.place {
        Place::Soft => false,
        _ if world.drained => false,
        Place::Card => true,
        Place::Auto => match (world.scheduler, network.scheduled) {
            (None, _) => true,
            (Some(_), Some(side)) => side == hue_control::schedule::Side::Card,
            (Some(_), None) => return words("the scheduler was not asked"),
        },
    };
    if network.on_card && !(wanted && network.fits_ports && fits(&card.image, net)) {
        return words("it is on the card, and is not to be");
    }
    if network.on_card || !wanted {
        return Ok(());
    }
    let Some(why) = &network.why_soft else {
        return words("it is to be on the card, and nobody says why not");
    };
    let on_card = look.networks.iter().filter(|network| network.on_card).count();
    let full = on_card >= card.planes as usize;
    // A move that was made to fail leaves it where it was; the caller was told.
    let asked = why.contains("as requested");
    if network.fits_ports && !full && fits(&card.image, net) && !asked {
        return words("it is to be on the card, and there is room");
    }
    Ok(())
}
