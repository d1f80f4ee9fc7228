//! Checks that every substrate makes before it loads programs: each program must be sound, and all of them must be
//! consistent with each other and with the networks that stay loaded.

use std::collections::HashMap;

use hue_demux::{Attachment, Demux, DemuxError, Row};
use hue_tables::Vid;

use crate::{Program, SubstrateError, VirtualPort};

/// Properties of a network that can conflict with others.
#[derive(Clone, Copy, Debug)]
pub struct Claims<'a> {
    /// Its id.
    pub vid: Vid,
    /// Its name.
    pub name: &'a str,
    /// Its virtual ports.
    pub ports: &'a [VirtualPort],
    /// The rows that select its frames.
    pub rows: &'a [Row],
}

impl<'a> From<&'a Program> for Claims<'a> {
    fn from(program: &'a Program) -> Self {
        Self { vid: program.vid, name: &program.name, ports: &program.ports, rows: &program.rows }
    }
}

/// Checks that each program is sound by itself, of a kind that `substrate` runs, and the only one with its id.
///
/// # Errors
/// `Kind`, `Program`, `Same`.
pub fn check_programs(programs: &[Program], substrate: &'static str) -> Result<(), SubstrateError> {
    let mut vids: HashMap<Vid, &Program> = HashMap::new();
    for program in programs {
        if !program.kind().runs_on().contains(&substrate) {
            let (name, kind) = (program.name.clone(), program.kind());
            return Err(SubstrateError::Kind { name, kind, substrate });
        }
        program.check().map_err(|error| SubstrateError::Program { name: program.name.clone(), error })?;
        if let Some(first) = vids.insert(program.vid, program) {
            return Err(same(&first.name, &program.name, "id"));
        }
    }
    Ok(())
}

/// Builds design select for the networks that stay and for new programs.
///
/// # Errors
/// `Same` when two have the same name, `Claim` when two claim the same frames, `Demux`.
pub fn demux_of<'a>(
    kept: impl Iterator<Item = Claims<'a>>,
    programs: &'a [Program],
) -> Result<Demux, SubstrateError> {
    let mut names: HashMap<Vid, &str> = HashMap::new();
    let mut vids: HashMap<&str, Vid> = HashMap::new();
    let mut rows: Vec<Row> = Vec::new();
    let mut attached: Vec<Attachment> = Vec::new();
    for network in kept.chain(programs.iter().map(Claims::from)) {
        if vids.insert(network.name, network.vid).is_some() {
            return Err(same(network.name, network.name, "name"));
        }
        names.insert(network.vid, network.name);
        // Frames that come by a tunnel do not come by a port; see ADR 0059.
        rows.extend(network.rows.iter().filter(|row| !row.is_of_tunnel()));
        let ports = network.ports.iter().zip(0u16..).filter(|(port, _)| !port.port.is_tunnel());
        attached.extend(ports.map(|(port, vport)| Attachment { port: port.port, vid: network.vid, vport }));
    }
    let name = |vid: Vid| names.get(&vid).copied().unwrap_or_default().to_owned();
    Demux::new(&rows, &attached).map_err(|error| match error {
        DemuxError::Conflict { first, second, .. } => {
            SubstrateError::Claim { first: name(first), second: name(second), error }
        }
        error => SubstrateError::Demux(error),
    })
}

fn same(first: &str, second: &str, what: &'static str) -> SubstrateError {
    SubstrateError::Same { first: first.to_owned(), second: second.to_owned(), what }
}

#[cfg(test)]
mod tests {
    use hue_demux::{Match, PortId};
    use hue_planes::{Kind, Settings};
    use hue_wire::Mac;

    use super::*;
    use crate::Entries;

    fn program(vid: u16, name: &str, mac: u8) -> Program {
        let vid = Vid::new(vid).unwrap();
        let (port, mac) = (PortId::new(0), Mac([2, 0, 0, 0, 0, mac]));
        Program {
            vid,
            name: name.to_owned(),
            settings: Settings::of(Kind::Ipv4),
            ports: vec![VirtualPort { name: "left".to_owned(), port, mac, mtu_bytes: 1500, tunnel: None }],
            rows: vec![Row { vid, vport: 0, select: Match::Mac { port, mac } }],
            next_hops: Vec::new(),
            groups: Vec::new(),
            entries: Entries::Lpm32(Vec::new()),
            rate_limit: None,
            weight: 1,
            policies: None,
            gated: false,
        }
    }

    #[test]
    fn programs_that_do_not_go_together_are_named() {
        let red = [program(1, "red", 1)];
        let text = |result: Result<(), SubstrateError>| result.unwrap_err().to_string();
        let together =
            |kept: &[Program], new: &[Program]| demux_of(kept.iter().map(Claims::from), new).map(|_| ());
        assert_eq!(check_programs(&[red[0].clone(), program(2, "blue", 2)], "soft"), Ok(()));
        let twice = [red[0].clone(), program(1, "blue", 2)];
        assert_eq!(text(check_programs(&twice, "soft")), "networks 'red' and 'blue' have the same id");
        assert_eq!(text(check_programs(&twice, "abacus")), "network 'red': kind ipv4 does not run on abacus");
        assert_eq!(together(&red, &[program(2, "blue", 2)]), Ok(()));
        for (other, expected) in [
            (program(2, "red", 2), "networks 'red' and 'red' have the same name"),
            (program(2, "blue", 1), "networks 'red' and 'blue': "),
        ] {
            let found = text(together(&red, std::slice::from_ref(&other)));
            assert!(found.starts_with(expected), "{found}");
            assert_eq!(text(together(&[], &[red[0].clone(), other])), found);
        }
    }
}
