//! Explains one packet: as the plane of IPv4 does, with the splicing bits between header and lookup. For `hueplane trace`.

use hue_wire::ethernet;

use super::{Bits, Checked, Plane, Settings, field, of_ipv4, read};
use crate::explain::{after_front, end, ethernet as ethernet_text, stage};
use crate::ipv4;
use crate::ipv4::explain::{changes as changes_of_ipv4, header};
use crate::plane::{Explanation, Looked};

/// See [`Plane::explain`](crate::Plane::explain).
pub(super) fn explain(frame: &[u8], settings: Settings, look: impl FnOnce(Checked) -> Looked) -> Explanation {
    let mut stages = vec![stage("ethernet", ethernet_text(frame))];
    let checked = match ipv4::check(frame) {
        Ok(checked) => checked.with_martians(settings.forward_martians),
        Err(outcome) => {
            let outcome = of_ipv4(outcome);
            if outcome.row().stage == "header" {
                stages.push(stage("header", header(frame)));
            }
            return end(stages, outcome.into(), None, frame.to_vec());
        }
    };
    stages.push(stage("header", header(frame)));
    stages.push(stage("slice", text(frame, settings)));
    match read(frame, checked, settings) {
        Err(outcome) => end(stages, outcome.into(), None, frame.to_vec()),
        Ok(checked) => {
            let address = std::net::Ipv4Addr::from_bits(checked.ipv4.key);
            let asked = format!("{address} in slice {}", checked.slice);
            after_front::<Plane>(frame, stages, (checked, asked), look, |before, after| {
                changes(before, after, settings)
            })
        }
    }
}

/// The splicing bits of a frame.
fn text(frame: &[u8], settings: Settings) -> String {
    match field(frame, settings.bits) {
        Ok(None) => "no splicing bits: slice 0".to_owned(),
        Ok(Some(bits)) => format!(
            "splicing bits {} in {}, {} a hop: slice {} of {}",
            hex(bits, settings.bits),
            settings.bits.name(),
            settings.hop_bits(),
            settings.slice(bits),
            settings.slices
        ),
        Err(_) => {
            let shim = frame.get(ethernet::HEADER_BYTES + 20..).unwrap_or_default();
            format!("{} bytes behind the header", shim.len())
        }
    }
}

fn hex(field: u64, bits: Bits) -> String {
    let digits = bits.width() as usize / 4;
    format!("0x{field:0digits$x}")
}

/// What the rewrite changed, field by field.
fn changes(before: &[u8], after: &[u8], settings: Settings) -> String {
    let text = changes_of_ipv4(before, after);
    match (field(before, settings.bits), field(after, settings.bits)) {
        (Ok(Some(old)), Ok(Some(new))) => {
            format!("{text}, splicing bits {} -> {}", hex(old, settings.bits), hex(new, settings.bits))
        }
        _ => text,
    }
}
