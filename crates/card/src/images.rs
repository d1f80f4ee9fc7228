//! Where image files are: a folder, or several, with a file `NAME.so` an image.

use std::path::{Path, PathBuf};

use crate::error::CardError;
use crate::twin::Image;

/// Folders that image files are looked for in, the first that has one wins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Images {
    places: Vec<PathBuf>,
}

impl Images {
    /// These folders, in this order; they need not exist.
    #[must_use]
    pub fn in_folders(places: Vec<PathBuf>) -> Self {
        Self { places }
    }

    /// The folder `images` beside a binary, and the one above it (a binary in `target/release` then finds
    /// `target/images`).
    #[must_use]
    pub fn beside(binary: &Path) -> Self {
        let folders = binary.ancestors().skip(1).take(2);
        Self { places: folders.map(|folder| folder.join("images")).collect() }
    }

    /// Names of the images that are there.
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

    /// Loads an image.
    ///
    /// # Errors
    /// `Image` when there is none of that name, `ImageFile` when the file is not one, or one of another name.
    pub fn load(&self, name: &str) -> Result<Image, CardError> {
        // A name is no path: what it holds must not leave the folder.
        let plain =
            !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-');
        let file =
            self.places.iter().map(|place| place.join(format!("{name}.so"))).find(|file| file.is_file());
        let Some(path) = file.filter(|_| plain) else {
            let places: Vec<_> = self.places.iter().map(|place| place.display().to_string()).collect();
            let (name, places) = (name.to_owned(), places.join(" or "));
            return Err(CardError::Image { name, places, known: self.names() });
        };
        let image = Image::load(&path)?;
        let inside = image.name();
        if inside != name {
            return Err(CardError::ImageFile { path, reason: format!("it is the image '{inside}'") });
        }
        Ok(image)
    }
}
