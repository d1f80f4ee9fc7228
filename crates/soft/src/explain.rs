//! Explains one frame, stage by stage, without counting it or charging a meter. For `hueplane trace`.

use std::net::IpAddr;

use hue_demux::{By, PortId, Selection, Target, inner_destination};
use hue_planes::{
    Adjacency, Class, Explanation, FRAME_BYTES_MAX, FRAME_BYTES_MIN, Meter, Plane, Reason, Stage, Unclaimed,
    with_plane,
};
use hue_tables::{MacKey, Pointers, Vid};
use hue_wire::Mac;

use crate::engine::Soft;
use crate::matching::{At, Matching};
use crate::network::Network;
use crate::policies::explained;
use crate::switch::Switch;

/// The fate of a frame, with the reasons.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// The stages before the network is known; if no network claims the frame, the last one decided.
    pub stages: Vec<Stage>,
    /// Why no network claims the frame; `None` if one does.
    pub unclaimed: Option<Unclaimed>,
    /// What each receiving network does with the frame. At most one network unless it is a group frame.
    pub networks: Vec<NetworkTrace>,
}

/// What one network does with a frame and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkTrace {
    /// Network.
    pub vid: Vid,
    /// Its name.
    pub name: String,
    /// Index of its virtual port that the frame arrives on.
    pub vport: u16,
    /// The stages the packet reached; the last one decided.
    pub stages: Vec<Stage>,
    /// Its outcome.
    pub outcome: Reason,
    /// The address that was looked up, if any was.
    pub key: Option<IpAddr>,
    /// Port to send on, if forwarded to one port.
    pub egress: Option<PortId>,
    /// The frame afterwards: rewritten if forwarded, else unchanged.
    pub bytes: Vec<u8>,
}

/// The parts of a network's state that packets change and the decision about one frame depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub meter: Option<Box<Meter>>,
    pub switch: Option<Box<Switch>>,
    pub pointers: Option<Pointers<Adjacency>>,
}

impl State {
    pub fn of(network: &Network, frame: &[u8]) -> Self {
        let asked = with_plane!(network.kind(), P => asked::<P>(network, frame));
        let switch = network.switch.as_deref().map(|switch| Box::new(switch.only(&asked)));
        let pointers = network.shape.pointers.clone();
        Self { meter: network.meter.clone(), switch, pointers }
    }
}

fn asked<P: Plane<Match: Matching<P>>>(network: &Network, frame: &[u8]) -> Vec<MacKey> {
    P::front(frame, P::settings(&network.settings)).map(P::Match::asked).unwrap_or_default()
}

impl Soft {
    /// Explains what would happen now to a frame that arrives on `port` at `time_ns`.
    pub fn explain(&self, port: PortId, time_ns: u64, frame: &[u8]) -> Trace {
        let state = |vid| self.network(vid).map(|network| State::of(network, frame)).unwrap_or_default();
        self.explain_with(port, time_ns, frame, state)
    }

    /// The same, with the state of networks that the caller provides.
    pub(crate) fn explain_with(
        &self,
        port: PortId,
        time_ns: u64,
        frame: &[u8],
        state: impl Fn(Vid) -> State,
    ) -> Trace {
        let mut stages = vec![stage("frame", format!("{} bytes on port {port}", frame.len()), None)];
        let unclaimed = |mut stages: Vec<Stage>, reason: Unclaimed| {
            if let Some(last) = stages.last_mut() {
                last.outcome = Some(reason.name());
            }
            Trace { stages, unclaimed: Some(reason), networks: Vec::new() }
        };
        if frame.len() < FRAME_BYTES_MIN {
            return unclaimed(stages, Unclaimed::Runt);
        }
        if frame.len() > FRAME_BYTES_MAX {
            return unclaimed(stages, Unclaimed::TooLong);
        }
        let (targets, by) = match self.engine.demux.select(port, frame) {
            Selection::One(target, by) => (vec![target], by),
            Selection::Several(targets) => (targets.to_vec(), By::Group),
            Selection::Nobody => {
                stages.push(stage("demux", Unclaimed::NoNetwork.row().doc.to_owned(), None));
                return unclaimed(stages, Unclaimed::NoNetwork);
            }
        };
        let matched = match (by, frame.first_chunk::<6>(), inner_destination(frame)) {
            (By::Mac | By::Group, Some(mac), _) => format!("{} {}", by.name(), Mac(*mac)),
            (By::Inner, _, Some(address)) => {
                format!("{} {}", by.name(), std::net::Ipv4Addr::from_bits(address))
            }
            _ => format!("{} {port}", by.name()),
        };
        stages.push(stage("demux", matched, None));
        let networks = targets
            .into_iter()
            .filter_map(|target| self.explain_one(target, time_ns, frame, &state))
            .collect();
        Trace { stages, unclaimed: None, networks }
    }

    pub(crate) fn explain_one(
        &self,
        target: Target,
        time_ns: u64,
        frame: &[u8],
        state: impl Fn(Vid) -> State,
    ) -> Option<NetworkTrace> {
        let network = self.network(target.vid)?;
        let (vid, name) = (network.vid, network.shape.name.clone());
        let mut stages = Vec::new();
        if network.gated {
            let outcome = Reason::gated(network.kind());
            stages.push(stage("gate", outcome.row().when.to_owned(), Some(outcome.name())));
            let (vport, bytes) = (target.vport, frame.to_vec());
            return Some(NetworkTrace { vid, name, vport, stages, outcome, key: None, egress: None, bytes });
        }
        let mut state = state(vid);
        if let Some(meter) = &mut state.meter {
            let conforms = meter.conforms(time_ns, frame.len());
            let limited = Reason::rate_limited(network.kind());
            let outcome = (!conforms).then_some(limited);
            let detail = if conforms { "conforms" } else { limited.row().when };
            stages.push(stage("meter", detail.to_owned(), outcome.map(Reason::name)));
            if let Some(outcome) = outcome {
                let bytes = frame.to_vec();
                return Some(NetworkTrace {
                    vid,
                    name,
                    vport: target.vport,
                    stages,
                    outcome,
                    key: None,
                    egress: None,
                    bytes,
                });
            }
        }
        let at = At { vport: target.vport, time_ns, bytes: frame.len(), flow: 0 };
        let mut switch = state.switch;
        let mut own = None;
        if state.pointers.is_some() {
            own.insert(network.clone()).shape.pointers = state.pointers;
        }
        let network = own.as_ref().unwrap_or(network);
        let (mut explained, key) =
            with_plane!(network.kind(), P => self.explain_plane::<P>(network, switch.as_deref(), frame, at));
        if explained.outcome.is_flood()
            && switch.as_mut().is_some_and(|switch| !switch.may_flood(time_ns, frame.len()))
            && let Some(storm) = Reason::of_class(network.kind(), Class::Storm)
        {
            explained.outcome = storm;
            explained.stages.pop();
            explained.stages.push(stage("storm", storm.row().when.to_owned(), Some(storm.name())));
        }
        stages.extend(explained.stages);
        let outcome = explained.outcome;
        let egress = outcome.has_one_egress().then_some(explained.hop).flatten();
        Some(NetworkTrace {
            vid,
            name,
            vport: target.vport,
            stages,
            outcome,
            key,
            egress: egress.map(|hop| hop.port()),
            bytes: explained.bytes,
        })
    }
}

impl Soft {
    /// Explains what a network's plane does with a frame, and names the address that it looks up.
    fn explain_plane<P: Plane<Match: Matching<P>>>(
        &self,
        network: &Network,
        switch: Option<&Switch>,
        frame: &[u8],
        at: At,
    ) -> (Explanation, Option<IpAddr>) {
        let mut asked = None;
        let at = At { flow: P::flow(frame), ..at };
        let explanation = P::explain(frame, P::settings(&network.settings), |carried| {
            let (looked, key) = P::Match::explain(self, network, switch, carried, at);
            let (looked, gateway) = explained(self, network, looked, frame, at);
            asked = gateway.or(key);
            looked
        });
        (explanation, asked)
    }
}

pub(crate) fn stage(name: &'static str, detail: String, outcome: Option<&'static str>) -> Stage {
    Stage { name, detail, outcome }
}
