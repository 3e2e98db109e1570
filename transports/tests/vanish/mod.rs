//! Waiting for processes to vanish.

use std::path::Path;
use std::time::{Duration, Instant};

/// Waits until the process is gone; a zombie of somebody else's counts as gone. Panics when it
/// is still there after ten seconds.
pub(crate) async fn until_gone(pid: u32) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_alive(pid) {
        assert!(Instant::now() < deadline, "process {pid} is still there");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Whether the process runs.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// Whether the process has an entry in the process table, be it a zombie's.
pub(crate) fn is_in_table(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}
