//! The demo's moves: one network to software and back, and a change of the card's image with all its
//! networks, while hosts communicate. For each further kind that the other image has, a network of this kind moves to the card, is
//! there while the image is loaded once more, and moves back.

use std::collections::BTreeMap;
use std::time::Duration;

use hueplaned::api::{
    ImageInfo, ImageLoaded, LoadImageRequest, MigrateRequest, Migration, SubstrateName, TurnQuery,
};
use serde::Serialize;

use super::lab::Lab;
use super::plan::{Network, ON_CARD, Plan};
use crate::failure::Failure;
use crate::local::daemon::Daemon;
use crate::local::probe::{self, Ping, Pinged};
use crate::local::stop;

/// Pings while a network moves: 400 per second.
const TALK: Ping = Ping { count: 1200, gap: Duration::from_micros(2500), wait: Duration::from_secs(2) };
/// The same while images are loaded.
const LONG_TALK: Ping = Ping { count: 2000, ..TALK };
/// Pause before and between moves, for comparison.
const PAUSE: Duration = Duration::from_millis(300);

/// Results of the card.
#[derive(Serialize, Debug, Default)]
pub struct CardReport {
    /// Image of the card at the start.
    pub image: String,
    /// Networks that ran on it.
    pub networks: Vec<String>,
    /// The moves of a network to software and back.
    pub migrations: Vec<Migration>,
    /// The loads of images: another one, the same again with networks of further kinds, and the first one.
    pub images: Vec<ImageLoaded>,
    /// Networks of further kinds that were on the card while an image was loaded.
    pub reloaded: Vec<String>,
    /// Pings sent by hosts of the moved networks during the moves.
    pub sent: u64,
    /// Pings that were lost.
    pub lost: u64,
    /// Networks that lost pings, with the number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost_by: BTreeMap<String, u64>,
    /// Duplicate answers.
    pub doubled: u64,
}

impl CardReport {
    fn count(&mut self, network: &Network, pinged: Pinged) {
        let lost = pinged.sent.saturating_sub(pinged.received);
        self.sent += pinged.sent;
        self.lost += lost;
        self.doubled += pinged.doubled;
        if lost > 0 {
            *self.lost_by.entry(network.name.clone()).or_default() += lost;
        }
    }

    /// Failed checks.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.lost + self.doubled > 0 {
            let (lost, doubled, sent) = (self.lost, self.doubled, self.sent);
            let by: Vec<_> = self.lost_by.iter().map(|(name, lost)| format!("{lost} of {name}")).collect();
            let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
            faults.push(format!(
                "{lost} of {sent} pings were lost{by} and {doubled} doubled while networks moved"
            ));
        }
        // The load in the middle, which found them on the card.
        if let [_, again, _] = &self.images[..] {
            let is_back = |name: &&String| {
                again.networks.iter().any(|one| one.network == **name && one.substrate == "card")
            };
            for name in self.reloaded.iter().filter(|name| !is_back(name)) {
                faults.push(format!(
                    "network {name} is not on the card after image {} was loaded again",
                    again.image
                ));
            }
        }
        for moved in &self.migrations {
            if moved.lost + moved.doubled + moved.reordered > 0 {
                let (to, lost, doubled, reordered) =
                    (moved.to.name(), moved.lost, moved.doubled, moved.reordered);
                let text = format!("{lost} lost, {doubled} doubled, {reordered} reordered");
                faults.push(format!("network {}: move to {to}: {text}", moved.network));
            }
        }
        faults
    }
}

/// Moves the first network to software and back while its hosts communicate.
pub fn migrate(daemon: &Daemon, plan: &Plan, lab: &Lab, report: &mut CardReport) -> Result<String, Failure> {
    let (Some(network), Some([left, ..])) = (plan.networks.first(), lab.hosts.first().map(Vec::as_slice))
    else {
        return Ok("there is no network".to_owned());
    };
    let peer = network.hosts[1].address;
    let mut texts = Vec::new();
    let pinged = std::thread::scope(|scope| {
        let talk = scope.spawn(move || probe::ping(left, peer, TALK));
        for to in [SubstrateName::Soft, SubstrateName::Card] {
            texts.push(step(daemon, network, to, report)?);
        }
        talk.join().map_err(|_| Failure::Broken("a ping thread failed".to_owned()))?
    })?;
    report.count(network, pinged);
    let lost = pinged.sent.saturating_sub(pinged.received);
    texts.push(format!("{lost} of {} pings lost", pinged.sent));
    Ok(texts.join("; "))
}

/// Moves a network after a pause.
fn step(
    daemon: &Daemon,
    network: &Network,
    to: SubstrateName,
    report: &mut CardReport,
) -> Result<String, Failure> {
    std::thread::sleep(PAUSE);
    stop::check()?;
    let moved = daemon.client.migrate(&network.name, &MigrateRequest::new(to), TurnQuery::default())?;
    let text = format!(
        "{} to {} in {:.1} ms: {} lost, {} doubled, {} reordered",
        network.name,
        to.name(),
        moved.duration_us as f64 / 1e3,
        moved.lost,
        moved.doubled,
        moved.reordered
    );
    report.migrations.push(moved);
    Ok(text)
}

/// Loads another image, and in the end the first one again, while hosts of the card's networks communicate. In between, the first
/// network of each further kind that the other image has moves to the card, if its ports are the card's. The image is then loaded
/// once more, with these networks on the card, and they move back.
pub fn images(
    daemon: &Daemon,
    plan: &Plan,
    lab: &Lab,
    report: &mut CardReport,
    other: &ImageInfo,
) -> Result<String, Failure> {
    let further = plan.further(&other.kinds);
    let talks = |(at, _): &(usize, _)| *at < ON_CARD || further.contains(at);
    let hosts = lab.hosts.iter().zip(&plan.networks).enumerate().filter(talks);
    let hosts: Vec<_> = hosts.map(|(_, one)| one).collect();
    let first = report.image.clone();
    let mut texts = Vec::new();
    let pings = std::thread::scope(|scope| {
        let talk = scope.spawn(|| {
            probe::all(&hosts, |(inside, network)| {
                probe::ping(&inside[0], network.hosts[1].address, LONG_TALK)
            })
        });
        texts.push(load(daemon, &other.name, report)?);
        let further: Vec<&Network> = further.iter().filter_map(|at| plan.networks.get(*at)).collect();
        for network in &further {
            texts.push(step(daemon, network, SubstrateName::Card, report)?);
        }
        if !further.is_empty() {
            texts.push(load(daemon, &other.name, report)?);
            report.reloaded = further.iter().map(|network| network.name.clone()).collect();
        }
        for network in &further {
            texts.push(step(daemon, network, SubstrateName::Soft, report)?);
        }
        texts.push(load(daemon, &first, report)?);
        talk.join().map_err(|_| Failure::Broken("a ping thread failed".to_owned()))?
    })?;
    for ((_, network), pinged) in hosts.iter().zip(&pings) {
        report.count(network, *pinged);
    }
    let sum = pings.into_iter().fold(Pinged::default(), Pinged::plus);
    let lost = sum.sent.saturating_sub(sum.received);
    texts.push(format!("{lost} of {} pings lost", sum.sent));
    Ok(texts.join("; "))
}

/// Loads an image after a pause.
fn load(daemon: &Daemon, name: &str, report: &mut CardReport) -> Result<String, Failure> {
    std::thread::sleep(PAUSE);
    stop::check()?;
    let loaded = daemon.client.load_image(name, LoadImageRequest::default(), TurnQuery::default())?;
    let back = loaded.networks.iter().filter(|network| network.substrate == "card").count();
    let ms = loaded.duration_us as f64 / 1e3;
    report.images.push(loaded);
    Ok(format!("{name} in {ms:.0} ms, {back} networks on it"))
}
