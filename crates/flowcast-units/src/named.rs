//! Enums with a name for each variant.

/// Declares an enum with the list `ALL` of its variants, the name of each (`name`, also its `Display`), and the functions
/// `names` and `from_name`.
///
/// ```
/// flowcast_units::named! {
///     /// A direction.
///     pub enum Direction {
///         /// Out of a node.
///         Out = "out",
///         /// Into a node.
///         In = "in",
///     }
/// }
///
/// assert_eq!(Direction::ALL.map(Direction::name), ["out", "in"]);
/// assert_eq!(Direction::from_name("in"), Some(Direction::In));
/// assert_eq!(Direction::from_name("up"), None);
/// ```
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$doc])* $variant,)+
        }

        #[allow(dead_code)]
        impl $name {
            /// All variants, in the order of tables, legends and messages.
            $vis const ALL: [$name; [$($text),+].len()] = [$($name::$variant),+];

            /// Name in files, tables and results.
            $vis const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }

            /// All names, separated by commas.
            $vis fn names() -> String {
                $name::ALL.map($name::name).join(", ")
            }

            /// Returns the variant with this name, if there is one.
            $vis fn from_name(name: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|one| one.name() == name)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
