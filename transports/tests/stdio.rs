//! Stdin and stdout of every kind, with a program that echoes through `Stdio`.
#![cfg(target_os = "linux")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

const TEXT: &str = "{\"a\":\"中😀é\"}\n";

fn echo(mode: &[&str], stdin: impl Into<Stdio>, stdout: impl Into<Stdio>, stderr: Stdio) -> Child {
    Command::new(env!("CARGO_BIN_EXE_greenroom-stdio-echo"))
        .args(mode)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .unwrap()
}

fn is_nonblocking(fd: impl AsFd) -> bool {
    fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK)
}

/// Sends the text and reads it back.
fn exchange(writer: &mut impl Write, reader: &mut impl Read) {
    writer.write_all(TEXT.as_bytes()).unwrap();
    let mut back = vec![0; TEXT.len()];
    reader.read_exact(&mut back).unwrap();
    assert_eq!(back, TEXT.as_bytes());
}

fn assert_success(mut child: Child) {
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}

/// The child's pipes, with our copies of its ends: they share its file flags.
struct Pipes {
    to_child: PipeWriter,
    child_stdin: PipeReader,
    from_child: PipeReader,
    child_stdout: PipeWriter,
}

impl Pipes {
    fn new() -> Self {
        let ((child_stdin, to_child), (from_child, child_stdout)) = (io::pipe().unwrap(), io::pipe().unwrap());
        Self { to_child, child_stdin, from_child, child_stdout }
    }

    fn echo(&self, mode: &[&str], stderr: Stdio) -> Child {
        echo(mode, self.child_stdin.try_clone().unwrap(), self.child_stdout.try_clone().unwrap(), stderr)
    }
}

#[test]
fn pipes_are_non_blocking_while_in_use_and_restored_after() {
    let mut pipes = Pipes::new();
    assert!(!is_nonblocking(&pipes.child_stdin) && !is_nonblocking(&pipes.child_stdout));
    let child = pipes.echo(&[], Stdio::inherit());
    exchange(&mut pipes.to_child, &mut pipes.from_child);
    assert!(is_nonblocking(&pipes.child_stdin) && is_nonblocking(&pipes.child_stdout));
    drop(pipes.to_child);
    assert_success(child);
    assert!(!is_nonblocking(&pipes.child_stdin) && !is_nonblocking(&pipes.child_stdout));
}

#[test]
fn a_pipe_that_was_non_blocking_before_stays_so() {
    let mut pipes = Pipes::new();
    let flags = fcntl_getfl(&pipes.child_stdin).unwrap();
    rustix::fs::fcntl_setfl(&pipes.child_stdin, flags | OFlags::NONBLOCK).unwrap();
    let child = pipes.echo(&[], Stdio::inherit());
    exchange(&mut pipes.to_child, &mut pipes.from_child);
    drop(pipes.to_child);
    assert_success(child);
    assert!(is_nonblocking(&pipes.child_stdin) && !is_nonblocking(&pipes.child_stdout));
}

#[test]
fn one_socket_can_be_both_directions() {
    let (mut near, far) = UnixStream::pair().unwrap();
    let child =
        echo(&[], OwnedFd::from(far.try_clone().unwrap()), OwnedFd::from(far.try_clone().unwrap()), Stdio::inherit());
    let mut reader = near.try_clone().unwrap();
    exchange(&mut near, &mut reader);
    assert!(is_nonblocking(&far));
    near.shutdown(std::net::Shutdown::Write).unwrap();
    assert_success(child);
    assert!(!is_nonblocking(&far));
    // The program has ended its use of the socket, not the socket: others may share it.
    (&far).write_all(b"still open\n").unwrap();
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).unwrap();
    assert_eq!(line, "still open\n");
}

#[test]
fn a_pipe_that_is_stderr_too_keeps_its_mode() {
    let mut pipes = Pipes::new();
    let child = pipes.echo(&[], pipes.child_stdout.try_clone().unwrap().into());
    exchange(&mut pipes.to_child, &mut pipes.from_child);
    assert!(is_nonblocking(&pipes.child_stdin) && !is_nonblocking(&pipes.child_stdout));
    drop(pipes.to_child);
    assert_success(child);
}

#[test]
fn a_large_answer_passes_a_full_pipe() {
    let pipes = Pipes::new();
    let child = pipes.echo(&[], Stdio::inherit());
    let text = TEXT.repeat(200_000);
    let Pipes { mut to_child, mut from_child, child_stdout, .. } = pipes;
    drop(child_stdout);
    let sent = text.clone();
    let sender = std::thread::spawn(move || to_child.write_all(sent.as_bytes()).unwrap());
    let mut back = String::new();
    from_child.read_to_string(&mut back).unwrap();
    sender.join().unwrap();
    assert!(back == text, "{} bytes instead of {}", back.len(), text.len());
    assert_success(child);
}

#[test]
fn files_and_devices_work_in_any_mixture() {
    let folder = std::env::temp_dir().join(format!("greenroom-stdio-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (input, output) = (folder.join("input"), folder.join("output"));
    let text = TEXT.repeat(20_000);
    fs::write(&input, &text).unwrap();

    assert_success(echo(&[], File::open(&input).unwrap(), File::create(&output).unwrap(), Stdio::inherit()));
    assert!(fs::read_to_string(&output).unwrap() == text);

    let mut child = echo(&[], Stdio::piped(), File::create(&output).unwrap(), Stdio::inherit());
    child.stdin.take().unwrap().write_all(TEXT.as_bytes()).unwrap();
    assert_success(child);
    assert_eq!(fs::read_to_string(&output).unwrap(), TEXT);

    let mut child = echo(&[], File::open(&input).unwrap(), Stdio::piped(), Stdio::inherit());
    let mut back = String::new();
    child.stdout.take().unwrap().read_to_string(&mut back).unwrap();
    assert!(back == text);
    assert_success(child);

    assert_success(echo(&[], Stdio::null(), Stdio::null(), Stdio::inherit()));
    assert_success(echo(&[], File::open(&input).unwrap(), Stdio::null(), Stdio::inherit()));
    fs::remove_dir_all(&folder).unwrap();
}

/// Both ends of a new terminal; the second is what a program would run on.
fn terminal() -> (File, File) {
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&near).unwrap();
    unlockpt(&near).unwrap();
    let name = ptsname(&near, Vec::new()).unwrap().into_string().unwrap();
    let far = OpenOptions::new().read(true).write(true).open(name).unwrap();
    let mut mode = rustix::termios::tcgetattr(&far).unwrap();
    mode.make_raw();
    rustix::termios::tcsetattr(&far, rustix::termios::OptionalActions::Now, &mode).unwrap();
    (File::from(near), far)
}

#[test]
fn a_terminal_that_waits_for_input_does_not_keep_the_program() {
    let (mut near, far) = terminal();
    let child = echo(&["--once"], far.try_clone().unwrap(), far.try_clone().unwrap(), Stdio::inherit());
    let mut reader = near.try_clone().unwrap();
    exchange(&mut near, &mut reader);
    // Nothing more is typed, and the terminal stays open.
    assert_success(child);
    assert!(!is_nonblocking(&far));
}

#[test]
fn a_pipe_that_waits_for_input_does_not_keep_the_program() {
    let mut pipes = Pipes::new();
    let child = pipes.echo(&["--once"], Stdio::inherit());
    exchange(&mut pipes.to_child, &mut pipes.from_child);
    assert_success(child);
    assert!(!is_nonblocking(&pipes.child_stdin));
}

fn reports(child: &mut Child) -> Vec<String> {
    BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap).collect()
}

#[test]
fn only_one_is_open_at_a_time() {
    let (near, far) = terminal();
    let on_terminal = echo(&["--again", "--once"], far.try_clone().unwrap(), far.try_clone().unwrap(), Stdio::piped());
    let mut pipes = Pipes::new();
    let on_pipes = pipes.echo(&["--again", "--once"], Stdio::piped());
    for (mut child, writer, reader) in [
        (
            on_terminal,
            &mut near.try_clone().unwrap() as &mut dyn Write,
            &mut near.try_clone().unwrap() as &mut dyn Read,
        ),
        (on_pipes, &mut pipes.to_child, &mut pipes.from_child),
    ] {
        exchange(&mut { writer }, &mut { reader });
        let lines = reports(&mut child);
        assert!(lines[0].contains("in use by another Stdio"), "{lines:?}");
        assert_eq!(lines[1..], ["opened again"]);
        assert_success(child);
    }
}

#[test]
fn a_descriptor_of_the_wrong_direction_is_refused() {
    let pipes = Pipes::new();
    let mut child =
        echo(&[], pipes.child_stdout.try_clone().unwrap(), pipes.child_stdout.try_clone().unwrap(), Stdio::piped());
    let lines = reports(&mut child);
    assert!(lines.iter().any(|line| line.contains("cannot use stdin and stdout")), "{lines:?}");
    assert!(!child.wait().unwrap().success());
    assert!(!is_nonblocking(&pipes.child_stdout));
}
