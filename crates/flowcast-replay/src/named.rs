//! Enums whose variants are listed and named in tables.

/// Declares an enum with `ALL` of its variants, in the order of tables and legends, and the `name` of each.
macro_rules! named {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// All of them, in the order of tables and legends.
            pub const ALL: [$name; [$($text),+].len()] = [$($name::$variant),+];

            /// Name in tables and legends; with `_` for spaces and `_s` behind it the field in JSON and CSV.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }
        }
    };
}

pub(crate) use named;
