//! Parses the command line, and says what clap alone does not: that files are given with `-f`, and which numbers an
//! option accepts instead of a negative one.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};

use super::Cli;

/// Endings of files with documents.
const DOCUMENTS: [&str; 3] = ["yaml", "yml", "json"];

/// Parses the arguments of this process; help, version and errors end it.
pub fn parse() -> Cli {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let mut command = with_negative_numbers(Cli::command());
    let parsed =
        command.try_get_matches_from_mut(&arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.unwrap_or_else(|error| explained(error, &command, &arguments).exit())
}

/// Options take negative numbers as values, so that their parsers refuse them and name the valid range. Otherwise,
/// clap takes `-1` for an unknown option.
fn with_negative_numbers(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let takes_value = arg.get_long().is_some() && arg.get_action().takes_values();
        if takes_value { arg.allow_negative_numbers(true) } else { arg }
    });
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_negative_numbers))
}

/// The error, with a tip if a file of documents is given without `-f`.
fn explained(mut error: clap::Error, command: &Command, arguments: &[OsString]) -> clap::Error {
    let unknown = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) => unknown.clone(),
        _ => return error,
    };
    let path = Path::new(&unknown);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_file = !unknown.starts_with('-') && (DOCUMENTS.contains(&ending) || path.exists());
    let (mut named, mut called) = (command, command.get_name().to_owned());
    for argument in arguments.iter().skip(1).filter_map(|argument| argument.to_str()) {
        if let Some(sub) = named.find_subcommand(argument) {
            named = sub;
            called = format!("{called} {argument}");
        }
    }
    let takes_files =
        named.get_arguments().any(|arg| arg.get_short() == Some('f') && arg.get_long() == Some("file"));
    if is_file && takes_files {
        let tip = format!("files are given with -f: '{called} -f {unknown}'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}
