//! From frames to the documented parsed view, and back.

use agent_client_protocol_schema::rpc::{Notification, Request};
use serde_json::Value;

use crate::error::{Error, ErrorCode};
use crate::frame::{Frame, FrameKind};
use crate::raw::{
    RawJsonRpcMessage, RawJsonRpcParams, RawJsonRpcResponse, TransportBatch, TransportBatchEntry, TransportFrame,
    malformed_error,
};

impl Frame {
    /// The frame as parsed values, for code at the public edge.
    #[must_use]
    pub fn to_transport_frame(&self) -> TransportFrame {
        match self.kind() {
            FrameKind::Batch => {
                // An entry that no value can hold (nested too deeply, half a character) would be
                // changed by the view; then the text as a whole is kept instead.
                let entries: Option<Vec<_>> = self.entries().iter().map(Self::to_entry).collect();
                match entries.and_then(TransportBatch::from_entries) {
                    Some(batch) => TransportFrame::Batch(batch),
                    None => self.as_malformed(malformed_error(
                        ErrorCode::InvalidRequest,
                        "a batch entry cannot be held as a value",
                    )),
                }
            }
            FrameKind::Malformed | FrameKind::Noise => self.as_malformed(self.refusal()),
            FrameKind::Request | FrameKind::Notification | FrameKind::Result | FrameKind::Error => {
                match self.to_message() {
                    Ok(message) => TransportFrame::Single(message),
                    Err(error) => self.as_malformed(error),
                }
            }
        }
    }

    /// Reads the documented view back.
    ///
    /// # Errors
    /// `-32603` when a value cannot be serialised.
    pub fn from_transport_frame(frame: &TransportFrame) -> Result<Self, Error> {
        Ok(Self::parse(frame.to_json()?.into()))
    }

    fn as_malformed(&self, error: Error) -> TransportFrame {
        TransportFrame::Malformed { raw: String::from_utf8_lossy(self.text()).into_owned(), error }
    }

    fn refusal(&self) -> Error {
        match self.malformation() {
            Some(malformed) => malformed.error.clone(),
            None => malformed_error(ErrorCode::ParseError, "not JSON"),
        }
    }

    /// `None` when the entry cannot be held as a value.
    fn to_entry(&self) -> Option<TransportBatchEntry> {
        match self.to_message() {
            Ok(message) => Some(TransportBatchEntry::Message(message)),
            Err(error) => {
                let raw: Value = serde_json::from_slice(self.text()).ok()?;
                Some(TransportBatchEntry::malformed(raw, error))
            }
        }
    }

    fn to_message(&self) -> Result<RawJsonRpcMessage, Error> {
        let value = |text: &[u8]| -> Result<Value, Error> {
            serde_json::from_slice(text).map_err(|error| malformed_error(ErrorCode::ParseError, &error.to_string()))
        };
        let id = || self.request_id().ok_or_else(|| malformed_error(ErrorCode::InvalidRequest, "no valid id"));
        let params = || -> Result<Option<RawJsonRpcParams>, Error> {
            let text = self.envelope().params.of(self.text());
            if text.is_empty() { Ok(None) } else { RawJsonRpcParams::from_value(value(text)?) }
        };
        let method = || self.method().into();
        Ok(match self.kind() {
            FrameKind::Request => {
                RawJsonRpcMessage::Request(Request { id: id()?, method: method(), params: params()? })
            }
            FrameKind::Notification => {
                RawJsonRpcMessage::Notification(Notification { method: method(), params: params()? })
            }
            FrameKind::Result => RawJsonRpcMessage::Response(RawJsonRpcResponse::Result {
                id: id()?,
                result: value(self.envelope().result.of(self.text()))?,
            }),
            FrameKind::Error => {
                let error = serde_json::from_slice(self.envelope().error.of(self.text()))
                    .map_err(|error| malformed_error(ErrorCode::InvalidRequest, &error.to_string()))?;
                RawJsonRpcMessage::Response(RawJsonRpcResponse::Error { id: id()?, error: Box::new(error) })
            }
            FrameKind::Batch | FrameKind::Malformed | FrameKind::Noise => return Err(self.refusal()),
        })
    }
}
