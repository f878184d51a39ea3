//! Requirements of a program on its system: libraries, and the oldest glibc that has all symbols that the program needs.

use std::{collections::BTreeSet, fmt, path::Path};

use anyhow::{Context, Result, bail};

use crate::suite::programs::output;

/// Libraries by their names, and a version of glibc.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    libraries: BTreeSet<String>,
    glibc: (u32, u32),
}

impl Needs {
    /// What all of these files need together, as `objdump` shows it.
    pub(super) fn of(files: &[&Path]) -> Result<Needs> {
        let mut needs = Needs::default();
        for file in files {
            needs.read(&output("objdump", &["-p".as_ref(), file.as_os_str()])?);
        }
        if needs.glibc == (0, 0) {
            bail!("found no symbol of glibc")
        } else {
            Ok(needs)
        }
    }

    fn read(&mut self, headers: &str) {
        for line in headers.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["NEEDED", library] => {
                    self.libraries.insert(library.to_owned());
                }
                [.., version] => self.glibc = self.glibc.max(glibc(version).unwrap_or_default()),
                [] => {}
            }
        }
    }

    /// Debian's packages with these libraries, as `Depends` names them.
    ///
    /// # Errors
    /// A library that no known package has.
    pub(super) fn debian(&self) -> Result<String> {
        let packages = self.packages()?;
        let (major, minor) = self.glibc;
        let name = |package: &&str| match *package {
            "libc6" => format!("libc6 (>= {major}.{minor})"),
            other => other.to_owned(),
        };
        Ok(packages.iter().map(name).collect::<Vec<_>>().join(", "))
    }

    /// The names alone.
    ///
    /// # Errors
    /// A library that no known package has.
    pub(crate) fn packages(&self) -> Result<Vec<&'static str>> {
        let package = |library: &String| match library.as_str() {
            "libgcc_s.so.1" => Ok("libgcc-s1"),
            "libc.so.6" | "libm.so.6" | "libdl.so.2" | "libpthread.so.0" | "librt.so.1" => {
                Ok("libc6")
            }
            linker if linker.starts_with("ld-linux") => Ok("libc6"),
            other => bail!("found the library {other}, expected one of glibc or gcc"),
        };
        let packages: Result<BTreeSet<&str>> = self.libraries.iter().map(package).collect();
        Ok(packages
            .context("libraries that the command is linked with")?
            .into_iter()
            .collect())
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let libraries: Vec<&str> = self.libraries.iter().map(String::as_str).collect();
        write!(
            f,
            "runs on glibc {}.{} or newer; needs {}",
            self.glibc.0,
            self.glibc.1,
            libraries.join(", ")
        )
    }
}

/// `GLIBC_2.34`; glibc's marks of its private parts have no number.
fn glibc(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix("GLIBC_")?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS: &str = "
Dynamic Section:
  NEEDED               libgcc_s.so.1
  NEEDED               libc.so.6

Version References:
  required from libgcc_s.so.1:
    0x0b792650 0x00 06 GCC_3.0
  required from libc.so.6:
    0x09691a75 0x00 08 GLIBC_2.2.5
    0x06969191 0x00 09 GLIBC_2.34
    0x0963cf85 0x00 05 GLIBC_PRIVATE
    0xfd0e42f0 0x00 04 GLIBC_ABI_DT_RELR
    0x069691b9 0x00 02 GLIBC_2.29
";

    #[test]
    fn the_newest_symbol_decides() {
        let mut needs = Needs::default();
        needs.read(HEADERS);
        assert_eq!(
            needs.to_string(),
            "runs on glibc 2.34 or newer; needs libc.so.6, libgcc_s.so.1"
        );
        assert_eq!(needs.debian().unwrap(), "libc6 (>= 2.34), libgcc-s1");
        needs.read("  NEEDED  libz.so.1");
        assert!(format!("{:#}", needs.debian().unwrap_err()).contains("libz.so.1"));
    }
}
