//! Labels that the routing daemons of networks of kind `rofl` have learnt.
//!
//! Flow: a network's namespace → [`Door`] → [`Report`] → node thread → **[`Labels`]** → the network's program, besides the labels of its
//! document. Invariants: what comes out of a network's namespace changes this network only; the labels of a daemon that is
//! gone stay for [`HOLD`]; a refused line changes nothing.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use hue_control::with_labels;
use hue_host::ControlNamespace;
use hue_intent::{FlatLabel, LabelPlace};
use hue_planes::{Kind, Settings};
use hue_tables::{LabelTable, Vid};

use super::door::{Door, News};
use super::wanted::Wanted;
use crate::labels::{self, FromDaemon, HOLD, LabelRow, Learnt, Offer, OfferedPort};

/// Something that happened at a network's door.
#[derive(Debug)]
pub struct Report {
    /// The network.
    pub vid: Vid,
    /// Which door, by [`Labels`].
    run: u64,
    news: News,
}

/// What a report means for the network.
#[derive(PartialEq, Eq, Debug)]
pub enum Meaning {
    /// Its labels may have changed: apply them, then call [`Labels::applied`].
    Apply,
    /// Nothing.
    None,
}

/// All networks' doors and labels.
#[derive(Default)]
pub struct Labels {
    doors: BTreeMap<Vid, Entrance>,
    /// Number of doors so far.
    runs: u64,
    /// By name of the network, because labels stay when it is loaded anew.
    learnt: BTreeMap<String, Known>,
}

struct Entrance {
    door: Door,
    network: String,
    /// Which namespace it is in.
    place: (u64, u64),
    run: u64,
    offer: Offer,
}

#[derive(Default)]
struct Known {
    labels: Vec<FlatLabel>,
    /// When they are forgotten; `None` while a daemon is there.
    ends: Option<Instant>,
}

impl Labels {
    /// Opens the door of a network, if it is of a kind that has one. Does nothing but tell the routing daemon of changes if
    /// it is open.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub fn keep(
        &mut self,
        have: &Wanted,
        control: &Arc<ControlNamespace>,
        tell: impl Fn(Report) + Send + 'static,
    ) -> std::io::Result<()> {
        if have.program.kind() != Kind::Rofl {
            return Ok(());
        }
        let (vid, offer) = (have.program.vid, offer(have));
        let place = control.namespace.identity().map_err(std::io::Error::other)?;
        if let Some(entrance) = self.doors.get_mut(&vid).filter(|entrance| entrance.place == place) {
            if entrance.offer != offer {
                entrance.door.say(&FromDaemon::Network(offer.clone()));
                entrance.offer = offer;
            }
            return Ok(());
        }
        self.runs += 1;
        let run = self.runs;
        let network = offer.network.clone();
        let door = Door::open(control, &offer, move |news| tell(Report { vid, run, news }))?;
        self.doors.insert(vid, Entrance { door, network, place, run, offer });
        Ok(())
    }

    /// Closes the door of a network.
    pub fn end(&mut self, vid: Vid) {
        self.doors.remove(&vid);
    }

    /// Forgets the labels of networks that are not desired any more.
    pub fn retain(&mut self, is_desired: impl Fn(&str) -> bool) {
        self.learnt.retain(|network, _| is_desired(network));
    }

    /// All labels, by network, for the next daemon.
    pub fn all(&self) -> BTreeMap<String, Vec<LabelRow>> {
        let rows = |known: &Known| known.labels.iter().map(LabelRow::from).collect();
        self.learnt.iter().map(|(network, known)| (network.clone(), rows(known))).collect()
    }

    /// Takes the labels that a network had in the daemon before, as those of a routing daemon that is gone. What it has said
    /// meanwhile is newer and stays.
    pub fn adopt(&mut self, now: Instant, network: &str, rows: &[LabelRow]) {
        let labels = rows.iter().filter_map(|row| row.entry().ok()).collect();
        let known = Known { labels, ends: Some(now + HOLD) };
        self.learnt.entry(network.to_owned()).or_insert(known);
    }

    /// Takes a report about a network in this state.
    pub fn take(&mut self, now: Instant, report: Report, want: &Wanted) -> Meaning {
        let Some(entrance) = self.doors.get(&report.vid).filter(|one| one.run == report.run) else {
            return Meaning::None;
        };
        match report.news {
            News::Came => entrance.door.say(&FromDaemon::Network(entrance.offer.clone())),
            News::Left => {
                if let Some(known) = self.learnt.get_mut(&entrance.network) {
                    known.ends = Some(now + HOLD);
                }
            }
            News::Said(line) => match read(&line, want) {
                Ok(labels) => {
                    let known = self.learnt.entry(entrance.network.clone()).or_default();
                    let is_new = known.labels != labels;
                    *known = Known { labels, ends: None };
                    if is_new {
                        return Meaning::Apply;
                    }
                    self.applied(report.vid, want.program.entries.labels().len());
                }
                Err(error) => entrance.door.say(&FromDaemon::Refused { error }),
            },
        }
        Meaning::None
    }

    /// A network's labels are entries: its routing daemon learns it.
    pub fn applied(&self, vid: Vid, entries: usize) {
        if let Some(entrance) = self.doors.get(&vid) {
            entrance.door.say(&FromDaemon::Applied { entries });
        }
    }

    /// Removes the labels whose daemon has been gone for too long. Returns the networks that had some, and how many.
    pub fn expire(&mut self, now: Instant) -> Vec<(String, usize)> {
        let is_old = |known: &Known| known.ends.is_some_and(|ends| ends <= now);
        let old = self.learnt.iter().filter(|(_, known)| is_old(known));
        let old: Vec<_> = old.map(|(network, known)| (network.clone(), known.labels.len())).collect();
        self.learnt.retain(|_, known| !is_old(known));
        old.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// A network as it is desired, with the labels that its routing daemon has learnt.
    pub fn over(&self, want: &Arc<Wanted>) -> Arc<Wanted> {
        let none = Vec::new();
        if want.program.kind() != Kind::Rofl {
            return Arc::clone(want);
        }
        let known = self.learnt.get(want.network.name()).map_or(&none, |known| &known.labels);
        let fitting: Vec<FlatLabel> = known.iter().filter(|one| fits(one, want).is_ok()).cloned().collect();
        // What was learnt before the document changed may have no room any more; then the document alone counts.
        let program = with_labels(&want.program, &want.network.spec, &fitting)
            .or_else(|| with_labels(&want.program, &want.network.spec, &[]));
        match program {
            Some(program) if program != want.program => Arc::new(Wanted { program, ..Wanted::clone(want) }),
            _ => Arc::clone(want),
        }
    }
}

/// The labels of a line.
fn read(line: &str, want: &Wanted) -> Result<Vec<FlatLabel>, String> {
    let Learnt { labels } =
        serde_json::from_str(line).map_err(|error| format!("not a line with labels: {error}"))?;
    let own: HashSet<u128> = want.network.spec.flat_labels.iter().map(|one| one.label.bits).collect();
    let mut seen = HashSet::new();
    let mut entries = Vec::with_capacity(labels.len());
    for row in &labels {
        let entry = row.entry()?;
        fits(&entry, want)?;
        if !seen.insert(entry.label.bits) {
            return Err(format!("label {}: twice", row.label));
        }
        entries.push(entry);
    }
    let count = seen.union(&own).count();
    if count > LabelTable::ENTRIES_MAX {
        return Err(format!(
            "{count} labels with those of the network's document: at most {}",
            LabelTable::ENTRIES_MAX
        ));
    }
    Ok(entries)
}

/// Whether a network can have a label.
fn fits(entry: &FlatLabel, want: &Wanted) -> Result<(), String> {
    let (label, bits) = (entry.label, label_bits(want));
    if 8 * label.bytes != usize::from(bits) {
        return Err(format!("label {label}: found {} bits, expected {bits}", 8 * label.bytes));
    }
    match &entry.place {
        LabelPlace::At { port, .. } if !want.program.ports.iter().any(|one| one.name == port.as_str()) => {
            Err(format!("label {label}: the network has no port {port}"))
        }
        _ => Ok(()),
    }
}

fn label_bits(want: &Wanted) -> u8 {
    match want.program.settings {
        Settings::Rofl(settings) => settings.label_bits(),
        _ => 0,
    }
}

fn offer(have: &Wanted) -> Offer {
    let ports = have.ports.iter().zip(&have.program.ports);
    Offer {
        network: have.network.name().to_owned(),
        label_bits: label_bits(have),
        ports: ports
            .map(|(inside, port)| OfferedPort {
                name: port.name.clone(),
                interface: inside.interface.clone(),
                mac: port.mac.to_string(),
                mtu: port.mtu_bytes,
            })
            .collect(),
        labels: have.network.spec.flat_labels.iter().map(LabelRow::from).collect(),
    }
}

const _: () = assert!(labels::LINE_BYTES_MAX > 128 * LabelTable::ENTRIES_MAX);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::node::samples::wanted_of;

    /// A network with a port `up`, and a label of its document.
    fn flat(bits: u8) -> Arc<Wanted> {
        let label = format!("0x{:0>width$}", 7, width = usize::from(bits) / 4);
        let ports = "ports: [{name: up, port: p0, mac: '02:00:00:00:00:01'}]";
        let spec = format!("{ports}, flat_labels: [{{label: '{label}', own: true}}]");
        let all = wanted_of(&format!("kind: rofl, label_bits: {bits}"), &[("flat", &spec)]);
        Arc::clone(&all[0].1)
    }

    fn line(rows: &str) -> String {
        format!("{{\"labels\":[{rows}]}}")
    }

    const AT_UP: &str = r#"{"label":"0x00000009","port":"up","neighbour":"02:00:00:00:00:02"}"#;

    #[test]
    fn a_line_is_checked_as_a_document() {
        let want = flat(32);
        assert_eq!(read(&line(AT_UP), &want).unwrap().len(), 1);
        assert_eq!(read(&line(""), &want), Ok(Vec::new()));
        for (rows, text) in [
            ("7", "not a line with labels"),
            (r#"{"label":"9"}"#, "expected hexadecimal digits"),
            (r#"{"label":"0x000009"}"#, "found 24 bits, expected 32"),
            (r#"{"label":"0x00000009","port":"up"}"#, "expected port and neighbour"),
            (r#"{"label":"0x00000009","resident":true}"#, "expected port and neighbour"),
            (
                r#"{"label":"0x00000009","port":"down","neighbour":"02:00:00:00:00:02"}"#,
                "the network has no port down",
            ),
            (
                r#"{"label":"0x00000009","port":"up","neighbour":"ff:ff:ff:ff:ff:ff"}"#,
                "the MAC address of one",
            ),
            (r#"{"label":"0x00000009","network":"red"}"#, "unknown field"),
            (r#"{"label":"0x00000009"},{"label":"0x00000009"}"#, "label 0x00000009: twice"),
        ] {
            let error = read(&line(rows), &want).unwrap_err();
            assert!(error.contains(text), "{rows}: {error}");
        }
        let many = |count: u32| {
            line(
                &(8..8 + count).map(|n| format!("{{\"label\":\"0x{n:08x}\"}}")).collect::<Vec<_>>().join(","),
            )
        };
        assert_eq!(read(&many(16_383), &want).unwrap().len(), 16_383);
        let error = read(&many(16_384), &want).unwrap_err();
        assert!(
            error.starts_with("16385 labels with those of the network's document: at most 16384"),
            "{error}"
        );
    }

    #[test]
    fn learnt_labels_are_entries_until_their_daemon_is_gone_for_long() {
        let now = Instant::now();
        let want = flat(32);
        let mut labels = Labels::default();
        let count = |labels: &Labels, want: &Arc<Wanted>| labels.over(want).program.entries.labels().len();
        assert!(Arc::ptr_eq(&labels.over(&want), &want), "nothing is learnt");
        // One is the document's, with another place there: the document counts.
        let rows = [AT_UP, &AT_UP.replace("09", "07")].join(",");
        let known = Known { labels: read(&line(&rows), &want).unwrap(), ends: None };
        labels.learnt.insert("flat".to_owned(), known);
        let over = labels.over(&want);
        assert_eq!((over.program.entries.labels().len(), over.network == want.network), (2, true));
        let own = over.program.entries.labels()[0];
        assert_eq!(over.program.next_hops[usize::from(own.1.get())].kind(), hue_planes::AdjacencyKind::Local);
        assert_eq!(count(&labels, &over), 2, "the same again");
        // The next daemon has them, until their daemon is gone for long, and those of a daemon that came first stay.
        let (mut next, all) = (Labels::default(), labels.all());
        next.adopt(now, "flat", &all["flat"]);
        assert_eq!((count(&next, &want), next.all() == all), (2, true));
        next.adopt(now, "flat", &[]);
        assert_eq!(count(&next, &want), 2);
        assert_eq!(next.expire(now + HOLD), [("flat".to_owned(), 2)]);
        // A document with other lengths: what was learnt does not fit it.
        assert_eq!(count(&labels, &flat(40)), 1);
        assert_eq!(labels.expire(now), []);
        labels.learnt.get_mut("flat").unwrap().ends = Some(now + HOLD);
        assert_eq!(labels.expire(now + HOLD - Duration::from_millis(1)), []);
        assert_eq!(count(&labels, &over), 2, "they stay");
        assert_eq!(labels.expire(now + HOLD), [("flat".to_owned(), 2)]);
        assert_eq!(count(&labels, &over), 1, "those of the document");
    }
}
