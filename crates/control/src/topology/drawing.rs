//! A drawing of a topology as SVG: the physical links, and each network in its colour, side by side with the same places for nodes.
//!
//! Nodes that the document gives no place are laid out by forces (Fruchterman and Reingold 1991), from a circle and without randomness,
//! so that the same document gives the same drawing. Nodes that would cover each other are moved apart. Units: pixels.

use std::fmt::Write;

use hue_intent::topology::{Topology, TopologySpec, Under};

/// Width of one picture with few nodes and with many, and the space around its nodes.
const SIDE_MIN: f64 = 480.0;
const SIDE_MAX: f64 = 1600.0;
const MARGIN: f64 = 60.0;
/// Nodes that a picture of the smallest width has room for.
const FEW: usize = 16;
/// Space for the heading of a picture.
const HEAD: f64 = 36.0;
/// Pictures side by side.
const COLUMNS: usize = 3;
/// Radius of a node, and half the side of a host.
const NODE: f64 = 9.0;
const HOST: f64 = 4.0;
/// Distance of a host from its node.
const AWAY: f64 = 24.0;
/// Distance that nodes keep if there is room. Names are wider than high, so it is this much across and less up and down.
const GAP: f64 = 56.0;
const GAP_HIGH: f64 = 36.0;
/// How often nodes that are too close are moved apart.
const APART_STEPS: usize = 200;
/// Nodes above which the layout by forces would take too long: they stay on the circle.
const FORCES_MAX: usize = 300;
const STEPS: usize = 200;
/// Colour of what is physical, and of nodes that a network is not on.
const PHYSICAL: &str = "#444444";
const FAINT: &str = "#cccccc";
/// Colours of networks that name none.
const PALETTE: [&str; 8] =
    ["#d62728", "#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#17becf"];

type Point = [f64; 2];

/// Where the nodes are in each picture, and how large a picture is.
struct Layout {
    places: Vec<Point>,
    width: f64,
    height: f64,
    /// Whether hosts have their names beside them; with many nodes only as a tooltip.
    names_hosts: bool,
}

/// Draws the physical topology and each network.
#[must_use]
pub fn svg(topology: &Topology) -> String {
    let spec = &topology.spec;
    let layout = layout(spec);
    let pictures = spec.networks.len() + 1;
    let columns = pictures.min(COLUMNS);
    let rows = pictures.div_ceil(COLUMNS);
    let (width, height) = (columns as f64 * layout.width, rows as f64 * layout.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<title>Topology {}</title>\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n",
        topology.name()
    );
    for picture in 0..pictures {
        let x = (picture % COLUMNS) as f64 * layout.width;
        let y = (picture / COLUMNS) as f64 * layout.height;
        let _ = writeln!(out, "<g transform=\"translate({x:.0} {y:.0})\">");
        match picture.checked_sub(1) {
            None => physical(spec, &layout.places, &mut out),
            Some(network) => virtual_network(spec, network, &layout, &mut out),
        }
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

fn physical(spec: &TopologySpec, places: &[Point], out: &mut String) {
    heading(out, "physical links", PHYSICAL);
    let ends = spec.links.iter().filter_map(|link| {
        let [one, other] = &link.ends;
        Some([spec.node(one.as_str())?, spec.node(other.as_str())?])
    });
    lines(out, places, ends.map(|ends| (ends, false)), PHYSICAL);
    for (node, place) in spec.nodes.iter().zip(places) {
        circle(out, *place, node.name.as_str(), PHYSICAL);
    }
}

fn virtual_network(spec: &TopologySpec, at: usize, layout: &Layout, out: &mut String) {
    let places = &layout.places;
    let network = &spec.networks[at];
    let colour = network.colour.map_or_else(|| PALETTE[at % PALETTE.len()].to_owned(), |one| one.to_string());
    let links = spec.links_of(at);
    let mut carriers: Vec<&str> = links
        .iter()
        .filter_map(|link| match link.on {
            Under::Tunnel { over, .. } => Some(spec.networks[over].name.as_str()),
            Under::Link(_) => None,
        })
        .collect();
    carriers.sort_unstable();
    carriers.dedup();
    let over = if carriers.is_empty() {
        String::new()
    } else {
        format!(", dashed: tunnels over {}", carriers.join(", "))
    };
    heading(out, &format!("network {} ({}{over})", network.name, network.kind.name()), &colour);
    let drawn = links.iter().map(|link| (link.ends, matches!(link.on, Under::Tunnel { .. })));
    lines(out, places, drawn, &colour);
    let on = spec.nodes_of(network);
    for (node, place) in places.iter().enumerate() {
        let colour = if on.contains(&node) { colour.as_str() } else { FAINT };
        circle(out, *place, spec.nodes[node].name.as_str(), colour);
    }
    for (node, place) in places.iter().enumerate() {
        let name = &spec.nodes[node].name;
        let hosts: Vec<_> = network.hosts.iter().filter(|host| host.node == *name).collect();
        for (number, host) in hosts.iter().enumerate() {
            let angle = std::f64::consts::TAU * (number as f64 + 0.35) / hosts.len() as f64;
            let [x, y] = [place[0] + AWAY * angle.cos(), place[1] + AWAY * angle.sin()];
            let _ = writeln!(
                out,
                "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\"/><rect x=\"{:.1}\" y=\"{:.1}\" \
                 width=\"{4}\" height=\"{4}\" fill=\"{colour}\"><title>host {5}</title></rect>",
                place[0],
                place[1],
                x - HOST,
                y - HOST,
                2.0 * HOST,
                host.name,
            );
            if layout.names_hosts {
                let _ = writeln!(
                    out,
                    "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"8\" fill=\"{colour}\">{}</text>",
                    x + HOST + 2.0,
                    y + 3.0,
                    host.name
                );
            }
        }
    }
}

fn heading(out: &mut String, text: &str, colour: &str) {
    let _ = writeln!(
        out,
        "<text x=\"16\" y=\"24\" font-size=\"14\" font-weight=\"bold\" fill=\"{colour}\">{text}</text>"
    );
}

/// Lines between nodes; dashed ones are tunnels. Parallel ones are bent.
fn lines(out: &mut String, places: &[Point], lines: impl Iterator<Item = ([usize; 2], bool)>, colour: &str) {
    let mut seen: std::collections::HashMap<[usize; 2], u32> = std::collections::HashMap::new();
    for (mut ends, dashed) in lines {
        ends.sort_unstable();
        let count = seen.entry(ends).or_default();
        let bend = f64::from(*count) * 18.0;
        *count += 1;
        let [a, b] = ends.map(|end| places[end]);
        let [dx, dy] = [b[0] - a[0], b[1] - a[1]];
        let length = dx.hypot(dy).max(1.0);
        let middle = [(a[0] + b[0]) / 2.0 - dy / length * bend, (a[1] + b[1]) / 2.0 + dx / length * bend];
        let dashes = if dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
            a[0], a[1], middle[0], middle[1], b[0], b[1]
        );
    }
}

fn circle(out: &mut String, [x, y]: Point, name: &str, colour: &str) {
    let text = if colour == FAINT { FAINT } else { "#000000" };
    let _ = writeln!(
        out,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{NODE}\" fill=\"{colour}\" stroke=\"#ffffff\" stroke-width=\"2\"/>\
         <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{text}\">{name}</text>",
        y - NODE - 4.0
    );
}

/// Places the nodes in a picture.
fn layout(spec: &TopologySpec) -> Layout {
    let count = spec.nodes.len();
    let width = (SIDE_MIN * (count as f64 / FEW as f64).sqrt()).clamp(SIDE_MIN, SIDE_MAX);
    let mut places = wanted(spec);
    let inner = width - 2.0 * MARGIN;
    scale(&mut places, inner);
    move_apart(&mut places);
    // Nodes at the border were moved outwards.
    scale(&mut places, inner);
    let bottom = places.iter().fold(0.0_f64, |bottom, place| bottom.max(place[1]));
    for place in &mut places {
        *place = [place[0] + MARGIN, place[1] + MARGIN + HEAD];
    }
    Layout { places, width, height: bottom + 2.0 * MARGIN + HEAD, names_hosts: count <= FEW }
}

/// Scales and moves places so that they take the whole width, and no more height than that; a narrow drawing is in the middle.
fn scale(places: &mut [Point], width: f64) {
    let bounds = |axis: usize| {
        let values = places.iter().map(|point| point[axis]);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), one| (low.min(one), high.max(one)))
    };
    let (x, y) = (bounds(0), bounds(1));
    let scale = width / (x.1 - x.0).max(y.1 - y.0).max(f64::EPSILON);
    for point in places.iter_mut() {
        *point = [width / 2.0 + (point[0] - (x.0 + x.1) / 2.0) * scale, (point[1] - y.0) * scale];
    }
}

/// Moves nodes apart that would cover each other or each other's names.
fn move_apart(places: &mut [Point]) {
    for _ in 0..APART_STEPS {
        let mut moved = false;
        for one in 0..places.len() {
            for other in one + 1..places.len() {
                // In units of the distance that they should have.
                let [dx, dy] = [
                    (places[other][0] - places[one][0]) / GAP,
                    (places[other][1] - places[one][1]) / GAP_HIGH,
                ];
                let distance = dx.hypot(dy);
                if distance >= 1.0 {
                    continue;
                }
                moved = true;
                // Nodes in one place leave it in different directions.
                let [ux, uy] = if distance > 1e-3 {
                    [dx / distance, dy / distance]
                } else {
                    let angle = (one + other) as f64;
                    [angle.cos(), angle.sin()]
                };
                // Slowly, so that a crowd spreads to all sides.
                let by = (1.0 - distance) * 0.25;
                places[one] = [places[one][0] - ux * by * GAP, places[one][1] - uy * by * GAP_HIGH];
                places[other] = [places[other][0] + ux * by * GAP, places[other][1] + uy * by * GAP_HIGH];
            }
        }
        if !moved {
            break;
        }
    }
}

/// Places of all nodes in any unit: those of the document, the others by forces.
///
/// Nodes repel each other, and links pull their ends together. Nodes with a place in the document stay there.
fn wanted(spec: &TopologySpec) -> Vec<Point> {
    let count = spec.nodes.len();
    let angle = |node: usize| std::f64::consts::TAU * node as f64 / count as f64;
    let mut places: Vec<Point> = (0..count).map(|node| [angle(node).sin(), -angle(node).cos()]).collect();
    // In documents, the second number points up.
    let given: Vec<Option<Point>> =
        spec.nodes.iter().map(|node| node.at.map(|[x, y]| [f64::from(x), -f64::from(y)])).collect();
    let mut fixed: Vec<Point> = given.iter().flatten().copied().collect();
    let mut is_fixed = vec![false; count];
    if fixed.len() > 1 {
        scale(&mut fixed, 2.0);
        let of_fixed = given.iter().enumerate().filter(|(_, given)| given.is_some()).map(|(node, _)| node);
        for (node, place) in of_fixed.zip(fixed) {
            places[node] = [place[0] - 1.0, place[1] - 1.0];
            is_fixed[node] = true;
        }
    }
    if count > FORCES_MAX || is_fixed.iter().all(|fixed| *fixed) {
        return places;
    }
    let mut links: Vec<[usize; 2]> = spec
        .links
        .iter()
        .filter_map(|link| Some([spec.node(link.ends[0].as_str())?, spec.node(link.ends[1].as_str())?]))
        .collect();
    if links.is_empty() {
        links = (0..spec.networks.len()).flat_map(|at| spec.links_of(at)).map(|link| link.ends).collect();
    }
    let ideal = 2.0 / (count as f64).sqrt();
    for step in 0..STEPS {
        let mut pull = vec![[0.0_f64; 2]; count];
        for one in 0..count {
            for other in 0..count {
                let [dx, dy] = [places[one][0] - places[other][0], places[one][1] - places[other][1]];
                let square = (dx * dx + dy * dy).max(1e-6);
                pull[one][0] += dx * ideal * ideal / square;
                pull[one][1] += dy * ideal * ideal / square;
            }
        }
        for [one, other] in &links {
            let [dx, dy] = [places[*one][0] - places[*other][0], places[*one][1] - places[*other][1]];
            let force = dx.hypot(dy) / ideal;
            for (node, sign) in [(*one, -1.0), (*other, 1.0)] {
                pull[node][0] += sign * dx * force;
                pull[node][1] += sign * dy * force;
            }
        }
        // Steps become smaller, so that the drawing comes to rest.
        let most = 0.1 * (1.0 - step as f64 / STEPS as f64);
        for (node, (place, pull)) in places.iter_mut().zip(pull).enumerate() {
            if is_fixed[node] {
                continue;
            }
            let length = pull[0].hypot(pull[1]).max(1e-9);
            let by = length.min(most) / length;
            place[0] += pull[0] * by;
            place[1] += pull[1] * by;
        }
    }
    places
}
