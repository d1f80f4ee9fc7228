//! Finds image files in one or more folders, with one file `NAME.so` for each image.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::CardError;
use crate::twin::{Image, seal};

/// Where images are installed, below the prefix.
const INSTALLED: &str = "lib/hueplane/images";

/// Folders searched for image files; the first that has the file wins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Images {
    places: Vec<PathBuf>,
}

impl Images {
    /// Searches these folders, in this order; they need not exist.
    #[must_use]
    pub fn in_folders(places: Vec<PathBuf>) -> Self {
        Self { places }
    }

    /// Searches the folder `images` beside a binary, then the one above it (so that a binary in `target/release`
    /// finds `target/images`), then the installation folder (for `/usr/bin/hueplane`, `/usr/lib/hueplane/images`).
    #[must_use]
    pub fn beside(binary: &Path) -> Self {
        let above = || binary.ancestors().skip(1).take(2);
        let installed = above().skip(1).map(|prefix| prefix.join(INSTALLED));
        Self { places: above().map(|folder| folder.join("images")).chain(installed).collect() }
    }

    /// Names of the images found.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let files = self.places.iter().filter_map(|place| place.read_dir().ok()).flatten().flatten();
        let mut names: Vec<String> = files
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                name.strip_suffix(".so").map(str::to_owned)
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The catalogue entry of an image, JSON; `{}` when there is no `NAME.json` beside its file.
    ///
    /// # Errors
    /// `Image` if no image has this name, `ImageFile` if the entry cannot be read.
    pub fn describe(&self, name: &str) -> Result<String, CardError> {
        let path = self.find(name)?.with_extension("json");
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok("{}".to_owned()),
            Err(error) => Err(CardError::ImageFile { path, reason: error.to_string() }),
        }
    }

    /// Checks that an image's file exists and is intact.
    ///
    /// # Errors
    /// `Image`, `ImageFile`.
    pub fn check(&self, name: &str) -> Result<(), CardError> {
        let path = self.find(name)?;
        seal::check(&path).map_err(|reason| CardError::ImageFile { path, reason })
    }

    /// Loads an image.
    ///
    /// # Errors
    /// `Image` if no image has this name, `ImageFile` if the file is not an image or is an image with another name.
    pub fn load(&self, name: &str) -> Result<Image, CardError> {
        let path = self.find(name)?;
        let image = Image::load(&path)?;
        let inside = image.name();
        if inside != name {
            return Err(CardError::ImageFile { path, reason: format!("it contains the image '{inside}'") });
        }
        Ok(image)
    }

    /// The file of an image.
    fn find(&self, name: &str) -> Result<PathBuf, CardError> {
        let plain = is_plain(name);
        let file =
            self.places.iter().map(|place| place.join(format!("{name}.so"))).find(|file| file.is_file());
        file.filter(|_| plain).ok_or_else(|| {
            let places: Vec<_> = self.places.iter().map(|place| place.display().to_string()).collect();
            let (name, places) = (name.to_owned(), places.join(" or "));
            CardError::Image { name, places, known: self.names() }
        })
    }
}

/// Whether a text can be an image's name. A path is not accepted, because it could lead out of the folder.
/// `NAME.PART` is an image sized for an FPGA.
fn is_plain(name: &str) -> bool {
    let may = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.');
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(may)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_not_a_path() {
        assert!(["default", "tcam4.ecp5-85", "my_image-2"].into_iter().all(is_plain));
        assert!(
            !["", ".", "..", ".hidden", "../default", "a/b", "/default", "a b", "a\0"]
                .into_iter()
                .any(is_plain)
        );
    }

    #[test]
    fn images_are_beside_the_binary_above_it_or_installed() {
        let places = |binary: &str| Images::beside(Path::new(binary)).places;
        let expected = ["/usr/bin/images", "/usr/images", "/usr/lib/hueplane/images"];
        assert_eq!(places("/usr/bin/hueplane"), expected.map(PathBuf::from));
        assert_eq!(places("hueplane"), ["images"].map(PathBuf::from));
    }
}
