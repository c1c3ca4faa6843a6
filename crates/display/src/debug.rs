//! `Debug` for what holds contents, keys and ids.

/// Writes `Debug` for types whose contents must not reach a log: only the fields that are named are shown.
///
/// ```
/// use confidant_display::debug_without_content;
///
/// struct Note(String);
/// struct Key([u8; 32]);
/// struct Route(String);
/// struct Call<'a> {
///     tool: &'a str,
///     arguments: Vec<String>,
/// }
/// debug_without_content!(Note, Key(***), Route(..), Call<'_> { tool, arguments: arguments.len() });
///
/// assert_eq!(format!("{:?}", Note("hush".into())), "Note { .. }");
/// assert_eq!(format!("{:?}", Key([7; 32])), "Key(***)");
/// assert_eq!(format!("{:?}", Route("hush".into())), "Route(..)");
/// let call = Call { tool: "files.read", arguments: vec!["hush".into()] };
/// assert_eq!(format!("{call:?}"), r#"Call { tool: "files.read", arguments: 1, .. }"#);
/// ```
#[macro_export]
macro_rules! debug_without_content {
    (@type [$($type:tt)+] $($form:tt)+) => {
        impl ::core::fmt::Debug for $($type)+ {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                $crate::debug_without_content!(@form self f $($form)+)
            }
        }
    };
    (@form $this:ident $f:ident $name:ident) => {
        $f.debug_struct(stringify!($name)).finish_non_exhaustive()
    };
    (@form $this:ident $f:ident $name:ident (***)) => {
        $f.write_str(concat!(stringify!($name), "(***)"))
    };
    (@form $this:ident $f:ident $name:ident (..)) => {
        $f.write_str(concat!(stringify!($name), "(..)"))
    };
    (@form $this:ident $f:ident $name:ident {
        $($field:ident $(: $($part:ident $(($($none:tt)*))?).+)?),+ $(,)?
    }) => {
        $f.debug_struct(stringify!($name))
            $(.field(
                stringify!($field),
                $crate::debug_without_content!(@field $this $field $($($part $(($($none)*))?).+)?),
            ))+
            .finish_non_exhaustive()
    };
    (@field $this:ident $field:ident) => { &$this.$field };
    (@field $this:ident $field:ident $($part:ident $(($($none:tt)*))?).+) => {
        &$this.$($part $(($($none)*))?).+
    };
    ($($name:ident $(<$life:lifetime>)? $({ $($shown:tt)* })? $(($($hidden:tt)*))?),+ $(,)?) => {$(
        $crate::debug_without_content!(
            @type [$name $(<$life>)?] $name $({ $($shown)* })? $(($($hidden)*))?
        );
    )+};
}

#[cfg(test)]
mod tests {
    struct Plain(&'static str);
    struct Starred(&'static str);
    struct Dotted(&'static str);
    struct Part {
        name: &'static str,
        secret: &'static str,
    }
    struct Shown<'a> {
        kind: u8,
        parts: &'a [Part],
        first: Part,
        text: &'static str,
    }

    impl Shown<'_> {
        fn words(&self) -> Vec<&str> {
            self.text.split(' ').collect()
        }
    }

    debug_without_content!(Plain, Starred(***), Dotted(..), Part { name });
    debug_without_content!(Shown<'_> {
        kind,
        parts: parts.len(),
        named: first.name,
        words: words().len(),
    });

    #[test]
    fn only_what_is_named_is_shown() {
        let (plain, starred, dotted) = (Plain("hush"), Starred("hush"), Dotted("hush"));
        assert_eq!(format!("{plain:?} {starred:?} {dotted:?}"), "Plain { .. } Starred(***) Dotted(..)");
        let part = Part { name: "a", secret: "hush" };
        assert_eq!(format!("{part:?}"), r#"Part { name: "a", .. }"#);
        let shown = Shown { kind: 7, parts: &[], first: part, text: "hush hush" };
        assert_eq!(format!("{shown:?}"), r#"Shown { kind: 7, parts: 0, named: "a", words: 2, .. }"#);
        let there = [plain.0, starred.0, dotted.0, shown.first.secret];
        assert_eq!(there, ["hush"; 4], "what is hidden was there to be shown");
    }

    #[test]
    fn it_is_spread_over_lines_like_any_other() {
        let part = Part { name: "a", secret: "hush" };
        assert_eq!(format!("{part:#?}"), "Part {\n    name: \"a\",\n    ..\n}");
    }
}
