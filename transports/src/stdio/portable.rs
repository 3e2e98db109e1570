//! Stdin and stdout where the event loop cannot wait for them.

use std::io::{self, Read};

use greenroom_actors::link::{ByteReader, ByteWriter};

use super::blocking::{ThreadReader, ThreadWriter};

/// Nothing is changed, so nothing has to be restored.
#[derive(Default)]
pub(super) struct SavedFlags;

/// Opens both directions.
pub(super) fn open() -> io::Result<(ByteReader, ByteWriter, SavedFlags)> {
    let reader = ThreadReader::start(|buf: &mut [u8]| io::stdin().read(buf), ())?;
    let writer = ThreadWriter::start(io::stdout())?;
    Ok((Box::new(reader), Box::new(writer), SavedFlags))
}
