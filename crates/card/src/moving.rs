//! Support for a network that moves from software to the card: its frames wait at MAC ports until the frames that are
//! still in software have arrived.
//!
//! Flow: transfer → **moving** → registers. Meanwhile, frames from software use the queues of a second, unused index.
//! A hold ends by itself, so a driver that dies does not stop a network. The debts of a network's meters move with
//! the network.

use std::ops::Range;

use hue_planes::{Debts, RateLimit};
use hue_substrate::SubstrateError;
use hue_substrate::handover::AllDebts;
use hue_tables::Vid;

use crate::card::Card;
use crate::device::{Device, out_drops_row};
use crate::error::{CardError, broken};
use crate::generated as regs;
use crate::registers::Registers;
use crate::rows::Row;

/// Longest hold of a network, in clocks: 67 ms at 250 MHz.
const HOLD_CLOCKS: u32 = regs::OUT_HOLD_CLOCKS;

impl<R: Registers> Card<R> {
    /// Lends an unused index for frames of this network. The index is not reused until it is returned.
    ///
    /// # Errors
    /// `ImageNetworks` if all indices are in use, one is lent already, or the image has no spare index. `Broken`.
    pub fn borrow_net(&mut self, vid: Vid) -> Result<u8, SubstrateError> {
        let description = self.device.get_mut().description();
        let nets = description.indices(self.live);
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

    /// Whether a network has limits, and therefore debts.
    pub fn tells_debts(&self, vid: Vid) -> bool {
        self.limits(vid).is_some_and(|(_, rate, storm)| rate.is_some() || storm.is_some())
    }

    /// The debts of the card's meters of a network, of those limits that it has; none if it is not loaded.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn debts(&mut self, vid: Vid) -> Result<AllDebts, CardError> {
        let Some((net, rate, storm)) = self.limits(vid) else { return Ok(AllDebts::default()) };
        let device = self.device.get_mut();
        let mut debts = AllDebts::default();
        if let Some(limit) = rate {
            debts.rate = Some(device.read_row::<regs::DebtRow>(net)?.debts().within(limit));
        }
        if let Some(limit) = storm {
            debts.storm = Some(device.read_row::<regs::StormDebtRow>(net)?.debts().within(limit));
        }
        Ok(debts)
    }

    /// Sets the debts of the card's meters of a network, of those limits that it has.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn set_debts(&mut self, vid: Vid, debts: AllDebts) -> Result<(), CardError> {
        let Some((net, rate, storm)) = self.limits(vid) else { return Ok(()) };
        let device = self.device.get_mut();
        if let Some((debts, limit)) = debts.rate.zip(rate) {
            device.write_row(net, &regs::DebtRow::of(debts.within(limit)))?;
        }
        if let Some((debts, limit)) = debts.storm.zip(storm) {
            device.write_row(net, &regs::StormDebtRow::of(debts.within(limit)))?;
        }
        Ok(())
    }

    /// Index of a network, its rate limit and its storm limit. An image without storm meters limits no storms.
    fn limits(&self, vid: Vid) -> Option<(u32, Option<RateLimit>, Option<RateLimit>)> {
        let loaded = self.networks.get(&vid)?;
        let program = loaded.program();
        let learning =
            program.settings.learning().filter(|_| self.device.borrow().description().station_rows > 0);
        let storm = learning.and_then(|learning| learning.storm_limit);
        Some((u32::from(loaded.place.net), program.rate_limit, storm))
    }
}

/// A row with the debts of a meter.
trait DebtsRow: Row {
    fn of(debts: Debts) -> Self;
    fn debts(&self) -> Debts;
}

macro_rules! debts_rows {
    ($($row:ident),*) => {$(
        impl DebtsRow for regs::$row {
            fn of(Debts { packets, bits, last_ns }: Debts) -> Self {
                let (low, high) = (|debt: u128| debt as u64, |debt: u128| (debt >> 64) as u8); // 70 bits
                Self {
                    packets_low: low(packets),
                    packets_high: high(packets),
                    bits_low: low(bits),
                    bits_high: high(bits),
                    time_ns: last_ns,
                }
            }

            fn debts(&self) -> Debts {
                let wide = |low: u64, high: u8| u128::from(high) << 64 | u128::from(low);
                Debts {
                    packets: wide(self.packets_low, self.packets_high),
                    bits: wide(self.bits_low, self.bits_high),
                    last_ns: self.time_ns,
                }
            }
        }
    )*};
}

debts_rows!(DebtRow, StormDebtRow);

fn out_drops<R: Registers>(device: &mut Device<R>, net: u8, ports: Range<u32>) -> Result<u64, CardError> {
    ports.map(|port| Ok(device.read_row::<regs::OutDropsRow>(out_drops_row(port, net))?.value)).sum()
}
