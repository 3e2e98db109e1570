//! Keeps everything that is logged, at every level.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::ThreadId;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// One event or span: its level, and all of its fields in words.
#[derive(Clone, Debug)]
pub struct Logged {
    /// Its level.
    pub level: Level,
    /// Where it comes from, its name and its fields.
    pub text: String,
    /// Who logged it.
    pub thread: ThreadId,
}

/// Everything that was logged. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    logged: Arc<Mutex<Vec<Logged>>>,
    /// Of this thread, beginning there.
    only: Option<(ThreadId, usize)>,
}

impl Capture {
    /// Starts to keep everything of this process.
    ///
    /// # Panics
    /// When somebody else listens to the log of the process already.
    #[must_use]
    pub fn install() -> Self {
        let capture = Self::default();
        tracing::subscriber::set_global_default(capture.clone()).expect("nobody else listens");
        capture
    }

    /// Starts to keep everything, and shows what this thread logs from now on: a test that runs beside
    /// others in its process, on a runtime of one thread, sees its own.
    ///
    /// Not by a subscriber of the thread: what another thread logs first at the same time would be
    /// switched off for all.
    ///
    /// # Panics
    /// When somebody else listens to the log of the process already.
    #[must_use]
    pub fn here() -> Self {
        static INSTALLED: OnceLock<Capture> = OnceLock::new();
        let installed = INSTALLED.get_or_init(Self::install);
        let from = installed.logged.lock().expect("no panic inside").len();
        Self { logged: installed.logged.clone(), only: Some((std::thread::current().id(), from)) }
    }

    /// What was logged so far.
    ///
    /// # Panics
    /// When a panic interrupted another thread that was logging.
    #[must_use]
    pub fn all(&self) -> Vec<Logged> {
        let logged = self.logged.lock().expect("no panic inside");
        match self.only {
            None => logged.clone(),
            Some((thread, from)) => logged[from..].iter().filter(|line| line.thread == thread).cloned().collect(),
        }
    }

    /// What was logged so far with this in its text.
    #[must_use]
    pub fn with(&self, text: &str) -> Vec<Logged> {
        self.all().into_iter().filter(|line| line.text.contains(text)).collect()
    }

    fn keep(&self, metadata: &Metadata<'_>, fields: Fields) {
        let text = format!("{} {}:{}", metadata.target(), metadata.name(), fields.0);
        self.logged.lock().expect("no panic inside").push(Logged {
            level: *metadata.level(),
            text,
            thread: std::thread::current().id(),
        });
    }
}

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Capture {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        self.keep(span.metadata(), fields);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.keep(event.metadata(), fields);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
