//! The last argument of the `on_receive_…` methods: it names the future that an async closure
//! returns, which Rust has no other way to do yet.

/// The last argument of [`on_receive_request`](crate::Builder::on_receive_request) and
/// [`on_receive_request_from`](crate::Builder::on_receive_request_from).
#[macro_export]
macro_rules! on_receive_request {
    () => {
        |handler: &mut _, request, responder, connection| {
            ::std::boxed::Box::pin(async move { handler(request, responder, connection).await })
        }
    };
}

/// The last argument of [`on_receive_notification`](crate::Builder::on_receive_notification) and
/// [`on_receive_notification_from`](crate::Builder::on_receive_notification_from).
#[macro_export]
macro_rules! on_receive_notification {
    () => {
        |handler: &mut _, notification, connection| {
            ::std::boxed::Box::pin(async move { handler(notification, connection).await })
        }
    };
}

/// The last argument of [`on_receive_dispatch`](crate::Builder::on_receive_dispatch) and
/// [`on_receive_dispatch_from`](crate::Builder::on_receive_dispatch_from).
#[macro_export]
macro_rules! on_receive_dispatch {
    () => {
        |handler: &mut _, dispatch, connection| {
            ::std::boxed::Box::pin(async move { handler(dispatch, connection).await })
        }
    };
}

/// The last argument of [`mcp_server::tool_fn`](crate::mcp_server::tool_fn).
#[cfg(feature = "schemars")]
#[macro_export]
macro_rules! tool_fn {
    () => {
        |function: &_, input, connection| ::std::boxed::Box::pin(function(input, connection))
    };
}

/// The last argument of [`mcp_server::tool_fn_mut`](crate::mcp_server::tool_fn_mut).
#[cfg(feature = "schemars")]
#[macro_export]
macro_rules! tool_fn_mut {
    () => {
        |function: &mut _, input, connection| ::std::boxed::Box::pin(async move { function(input, connection).await })
    };
}
