//! A network that goes and comes back at once.

use hue_differential::images_alone;
use hue_sim::IMAGES;
use hue_sim::hand::{self, settle};
use hue_sim::world::{Net, Place, World};

/// Passes without work after which nothing moves.
const IDLE_PASSES: usize = 60;

/// A network is deleted while its routes wait for their turn, and applied again before it is gone. Its routes must get
/// their turn then: once, networks stayed in the queue as they were left, and were not queued again.
#[test]
fn a_network_that_comes_back_has_its_routes() {
    let mut node = hand::start(&images_alone(&IMAGES)).unwrap();
    let mut world = World::default();
    world.nets[0] = Some(Net::plain(Place::Soft));
    let documents = world.documents();
    node.apply(&documents, true).unwrap();
    // The namespace is there, the program is loaded, and the kernel has reported its routes.
    while !node.step_kernel() {
        node.step_job();
        node.step_node();
    }
    node.delete("n1").unwrap();
    node.step_node();
    node.apply(&documents, true).unwrap();
    settle(&mut node, IDLE_PASSES);
    assert!(node.runs("n1"), "{:?}", node.look().networks);
    assert!(node.tables().networks[0].routes > 0, "{:?}", node.tables());
}
