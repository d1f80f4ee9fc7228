//! How full the card's tables are, and each network's share. The numbers come from the driver's own models: no
//! register is accessed. Only with two banks (layout dir) are tables walked: there, a network's share takes about a
//! millisecond.

use std::collections::HashMap;

use hue_tables::dir::{SETS, SLOTS};
use hue_tables::{Account, Vid};
use serde::{Deserialize, Serialize};

use crate::banks::Banks;
use crate::card::Card;
use crate::device::{Description, Layout};
use crate::generated::SramRow;
use crate::network::Loaded;
use crate::patterns;
use crate::plan::NO_PLANE;
use crate::registers::Registers;
use crate::routes::LEVELS;
use crate::rows::Row;

/// The tables of a card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CardMemory {
    /// How the image stores routes.
    pub layout: Layout,
    /// Unit of the route tables: `words` or `rows`.
    pub unit: String,
    /// Memories that can fill up.
    pub banks: Vec<CardBank>,
    /// Networks with tables on the card, by id.
    pub networks: Vec<CardShare>,
}

/// A memory of the card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CardBank {
    /// Its contents.
    pub name: String,
    /// Words or rows in use.
    pub used: u64,
    /// Words or rows in all.
    pub max: u64,
    /// The maximum for one network, where it is lower.
    pub network_max: Option<u64>,
}

/// A network's share of the card's tables, in [`CardMemory::unit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CardShare {
    /// The network.
    pub vid: Vid,
    /// Its routes on the card.
    pub routes: u64,
    /// Words or rows that its lookups can reach.
    pub own: u64,
    /// Words or rows that removing it would free.
    pub marginal: u64,
}

impl<R: Registers> Card<R> {
    /// How full the tables are now, and each network's share. If tables follow an external store, the shares come
    /// from the store's accounts (`followed`).
    pub fn memory(&self, followed: &HashMap<Vid, Account>) -> CardMemory {
        let description = self.device.borrow().description().clone();
        if let Some(banks) = &self.banks {
            return self.bank_memory(banks, &description);
        }
        let Some(shared) = &self.shared else {
            let planes = u64::from(description.planes);
            let bank = |name: &str, used, each: u32| {
                let (name, each) = (name.to_owned(), u64::from(each));
                CardBank { name, used, max: planes * each, network_max: Some(each) }
            };
            let addresses = description.neighbour_rows();
            let (mut routes, mut locals, mut hops) = (0, 0, 0);
            let mut networks = Vec::new();
            for (vid, loaded) in &self.networks {
                let rows = crate::plan::plane(loaded.program(), addresses);
                if loaded.place.plane != NO_PLANE {
                    routes += rows.routes.len() as u64;
                    locals += rows.locals.len() as u64;
                    hops += rows.hops.len() as u64;
                }
                let all = loaded.program().entries.len() as u64;
                let own = (rows.routes.len() + rows.locals.len()) as u64;
                if all > 0 {
                    networks.push(CardShare { vid: *vid, routes: all, own, marginal: own });
                }
            }
            return CardMemory {
                layout: Layout::Tcam,
                unit: "rows".to_owned(),
                banks: vec![
                    bank("routes", routes, description.route_rows),
                    bank("addresses", locals, description.local_rows),
                    bank("next hops", hops, description.hop_rows),
                ],
                networks,
            };
        };
        let external = description.layout == Layout::Sram;
        let memories: Vec<(&str, u32)> = match external {
            true => vec![(SramRow::TABLE.name, description.sram_words)],
            false => LEVELS.into_iter().zip(description.level_words).collect(),
        };
        let (words, hops, slots) = shared.used(memories.len());
        let memories = memories.into_iter().zip(words);
        let memories = memories.map(|((name, max), used)| CardBank {
            name: name.to_owned(),
            used,
            max: u64::from(max),
            network_max: None,
        });
        let hops = CardBank {
            name: "next hops".to_owned(),
            used: hops,
            max: u64::from(description.hop_rows),
            network_max: None,
        };
        let slots = (description.group_slots > 0).then(|| CardBank {
            name: "slots of groups of next hops".to_owned(),
            used: slots,
            max: u64::from(description.group_slots),
            network_max: None,
        });
        let policies = description.policy_rows.named().into_iter().zip(shared.policies_used());
        let policies = policies.filter(|((_, max), _)| *max > 0).map(|((name, max), used)| CardBank {
            name: name.to_owned(),
            used,
            max: u64::from(max),
            network_max: None,
        });
        let patterns = (description.pattern_rows > 0).then(|| CardBank {
            name: patterns::ROWS.to_owned(),
            used: shared.patterns_used(),
            max: u64::from(description.pattern_rows),
            network_max: Some(description.entries_max().into()),
        });
        let share =
            |(vid, loaded): (&Vid, &Loaded)| Some(share_of(*vid, &shared.account(loaded.held.as_ref()?)?));
        let share_there = |(vid, account): (&Vid, &Account)| {
            let there = shared.has(*vid) && self.networks.contains_key(vid) && account.routes > 0;
            there.then(|| share_of(*vid, account))
        };
        let networks = match shared.follows() {
            true => followed.iter().filter_map(share_there).collect(),
            false => {
                let there = self.networks.iter().filter(|(_, loaded)| !loaded.program().entries.is_empty());
                there.filter_map(share).collect()
            }
        };
        CardMemory {
            layout: description.layout,
            unit: "words".to_owned(),
            banks: memories.chain([hops]).chain(slots).chain(policies).chain(patterns).collect(),
            networks,
        }
    }

    /// The same for two banks. A set counts as a whole.
    fn bank_memory(&self, banks: &Banks, description: &Description) -> CardMemory {
        let ([entries, sets, rows], hops) = banks.used();
        let bank =
            |name: &str, used, max: u64| CardBank { name: name.to_owned(), used, max, network_max: None };
        let on_card = self.networks.iter().filter(|(_, loaded)| loaded.held.is_some());
        let networks = on_card.filter_map(|(vid, _)| {
            let (routes, own, marginal) = banks.account(*vid);
            (routes > 0).then_some(CardShare { vid: *vid, routes, own, marginal })
        });
        CardMemory {
            layout: description.layout,
            unit: "words".to_owned(),
            networks: networks.collect(),
            banks: vec![
                bank("entries of the first bank", entries, SLOTS as u64),
                bank("sets of the second bank", sets, SETS.into()),
                bank("rows of the Conflict CAM", rows, description.cam_rows.into()),
                bank("next hops", hops, description.hop_rows.into()),
            ],
        }
    }
}

fn share_of(vid: Vid, account: &Account) -> CardShare {
    CardShare { vid, routes: account.routes as u64, own: account.bytes_own, marginal: account.bytes_marginal }
}
