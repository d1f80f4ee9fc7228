//! `hueplane image`: lists the card's images, and loads one.

use hueplaned::api::{ImageInfo, ImageLoaded, LoadImageRequest};

use super::migrate::time;
use super::{Painter, client};
use crate::cli::{Connection, ImageCommand, ImageLoad};
use crate::failure::Failure;
use crate::print::{BOLD, DIM, GREEN, RED, list, result, styled};

/// Runs the command.
pub fn image(command: &ImageCommand, connection: &Connection) -> Result<(), Failure> {
    let client = client(connection)?;
    match command {
        ImageCommand::List(args) => {
            let images = client.images()?;
            list(args.output.format, images.into_iter(), "", row)
        }
        ImageCommand::Load(args) => load(args, &client),
    }
}

fn load(args: &ImageLoad, client: &hueplaned::client::Client) -> Result<(), Failure> {
    let reconfigure_ms = u32::try_from(args.reconfigure_time.as_millis())
        .map_err(|_| Failure::Usage("--reconfigure-time: expected at most 10m".to_owned()))?;
    let painter = Painter::ask(client);
    let loaded = client.load_image(&args.name, LoadImageRequest { reconfigure_ms }, args.turn.query())?;
    let drained = client.node().is_ok_and(|node| node.card.is_some_and(|card| card.drained));
    result(args.output.format, &loaded, || {
        let mut out = text(&loaded, &painter);
        if drained {
            out.push_str("the card is drained: networks run in software until `hueplane undrain card`\n");
        }
        out
    })
}

fn row(image: &ImageInfo) -> String {
    let mark = if image.running { styled(GREEN, "runs".to_owned()) } else { "    ".to_owned() };
    let name = styled(BOLD, format!("{:<10}", image.name));
    if let Some(problem) = &image.problem {
        return format!("{mark}  {name}  {} {problem}", styled(RED, "cannot be loaded:".to_owned()));
    }
    let clock = f64::from(image.clock_khz) / 1000.0;
    let tables: Vec<String> = image.tables.iter().map(|(name, rows)| format!("{name} {rows}")).collect();
    format!(
        "{mark}  {name}  {}, {} bits at {clock} MHz, {} networks, {}; {}  {}",
        image.kinds.join(" "),
        image.bus_bits,
        image.networks_max,
        image.layout,
        tables.join(" "),
        styled(DIM, format!("crc {}", image.checksum)),
    )
}

fn text(loaded: &ImageLoaded, painter: &Painter) -> String {
    let steps: Vec<String> =
        loaded.phases.iter().map(|phase| format!("{} {}", phase.name, time(phase.us))).collect();
    let mut out = format!(
        "the card now runs image {} instead of {}, after {} ({})\n",
        loaded.image,
        loaded.before,
        time(loaded.duration_us),
        steps.join(", ")
    );
    for network in &loaded.networks {
        let why = network.why_soft.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        out.push_str(&format!("  {} on {}{why}\n", painter.paint(&network.network), network.substrate));
    }
    out
}
