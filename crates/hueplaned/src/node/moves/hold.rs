//! Whether networks must stay where they are.

/// See the head of this file.
#[derive(Default)]
pub struct Hold {
    /// The network for whose requested move the card is reserved. Until then the node moves no other network.
    reserved: Option<String>,
    /// Whether moves were deferred because of a reservation or an image load.
    deferred: bool,
}

impl Hold {
    /// Reserves the card for the move of this network.
    pub fn reserve(&mut self, name: String) {
        self.reserved = Some(name);
    }

    /// Ends the reservation.
    pub fn end_reservation(&mut self) {
        self.reserved = None;
    }

    /// Whether the card is reserved.
    pub fn is_reserved(&self) -> bool {
        self.reserved.is_some()
    }

    /// Whether the card is reserved for this network.
    pub fn is_reserved_for(&self, name: &str) -> bool {
        self.reserved.as_deref() == Some(name)
    }

    /// A move is deferred.
    pub fn defer(&mut self) {
        self.deferred = true;
    }

    /// Whether moves were deferred since the last call.
    pub fn take_deferred(&mut self) -> bool {
        std::mem::take(&mut self.deferred)
    }
}
