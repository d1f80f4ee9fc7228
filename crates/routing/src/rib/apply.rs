//! Applies events: updates the copy of the kernel's state, and marks the routes that may be affected.
//!
//! During a snapshot, changes continue, and recent kernels list routes without a lock. If an event during a
//! snapshot and the snapshot contradict each other, the event wins. If the contradiction cannot be resolved,
//! another snapshot is requested.

use hue_host::netlink::{Address, Link, Neighbour, Route};
use hue_tables::Prefix;

use super::paths::{Path, Paths};
use super::rows::Target;
use super::{Age, Entry, Interface, Item, Kept, Rib, Routes, vport_of};
use crate::event::{Change, Event};
use crate::family::{Family, Order};

impl<K: Family> Rib<K> {
    /// Applies one event.
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::Begin => self.begin(),
            Event::End => self.end(),
            Event::Link(change, link) => self.link(change, *link),
            Event::Address(change, address) => self.address(change, address),
            Event::Route(change, route) => self.kernel_route(change, route),
            Event::Neighbour(change, neighbour) => self.neighbour(change, neighbour),
            Event::Closed(_) => self.closed = true,
        }
    }

    /// Applies events in order.
    pub fn apply_all(&mut self, events: impl IntoIterator<Item = Event>) {
        events.into_iter().for_each(|event| self.apply(event));
    }

    fn begin(&mut self) {
        self.age = self.age.wrapping_add(1).max(1);
        self.in_snapshot = true;
        self.resync_needed = false;
        self.removed_meanwhile.clear();
    }

    /// Removes everything that the snapshot did not confirm.
    fn end(&mut self) {
        if !std::mem::replace(&mut self.in_snapshot, false) {
            return;
        }
        let age = self.age;
        self.removed_meanwhile.clear();
        let gone = self.interfaces.iter().filter(|(_, interface)| interface.age != age);
        let gone: Vec<u32> = gone.map(|(index, _)| *index).collect();
        gone.into_iter().for_each(|index| self.forget_link(index));
        let addresses = self.addresses.len();
        self.addresses.retain(|_, (_, seen)| *seen == age);
        self.addresses_changed |= self.addresses.len() != addresses;
        let gone = self.neighbours.iter().filter(|(_, (_, seen))| *seen != age);
        let gone: Vec<(K::Addr, u32)> = gone.map(|(key, _)| *key).collect();
        gone.into_iter().for_each(|(address, link)| self.forget_neighbour(address, link));
        self.sweep(age);
        self.synchronized = true;
    }

    fn sweep(&mut self, age: Age) {
        let (mut changed, mut unclear) = (Vec::new(), false);
        let paths = &mut self.paths;
        for (prefix, entry) in &mut self.table {
            if entry.routes.list().iter().all(|kept| kept.age == age) {
                continue;
            }
            // Not in the snapshot, but this prefix changed meanwhile: the listing may have missed it.
            if entry.touched == age {
                unclear = true;
                continue;
            }
            entry.routes.retain(|kept| {
                let keep = kept.age == age;
                if !keep {
                    paths.release(kept.path);
                }
                keep
            });
            changed.push(*prefix);
        }
        self.resync_needed |= unclear;
        changed.into_iter().for_each(|prefix| self.mark_affected(prefix));
    }

    /// Whether a listed item is outdated because of a later change. `known` is the last snapshot that listed
    /// the item.
    fn is_outdated(&mut self, change: Change, known: Option<Age>, thing: Item<K::Addr>) -> bool {
        match change {
            Change::Listed => known == Some(self.age) || self.removed_meanwhile.contains(&thing),
            Change::Removed if self.in_snapshot => {
                self.removed_meanwhile.insert(thing);
                false
            }
            _ => {
                self.removed_meanwhile.remove(&thing);
                false
            }
        }
    }

    fn link(&mut self, change: Change, link: Link) {
        let index = link.index;
        let known = self.interfaces.get(&index).map(|interface| interface.age);
        if self.is_outdated(change, known, Item::Link(index)) {
            return;
        }
        if change == Change::Removed {
            self.forget_link(index);
            return;
        }
        let vport = vport_of(&self.ports, &link.name);
        let age = self.age;
        let before = self.interfaces.insert(index, Interface { vport, age, link });
        let now = self.interfaces.get(&index);
        let moved = before.as_ref().map(|before| before.vport).unwrap_or_default() != vport;
        if moved {
            self.ports_changed();
        } else if before.map(|before| before.link.mtu) != now.map(|now| now.link.mtu) {
            self.rows.touch_all();
        }
    }

    fn forget_link(&mut self, index: u32) {
        if self.interfaces.remove(&index).is_some_and(|interface| interface.vport.is_some()) {
            self.ports_changed();
        }
    }

    /// Handles an interface that became a virtual port, or is no longer one.
    fn ports_changed(&mut self) {
        self.all_dirty = true;
        self.rows.touch_all();
        self.neighbours_changed = true;
        self.addresses_changed = true;
    }

    fn address(&mut self, change: Change, address: Address) {
        let Some(own) = K::from_ip(address.address) else { return };
        let key = (address.link, own.to_addr(), address.len);
        let known = self.addresses.get(&key).map(|(_, age)| *age);
        if self.is_outdated(change, known, Item::Address(key)) {
            return;
        }
        if change == Change::Removed {
            self.addresses_changed |= self.addresses.remove(&key).is_some();
        } else {
            let before = self.addresses.insert(key, (address.state, self.age));
            self.addresses_changed |= before.is_none_or(|(state, _)| state != address.state);
        }
    }

    fn neighbour(&mut self, change: Change, neighbour: Neighbour) {
        let Some(address) = K::from_ip(neighbour.address) else { return };
        let key = (address.to_addr(), neighbour.link);
        let mac = neighbour.usable().filter(|mac| change != Change::Removed && mac.is_unicast());
        let known = self.neighbours.get(&key).map(|(_, age)| *age);
        let change = if mac.is_none() && change != Change::Listed { Change::Removed } else { change };
        if self.is_outdated(change, known, Item::Neighbour(key)) {
            return;
        }
        let Some(mac) = mac else {
            self.forget_neighbour(key.0, key.1);
            return;
        };
        let before = self.neighbours.insert(key, (mac, self.age)).map(|(mac, _)| mac);
        if before != Some(mac) {
            self.neighbour_changed(key.0, key.1, before.is_none());
        }
    }

    fn forget_neighbour(&mut self, address: K::Addr, link: u32) {
        if self.neighbours.remove(&(address, link)).is_some() {
            self.neighbour_changed(address, link, true);
        }
    }

    /// Handles a neighbour that appeared, disappeared or (if not `is_route`) changed its MAC address.
    fn neighbour_changed(&mut self, address: K::Addr, link: u32, is_route: bool) {
        let Some(vport) = self.interfaces.get(&link).and_then(|interface| interface.vport) else { return };
        self.neighbours_changed = true;
        self.rows.touch(Target::Neighbour(vport, address));
        self.rows.touch_ways();
        if is_route {
            self.mark_host_dirty(address);
        }
    }

    fn kernel_route(&mut self, change: Change, route: Route) {
        let Some(prefix) = route.prefix.of::<K>().filter(|prefix| !K::is_never_looked_up(*prefix)) else {
            return;
        };
        let metric = route.metric;
        let Some(mut path) = Path::of::<K>(route) else { return };
        if change == Change::Removed {
            self.remove(prefix, metric, &path);
            return;
        }
        if prefix.len() < K::BITS {
            self.lens |= 1 << prefix.len();
        }
        let entry = self.table.entry(prefix).or_insert(Entry::EMPTY);
        let (paths, age) = (&mut self.paths, self.age);
        let touched = self.in_snapshot && entry.touched == age;
        if change != Change::Listed && self.in_snapshot {
            entry.touched = age;
        }
        let same = |kept: &Kept| {
            let is = |at: &Path| at.is(&path) || at.is_sibling(&path);
            kept.metric == metric && paths.get(kept.path).is_some_and(is)
        };
        let found = entry.routes.list().iter().position(same);
        // The common case: the prefix has a single route, which is unchanged.
        if let (Routes::One(one), Some(_)) = (&mut entry.routes, found)
            && paths.get(one.path) == Some(&path)
        {
            one.age = age;
            return;
        }
        let known = found.and_then(|at| paths.get(entry.routes.list().get(at)?.path));
        if let (Change::Added | Change::Appended, Some(known)) = (change, known) {
            path.keep_order_of(known);
        }
        let has_other_hops = known.is_some_and(|known| !known.is(&path));
        let order = (!path.local, u8::MAX - path.tos, metric);
        let new = Kept { path: paths.hold(path), metric, age };
        let old = match (change, found) {
            // Changes may have moved the route after it was listed.
            (Change::Listed, Some(at)) if touched => {
                // Siblings may have been listed before the last change. And the order among routes of one metric may be
                // wrong since before the snapshot, if a route went without a notification and came again.
                let list = entry.routes.list();
                let known = list.get(at).is_some_and(|kept| kept.age == age);
                let equal = |kept: &&Kept| paths.order(kept.path, kept.metric) == Some(order);
                self.resync_needed |= has_other_hops || (!known && list.iter().filter(equal).count() > 1);
                entry.routes.replace(at, new)
            }
            (Change::Added | Change::Appended | Change::Replaced, _) if K::ORDER == Order::Siblings => {
                let replaces = change == Change::Replaced;
                let list = entry.routes.list();
                self.resync_needed |=
                    self.in_snapshot && replaces && list.len() > 1 && list.iter().any(|kept| kept.age != age);
                insert_last(&mut entry.routes, paths, found, replaces, new)
            }
            _ => {
                let old = found.and_then(|at| entry.routes.remove(at));
                let list = entry.routes.list();
                let first = list.partition_point(|kept| paths.order(kept.path, kept.metric) < Some(order));
                let rest = list.get(first..).unwrap_or_default();
                let equals = rest.partition_point(|kept| paths.order(kept.path, kept.metric) <= Some(order));
                let listed = rest.iter().take(equals).filter(|kept| kept.age == age).count();
                let replaces = change == Change::Replaced && equals > 0 && found != Some(first);
                let place = match change {
                    // A listing is in the kernel's order: insert after those listed before, and before those
                    // not yet listed.
                    Change::Listed if !touched => first + listed,
                    Change::Listed | Change::Appended => first + equals,
                    _ => first,
                };
                // If some of the routes may not exist any more, it is unknown which one was replaced.
                let guess =
                    self.in_snapshot && replaces && rest.iter().any(|kept| kept.age != age) && rest.len() > 1;
                self.resync_needed |= guess || (change == Change::Listed && touched);
                let replaced = if replaces { entry.routes.remove(first) } else { None };
                entry.routes.insert(place, new);
                if let Some(old) = replaced {
                    paths.release(old.path);
                }
                old
            }
        };
        if let Some(old) = old {
            paths.release(old.path);
        }
        self.mark_affected(prefix);
    }

    /// Removes a route, or some of its next hops if the kernel combined it with others.
    fn remove(&mut self, prefix: Prefix<K>, metric: u32, path: &Path) {
        let Some(entry) = self.table.get_mut(&prefix) else { return };
        if self.in_snapshot {
            entry.touched = self.age;
        }
        let paths = &mut self.paths;
        let same = |kept: &Kept| {
            let is = |at: &Path| at.is(path) || at.is_sibling(path);
            kept.metric == metric && paths.get(kept.path).is_some_and(is)
        };
        let Some(at) = entry.routes.list().iter().position(same) else { return };
        let rest = entry.routes.list().get(at).and_then(|kept| {
            let known = paths.get(kept.path).filter(|known| known.has_siblings)?;
            Some((known.without(&path.hops)?, *kept))
        });
        // Another route with the same metric may now be the first one of the prefix.
        self.resync_needed |=
            rest.is_some() && entry.routes.list().iter().filter(|kept| kept.metric == metric).count() > 1;
        let old = match rest {
            Some((rest, kept)) => entry.routes.replace(at, Kept { path: paths.hold(rest), ..kept }),
            None => entry.routes.remove(at),
        };
        if let Some(old) = old {
            paths.release(old.path);
        }
        self.mark_affected(prefix);
    }

    /// Marks a prefix whose routes changed, and the neighbours in it.
    fn mark_affected(&mut self, prefix: Prefix<K>) {
        self.mark_dirty(prefix);
        if self.neighbours.is_empty() || prefix.len() == K::BITS {
            return;
        }
        let (first, last) = (prefix.addr().to_addr(), prefix.last().to_addr());
        let inside: Vec<K::Addr> =
            self.neighbours.range((first, 0)..=(last, u32::MAX)).map(|((address, _), _)| *address).collect();
        inside.into_iter().for_each(|address| self.mark_host_dirty(address));
    }
}

/// As `fib6_add_rt2node`: a route takes the place of itself, or of the first one that it replaces, or else comes after
/// all with the same metric. Returns the route whose place it took.
fn insert_last(
    routes: &mut Routes,
    paths: &Paths,
    itself: Option<usize>,
    replaces: bool,
    new: Kept,
) -> Option<Kept> {
    let path = paths.get(new.path)?;
    let order = paths.order(new.path, new.metric);
    let list = routes.list();
    let same_order = |kept: &Kept| paths.order(kept.path, kept.metric) == order;
    let known = |kept: &Kept| paths.get(kept.path).filter(|known| known.source == path.source);
    let equal = |kept: &Kept| same_order(kept) && known(kept).is_some();
    let alike = |kept: &Kept| {
        same_order(kept) && known(kept).is_some_and(|known| known.has_siblings == path.has_siblings)
    };
    let first = || list.iter().position(alike).or_else(|| list.iter().position(equal));
    match if replaces { first() } else { itself } {
        Some(at) => routes.replace(at, new),
        None => {
            let end = list.partition_point(|kept| paths.order(kept.path, kept.metric) <= order);
            routes.insert(end, new);
            None
        }
    }
}

impl Routes {
    fn insert(&mut self, at: usize, new: Kept) {
        match self {
            Self::None => *self = Self::One(new),
            Self::One(one) => {
                let mut many = Vec::with_capacity(2);
                many.push(*one);
                many.insert(at.min(1), new);
                *self = Self::Many(Box::new(many));
            }
            Self::Many(many) => many.insert(at.min(many.len()), new),
        }
    }

    fn replace(&mut self, at: usize, new: Kept) -> Option<Kept> {
        let place = match self {
            Self::None => None,
            Self::One(one) => Some(one),
            Self::Many(many) => many.get_mut(at),
        };
        place.map(|place| std::mem::replace(place, new))
    }

    fn remove(&mut self, at: usize) -> Option<Kept> {
        let mut next = 0;
        let mut removed = None;
        self.retain(|kept| {
            let keep = next != at;
            if !keep {
                removed = Some(*kept);
            }
            next += 1;
            keep
        });
        removed
    }

    fn retain(&mut self, mut keep: impl FnMut(&Kept) -> bool) {
        match self {
            Self::None => {}
            Self::One(one) => {
                if !keep(one) {
                    *self = Self::None;
                }
            }
            Self::Many(many) => {
                many.retain(keep);
                match many.as_slice() {
                    [] => *self = Self::None,
                    [one] => *self = Self::One(*one),
                    _ => {}
                }
            }
        }
    }
}
