//! Inputs and effects of an image load, without a card.

use super::*;

/// The image load of a test, and what the core would do for it.
struct Bench {
    loading: Loading,
    /// The effects so far, as text.
    seen: Vec<String>,
    card: Option<Running>,
    /// Networks on the card; the others are in software.
    on_card: Vec<String>,
    /// Whether networks arrive as soon as they are told to.
    arrive: bool,
    /// Whether something else is moving.
    moves: bool,
    reserved: bool,
    now: Instant,
}

/// A card with this image and so many ports.
fn made(ports: u32) -> Made {
    let text = format!(
        r#"{{"name": "big", "version": [1, 0], "clock_khz": 250000, "bus_bytes": 64, "mac_ports": {ports}, "cpu_queues": 4,
        "kinds": [], "layout": "Dag36", "planes": 8, "nets": 8, "select_rows": 8, "mac_rows": 8, "attach_rows": 8,
        "route_rows": 0, "local_rows": 0, "hop_rows": 8, "group_slots": 0, "level_words": [1, 1, 1, 1], "sram_words": 0,
        "cam_rows": 0, "station_rows": 0, "out_bytes": 65536}}"#
    );
    Made::apart(serde_json::from_str(&text).unwrap())
}

impl Bench {
    /// Networks `a` and `b` are on a card with two ports, `c` is in software.
    fn new() -> Self {
        Self {
            loading: Loading::default(),
            seen: Vec::new(),
            card: Some(Running { moves: false, is_stale: false, ports: 2 }),
            on_card: ["a", "b"].map(str::to_owned).to_vec(),
            arrive: true,
            moves: false,
            reserved: false,
            now: Instant::now(),
        }
    }

    fn give(&mut self, input: Input) {
        let (on_card, moves) = (self.on_card.clone(), self.moves);
        let place = |name: &str| {
            let there = on_card.iter().any(|one| one == name);
            let substrate = if there { hue_card::NAME } else { hue_soft::NAME };
            NetworkPlaced { network: name.to_owned(), substrate: substrate.to_owned(), why_soft: None }
        };
        let around = Around {
            card: self.card,
            on_card: &|| on_card.clone(),
            moves: &|| moves,
            is_reserved: self.reserved,
            places: &|| ["a", "b", "c"].map(place).to_vec(),
            now: self.now,
        };
        for effect in self.loading.take(input, &around) {
            self.apply(effect);
        }
    }

    fn apply(&mut self, effect: Effect) {
        self.now += Duration::from_millis(1);
        let text = match effect {
            Effect::Then(input) => return self.give(input),
            Effect::Tell(kind, text) => format!("{kind:?}: {text}"),
            Effect::Leave(name) => {
                if self.arrive {
                    self.on_card.retain(|one| *one != name);
                } else if let Some(card) = &mut self.card {
                    card.moves = true;
                }
                format!("{name} leaves")
            }
            Effect::Place(name) => {
                self.on_card.push(name.clone());
                format!("place {name}")
            }
            Effect::SeatAnew(names) => {
                self.on_card.clear();
                format!("seat {} anew", names.join("+"))
            }
            Effect::ResumeMoves => "resume".to_owned(),
            Effect::Police => "police".to_owned(),
            Effect::Bypass => "bypass".to_owned(),
            Effect::Make(name, away) => format!("make {name} in {} s", away.as_secs()),
            Effect::EndBypass(Some((name, _))) => format!("end the bypass with {name}"),
            Effect::EndBypass(None) => "end the bypass".to_owned(),
            Effect::Choose => "choose".to_owned(),
            Effect::Keep(order) => format!("keep {}", order.join("+")),
            Effect::StartAnew(why) => format!("start anew: {why}"),
            Effect::Answer(reply, result) => return drop(reply.send(result)),
            Effect::Changed | Effect::DeferMoves | Effect::Renewed => return,
        };
        self.seen.push(text);
    }

    fn begin(&mut self) -> oneshot::Receiver<Result<ImageLoaded, Problem>> {
        let (reply, answer) = oneshot::channel();
        let (name, before, networks) = ("big".to_owned(), "small".to_owned(), self.on_card.clone());
        self.give(Input::Begin(Begin { name, before, networks, away: Duration::from_secs(3), reply }));
        answer
    }

    fn seen(&mut self) -> Vec<String> {
        std::mem::take(&mut self.seen)
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn networks_leave_before_the_bypass_and_return_in_the_order_of_the_scheduler() {
    let mut bench = Bench::new();
    let mut answer = bench.begin();
    let expected = [
        "ImageLoading: image 'big' will replace 'small': 2 networks move to software",
        "a leaves",
        "b leaves",
        "bypass",
    ];
    assert_eq!(bench.seen(), expected);
    assert!(bench.loading.had("a") && !bench.loading.had("c") && !bench.loading.returns("a"));
    bench.give(Input::Bypassed(Ok(())));
    bench.give(Input::Made(Ok(made(2))));
    assert_eq!(bench.seen(), ["make big in 3 s", "end the bypass with big", "choose"]);
    assert!(bench.loading.chooses());
    bench.moves = true;
    bench.give(Input::Chosen(names(&["c", "b", "a"])));
    assert_eq!(bench.seen(), ["keep c+b+a", "place b", "place a", "resume"]);
    assert!(bench.loading.settles() && answer.try_recv().is_err(), "others move to their places");
    bench.moves = false;
    bench.give(Input::Tend);
    let loaded = answer.try_recv().unwrap().unwrap();
    let steps: Vec<&str> = loaded.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(steps, ["leave", "swap", "choose", "return", "settle"]);
    assert_eq!(loaded.duration_us, loaded.phases.iter().map(|phase| phase.us).sum::<u64>());
    let places: Vec<&str> = loaded.networks.iter().map(|one| one.network.as_str()).collect();
    assert_eq!((places, bench.loading.is_under_way()), (vec!["a", "b"], false));
}

#[test]
fn nothing_goes_on_while_a_network_is_moving() {
    let mut bench = Bench::new();
    bench.arrive = false;
    drop(bench.begin());
    assert!(!bench.seen().contains(&"bypass".to_owned()));
    bench.give(Input::Tend);
    assert_eq!(bench.seen(), Vec::<String>::new());
    bench.card = Some(Running { moves: false, is_stale: false, ports: 2 });
    bench.on_card.clear();
    bench.give(Input::Tend);
    assert_eq!(bench.seen(), ["bypass"]);
    // An answer of a step that is not under way is too late.
    bench.give(Input::Left(names(&["a"])));
    assert_eq!(bench.seen(), Vec::<String>::new());
}

#[test]
fn a_network_that_cannot_leave_keeps_the_image() {
    let mut bench = Bench::new();
    bench.arrive = false;
    let mut answer = bench.begin();
    bench.card = Some(Running { moves: false, is_stale: false, ports: 2 });
    bench.seen();
    bench.give(Input::Tend);
    let failed = "image 'big' was not loaded, 'small' continues: a network could not leave the card";
    assert_eq!(bench.seen(), ["place a", "place b", "resume", &format!("ImageFailed: {failed}")]);
    assert_eq!(answer.try_recv().unwrap().unwrap_err().detail, failed);
}

#[test]
fn an_image_that_cannot_be_made_or_has_other_ports_changes_nothing() {
    for (made, why) in [
        (Err("no memory".to_owned()), "no memory"),
        (Ok(made(4)), "it does not have 2 ports like the running card"),
    ] {
        let mut bench = Bench::new();
        let mut answer = bench.begin();
        bench.give(Input::Bypassed(Ok(())));
        bench.seen();
        bench.give(Input::Made(made));
        let failed = format!("image 'big' was not loaded, 'small' continues: {why}");
        let told = format!("ImageFailed: {failed}");
        assert_eq!(bench.seen(), ["end the bypass", "place a", "place b", "resume", &told]);
        assert_eq!(answer.try_recv().unwrap().unwrap_err().detail, failed);
    }
}

#[test]
fn a_reserved_card_is_left_to_the_network_that_it_is_reserved_for() {
    let mut bench = Bench::new();
    bench.reserved = true;
    let mut answer = bench.begin();
    bench.give(Input::Bypassed(Ok(())));
    bench.give(Input::Made(Ok(made(2))));
    bench.seen();
    bench.give(Input::Chosen(names(&["a", "b", "c"])));
    assert!(!bench.seen().contains(&"resume".to_owned()));
    assert!(answer.try_recv().unwrap().is_ok());
}

#[test]
fn the_answer_does_not_wait_for_ever_for_other_networks() {
    let mut bench = Bench::new();
    let mut answer = bench.begin();
    bench.give(Input::Bypassed(Ok(())));
    bench.give(Input::Made(Ok(made(2))));
    bench.moves = true;
    bench.give(Input::Chosen(names(&["a", "b", "c"])));
    bench.now += SETTLE_MAX - Duration::from_secs(1);
    bench.give(Input::Tend);
    assert!(answer.try_recv().is_err());
    bench.now += Duration::from_secs(1);
    bench.give(Input::Tend);
    assert!(answer.try_recv().unwrap().is_ok());
}

#[test]
fn a_card_that_was_taken_over_is_replaced_once_all_networks_are_set_up() {
    let mut bench = Bench::new();
    bench.card = Some(Running { moves: false, is_stale: true, ports: 2 });
    bench.give(Input::TakenOver("small".to_owned()));
    bench.give(Input::Tend);
    assert!(bench.seen().is_empty() && bench.loading.waits());
    assert_eq!(bench.loading.words().unwrap(), "the card is being taken over from the daemon before");
    bench.arrive = false;
    bench.give(Input::Left(names(&["a", "b"])));
    assert_eq!(bench.seen(), ["police", "a leaves", "b leaves"]);
    // Networks that cannot leave a card that cannot go on are taken from it.
    bench.card = Some(Running { moves: false, is_stale: true, ports: 2 });
    bench.give(Input::Tend);
    assert_eq!(bench.seen(), ["seat a+b anew", "bypass"]);
    bench.give(Input::Bypassed(Err("no answer".to_owned())));
    assert_eq!(bench.seen(), ["start anew: no answer"]);
    bench.card = None;
    bench.give(Input::GiveUp("no answer".to_owned()));
    assert!(bench.seen().is_empty() && !bench.loading.is_under_way(), "nobody waits for it");
}

#[test]
fn a_card_that_fails_ends_the_load() {
    let mut bench = Bench::new();
    let mut answer = bench.begin();
    bench.seen();
    bench.card = None;
    bench.give(Input::GiveUp("the card failed".to_owned()));
    assert_eq!(bench.seen(), ["ImageFailed: image 'big' was not loaded: the card failed"]);
    assert_eq!(answer.try_recv().unwrap().unwrap_err().kind, ProblemKind::Internal);
    bench.give(Input::Made(Ok(made(2))));
    assert_eq!(bench.seen(), Vec::<String>::new());
}
