//! A card without room for all networks: the networks that stay on it when an image is loaded, and those that get on it by a move.

use hue_card::Images;
use hue_differential::images_alone;
use hue_sim::IMAGES;
use hue_sim::check;
use hue_sim::hand::{self, pass, settle};
use hue_sim::world::{NETS, Net, Place, World, name};
use hue_substrate::planted::{Bug, plant};
use hueplaned::api::{MigrateRequest, SubstrateName};
use hueplaned::node::by_hand::{Answer, ByHand};

/// Passes without work after which nothing moves.
const IDLE_PASSES: usize = 60;
/// Passes after which an answer must have come.
const PASSES_MAX: usize = 20_000;
/// Planes of a card with ternary tables.
const PLANES: usize = 3;

/// A quiet node whose card runs `image`, with a network for each place.
fn start(images: &Images, image: &'static str, places: &[Place]) -> (ByHand, World) {
    let mut node = hand::start(images).unwrap();
    let mut world = World { image: Some(image), ..World::default() };
    for (net, &place) in world.nets.iter_mut().zip(places) {
        *net = Some(Net::plain(place));
    }
    node.apply(&world.documents(), true).unwrap();
    settle(&mut node, IDLE_PASSES);
    (node, world)
}

fn answer(node: &mut ByHand) -> Answer {
    for _ in 0..PASSES_MAX {
        pass(node);
        if let Some(answer) = node.answer() {
            return answer;
        }
    }
    panic!("no answer: {:?}", node.look())
}

fn on_card(node: &ByHand) -> Vec<u8> {
    (1..=NETS).filter(|net| node.is_on_card(&name(*net))).collect()
}

/// If an image with fewer planes is loaded, networks whose documents name the card stay on it, whatever their names are.
fn documents_keep_the_card(images: &Images) -> Result<(), String> {
    let places = [Place::Auto, Place::Auto, Place::Card, Place::Auto, Place::Card];
    let (mut node, world) = start(images, IMAGES[1], &places);
    assert_eq!(on_card(&node).len(), places.len(), "{:?}", node.look());
    node.load_image(IMAGES[0]).unwrap();
    let Answer::Loaded(_, Ok(loaded)) = answer(&mut node) else { panic!("{:?}", node.look()) };
    assert_eq!(on_card(&node).len(), PLANES, "{:?}", node.look());
    check::loaded(&node.look(), &loaded, &world)
}

/// If a move loads an image that has room, the move itself moves the network to the card, and reports this.
fn the_move_takes_what_it_loaded_for(images: &Images) -> Result<(), String> {
    let places = [Place::Card, Place::Card, Place::Card, Place::Auto, Place::Auto];
    let (mut node, _) = start(images, IMAGES[0], &places);
    assert_eq!(on_card(&node), [1, 2, 3], "{:?}", node.look());
    let request = MigrateRequest { load_image: true, ..MigrateRequest::new(SubstrateName::Card) };
    node.migrate("n4", &request).unwrap();
    let Answer::Moved(_, result) = answer(&mut node) else { panic!("{:?}", node.look()) };
    let moved = result.map_err(|problem| problem.detail)?;
    match (moved.image.as_deref(), node.is_on_card("n4")) {
        (Some(image), true) if image == IMAGES[1] => Ok(()),
        _ => Err(format!("{moved:?}, {:?}", node.look())),
    }
}

#[test]
fn networks_whose_documents_name_the_card_keep_it() {
    let images = images_alone(&IMAGES);
    documents_keep_the_card(&images).unwrap();
    plant(Some(Bug::ByName));
    let found = documents_keep_the_card(&images);
    plant(None);
    assert!(found.is_err_and(|what| what.contains("whose document names the card")));
}

#[test]
fn a_move_that_loads_an_image_takes_its_network_there() {
    let images = images_alone(&IMAGES);
    the_move_takes_what_it_loaded_for(&images).unwrap();
    plant(Some(Bug::NotReserved));
    let found = the_move_takes_what_it_loaded_for(&images);
    plant(None);
    assert!(found.is_err_and(|what| what.contains("already")));
}
