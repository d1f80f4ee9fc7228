//! Why a received packet was dropped, and how often.

use crate::drops::drops;

drops! {
    Malformed "malformed" "Not a whole packet with flat labels, or labels of another length than the network's."
    Payload "payload" "A packet for this router that is no message of the protocol."
    OtherMac "other_mac" "For another router on the link."
    Kind "kind" "A message of a kind that does not exist, or not in this kind of packet."
    Length "length" "The message is not as long as its fields say."
    Own "own" "It has this router's label as its sender: it came back, or two routers have the same label."
    Interval "interval" "The hello's interval is not that of this router."
    NeighboursFull "neighbours_full" "The port has as many neighbours as it may (32)."
    NotNeighbour "not_neighbour" "From a router from which no hello came."
    OwnLinks "own_links" "The own links came back. Normal where links form a circle."
    Duplicate "duplicate" "These links are known. Normal where links form a circle."
    Old "old" "Newer links of that router are known, or they are too old."
    RoutersFull "routers_full" "As many routers are known as may be (1,024)."
    Taken "taken" "A host registers a label that another one, or a router, has."
    LabelsFull "labels_full" "As many hosts are registered as may be (4,096), or a neighbour wants more labels than it may (8,192)."
    Unreachable "unreachable" "From a router to which no way is known (yet)."
    Unasked "unasked" "An answer that nobody waits for (any more)."
    Unheld "unheld" "A label looks for its place, and no label of this router is before it."
}
