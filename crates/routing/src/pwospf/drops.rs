//! Why a received packet was dropped, and how often.

/// Declares the reasons with their names and explanations.
macro_rules! drops {
    ($($variant:ident $name:literal $text:literal)*) => {
        /// Why a packet was dropped. Every received packet is accepted, or counted under one of these.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Drop {
            $(#[doc = $text] $variant,)*
        }

        impl Drop {
            /// All reasons, in the order of the checks.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Its name in counters.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it means.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

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

/// How often packets were dropped, by reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drops([u64; Drop::ALL.len()]);

impl Default for Drops {
    fn default() -> Self {
        Self([0; Drop::ALL.len()])
    }
}

impl Drops {
    /// Counts a packet.
    pub fn count(&mut self, reason: Drop) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Packets dropped for this reason.
    #[must_use]
    pub fn get(&self, reason: Drop) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or_default()
    }

    /// All reasons with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Drop, u64)> + '_ {
        Drop::ALL.into_iter().map(|reason| (reason, self.get(reason)))
    }

    /// Packets dropped for any reason.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}
