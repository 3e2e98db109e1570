//! The generated implementations.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Expr, Type, WhereClause};

use crate::attributes::{Kind, Settings};
use crate::locate::traits_crate;

pub(crate) fn request(input: &DeriveInput) -> syn::Result<TokenStream> {
    let settings = Settings::read(input, Kind::Request)?;
    let method = settings.method(input, Kind::Request)?;
    let response = settings.response(input, Kind::Request)?;
    let krate = traits_crate(settings.krate.as_ref())?;
    let message = message(input, &krate, method)?;
    let (name, clause) = (&input.ident, bounds(input, &krate, Some(response))?);
    let (generics, arguments, _) = input.generics.split_for_impl();
    Ok(quote! {
        #message

        #[automatically_derived]
        impl #generics #krate::JsonRpcRequest for #name #arguments #clause {
            type Response = #response;
        }
    })
}

pub(crate) fn notification(input: &DeriveInput) -> syn::Result<TokenStream> {
    let settings = Settings::read(input, Kind::Notification)?;
    let method = settings.method(input, Kind::Notification)?;
    let krate = traits_crate(settings.krate.as_ref())?;
    let message = message(input, &krate, method)?;
    let (name, clause) = (&input.ident, bounds(input, &krate, None)?);
    let (generics, arguments, _) = input.generics.split_for_impl();
    Ok(quote! {
        #message

        #[automatically_derived]
        impl #generics #krate::JsonRpcNotification for #name #arguments #clause {}
    })
}

pub(crate) fn response(input: &DeriveInput) -> syn::Result<TokenStream> {
    let settings = Settings::read(input, Kind::Response)?;
    let krate = traits_crate(settings.krate.as_ref())?;
    let (name, clause) = (&input.ident, bounds(input, &krate, None)?);
    let (generics, arguments, _) = input.generics.split_for_impl();
    let result = quote!(::core::result::Result);
    Ok(quote! {
        #[automatically_derived]
        impl #generics #krate::JsonRpcResponse for #name #arguments #clause {
            fn into_json(self, _method: &str) -> #result<#krate::__private::serde_json::Value, #krate::Error> {
                #krate::__private::result_value(&self)
            }

            fn from_value(
                _method: &str,
                value: #krate::__private::serde_json::Value,
            ) -> #result<Self, #krate::Error> {
                #krate::__private::read_result_value(value)
            }

            fn from_text(_method: &str, text: &str) -> #result<Self, #krate::Error> {
                #krate::__private::read_result(text)
            }

            fn into_text(self, _method: &str) -> #result<::std::vec::Vec<u8>, #krate::Error> {
                #krate::__private::write_result(&self)
            }
        }
    })
}

/// The implementation of `JsonRpcMessage` for a type with one fixed method.
fn message(input: &DeriveInput, krate: &TokenStream, method: &Expr) -> syn::Result<TokenStream> {
    let (name, clause) = (&input.ident, bounds(input, krate, None)?);
    let (generics, arguments, _) = input.generics.split_for_impl();
    let result = quote!(::core::result::Result);
    Ok(quote! {
        #[automatically_derived]
        impl #generics #krate::JsonRpcMessage for #name #arguments #clause {
            fn matches_method(method: &str) -> bool {
                method == #method
            }

            fn method(&self) -> &str {
                #method
            }

            fn to_untyped_message(&self) -> #result<#krate::UntypedMessage, #krate::Error> {
                #krate::UntypedMessage::new(#method, self)
            }

            fn parse_message(
                method: &str,
                params: &impl #krate::__private::serde::Serialize,
            ) -> #result<Self, #krate::Error> {
                #krate::__private::expect_method(method, #method)?;
                #krate::__private::reread_params(params)
            }

            fn parse_params(method: &str, params: &str) -> #result<Self, #krate::Error> {
                #krate::__private::expect_method(method, #method)?;
                #krate::__private::read_params(params)
            }

            fn params_text(&self) -> #result<::std::vec::Vec<u8>, #krate::Error> {
                #krate::__private::write_params(self)
            }
        }
    })
}

/// What the implementations need of a generic type: everything that the traits demand, asked of
/// the type as a whole, so that a parameter that is only marked (`PhantomData`) needs nothing.
///
/// A type without parameters gets no bounds: then the compiler's message names what is missing.
fn bounds(input: &DeriveInput, krate: &TokenStream, response: Option<&Type>) -> syn::Result<Option<WhereClause>> {
    if matches!(input.data, Data::Union(_)) {
        return Err(syn::Error::new(input.ident.span(), "a union can be no message"));
    }
    let mut clause = input.generics.where_clause.clone();
    if input.generics.params.is_empty() {
        return Ok(clause);
    }
    let whole =
        clause.get_or_insert_with(|| WhereClause { where_token: Default::default(), predicates: Default::default() });
    whole.predicates.push(syn::parse_quote! {
        Self: ::core::fmt::Debug
            + ::core::clone::Clone
            + ::core::marker::Send
            + #krate::__private::serde::Serialize
            + #krate::__private::serde::de::DeserializeOwned
            + 'static
    });
    if let Some(response) = response {
        whole.predicates.push(syn::parse_quote!(#response: #krate::JsonRpcResponse));
    }
    Ok(clause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(expand: fn(&DeriveInput) -> syn::Result<TokenStream>, source: &str) -> String {
        let input = syn::parse_str(source).expect("a type");
        expand(&input).map(|tokens| tokens.to_string()).expect_err("must be refused").to_string()
    }

    #[test]
    fn a_missing_or_wrong_attribute_is_named() {
        for (source, says) in [
            ("struct A;", "missing attribute #[request(method = \"…\", response = Type)]"),
            ("#[request(response = B)] struct A;", "missing `method`; the form is #[request("),
            ("#[request(method = \"a/b\")] struct A;", "missing `response`; the form is #[request("),
            ("#[request(method = \"a\", method = \"b\", response = B)] struct A;", "`method` is given twice"),
            ("#[request(method = \"a\", result = B)] struct A;", "unknown key `result`"),
            ("#[request(method = \"\", response = B)] struct A;", "the method must not be empty"),
            ("#[request(method = 7, response = B)] struct A;", "the method must be a string"),
            ("#[request(method \"a\")] struct A;", "expected `=`"),
            ("#[request] struct A;", "expected attribute arguments"),
            (
                "#[request(method = \"a\", response = B)] #[request(method = \"a\", response = B)] struct A;",
                "only one #[request(…)]",
            ),
            ("#[request(method = \"a\", response = B, crate = c)] union A { x: u8 }", "a union can be no message"),
        ] {
            let text = refused(request, source);
            assert!(text.contains(says), "{source}: {text}");
        }
        assert!(refused(notification, "struct A;").contains("missing attribute #[notification(method = \"…\")]"));
        let text = refused(notification, "#[notification(method = \"a\", response = B)] struct A;");
        assert!(text.contains("unknown key `response`"), "{text}");
        assert!(refused(response, "#[response(method = \"a\")] struct A;").contains("unknown key `method`"));
    }

    #[test]
    fn a_crate_given_by_hand_is_used_everywhere() {
        let source = "#[request(method = NAME, response = Vec<T>, crate = some::path)] struct A<T>(T);";
        let tokens = request(&syn::parse_str(source).expect("a type")).expect("valid").to_string();
        assert!(tokens.contains("some :: path :: JsonRpcRequest for A < T >"), "{tokens}");
        assert!(tokens.contains("Vec < T > : some :: path :: JsonRpcResponse"), "{tokens}");
        assert!(!tokens.contains("greenroom"), "{tokens}");
    }

    #[test]
    fn bounds_are_added_to_generic_types_only() {
        let plain = "#[notification(method = \"a\", crate = c)] struct A { b: u8 }";
        let tokens = notification(&syn::parse_str(plain).expect("a type")).expect("valid").to_string();
        assert!(!tokens.contains("where"), "{tokens}");
        let generic = "#[notification(method = \"a\", crate = c)] struct A<T> where T: Copy { b: T }";
        let tokens = notification(&syn::parse_str(generic).expect("a type")).expect("valid").to_string();
        assert!(tokens.contains("where T : Copy , Self : :: core :: fmt :: Debug"), "{tokens}");
    }
}
