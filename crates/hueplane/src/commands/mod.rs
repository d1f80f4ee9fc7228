//! The commands, one module each.

mod certs;
mod counts;
mod documents;
mod engine;
mod lab;
mod live;
mod manual;
mod new;
mod packet;
mod plan;
mod pwospf;
mod ring;
mod rofl;
mod run;
mod runner;
mod splice;
mod table;
mod trace;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cli::{Cli, Command};
use crate::complete;
use crate::demo;
use crate::failure::Failure;
use crate::topo;

pub use live::source;

/// Runs a command.
pub fn run(cli: &Cli) -> Result<(), Failure> {
    let connection = &cli.connection;
    match &cli.command {
        Command::Demo(args) => demo::demo(args),
        Command::Doctor(args) => live::doctor(args),
        Command::Up(args) => live::up(args, connection),
        Command::Down(args) => live::down(args, connection),
        Command::Upgrade(args) => live::upgrade(args, connection),
        Command::Diff(args) => live::diff(args, connection),
        Command::Apply(args) => live::apply(args, connection),
        Command::History(args) => live::history(args, connection),
        Command::Rollback(args) => live::rollback(args, connection),
        Command::Confirm(args) => live::confirm(args, connection),
        Command::Status(args) => live::status(args, connection),
        Command::Logs(args) => live::logs(args, connection),
        Command::Get(args) => live::get(args, connection),
        Command::Delete(args) => live::delete(args, connection),
        Command::Image(args) => live::image(&args.command, connection),
        Command::Card(args) => live::card(&args.command, connection),
        Command::Drain(args) => live::drain(args, connection),
        Command::Undrain(args) => live::undrain(args, connection),
        Command::Migrate(args) => live::migrate(args, connection),
        Command::Plan(args) => plan::plan(args, connection),
        Command::Stats(args) => live::stats(args, connection),
        Command::Events(args) => live::events(args, connection),
        Command::Exec(args) => live::exec(args, connection),
        Command::Pwospf(args) => pwospf::pwospf(args),
        Command::RoflHost(args) => rofl::rofl_host(args),
        Command::RoflRing(args) => ring::rofl_ring(args),
        Command::SpliceHost(args) => splice::splice_host(args),
        Command::Attach(args) => live::attach(args, connection),
        Command::Detach(args) => live::detach(args, connection),
        Command::Capture(args) => live::capture(args, connection),
        Command::Trace(args) => trace::run(args, connection),
        Command::Validate(args) => documents::validate(args),
        Command::Schema(args) => documents::schema(args),
        Command::Run(args) => run::run(args),
        Command::Lab(args) => lab::run(&args.command),
        Command::Topo(args) => topo::topo(&args.command),
        Command::Table(args) => table::run(&args.command),
        Command::Certs(args) => certs::certs(args),
        Command::New(args) => new::new(args),
        Command::Completions(args) => complete::script(args),
        Command::Man(args) => manual::man(args),
        Command::Reference => manual::reference(),
    }
}

/// A flag that Ctrl-C and SIGTERM set instead of ending the process.
fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    ctrlc::set_handler(move || set.store(true, Ordering::SeqCst))
        .map_err(|error| Failure::Broken(format!("signals: {error}")))?;
    Ok(flag)
}
