//! Why a received packet was dropped, and how often.

use crate::drops::drops;

drops! {
    Short "short" "Shorter than a header."
    Version "version" "The version is not 2."
    Length "length" "The length in the header is not that of the packet, or not that of its type."
    Authentication "authentication" "The kind of authentication is not 0."
    Checksum "checksum" "The checksum is wrong."
    Type "type" "Neither a hello (1) nor an LSU (4): a router of OSPF is on the link."
    Count "count" "The number of advertisements is not that of the length."
    TooMany "too_many" "More advertisements than an LSU may have (1,024)."
    Subnet "subnet" "An advertisement has a mask with gaps, or a subnet that is not routed."
    RouterId "router_id" "A router id is 0.0.0.0 or 255.255.255.255."
    Area "area" "The area is another one."
    Stranger "stranger" "The source is not on the link, or the interface does not take part."
    Own "own" "A hello with this router's id: it came back, or two routers have the same id."
    Mask "mask" "The hello's mask is not that of the link."
    Interval "interval" "The hello's interval is not that of this router."
    NeighboursFull "neighbours_full" "The interface has as many neighbours as it may (64)."
    NotNeighbour "not_neighbour" "An LSU from an address from which no hello came."
    OwnLsu "own_lsu" "An LSU of this router came back. Normal where links form a circle."
    Duplicate "duplicate" "The LSU is known. Normal where links form a circle."
    Old "old" "A newer LSU of its router is known."
    DatabaseFull "database_full" "The database has as many routers as it may (1,024)."
}
