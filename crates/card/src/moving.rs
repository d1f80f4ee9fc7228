//! Support for a network that moves from software to the card: its frames wait at MAC ports until the frames that are
//! still in software have arrived.
//!
//! Flow: transfer → **moving** → registers. Meanwhile, frames from software use the queues of a second, unused index.
//! A hold ends by itself, so a driver that dies does not stop a network. The debts of a network's meter move with the
//! network.

use std::ops::Range;

use hue_planes::{Debts, RateLimit};
use hue_substrate::SubstrateError;
use hue_tables::Vid;

use crate::card::Card;
use crate::device::{Device, out_drops_row};
use crate::error::{CardError, broken};
use crate::generated as regs;
use crate::registers::Registers;

/// Longest hold of a network, in clocks: 67 ms at 250 MHz.
const HOLD_CLOCKS: u32 = regs::OUT_HOLD_CLOCKS;

impl<R: Registers> Card<R> {
    /// Lends an unused index for frames of this network. The index is not reused until it is returned.
    ///
    /// # Errors
    /// `ImageNetworks` if all indices are in use, one is lent already, or the image has no spare index. `Broken`.
    pub fn borrow_net(&mut self, vid: Vid) -> Result<u8, SubstrateError> {
        let description = self.device.get_mut().description();
        let nets = description.nets;
        let taken = |net: &u8| self.networks.values().any(|loaded| loaded.place.net == *net);
        let free = (0..nets).rev().map(|net| net as u8).find(|net| !taken(net)); // at most 256
        let Some(net) = free.filter(|_| self.lent.is_none()) else {
            let (count, image) = (self.networks.len() + 1, description.name.clone());
            return Err(SubstrateError::ImageNetworks { count, image, max: nets as usize });
        };
        self.lent = Some((net, vid));
        self.write_quanta().map_err(broken)?;
        Ok(net)
    }

    /// Whether an index is lent.
    pub fn is_lending(&self) -> bool {
        self.lent.is_some()
    }

    /// Returns the index.
    pub fn return_net(&mut self) {
        self.lent = None;
    }

    /// Holds frames of the network with this index at MAC ports, until [`Card::end_out_hold`] or for 2^24 clocks.
    ///
    /// # Errors
    /// `Access`.
    pub fn out_hold(&mut self, net: u8) -> Result<(), CardError> {
        let value = HOLD_CLOCKS | u32::from(net) << regs::OUT_HOLD_NET.trailing_zeros();
        self.device.get_mut().write(regs::OUT_HOLD, value)
    }

    /// Ends the hold. Returns whether it was still active.
    ///
    /// # Errors
    /// `Access`.
    pub fn end_out_hold(&mut self) -> Result<bool, CardError> {
        let device = self.device.get_mut();
        let left = device.read(regs::OUT_HOLD)? & regs::OUT_HOLD_CLOCKS;
        device.write(regs::OUT_HOLD, 0)?;
        Ok(left != 0)
    }

    /// Whether frames of the network with this index wait at MAC ports.
    ///
    /// # Errors
    /// `Access`.
    pub fn waits_out(&mut self, net: u8) -> Result<bool, CardError> {
        let address = regs::OUT_WAITS[usize::from(net) / 32];
        Ok(self.device.get_mut().read(address)? >> (net % 32) & 1 != 0)
    }

    /// Frames of the network with this index that found no room in the output queues, for all ports together.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_out_drops(&mut self, net: u8) -> Result<u64, CardError> {
        let (macs, queues) = self.read_out_drops_apart(net)?;
        Ok(macs + queues)
    }

    /// The same, separately for MAC ports and CPU queues.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_out_drops_apart(&mut self, net: u8) -> Result<(u64, u64), CardError> {
        let device = self.device.get_mut();
        let (macs, queues) = (device.description().mac_ports, device.description().cpu_queues);
        Ok((out_drops(device, net, 0..macs)?, out_drops(device, net, macs..macs + queues)?))
    }

    /// Whether a network has a rate limit, and therefore debts.
    pub fn tells_debts(&self, vid: Vid) -> bool {
        self.metered(vid).is_some()
    }

    /// The debts of the card's meter of a network. `None` if the network has no rate limit or is not loaded.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn debts(&mut self, vid: Vid) -> Result<Option<Debts>, CardError> {
        let Some((net, limit)) = self.metered(vid) else { return Ok(None) };
        let row = self.device.get_mut().read_row::<regs::DebtRow>(net)?;
        let wide = |low: u64, high: u8| u128::from(high) << 64 | u128::from(low);
        let packets = wide(row.packets_low, row.packets_high);
        let bits = wide(row.bits_low, row.bits_high);
        Ok(Some(Debts { packets, bits, last_ns: row.time_ns }.within(limit)))
    }

    /// Sets the debts of the card's meter of a network. Does nothing if [`Self::debts`] returns `None`.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn set_debts(&mut self, vid: Vid, debts: Debts) -> Result<(), CardError> {
        let Some((net, limit)) = self.metered(vid) else { return Ok(()) };
        let debts = debts.within(limit);
        let (low, high) = (|debt: u128| debt as u64, |debt: u128| (debt >> 64) as u8); // 70 bits
        let row = regs::DebtRow {
            packets_low: low(debts.packets),
            packets_high: high(debts.packets),
            bits_low: low(debts.bits),
            bits_high: high(debts.bits),
            time_ns: debts.last_ns,
        };
        self.device.get_mut().write_row(net, &row)
    }

    /// Index and limit of a network, if it has a rate limit.
    fn metered(&self, vid: Vid) -> Option<(u32, RateLimit)> {
        let loaded = self.networks.get(&vid)?;
        let limit = loaded.program().rate_limit?;
        Some((u32::from(loaded.place.net), limit))
    }
}

fn out_drops<R: Registers>(device: &mut Device<R>, net: u8, ports: Range<u32>) -> Result<u64, CardError> {
    ports.map(|port| Ok(device.read_row::<regs::OutDropsRow>(out_drops_row(port, net))?.value)).sum()
}
