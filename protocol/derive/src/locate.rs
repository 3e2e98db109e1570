//! Finds the crate that has the traits, under whatever name the user's manifest gives it.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, Path};

/// Crates that expose the traits at their root, the most complete one first.
const CRATES: [&str; 3] = ["greenroom", "greenroom-actors", "greenroom-protocol"];

/// The path of the crate, for use in generated code.
pub(crate) fn traits_crate(given: Option<&Path>) -> syn::Result<TokenStream> {
    if let Some(path) = given {
        return Ok(quote!(#path));
    }
    for name in CRATES {
        match crate_name(name) {
            Ok(FoundCrate::Itself) => return Ok(own(&name.replace('-', "_"))),
            Ok(FoundCrate::Name(name)) => return Ok(external(&name)),
            Err(_) => {}
        }
    }
    let text =
        "found no crate with the message traits; add `greenroom` to the dependencies, or name it with `crate = path`";
    Err(syn::Error::new(Span::call_site(), text))
}

/// The package that is being compiled has the traits itself: `crate` in its library, its name in
/// its examples, binaries and documentation tests.
fn own(library: &str) -> TokenStream {
    let in_library = std::env::var("CARGO_CRATE_NAME").is_ok_and(|name| name == library);
    let in_doctest = std::env::var_os("UNSTABLE_RUSTDOC_TEST_PATH").is_some();
    if in_library && !in_doctest { quote!(crate) } else { external(library) }
}

fn external(name: &str) -> TokenStream {
    let name = Ident::new(name, Span::call_site());
    quote!(::#name)
}
