//! Reasons to drop a packet of a routing protocol, with a counter each.

/// Declares the reasons with their names and explanations, and their counters.
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
    };
}

pub(crate) use drops;
