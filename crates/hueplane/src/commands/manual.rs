//! `hueplane man`, `hueplane reference`: both generated from the definition in `cli`.

use std::fs;
use std::io::{self, Write};

use clap::CommandFactory;
use clap_mangen::Man as Page;

use crate::cli::{Cli, Man};
use crate::failure::Failure;
use crate::{print, reference};

/// Prints the manual page, or writes a page for every command.
pub fn man(args: &Man) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    let Some(dir) = &args.out else {
        let mut page = Vec::new();
        Page::new(command).render(&mut page)?;
        return Ok(io::stdout().lock().write_all(&page)?);
    };
    let mut pages = Vec::new();
    pages_of(&command, &mut pages)?;
    pages_of(&hueplaned::arguments::Arguments::command(), &mut pages)?;
    let failed = |path: &std::path::Path| {
        let path = path.to_owned();
        move |source| Failure::Output { path, source }
    };
    fs::create_dir_all(dir).map_err(failed(dir))?;
    for (name, page) in pages {
        let path = dir.join(name);
        fs::write(&path, page).map_err(failed(&path))?;
    }
    Ok(())
}

/// The page of a command, and those of its visible subcommands.
fn pages_of(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    Page::new(command.clone()).render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
        .try_for_each(|sub| pages_of(sub, pages))
}

/// Prints the reference of the command line.
pub fn reference() -> Result<(), Failure> {
    print::text(&reference::markdown(Cli::command()))
}
