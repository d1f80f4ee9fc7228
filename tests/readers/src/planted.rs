//! Readers with a fault, to see that each kind of fault is found.

use crate::readers::{Read, Reader, Shape};

const fn planted(name: &'static str, start: fn() -> Read) -> Reader {
    Reader {
        name,
        samples: || vec![b"0123456789".repeat(20)],
        words: &["!"],
        start,
        returns_memory: true,
        memory_mib: 64,
        shapes: &[],
    }
}

/// Whether an input has what triggers the fault.
fn triggers(bytes: &[u8]) -> bool {
    bytes.contains(&b'!')
}

/// The readers with a fault: `panic`, `time`, `memory`, `leak` and `quadratic`.
pub const PLANTED: &[Reader] = &[
    planted("planted-panic", || {
        Box::new(|bytes| {
            assert!(!triggers(bytes), "planted");
            true
        })
    }),
    planted("planted-time", || {
        Box::new(|bytes| {
            while triggers(bytes) {
                std::hint::spin_loop();
            }
            true
        })
    }),
    planted("planted-memory", || {
        Box::new(|bytes| !vec![7_u8; if triggers(bytes) { 128 << 20 } else { 1 }].is_empty())
    }),
    planted("planted-leak", || {
        Box::new(|bytes| {
            if triggers(bytes) {
                std::mem::forget(bytes.to_vec());
            }
            true
        })
    }),
    // What the reader of pcapng did once: each block looks at all before it.
    Reader {
        shapes: &[Shape { name: "blocks", elements_max: 1 << 16, of: |count| vec![1; count] }],
        ..planted("planted-quadratic", || {
            Box::new(|bytes| {
                let sum = |end: usize| bytes[..end].iter().fold(0_u64, |sum, byte| sum + u64::from(*byte));
                (0..bytes.len()).map(sum).max().is_some()
            })
        })
    },
];
