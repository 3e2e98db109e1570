//! Cancellation: hop by hop, never tunnelled (spec X1 to X6).

use bytes::Bytes;
use greenroom_protocol::{Dialect, Error, Outbound, RawId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::passage::Passage;
use super::path::Form;
use super::table::{Entry, Stage};
use super::{Action, Hop, Router, dropped};

const METHOD: &[u8] = br#""$/cancel_request""#;

#[derive(Deserialize)]
struct Cancel<'a> {
    #[serde(borrow, rename = "requestId")]
    id: &'a RawValue,
}

impl Router {
    /// A cancellation from this hop, plain or wrapped.
    pub(super) fn cancel(&mut self, from: usize, params: &Bytes, out: &mut Vec<Action>) {
        // Serde would read an array as a struct, by position.
        let object = params.starts_with(b"{").then_some(&params[..]);
        let found = object
            .and_then(|params| serde_json::from_slice::<Cancel<'_>>(params).ok())
            .and_then(|cancel| RawId::from_json(cancel.id.get().as_bytes()))
            .and_then(|id| self.links.find(from, &id));
        let Some((to, id)) = found else {
            return out.push(Action::Drop { reason: dropped::STALE_CANCEL });
        };
        let link = &mut self.links.links[to];
        if let Some(entry) = link.sent.get(&id)
            && entry.stage != Stage::Cancelled
        {
            self.passages.note(|| Passage::Call {
                from: self.path.requester(from, to, entry.form),
                to: self.path.party(to, entry.form),
                id: None,
                method: Bytes::from_static(METHOD),
                params: params.clone(),
            });
        }
        let dialect = link.dialect();
        let Some(entry) = link.sent.get_mut(&id) else { return };
        match entry.stage {
            Stage::Cancelled => out.push(Action::Drop { reason: dropped::STALE_CANCEL }),
            // The peer does not know of it yet and never will.
            Stage::Held => self.fail(to, id, &Error::request_cancelled(), out),
            Stage::Sent => {
                entry.stage = Stage::Cancelled;
                out.push(cancellation(to, id, entry, dialect));
            }
        }
    }
}

/// The cancellation for a request that went to this hop under this id.
pub(super) fn cancellation(to: usize, id: u64, entry: &Entry, dialect: Dialect) -> Action {
    let params = Bytes::from(format!(r#"{{"requestId":{id}}}"#));
    let message = if entry.form == Form::Wrapped && dialect == Dialect::Legacy {
        Outbound::wrapped(dialect, None, METHOD, params)
    } else {
        Outbound::call(None, METHOD, params)
    };
    Action::Send { to: Hop::at(to), message }
}
