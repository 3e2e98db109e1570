//! What stands inside `#[request(…)]`, `#[notification(…)]` and `#[response(…)]`.

use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned as _;
use syn::{Attribute, DeriveInput, Expr, ExprLit, Lit, Path, Token, Type};

/// Which attribute a derive reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Notification,
    Response,
}

impl Kind {
    fn attribute(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Response => "response",
        }
    }

    /// How the attribute looks, for error messages.
    fn form(self) -> &'static str {
        match self {
            Self::Request => "#[request(method = \"…\", response = Type)]",
            Self::Notification => "#[notification(method = \"…\")]",
            Self::Response => "#[response(crate = path)]",
        }
    }
}

/// The settings of one derive.
#[derive(Default)]
pub(crate) struct Settings {
    method: Option<Expr>,
    response: Option<Type>,
    /// The crate that has the traits, when given by hand.
    pub(crate) krate: Option<Path>,
}

impl Settings {
    /// Reads the attribute of `kind`; at most one may stand on the type.
    pub(crate) fn read(input: &DeriveInput, kind: Kind) -> syn::Result<Self> {
        let mut found: Option<&Attribute> = None;
        let mut settings = Self::default();
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident(kind.attribute())) {
            if found.replace(attribute).is_some() {
                let text = format!("only one #[{}(…)] may stand on a type", kind.attribute());
                return Err(syn::Error::new_spanned(attribute, text));
            }
            settings = attribute.parse_args_with(|input: ParseStream<'_>| Self::parse(input, kind))?;
        }
        if found.is_none() && kind != Kind::Response {
            let text = format!("missing attribute {}", kind.form());
            return Err(syn::Error::new(input.ident.span(), text));
        }
        Ok(settings)
    }

    /// The method; an error that points at the type when it is missing.
    pub(crate) fn method(&self, input: &DeriveInput, kind: Kind) -> syn::Result<&Expr> {
        self.method.as_ref().ok_or_else(|| Self::missing("method", input, kind))
    }

    /// The response type; an error that points at the type when it is missing.
    pub(crate) fn response(&self, input: &DeriveInput, kind: Kind) -> syn::Result<&Type> {
        self.response.as_ref().ok_or_else(|| Self::missing("response", input, kind))
    }

    fn missing(key: &str, input: &DeriveInput, kind: Kind) -> syn::Error {
        let at = input.attrs.iter().find(|attribute| attribute.path().is_ident(kind.attribute()));
        let span = at.map_or(input.ident.span(), |attribute| attribute.span());
        syn::Error::new(span, format!("missing `{key}`; the form is {}", kind.form()))
    }

    fn parse(input: ParseStream<'_>, kind: Kind) -> syn::Result<Self> {
        let mut settings = Self::default();
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                let key: Token![crate] = input.parse()?;
                store(&mut settings.krate, input, key.span(), "crate")?;
            } else {
                let key: syn::Ident = input.parse()?;
                match (key.to_string().as_str(), kind) {
                    ("method", Kind::Request | Kind::Notification) => {
                        store(&mut settings.method, input, key.span(), "method")?;
                    }
                    ("response", Kind::Request) => store(&mut settings.response, input, key.span(), "response")?,
                    (other, _) => {
                        let text = format!("unknown key `{other}`; the form is {}", kind.form());
                        return Err(syn::Error::new(key.span(), text));
                    }
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if let Some(method) = &settings.method {
            check_method(method)?;
        }
        Ok(settings)
    }
}

/// Reads `= value` into an empty slot.
fn store<T: Parse>(
    slot: &mut Option<T>,
    input: ParseStream<'_>,
    key: proc_macro2::Span,
    name: &str,
) -> syn::Result<()> {
    if slot.is_some() {
        return Err(syn::Error::new(key, format!("`{name}` is given twice")));
    }
    input.parse::<Token![=]>()?;
    *slot = Some(input.parse()?);
    Ok(())
}

/// Refuses literals that can be no method; other expressions are left to the compiler.
fn check_method(method: &Expr) -> syn::Result<()> {
    let Expr::Lit(ExprLit { lit, .. }) = method else { return Ok(()) };
    match lit {
        Lit::Str(text) if text.value().is_empty() => Err(syn::Error::new_spanned(lit, "the method must not be empty")),
        Lit::Str(_) => Ok(()),
        _ => Err(syn::Error::new_spanned(lit, "the method must be a string")),
    }
}
