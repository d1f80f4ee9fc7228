//! `hueplane stats --watch`: shows rates in the terminal, refreshed until q is pressed.
//!
//! Each update is one request to the daemon. Rates are differences between two updates, divided by the time
//! on the daemon's clock, so a slow terminal does not distort them. If the daemon is unavailable for a while,
//! the command waits.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hueplaned::api::{NetworkStats, Stats};
use hueplaned::client::Client;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Row, Sparkline, Table, TableState};
use ratatui::{DefaultTerminal, Frame};

use super::Painter;
use super::stats::reasons;
use crate::failure::Failure;
use crate::print::grouped;

/// Number of updates in the small graph.
const HISTORY: usize = 120;

/// The state of the screen.
struct View {
    painter: Painter,
    target: String,
    earlier: Option<Stats>,
    now: Option<Stats>,
    /// Why there is no new data.
    trouble: Option<String>,
    /// Forwarded packets per second of all networks, oldest first.
    history: Vec<u64>,
    table: TableState,
    order: Order,
}

/// Sort order of networks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Name,
    Rate,
    Drops,
}

/// Rates of a network, per second.
#[derive(Clone, Copy, Default)]
struct Rates {
    received: f64,
    forwarded: f64,
    punted: f64,
    dropped: f64,
    lost: f64,
    megabits: f64,
}

/// Shows rates until the user quits.
pub fn watch(client: &Client, name: Option<&str>, interval_ms: u64) -> Result<(), Failure> {
    let mut view = View {
        painter: Painter::ask(client),
        target: client.target().to_owned(),
        earlier: None,
        now: Some(client.stats(name)?),
        trouble: None,
        history: Vec::new(),
        table: TableState::default().with_selected(0),
        order: Order::Name,
    };
    let mut terminal = ratatui::try_init().map_err(|error| {
        Failure::Usage(format!(
            "--watch: the terminal cannot show it ({error}); use `hueplane stats` instead"
        ))
    })?;
    let done = run(&mut terminal, &mut view, client, name, Duration::from_millis(interval_ms));
    ratatui::restore();
    done
}

fn run(
    terminal: &mut DefaultTerminal,
    view: &mut View,
    client: &Client,
    name: Option<&str>,
    interval: Duration,
) -> Result<(), Failure> {
    let mut next = Instant::now() + interval;
    loop {
        terminal.draw(|frame| view.draw(frame))?;
        while event::poll(next.saturating_duration_since(Instant::now()))? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => {
                    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
                    match key.code {
                        KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                        KeyCode::Char('c') if is_control => return Ok(()),
                        code => view.key(code),
                    }
                }
                _ => {}
            }
            terminal.draw(|frame| view.draw(frame))?;
        }
        next = Instant::now() + interval;
        match client.stats(name) {
            Ok(stats) => view.take(stats),
            Err(error) => view.trouble = Some(error.to_string()),
        }
    }
}

impl View {
    fn key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Down | KeyCode::Char('j') => self.table.select_next(),
            KeyCode::Up | KeyCode::Char('k') => self.table.select_previous(),
            KeyCode::Home => self.table.select_first(),
            KeyCode::End => self.table.select_last(),
            KeyCode::PageDown => self.table.scroll_down_by(10),
            KeyCode::PageUp => self.table.scroll_up_by(10),
            KeyCode::Char('n') => self.order = Order::Name,
            KeyCode::Char('r') => self.order = Order::Rate,
            KeyCode::Char('d') => self.order = Order::Drops,
            _ => {}
        }
    }

    /// Adds new counters.
    fn take(&mut self, stats: Stats) {
        self.trouble = None;
        // The daemon may return the same snapshot twice.
        if self.now.as_ref().is_some_and(|now| now.time == stats.time) {
            return;
        }
        self.earlier = self.now.replace(stats);
        let total: f64 = self.rates().iter().map(|(_, rates)| rates.forwarded).sum();
        self.history.push(total as u64);
        let excess = self.history.len().saturating_sub(HISTORY);
        self.history.drain(..excess);
    }

    /// Rates of each network, in display order.
    fn rates(&self) -> Vec<(&NetworkStats, Rates)> {
        let Some(now) = &self.now else { return Vec::new() };
        let earlier: BTreeMap<&str, &NetworkStats> = self
            .earlier
            .iter()
            .flat_map(|stats| &stats.networks)
            .map(|network| (network.network.as_str(), network))
            .collect();
        let seconds = self.earlier.as_ref().map_or(0.0, |earlier| now.time.seconds_since(earlier.time));
        let rates = |network: &NetworkStats| match earlier.get(network.network.as_str()) {
            Some(before) if seconds > 0.0 => Rates::between(before, network, seconds),
            _ => Rates::default(),
        };
        let mut list: Vec<_> = now.networks.iter().map(|network| (network, rates(network))).collect();
        match self.order {
            Order::Name => {}
            Order::Rate => list.sort_by(|(_, a), (_, b)| b.received.total_cmp(&a.received)),
            Order::Drops => {
                list.sort_by(|(_, a), (_, b)| (b.dropped + b.lost).total_cmp(&(a.dropped + a.lost)))
            }
        }
        list
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let [top, graph, body, bottom] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(4),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(self.title(), top);
        let speed = self.history.last().copied().unwrap_or(0);
        let spark = Sparkline::default()
            .block(Block::bordered().title(format!(" forwarded, {} packets/s ", grouped(speed))))
            .style(Style::default().fg(Color::Cyan))
            .data(&self.history);
        frame.render_widget(spark, graph);
        let table = self.networks();
        frame.render_stateful_widget(table, body, &mut self.table);
        let help = Line::from(" q quit   arrows move   sort by: n name, r rate, d drops")
            .style(Style::default().add_modifier(Modifier::DIM));
        frame.render_widget(help, bottom);
    }

    fn title(&self) -> Line<'_> {
        let count = self.now.as_ref().map_or(0, |stats| stats.networks.len());
        let bold = Style::default().add_modifier(Modifier::BOLD);
        let mut title = Line::from(vec![
            Span::styled(" hueplane ", bold),
            Span::raw(format!("{count} networks, {} ", self.target)),
        ]);
        match (&self.trouble, &self.now) {
            (Some(trouble), _) => {
                title.push_span(Span::styled(trouble.clone(), Style::default().fg(Color::Red)))
            }
            (None, Some(stats)) => title.push_span(Span::raw(stats.time.to_string())),
            (None, None) => {}
        }
        title
    }

    fn networks(&self) -> Table<'static> {
        let dim = Style::default().add_modifier(Modifier::DIM);
        let rows = self.rates().into_iter().map(|(network, rates)| {
            let [r, g, b] = self.painter.colour(&network.network).unwrap_or([255; 3]);
            let name = Style::default().fg(Color::Rgb(r, g, b)).add_modifier(Modifier::BOLD);
            let number = |rate: f64| right(grouped(rate.round() as u64));
            let bad = |rate: f64| {
                let style = if rate >= 0.5 { Style::default().fg(Color::Red) } else { dim };
                number(rate).style(style)
            };
            Row::new(vec![
                Cell::from(network.network.clone()).style(name),
                number(rates.received),
                number(rates.forwarded),
                right(format!("{:.1}", rates.megabits)),
                number(rates.punted),
                bad(rates.dropped),
                bad(rates.lost),
                Cell::from(format!(" {}", reasons(network.drops.iter().chain(&network.losses)))).style(dim),
            ])
        });
        let widths = [
            Constraint::Min(12),
            Constraint::Length(12),
            Constraint::Length(12),
            Constraint::Length(10),
            Constraint::Length(10),
            Constraint::Length(10),
            Constraint::Length(10),
            Constraint::Fill(2),
        ];
        let head = ["RECEIVED/s", "FORWARD/s", "MBIT/s", "PUNT/s", "DROP/s", "LOST/s"];
        let head = [Cell::from("NETWORK")]
            .into_iter()
            .chain(head.into_iter().map(|text| right(text.to_owned())))
            .chain([Cell::from(" REASONS, TOTAL")]);
        Table::new(rows, widths)
            .header(Row::new(head).style(Style::default().add_modifier(Modifier::BOLD)))
            .row_highlight_style(Style::default().add_modifier(Modifier::REVERSED))
    }
}

impl Rates {
    fn between(before: &NetworkStats, after: &NetworkStats, seconds: f64) -> Self {
        // A network that was replaced starts again from zero.
        let rate = |of: fn(&NetworkStats) -> u64| of(after).saturating_sub(of(before)) as f64 / seconds;
        Self {
            received: rate(|network| network.received),
            forwarded: rate(|network| network.forwarded),
            punted: rate(|network| network.punted),
            dropped: rate(|network| network.dropped),
            lost: rate(NetworkStats::lost),
            megabits: rate(|network| network.sent_bytes) * 8.0 / 1e6,
        }
    }
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).right_aligned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use hueplaned::api::Timestamp;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn stats(second: u64, forwarded: u64, dropped: u64) -> Stats {
        let network = |name: &str, factor: u64| NetworkStats {
            network: name.to_owned(),
            received: (forwarded + dropped) * factor,
            forwarded: forwarded * factor,
            dropped: dropped * factor,
            drops: BTreeMap::from([("no_route".to_owned(), dropped * factor)]),
            sent_bytes: forwarded * factor * 125,
            ..NetworkStats::default()
        };
        Stats {
            time: Timestamp::from_us(second * 1_000_000),
            networks: vec![network("blue", 1), network("red", 3)],
            ..Stats::default()
        }
    }

    fn view() -> View {
        View {
            painter: Painter::of(&[]),
            target: "here".to_owned(),
            earlier: None,
            now: Some(stats(10, 0, 0)),
            trouble: None,
            history: Vec::new(),
            table: TableState::default(),
            order: Order::Name,
        }
    }

    fn shown(view: &mut View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(120, 14)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn rates_use_the_daemons_clock() {
        let mut view = view();
        assert!(shown(&mut view).contains("2 networks"));
        view.take(stats(12, 4_000, 20));
        let text = shown(&mut view);
        assert!(text.contains("8,000 packets/s"), "{text}");
        assert!(text.contains("6,030") && text.contains("no_route 60") && text.contains("6.0"), "{text}");
        // The same snapshot again changes nothing, and a restart of the daemon gives no negative rate.
        view.take(stats(12, 4_000, 20));
        assert_eq!(view.history.len(), 1);
        view.take(stats(13, 0, 0));
        assert_eq!(view.history.last(), Some(&0));
    }

    #[test]
    fn keys_sort_and_move() {
        let mut view = view();
        view.take(stats(11, 100, 1));
        view.key(KeyCode::Char('r'));
        assert_eq!(view.rates()[0].0.network, "red");
        view.key(KeyCode::Char('n'));
        assert_eq!(view.rates()[0].0.network, "blue");
        for code in
            [KeyCode::Down, KeyCode::Up, KeyCode::End, KeyCode::Home, KeyCode::PageDown, KeyCode::F(1)]
        {
            view.key(code);
        }
        view.trouble = Some("the daemon has stopped".to_owned());
        assert!(shown(&mut view).contains("the daemon has stopped"));
    }

    #[test]
    fn every_terminal_size_works() {
        for (width, height) in [(1, 1), (10, 3), (40, 8), (300, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| view().draw(frame)).unwrap();
        }
    }
}
