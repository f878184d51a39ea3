//! Fields of a case, each knowing its own name so that a complaint can say which one it is.

use serde_json::Value;

use super::Mismatch;

/// A value somewhere in a case.
#[derive(Debug, Clone)]
pub(in crate::golden) struct Field<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Field<'a> {
    /// The value that is called `path` in messages.
    pub(in crate::golden) fn new(value: &'a Value, path: &str) -> Field<'a> {
        Field {
            value,
            path: path.to_owned(),
        }
    }

    /// Its name from the case on, such as `input.rails[0].g`.
    pub(in crate::golden) fn path(&self) -> &str {
        &self.path
    }

    /// The member `key`, if there is one that is not null.
    pub(in crate::golden) fn get(&self, key: &str) -> Option<Field<'a>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Field {
            value,
            path: format!("{}.{key}", self.path),
        })
    }

    /// The member `key`.
    ///
    /// # Errors
    /// There is none.
    pub(in crate::golden) fn at(&self, key: &str) -> Result<Field<'a>, Mismatch> {
        self.get(key)
            .ok_or_else(|| Mismatch::Malformed(format!("{}: found no field `{key}`", self.path)))
    }

    /// A number, plain or as an exact fraction `{num, den, f}`.
    ///
    /// # Errors
    /// Something else.
    pub(in crate::golden) fn number(&self) -> Result<f64, Mismatch> {
        let fraction = || Some(self.value.get("num")?.as_f64()? / self.value.get("den")?.as_f64()?);
        let float = self.value.get("f").and_then(Value::as_f64);
        self.value
            .as_f64()
            .or(float)
            .or_else(fraction)
            .ok_or_else(|| self.unlike("a number"))
    }

    /// A whole number of a type that holds it.
    ///
    /// # Errors
    /// Something else, or one that does not fit.
    pub(in crate::golden) fn whole<T: TryFrom<u64>>(&self) -> Result<T, Mismatch> {
        let fraction = || {
            self.value
                .as_f64()
                .filter(|x| x.fract() == 0.0 && (0.0..9e15).contains(x))
                .map(|x| x as u64)
        };
        let whole = self.value.as_u64().or_else(fraction);
        whole
            .and_then(|whole| T::try_from(whole).ok())
            .ok_or_else(|| self.unlike("a whole number"))
    }

    /// A text.
    ///
    /// # Errors
    /// Something else.
    pub(in crate::golden) fn text(&self) -> Result<&'a str, Mismatch> {
        self.value.as_str().ok_or_else(|| self.unlike("a text"))
    }

    /// The items of a list.
    ///
    /// # Errors
    /// Not a list.
    pub(in crate::golden) fn items(&self) -> Result<Vec<Field<'a>>, Mismatch> {
        let items = self.value.as_array().ok_or_else(|| self.unlike("a list"))?;
        let name = |(index, value)| Field {
            value,
            path: format!("{}[{index}]", self.path),
        };
        Ok(items.iter().enumerate().map(name).collect())
    }

    /// The numbers of a list.
    ///
    /// # Errors
    /// Not a list, or something else in it.
    pub(in crate::golden) fn numbers(&self) -> Result<Vec<f64>, Mismatch> {
        self.items()?.iter().map(Field::number).collect()
    }

    /// The members of an object, by name.
    ///
    /// # Errors
    /// Not an object.
    pub(in crate::golden) fn members(&self) -> Result<Vec<(&'a str, Field<'a>)>, Mismatch> {
        let members = self
            .value
            .as_object()
            .ok_or_else(|| self.unlike("an object"))?;
        let name = |(key, value): (&'a String, &'a Value)| {
            (
                key.as_str(),
                Field {
                    value,
                    path: format!("{}.{key}", self.path),
                },
            )
        };
        Ok(members.iter().map(name).collect())
    }

    /// Error for a value that a check cannot use.
    pub(in crate::golden) fn unlike(&self, expected: &str) -> Mismatch {
        Mismatch::Malformed(format!(
            "{}: found `{}`, expected {expected}",
            self.path, self.value
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_plain_and_as_fractions() {
        let document = serde_json::json!({"a": 1.5, "b": {"num": 1, "den": 4, "f": 0.25}, "c": {"num": 3, "den": 2}});
        let root = Field::new(&document, "input");
        let number = |key: &str| root.at(key).unwrap().number().unwrap();
        assert_eq!([number("a"), number("b"), number("c")], [1.5, 0.25, 1.5]);
    }

    #[test]
    fn an_error_names_the_field() {
        let document = serde_json::json!({"rails": [{"g": "x"}], "n": -1});
        let root = Field::new(&document, "input");
        let g = root.at("rails").unwrap().items().unwrap()[0]
            .at("g")
            .unwrap();
        assert!(
            g.number()
                .unwrap_err()
                .to_string()
                .contains("input.rails[0].g")
        );
        assert!(root.at("n").unwrap().whole::<u32>().is_err());
        assert!(root.at("absent").is_err());
    }
}
