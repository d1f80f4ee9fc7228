//! Inputs and effects of the card's state, without a card.

use super::*;

/// The card's state of a test, and what the core would do for it.
struct Bench {
    state: CardState,
    /// What documents say.
    desired: Option<Card>,
    /// What happens when a card is started: whether it was taken over.
    starts: Result<bool, &'static str>,
    /// The effects so far, as text.
    seen: Vec<String>,
}

/// A card with this image and these ports.
fn card(image: &str, ports: &str) -> Card {
    let names = ports.split(", ").map(|name| format!("{{name: {name}, interface: {name}}}"));
    let names: Vec<String> = names.collect();
    let text = format!(
        "apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: box}}\n\
         spec: {{ports: [{}], card: {{twin: {{image: {image}}}, ports: [{ports}]}}}}\n",
        names.join(", ")
    );
    let source = hue_intent::Source { name: "node".to_owned(), bytes: text.into_bytes() };
    hue_intent::parse(vec![source]).unwrap().node.spec.card.unwrap()
}

impl Bench {
    fn new() -> Self {
        Self { state: CardState::default(), desired: None, starts: Ok(false), seen: Vec::new() }
    }

    fn give(&mut self, input: Input) {
        for effect in self.state.take(input) {
            self.apply(effect);
        }
    }

    fn apply(&mut self, effect: Effect) {
        let text = match effect {
            Effect::Then(input) => return self.give(input),
            Effect::Tell(kind, text) => format!("{kind:?}: {text}"),
            Effect::Changed => return,
            Effect::ClosePort(name, _) => {
                let number = self.state.number(&name);
                format!("close {name} at {}", number.map_or("-".to_owned(), |number| number.to_string()))
            }
            Effect::TendPort(name) => format!("tend {name}"),
            Effect::Drop(_) => "drop".to_owned(),
            Effect::Start(card, ports) => {
                self.seen.push(format!("start {}", card.twin.as_ref().unwrap().image));
                return self.give(Input::Started(card, self.starts.map_err(str::to_owned), ports));
            }
            Effect::Reconcile => return self.give(Input::Want(self.desired.clone())),
            Effect::Lead => "lead".to_owned(),
            Effect::WaitToRenew => "wait to renew".to_owned(),
            Effect::SeatAll => "seat all".to_owned(),
        };
        self.seen.push(text);
    }

    fn want(&mut self, card: Option<Card>) -> Vec<String> {
        self.desired = card.clone();
        self.give(Input::Want(card));
        std::mem::take(&mut self.seen)
    }
}

#[test]
fn a_card_is_started_with_its_ports_and_networks_and_dropped_with_them() {
    let mut bench = Bench::new();
    assert!(bench.want(None).is_empty());
    let expected = ["start small", "lead", "close a at 0", "close b at 1", "seat all", "tend a", "tend b"];
    assert_eq!(bench.want(Some(card("small", "a, b"))), expected);
    assert!(bench.want(Some(card("small", "a, b"))).is_empty(), "nothing has changed");
    // Ports of the former card and of the new one are opened by their new owners.
    let expected = [
        "close a at 0",
        "close b at 1",
        "drop",
        "start small",
        "lead",
        "close b at 0",
        "close c at 1",
        "seat all",
        "tend a",
        "tend b",
        "tend b",
        "tend c",
    ];
    assert_eq!(bench.want(Some(card("small", "b, c"))), expected);
    assert_eq!(
        (bench.state.ports(), bench.state.number("c")),
        (vec!["b".to_owned(), "c".to_owned()], Some(1))
    );
    assert_eq!(bench.want(None), ["close b at 0", "close c at 1", "drop", "tend b", "tend c"]);
}

#[test]
fn a_card_that_runs_another_image_by_request_is_the_desired_one() {
    let mut bench = Bench::new();
    bench.want(Some(card("small", "a, b")));
    bench.give(Input::Image("big".to_owned()));
    assert!(bench.want(Some(card("big", "a, b"))).is_empty());
    assert_eq!(bench.want(Some(card("small", "a, b")))[3], "start small");
}

#[test]
fn a_card_that_cannot_be_started_is_a_problem_until_documents_name_another_one() {
    let mut bench = Bench::new();
    bench.starts = Err("no image 'small'");
    let expected = ["start small", "CardDown: no image 'small'", "seat all"];
    assert_eq!(bench.want(Some(card("small", "a"))), expected);
    assert_eq!(bench.state.problem().unwrap(), "card: no image 'small'");
    // Each change tries it again; without a card there is no problem.
    assert_eq!(bench.want(Some(card("small", "a"))), expected);
    assert!(bench.want(None).is_empty() && bench.state.problem().is_none());
}

#[test]
fn a_card_that_fails_stays_down_until_the_next_change() {
    let mut bench = Bench::new();
    bench.want(Some(card("small", "a")));
    bench.give(Input::Failed("no answer".to_owned()));
    let down = "CardDown: it failed, and its networks run in software: no answer";
    assert_eq!(std::mem::take(&mut bench.seen), ["close a at 0", "drop", down, "tend a"]);
    assert!(bench.state.problem().is_some() && bench.state.number("a").is_none());
    assert_eq!(bench.want(Some(card("small", "a")))[0], "start small");
    assert!(bench.state.problem().is_none());
}

#[test]
fn a_card_that_was_taken_over_waits_and_is_replaced_if_it_cannot_be_used() {
    let mut bench = Bench::new();
    bench.starts = Ok(true);
    let expected = ["start small", "lead", "wait to renew", "close a at 0", "seat all", "tend a"];
    assert_eq!(bench.want(Some(card("small", "a"))), expected);
    bench.starts = Ok(false);
    bench.give(Input::Anew("no answer".to_owned()));
    let expected =
        ["close a at 0", "drop", "start small", "lead", "close a at 0", "seat all", "tend a", "tend a"];
    assert_eq!(std::mem::take(&mut bench.seen), expected);
}
