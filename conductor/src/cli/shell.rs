//! Completions and the manual page, made from the same description as `--help`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, CommandFactory as _};
use greenroom::Error;

use super::{Arguments, report};

/// Arguments of `greenroom completions`.
#[derive(Args, Debug)]
pub(super) struct CompletionArguments {
    /// The shell.
    shell: clap_complete::Shell,
}

pub(super) fn completions(arguments: &CompletionArguments) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "greenroom", &mut text);
    print(&text)
}

/// The page of the program, and a section for each subcommand.
pub(super) fn manual() -> ExitCode {
    let mut command = Arguments::command();
    command.build();
    let mut text = Vec::new();
    let written = clap_mangen::Man::new(command.clone()).render(&mut text).and_then(|()| {
        command.get_subcommands().filter(|command| command.get_name() != "help").try_for_each(|command| {
            let page = clap_mangen::Man::new(command.clone());
            writeln!(text, ".SH GREENROOM {}", command.get_name().to_uppercase())?;
            page.render_description_section(&mut text)?;
            page.render_synopsis_section(&mut text)?;
            page.render_options_section(&mut text)
        })
    });
    match written {
        Ok(()) => print(&text),
        Err(error) => report::failure("man", &Error::into_internal_error(error)),
    }
}

fn print(text: &[u8]) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report::failure("output", &Error::into_internal_error(error)),
    }
}
