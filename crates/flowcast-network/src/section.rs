//! Sections of the network file: a declaration gives the type that serde reads and the list of its fields.

use std::collections::BTreeMap;

use crate::{
    accuracy::CaseKind,
    algorithm::{self, AlgorithmTable, Base, Choice},
    collective::{Collectives, CollectivesSection, Row},
    costs::FittedCosts,
    machine::{
        Mapping,
        random::RandomDistribution,
        scheduler::Policy,
        wide_area::{Comparison, Joined, Traffic},
    },
    network::{Duplex, MessageRule, NicChoice, Progress},
    origin::{Origin, OriginFile},
    quantity::Quantity,
    sharing::parameters::{Congestion, Connections},
    topology::dragonfly::Arrangement,
};
use flowcast_units::{Bytes, CollectiveOp, Rate, Time, TimePerByte};

/// Declares a section: a struct with public fields that serde reads and writes. An unknown field is an error. After the
/// name, `: Default` makes all fields optional and `+ Copy` derives that trait. After the type of a field, `| default` makes
/// the field optional and omits it from the file if it has the type's default. Brackets contain attributes of serde.
/// `rename` is not allowed, because the name of a field is the name in the file.
macro_rules! section {
    ($(
        $(#[$about:meta])*
        $vis:vis struct $name:ident $(: $default:ident)? $(+ $copy:ident)? {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty $(| $skip:ident)? $([$($serde:tt)*])?,)*
        }
    )*) => {$(
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        $(#[derive($default)] #[serde(default)])?
        $(#[derive($copy)])?
        $(#[$about])*
        $vis struct $name {
            $(
                $(#[doc = $doc])*
                $(#[serde($skip, skip_serializing_if = "crate::is_default")])?
                $(#[serde($($serde)*)])?
                pub $field: $type,
            )*
        }

        impl $crate::section::FieldType for $name {
            const BELOW: &'static [$crate::section::SectionField] = &[
                $($crate::section::SectionField {
                    name: stringify!($field),
                    kind: stringify!($type),
                    docs: &[$($doc),*],
                    below: <$type as $crate::section::FieldType>::BELOW,
                },)*
            ];
        }
    )*};
}

/// A field of a section, an index of a list (`N`) or a name of a map (`NAME`).
#[derive(Debug, Clone, Copy)]
#[allow(dead_code, reason = "the reference page is printed from them")]
pub(crate) struct SectionField {
    pub name: &'static str,
    /// Type of the field; empty for indices and names.
    pub kind: &'static str,
    /// Lines of the doc comment.
    pub docs: &'static [&'static str],
    pub below: &'static [SectionField],
}

/// A type that a field of the network file can have.
pub(crate) trait FieldType {
    /// Fields below it in the file; empty for a plain value.
    const BELOW: &'static [SectionField];
}

macro_rules! field_types {
    ($($({$($generic:tt)*})? $type:ty = $below:expr;)*) => {$(
        impl $(<$($generic)*>)? FieldType for $type {
            const BELOW: &'static [SectionField] = $below;
        }
    )*};
    ($($type:ty),*) => { field_types! { $($type = &[];)* } };
}

/// The field for each index or name.
const fn each<T: FieldType>(name: &'static str) -> SectionField {
    SectionField {
        name,
        kind: "",
        docs: &[],
        below: T::BELOW,
    }
}

field_types! {
    {T: FieldType} Option<T> = T::BELOW;
    {T: FieldType} Box<T> = T::BELOW;
    {T: FieldType} Vec<T> = &[each::<T>("N")];
    {T: FieldType, const LENGTH: usize} [T; LENGTH] = <Vec<T>>::BELOW;
    {K, T: FieldType} BTreeMap<K, T> = &[each::<T>("NAME")];
    {T} RandomDistribution<T> = &[];
    AlgorithmTable = &[each::<Base>("base"), each::<BTreeMap<(), Vec<algorithm::AlgorithmRule>>>("rows")];
    Collectives = CollectivesSection::BELOW;
    Origin = OriginFile::BELOW;
    {T} FittedCosts<T> = <BTreeMap<String, [String; 3]>>::BELOW;
}

field_types! {
    bool, u16, u32, u64, i32, f64, String, Bytes, Rate, Time, TimePerByte, Quantity, MessageRule, Progress, Duplex, NicChoice,
    Mapping, Policy, Traffic, Comparison, Joined, Arrangement, Congestion, Connections, Row, Base, algorithm::AlgorithmRule,
    Choice, CaseKind, CollectiveOp
}
