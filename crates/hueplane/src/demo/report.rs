//! Results of the demo: the table, the JSON output, and whether all checks passed.

use anstyle::{RgbColor, Style};
use serde::Serialize;

use super::moves::CardReport;
use super::plan::Plan;
use crate::print::{Align, BOLD, DIM, GREEN, RED, columns, count, grouped, styled};

/// The result of the demo.
#[derive(Serialize, Debug)]
pub struct Report {
    /// The networks in order.
    pub networks: Vec<Row>,
    /// Whether all checks passed.
    pub ok: bool,
    /// Descriptions of the failed checks.
    pub failures: Vec<String>,
    /// The card, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card: Option<CardReport>,
    /// Duration without teardown, in seconds.
    pub seconds: f64,
}

/// The results of one network.
#[derive(Serialize, Debug)]
pub struct Row {
    /// Name.
    pub name: String,
    /// Kind of plane.
    pub kind: &'static str,
    /// Colour, `#rrggbb`.
    pub colour: String,
    /// Physical ports.
    pub ports: Vec<String>,
    /// Where it ran: `card` or `soft`.
    pub substrate: String,
    /// Routes in its data plane.
    pub routes: u64,
    /// Whether its plane has a table of routes: not that of a switch, or of a network whose packets Linux forwards.
    #[serde(skip)]
    pub has_routes: bool,
    /// MAC addresses that it knows, if it is a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub macs: Option<u64>,
    /// Pings between its hosts.
    pub sent: u64,
    /// Pings that were answered.
    pub received: u64,
    /// Pings that were not answered.
    pub lost: u64,
    /// Rate measured by iperf3, if measured.
    pub mbit_per_second: Option<f64>,
    /// Pings from its hosts to other networks.
    pub tried: u64,
    /// Pings to other networks that were answered; none should be.
    pub reached: u64,
    /// Frames of other networks that its hosts received; there should be none.
    pub leaked: u64,
}

impl Report {
    /// Creates an empty report.
    pub fn new(plan: &Plan) -> Self {
        let row = |network: &super::plan::Network| {
            let [r, g, b] = network.colour;
            Row {
                name: network.name.clone(),
                kind: network.kind.name(),
                colour: format!("#{r:02x}{g:02x}{b:02x}"),
                ports: network.hosts.iter().map(|host| format!("p{}", host.port)).collect(),
                substrate: String::new(),
                routes: 0,
                has_routes: network.kind.limits().keys.has_routes(),
                macs: network.is_switch().then_some(0),
                sent: 0,
                received: 0,
                lost: 0,
                mbit_per_second: None,
                tried: 0,
                reached: 0,
                leaked: 0,
            }
        };
        let networks = plan.networks.iter().map(row).collect();
        Self { networks, ok: false, failures: Vec::new(), card: None, seconds: 0.0 }
    }

    /// Determines whether all checks passed, and lists the failed ones. The first `measured` networks should
    /// have a rate.
    pub fn evaluate(&mut self, measured: usize) {
        let mut failures = Vec::new();
        for (index, row) in self.networks.iter().enumerate() {
            let mut fault = |text: String| failures.push(format!("network {}: {text}", row.name));
            if row.sent == 0 || row.lost > 0 {
                fault(format!("{} of {} pings between its hosts were lost", row.lost, row.sent));
            }
            if row.reached > 0 {
                fault(format!("{} of {} pings to other networks were answered", row.reached, row.tried));
            }
            if row.leaked > 0 {
                fault(format!("its hosts received {} frames of other networks", row.leaked));
            }
            match row.macs {
                None if row.has_routes && row.routes == 0 => fault("has no routes".to_owned()),
                Some(0) => fault("knows no MAC address".to_owned()),
                _ => {}
            }
            if index < measured && !row.mbit_per_second.is_some_and(|speed| speed > 0.0) {
                fault("iperf3 moved nothing".to_owned());
            }
        }
        failures.extend(self.card.iter().flat_map(CardReport::faults));
        self.failures.extend(failures);
        self.ok = self.failures.is_empty();
    }

    /// The result as a table.
    pub fn table(&self, plan: &Plan) -> String {
        let head = [
            ("NETWORK", Align::Left),
            ("KIND", Align::Left),
            ("COLOUR", Align::Left),
            ("PORTS", Align::Left),
            ("ON", Align::Left),
            ("ROUTES", Align::Right),
            ("SENT", Align::Right),
            ("RECEIVED", Align::Right),
            ("LOST", Align::Right),
            ("MBIT/S", Align::Right),
            ("LEAKS", Align::Right),
        ];
        let rows: Vec<Vec<String>> = self
            .networks
            .iter()
            .zip(&plan.networks)
            .map(|(row, network)| row.cells(network.colour))
            .collect();
        let total = |of: fn(&Row) -> u64| grouped(self.networks.iter().map(of).sum());
        let verdict = if self.ok { styled(GREEN, "ok") } else { styled(RED, "failed") };
        let mut out = columns(&head, &rows);
        out.push_str(&format!(
            "{verdict}: {}, {} pings sent, {} answered; {} pings to other networks, {} answered; {} frames leaked; {:.1} s\n",
            count(self.networks.len() as u64, "network"),
            total(|row| row.sent),
            total(|row| row.received),
            total(|row| row.tried),
            total(|row| row.reached),
            total(|row| row.leaked),
            self.seconds,
        ));
        for failure in &self.failures {
            out.push_str(&format!("{} {failure}\n", styled(RED, "failed:")));
        }
        out
    }
}

impl Row {
    fn cells(&self, [r, g, b]: [u8; 3]) -> Vec<String> {
        let colour = Style::new().fg_color(Some(RgbColor(r, g, b).into()));
        let bad = |number: u64| {
            if number == 0 { "0".to_owned() } else { styled(RED, grouped(number)) }
        };
        vec![
            styled(BOLD, &self.name),
            self.kind.to_owned(),
            format!("{} {}", styled(colour, "██"), self.colour),
            self.ports.join(" "),
            self.substrate.clone(),
            if self.has_routes { grouped(self.routes) } else { styled(DIM, "-") },
            grouped(self.sent),
            grouped(self.received),
            bad(self.lost),
            self.mbit_per_second.map_or_else(|| styled(DIM, "-"), |speed| format!("{speed:.0}")),
            bad(self.leaked + self.reached),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> (Plan, Report) {
        let plan = Plan::new(4);
        let mut report = Report::new(&plan);
        for (index, row) in report.networks.iter_mut().enumerate() {
            (row.routes, row.sent, row.received, row.tried) = (6, 10, 10, 4);
            row.mbit_per_second = (index < 3).then_some(900.0);
        }
        (plan, report)
    }

    #[test]
    fn a_report_without_failures_is_ok() {
        let (plan, mut report) = good();
        report.evaluate(3);
        assert!(report.ok, "{:?}", report.failures);
        let table = report.table(&plan);
        assert!(table.contains("40 pings sent, 40 answered") && table.contains("#d62728"), "{table}");
    }

    #[test]
    fn each_failed_check_is_reported() {
        type Spoil = fn(&mut Row);
        let cases: [(Spoil, &str); 7] = [
            (|row| row.lost = 1, "1 of 10 pings between its hosts were lost"),
            (|row| row.sent = 0, "0 of 0 pings"),
            (|row| row.reached = 2, "2 of 4 pings to other networks were answered"),
            (|row| row.leaked = 3, "its hosts received 3 frames of other networks"),
            (|row| row.routes = 0, "has no routes"),
            (|row| row.macs = Some(0), "knows no MAC address"),
            (|row| row.mbit_per_second = None, "iperf3 moved nothing"),
        ];
        for (spoil, text) in cases {
            let (plan, mut report) = good();
            spoil(&mut report.networks[1]);
            report.evaluate(3);
            assert!(!report.ok);
            assert_eq!(report.failures.len(), 1);
            assert!(report.failures[0].contains(text), "{:?}", report.failures);
            assert!(report.table(&plan).contains(text));
        }
    }
}
