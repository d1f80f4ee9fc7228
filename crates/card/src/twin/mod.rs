//! The twin: the card's own RTL, compiled by Verilator into a shared library and run in this process.
//!
//! Flow: frames and register accesses → **twin** → cycles of the card → frames. `rtl/twin/hue_twin.h` is the
//! interface of the library; only this module calls foreign functions.
//!
//! A fence for unsafe code. The calls are sound because a library is used only if it has every function and the
//! version [`ABI`]; a twin is created by its library and returned to it once; every call takes `&mut self` or reads
//! plain numbers, so only one thread is inside at a time; the library stays loaded until its last twin is dropped.

#![allow(unsafe_code)]

pub(crate) mod seal;

use std::ffi::{CStr, CString, c_char, c_int};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use hue_planes::Unclaimed;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};

use crate::error::CardError;
use crate::registers::{AccessError, Registers, SPACE_BYTES, check};

/// Version of the library interface.
const ABI: u32 = 6;
/// Longest frame that the twin accepts; the card's own limit is lower.
pub const FRAME_BYTES_MAX: usize = 65_535;

const OK: c_int = 0;
const REFUSED: c_int = 2;
const NO_ANSWER: c_int = 3;
/// Causes of frame ends that carry no further data (`hue_pkg.sv`).
const FLOOD_FULL: u32 = 513;
const COPIED: u32 = 514;

/// The library's twin, an opaque type.
#[repr(C)]
struct Handle {
    _private: [u8; 0],
}

#[repr(C)]
struct RawFrame {
    bytes: *const u8,
    len: u32,
    tag: u32,
    port: u32,
    first_cycle: u64,
    last_cycle: u64,
}

#[repr(C)]
struct RawWrite {
    address: u32,
    value: u32,
}

#[repr(C)]
struct RawEnding {
    tag: u32,
    net: u32,
    cause: u32,
}

macro_rules! functions {
    ($($field:ident = $symbol:literal: $kind:ty;)*) => {
        struct Functions { $($field: Symbol<$kind>,)* }

        impl Functions {
            fn find(library: &Library, path: &Path) -> Result<Self, CardError> {
                // SAFETY: the types are those of rtl/twin/hue_twin.h, whose version is checked before any other call.
                unsafe {
                    Ok(Self { $($field: library.get(concat!($symbol, "\0").as_bytes()).map_err(|_| {
                        CardError::ImageFile { path: path.to_owned(), reason: format!("it does not define {}", $symbol) }
                    })?,)* })
                }
            }
        }
    };
}

functions! {
    abi = "hue_twin_abi": unsafe extern "C" fn() -> u32;
    image = "hue_twin_image": unsafe extern "C" fn() -> *const c_char;
    new = "hue_twin_new": unsafe extern "C" fn() -> *mut Handle;
    free = "hue_twin_free": unsafe extern "C" fn(*mut Handle);
    push = "hue_twin_push": unsafe extern "C" fn(*mut Handle, u32, u64, u32, u64, *const u8, usize) -> c_int;
    pop = "hue_twin_pop": unsafe extern "C" fn(*mut Handle, *mut RawFrame) -> c_int;
    keep_endings = "hue_twin_keep_endings": unsafe extern "C" fn(*mut Handle, c_int);
    ended = "hue_twin_ended": unsafe extern "C" fn(*mut Handle, *mut RawEnding) -> c_int;
    waiting = "hue_twin_waiting": unsafe extern "C" fn(*const Handle, u32) -> u64;
    line = "hue_twin_line": unsafe extern "C" fn(*mut Handle, u32, u64, u64) -> c_int;
    read = "hue_twin_read": unsafe extern "C" fn(*mut Handle, u32, *mut u32) -> c_int;
    write = "hue_twin_write": unsafe extern "C" fn(*mut Handle, u32, u32) -> c_int;
    write_all = "hue_twin_write_all": unsafe extern "C" fn(*mut Handle, *const RawWrite, usize, *mut usize) -> c_int;
    run = "hue_twin_run": unsafe extern "C" fn(*mut Handle, u64) -> u64;
    run_exactly = "hue_twin_run_exactly": unsafe extern "C" fn(*mut Handle, u64);
    cycles = "hue_twin_cycles": unsafe extern "C" fn(*const Handle) -> u64;
    idle = "hue_twin_idle": unsafe extern "C" fn(*const Handle) -> c_int;
    still_cycles = "hue_twin_still_cycles": unsafe extern "C" fn(*const Handle) -> u64;
    interrupt = "hue_twin_interrupt": unsafe extern "C" fn(*const Handle) -> c_int;
    damage = "hue_twin_damage": unsafe extern "C" fn(*mut Handle, u32, u64) -> c_int;
    ordered = "hue_twin_ordered": unsafe extern "C" fn(*mut Handle, c_int);
    stress = "hue_twin_stress": unsafe extern "C" fn(*mut Handle, u64, u32, u32) -> c_int;
    wave = "hue_twin_wave": unsafe extern "C" fn(*mut Handle, *const c_char, u64, u64) -> c_int;
    wave_end = "hue_twin_wave_end": unsafe extern "C" fn(*mut Handle);
    failure = "hue_twin_failure": unsafe extern "C" fn(*const Handle) -> *const c_char;
}

/// An image file that was loaded.
#[derive(Clone)]
pub struct Image {
    library: Arc<Loaded>,
}

struct Loaded {
    functions: Functions,
    path: PathBuf,
    // Dropped last, because the functions belong to it.
    _library: Library,
}

/// A frame that left the twin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TwinFrame<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Tag of the frame that it came from.
    pub tag: u32,
    /// Port it left by: 0 to 3 MAC ports, 4 to 7 CPU queues.
    pub port: u8,
    /// Cycle in which its first beat moved.
    pub first_cycle: u64,
    /// Cycle in which its last beat moved.
    pub last_cycle: u64,
}

/// A frame, or a copy of one for a network, that ended inside the twin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TwinEnding {
    /// Tag of the frame.
    pub tag: u32,
    /// The card's index of its network.
    pub net: u8,
    /// Why.
    pub cause: Cause,
}

/// Why a frame ended inside the twin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Its network's plane dropped it: the code of the outcome, of the network's kind.
    Dropped(u8),
    /// It belonged to no network.
    Unclaimed(Unclaimed),
    /// The output queues had no room.
    Refused,
    /// It has not ended: the network sends it to this many ports, and each copy ends by itself.
    Flooded(u8),
    /// A group frame: there was no room to copy it, so none of its networks gets it.
    FloodFull,
    /// A group frame: its last copy is on its way to the stages. The ends of the copies are reported separately.
    Copied,
}

impl Cause {
    /// Converts the library's number (`hue_pkg.sv`).
    fn from_code(code: u32) -> Self {
        let low = (code & 0xff) as u8;
        match (code >> 8, Unclaimed::from_code(low)) {
            (0, _) => Self::Dropped(low),
            (1, Some(reason)) => Self::Unclaimed(reason),
            (3, _) => Self::Flooded(low),
            _ if code == FLOOD_FULL => Self::FloodFull,
            _ if code == COPIED => Self::Copied,
            _ => Self::Refused,
        }
    }
}

/// A running card of an image.
pub struct Twin {
    library: Arc<Loaded>,
    handle: NonNull<Handle>,
    /// No register was written, and no frame came. A simulation begins with memories of zeros.
    is_new: bool,
}

// SAFETY: a twin owns all it touches (the library keeps nothing of its own between calls), and `&self` only reads, so it
// can be moved to another thread as a whole.
unsafe impl Send for Twin {}

impl Image {
    /// Loads an image file.
    ///
    /// # Errors
    /// `ImageFile` if it is not a library, not a twin, or has another version.
    pub fn load(path: &Path) -> Result<Self, CardError> {
        let fault = |reason: String| CardError::ImageFile { path: path.to_owned(), reason };
        // The path contains a slash, so that the system does not search other folders.
        let file = path.canonicalize().map_err(|error| fault(error.to_string()))?;
        seal::check(&file).map_err(fault)?;
        // SAFETY: loading runs the initialisers of the library, those of the C++ runtime and Verilator. The file is
        // an image that the caller chose. It was checked to be complete, because a truncated file would fault when
        // its pages are accessed. Its code has to be trusted, like a bitstream.
        let library = unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_LOCAL) };
        let library =
            library.map_err(|error| fault(format!("it cannot be loaded as a shared library: {error}")))?;
        let functions = Functions::find(&library, path)?;
        // SAFETY: in every version, the function takes nothing and returns a number.
        let abi = unsafe { (functions.abi)() };
        if abi != ABI {
            return Err(fault(format!(
                "version {abi} of the twin interface, expected {ABI}: build the images again"
            )));
        }
        Ok(Self { library: Arc::new(Loaded { functions, path: path.to_owned(), _library: library }) })
    }

    /// The name of the image.
    #[must_use]
    pub fn name(&self) -> String {
        // SAFETY: the function returns a string constant of the library, which `self` keeps loaded.
        let name = unsafe { CStr::from_ptr((self.library.functions.image)()) };
        name.to_string_lossy().into_owned()
    }

    /// A card after reset.
    ///
    /// # Errors
    /// `ImageFile` if there is no memory for it.
    pub fn start(&self) -> Result<Twin, CardError> {
        // SAFETY: creates a twin, which `Twin` then owns.
        let handle = unsafe { (self.library.functions.new)() };
        let handle = NonNull::new(handle).ok_or_else(|| CardError::ImageFile {
            path: self.library.path.clone(),
            reason: "no memory for a twin".to_owned(),
        })?;
        Ok(Twin { library: Arc::clone(&self.library), handle, is_new: true })
    }
}

impl Twin {
    fn functions(&self) -> &Functions {
        &self.library.functions
    }

    /// Queues a frame outside a port, to be offered from cycle `not_before` on. Returns `false`, and does nothing, if
    /// the port does not exist or the frame is longer than [`FRAME_BYTES_MAX`].
    pub fn push(&mut self, port: u8, time_ns: u64, tag: u32, not_before: u64, bytes: &[u8]) -> bool {
        let (handle, length) = (self.handle.as_ptr(), bytes.len());
        self.is_new = false;
        // SAFETY: the handle is live and ours alone; the bytes are copied before the call returns.
        let result = unsafe {
            (self.functions().push)(handle, u32::from(port), time_ns, tag, not_before, bytes.as_ptr(), length)
        };
        result == OK
    }

    /// The oldest frame that left and has not been taken.
    pub fn pop(&mut self) -> Option<TwinFrame<'_>> {
        let mut raw =
            RawFrame { bytes: std::ptr::null(), len: 0, tag: 0, port: 0, first_cycle: 0, last_cycle: 0 };
        // SAFETY: the handle is live and ours alone; `raw` is written only inside the call.
        if unsafe { (self.functions().pop)(self.handle.as_ptr(), &raw mut raw) } != OK {
            return None;
        }
        let bytes = if raw.bytes.is_null() || raw.len == 0 {
            &[]
        } else {
            // SAFETY: the library keeps these bytes until the next pop or its end, both of which need `&mut self`,
            // which the frame borrows.
            unsafe { std::slice::from_raw_parts(raw.bytes, raw.len as usize) }
        };
        let port = u8::try_from(raw.port).unwrap_or(u8::MAX);
        Some(TwinFrame {
            bytes,
            tag: raw.tag,
            port,
            first_cycle: raw.first_cycle,
            last_cycle: raw.last_cycle,
        })
    }

    /// Sets whether the ends of frames that do not leave are recorded for [`Twin::ended`]. Only frames with a tag
    /// other than 0 are recorded.
    pub fn keep_endings(&mut self, on: bool) {
        // SAFETY: the handle is live and ours alone.
        unsafe { (self.functions().keep_endings)(self.handle.as_ptr(), c_int::from(on)) }
    }

    /// The oldest recorded end that has not been taken.
    pub fn ended(&mut self) -> Option<TwinEnding> {
        let mut raw = RawEnding { tag: 0, net: 0, cause: 0 };
        // SAFETY: the handle is live and ours alone; `raw` is written only inside the call.
        let result = unsafe { (self.functions().ended)(self.handle.as_ptr(), &raw mut raw) };
        let net = u8::try_from(raw.net).ok()?;
        (result == OK).then(|| TwinEnding { tag: raw.tag, net, cause: Cause::from_code(raw.cause) })
    }

    /// Frames that wait outside a port, including a frame that is entering.
    #[must_use]
    pub fn waiting(&self, port: u8) -> u64 {
        // SAFETY: as in `cycles`.
        unsafe { (self.functions().waiting)(self.handle.as_ptr(), u32::from(port)) }
    }

    /// Connects a port to an Ethernet line on which a byte takes `cycles / per` cycles, including preambles and gaps.
    /// With `None` it sends one beat per cycle. Returns `false`, and does nothing, if the port does not exist or
    /// `per` is 0.
    pub fn set_line(&mut self, port: u8, byte: Option<(u64, u64)>) -> bool {
        let (cycles, per) = byte.unwrap_or((0, 1));
        // SAFETY: the handle is live and ours alone.
        unsafe { (self.functions().line)(self.handle.as_ptr(), u32::from(port), cycles, per) == OK }
    }

    /// Runs at most this many cycles, and stops early when nothing is left to do. Returns the number of cycles.
    pub fn run(&mut self, cycles: u64) -> u64 {
        // SAFETY: the handle is live and ours alone.
        unsafe { (self.functions().run)(self.handle.as_ptr(), cycles) }
    }

    /// Runs exactly this many cycles.
    pub fn run_exactly(&mut self, cycles: u64) {
        // SAFETY: the handle is live and ours alone.
        unsafe { (self.functions().run_exactly)(self.handle.as_ptr(), cycles) }
    }

    /// Cycles since reset.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        // SAFETY: the handle is live; the call only reads, and nobody changes it while `self` is borrowed.
        unsafe { (self.functions().cycles)(self.handle.as_ptr()) }
    }

    /// Whether no frame is inside or waits outside the ports.
    #[must_use]
    pub fn idle(&self) -> bool {
        // SAFETY: as in `cycles`.
        unsafe { (self.functions().idle)(self.handle.as_ptr()) != 0 }
    }

    /// Flips bits in a word of the external memories, as radiation does (for tests). Returns `false`, and does
    /// nothing, if the word or the memories do not exist.
    pub fn damage(&mut self, word: u32, bits: u64) -> bool {
        // SAFETY: the handle is live and ours alone.
        unsafe { (self.functions().damage)(self.handle.as_ptr(), word, bits) == OK }
    }

    /// Cycles since a beat last moved on any stream or waited for a line ([`Twin::set_line`]).
    #[must_use]
    pub fn still_cycles(&self) -> u64 {
        // SAFETY: as in `cycles`.
        unsafe { (self.functions().still_cycles)(self.handle.as_ptr()) }
    }

    /// Whether the interrupt is raised.
    #[must_use]
    pub fn interrupt(&self) -> bool {
        // SAFETY: as in `cycles`.
        unsafe { (self.functions().interrupt)(self.handle.as_ptr()) != 0 }
    }

    /// Ordered mode: frames enter the stages in the order of pushing, whatever their ports. Switch it only while
    /// idle.
    pub fn set_ordered(&mut self, on: bool) {
        // SAFETY: the handle is live and ours alone.
        unsafe { (self.functions().ordered)(self.handle.as_ptr(), c_int::from(on)) }
    }

    /// Sets random pauses from a seed: the number of 256 cycles in which a port offers no beat (`idle`), and in which
    /// it accepts none (`stall`). 256 means always. Returns `false`, and does nothing, for larger numbers.
    pub fn set_stress(&mut self, seed: u64, idle: u16, stall: u16) -> bool {
        // SAFETY: the handle is live and ours alone.
        unsafe {
            (self.functions().stress)(self.handle.as_ptr(), seed, u32::from(idle), u32::from(stall)) == OK
        }
    }

    /// Writes a waveform of the cycles `[from, to)`.
    ///
    /// # Errors
    /// `Wave` if the file cannot be written; `NoWaves` if the image has no waveforms, which leaves no file.
    pub fn set_wave(&mut self, path: &Path, from: u64, to: u64) -> Result<(), CardError> {
        let failed = |source| CardError::Wave { path: path.to_owned(), source };
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
        fs::File::create(path).map_err(failed)?;
        // SAFETY: the handle is live and ours alone; the name is a terminated string that is read inside the call.
        let result = unsafe { (self.functions().wave)(self.handle.as_ptr(), name.as_ptr(), from, to) };
        if result == OK {
            return Ok(());
        }
        let _ = fs::remove_file(path); // empty
        Err(CardError::NoWaves(self.library.path.clone()))
    }

    /// Ends the waveform early.
    pub fn end_wave(&mut self) {
        // SAFETY: the handle is live and ours alone.
        unsafe { (self.functions().wave_end)(self.handle.as_ptr()) }
    }

    /// The first assertion of the RTL that failed.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        // SAFETY: as in `cycles`; the string lives until the twin does, and is copied here.
        unsafe {
            let text = (self.functions().failure)(self.handle.as_ptr());
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        // SAFETY: the twin is returned once, and nothing borrows from it any more.
        unsafe { (self.functions().free)(self.handle.as_ptr()) }
    }
}

impl Registers for Twin {
    fn read(&mut self, address: u32) -> Result<u32, AccessError> {
        check(address, SPACE_BYTES)?;
        let mut value = 0;
        // SAFETY: the handle is live and ours alone; `value` is written only inside the call.
        let result = unsafe { (self.functions().read)(self.handle.as_ptr(), address, &raw mut value) };
        answer(result, "read", address).map(|()| value)
    }

    fn is_new(&self) -> bool {
        self.is_new
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), AccessError> {
        check(address, SPACE_BYTES)?;
        self.is_new = false;
        // SAFETY: the handle is live and ours alone.
        let result = unsafe { (self.functions().write)(self.handle.as_ptr(), address, value) };
        answer(result, "write", address)
    }

    fn write_all(&mut self, writes: &[(u32, u32)]) -> Result<(), AccessError> {
        writes.iter().try_for_each(|(address, _)| check(*address, SPACE_BYTES))?;
        self.is_new = false;
        let raw: Vec<RawWrite> =
            writes.iter().map(|(address, value)| RawWrite { address: *address, value: *value }).collect();
        let mut bad = 0;
        // SAFETY: the handle is live and ours alone; the writes are read, and `bad` is written, only inside the call.
        let result = unsafe {
            (self.functions().write_all)(self.handle.as_ptr(), raw.as_ptr(), raw.len(), &raw mut bad)
        };
        let address = writes.get(bad).map_or(SPACE_BYTES, |(address, _)| *address);
        answer(result, "write", address)
    }
}

fn answer(result: c_int, what: &'static str, address: u32) -> Result<(), AccessError> {
    match result {
        OK => Ok(()),
        REFUSED => Err(AccessError::Refused { what, address }),
        NO_ANSWER => Err(AccessError::NoAnswer { what, address }),
        _ => Err(AccessError::Address { address, end: SPACE_BYTES }),
    }
}
