//! Loads programs whose namespaces are ready: each alone, and conflicting ones together.
//!
//! Flow: ready networks → **[`Attempt`]** → data plane → loaded or refused → the next one. Those that were refused are
//! tried again once others have made room, then together; the last one refused is degraded if nothing can make room.

use std::collections::VecDeque;

use super::{Around, Effect, Input, Networks};

/// Programs that the data plane is given, and what is left to do.
#[derive(Default)]
pub struct Attempt {
    /// Networks that the data plane is given now.
    names: Vec<String>,
    /// Networks that are tried alone after them.
    left: VecDeque<String>,
    /// Whether any was loaded.
    progress: bool,
    /// The last one that was refused, and why.
    clash: Option<(String, String)>,
    /// Whether all that are ready are tried together.
    together: bool,
}

impl Networks {
    fn ready(&self) -> Vec<String> {
        let ready = self.entries.iter().filter(|(_, entry)| entry.ready.is_some());
        ready.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn load_ready(&mut self, out: &mut Vec<Effect>) {
        let attempt = Attempt { left: self.ready().into(), ..Attempt::default() };
        out.push(Effect::Then(Input::LoadNext(Box::new(attempt))));
    }

    pub(super) fn load_next(
        &mut self,
        mut attempt: Box<Attempt>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        if let Some(name) = attempt.left.pop_front() {
            attempt.names = vec![name];
            return self.load(attempt, out);
        }
        if attempt.clash.is_none() {
            return;
        }
        if attempt.progress {
            return out.push(Effect::Then(Input::LoadReady));
        }
        attempt.names = self.ready();
        attempt.together = true;
        if attempt.names.len() > 1 { self.load(attempt, out) } else { self.give_up(*attempt, around, out) }
    }

    /// Loads the programs of ready networks, all or none.
    fn load(&mut self, attempt: Box<Attempt>, out: &mut Vec<Effect>) {
        let mut programs = Vec::with_capacity(attempt.names.len());
        for name in &attempt.names {
            let Some(entry) = self.entries.get(name) else { continue };
            let Some((want, _)) = &entry.ready else { continue };
            if entry.have.as_ref().is_some_and(|have| have.program == want.program) {
                continue;
            }
            // Next-hop rows contain ports and addresses: if these change, all routes are loaded again.
            if entry.have.as_ref().is_some_and(|have| have.ports != want.ports) {
                out.push(Effect::ClearRoutes(want.program.vid));
            }
            programs.push(want.program.clone());
        }
        out.push(match programs.is_empty() {
            true => Effect::Then(Input::Tried(attempt, Ok(()))),
            false => Effect::Load(programs, attempt),
        });
    }

    pub(super) fn tried(
        &mut self,
        mut attempt: Box<Attempt>,
        result: Result<(), String>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        let names = std::mem::take(&mut attempt.names);
        match result {
            Ok(()) => {
                out.extend(names.iter().map(|name| Effect::Then(Input::Complete(name.clone()))));
                out.push(Effect::Seat(names));
                attempt.progress = true;
            }
            Err(_) if attempt.together => return self.give_up(*attempt, around, out),
            Err(why) => attempt.clash = names.into_iter().next().map(|name| (name, why)),
        }
        out.push(Effect::Then(Input::LoadNext(attempt)));
    }

    /// No program that is ready can be loaded.
    fn give_up(&mut self, attempt: Attempt, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some((name, why)) = attempt.clash else { return };
        if self.entries.values().any(|entry| entry.job.is_some()) {
            return; // a job in progress may make room
        }
        self.degrade(&name, why, around, out);
        out.push(Effect::Then(Input::LoadReady));
    }
}
