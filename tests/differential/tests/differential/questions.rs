//! A running card answers every question, whether it has work or sleeps.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use hue_card::{CardQuestion, CardReply, LiveCard, Seats};
use hue_differential::{Random, card, image, programs};
use hue_substrate::scheduling::Scheduling;
use hue_substrate::wake::Wake;

#[test]
fn a_card_that_sleeps_answers_questions_that_come_together() {
    let programs = programs(&mut Random::new(5), 3, 20);
    let vids: Vec<_> = programs.iter().map(|program| program.vid).collect();
    let card = card(&image("tcam3"), &programs);
    let (wake, seats) = (Arc::new(Wake::new().unwrap()), Arc::new(Seats::new().unwrap()));
    let live = LiveCard::start(card, wake, Vec::new(), (64, 2048), seats, Scheduling::Fair, |_| ()).unwrap();
    for _ in 0..200 {
        // By now it sleeps, or is about to.
        std::thread::sleep(Duration::from_millis(1));
        let (told, answers) = channel();
        for number in 0..3 {
            let told = told.clone();
            let question =
                if number == 1 { CardQuestion::OnCard } else { CardQuestion::Counts(vids.clone()) };
            live.ask(question, move |reply| told.send((number, reply)).unwrap());
        }
        for expected in 0..3 {
            let (number, reply) = answers.recv_timeout(Duration::from_secs(20)).expect("each is answered");
            assert_eq!(number, expected, "in the order of the questions");
            match reply {
                CardReply::Counts(counts, _) => assert_eq!(counts.len(), 3),
                CardReply::OnCard(on_card) => assert_eq!(on_card.len(), 3),
                CardReply::Memory(_) => panic!("another answer"),
            }
        }
    }
}
