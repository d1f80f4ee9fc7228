//! Our side of the lookups: a reader's batch lookup in the shared store of all networks.

use std::cell::RefCell;
use std::rc::Rc;

use hue_tables::{Change, Dag, Key, Limits, NextHop, Reader, TableError};

use crate::engine::{LookupEngine, Memory, Queries, vid};
use crate::rib::Table;

/// Batch sizes that are measured: one burst, and several bursts, as a plane gathers them.
pub const BATCHES: [usize; 2] = [64, 256];
/// Changes of one `apply`.
const CHANGES: usize = 4096;

/// The store of several networks, and its reader.
pub struct Ours {
    reader: Rc<RefCell<Reader>>,
    memory: Memory,
    batch: usize,
}

/// A store with a network for each table, network n under id n+1.
///
/// # Errors
/// When the table is full.
pub fn store<K: Key>(tables: &[Table<K>]) -> Result<Dag, TableError> {
    let mut dag = Dag::new(Limits::default())?;
    for (net, table) in tables.iter().enumerate() {
        let vid = vid(net as u16);
        dag.add_network::<K>(vid)?;
        let changes: Vec<Change<K>> = table.routes().map(|(prefix, hop)| (prefix, Some(hop))).collect();
        changes.chunks(CHANGES).try_for_each(|changes| dag.apply(vid, changes))?;
    }
    Ok(dag)
}

/// Engines over such a store, one for each of [`BATCHES`].
///
/// # Errors
/// As [`store`].
pub fn engines<K: Key>(tables: &[Table<K>]) -> Result<Vec<Ours>, TableError> {
    let dag = store(tables)?;
    let image = dag.bytes_used();
    let memory = Memory { lookup_bytes: image, total_bytes: image + dag.updater_bytes() };
    // The image lives as long as a reader does; the updater's memory is counted and given back.
    let reader = Rc::new(RefCell::new(dag.reader()?));
    Ok(BATCHES.map(|batch| Ours { reader: Rc::clone(&reader), memory, batch }).into())
}

impl<K: Key> LookupEngine<K> for Ours {
    fn name(&self) -> String {
        format!("hueplane dag64 batch {}", self.batch)
    }

    fn memory(&self) -> Memory {
        self.memory
    }

    fn run(&self, queries: &Queries<K>) {
        let mut reader = self.reader.borrow_mut();
        let mut out = vec![NextHop::NONE_WORD; self.batch];
        let n = queries.len();
        for (vids, keys) in queries.vids[..n].chunks(self.batch).zip(queries.keys[..n].chunks(self.batch)) {
            // Pinned for each batch, as a plane does.
            reader.pin().lookup_batch(vids, keys, &mut out);
            std::hint::black_box(&mut out);
        }
    }

    fn answers(&self, queries: &Queries<K>) -> Vec<u16> {
        let mut reader = self.reader.borrow_mut();
        let n = queries.len();
        let mut out = vec![0; n];
        let streams = queries.vids[..n].chunks(self.batch).zip(queries.keys[..n].chunks(self.batch));
        for ((vids, keys), out) in streams.zip(out.chunks_mut(self.batch)) {
            reader.pin().lookup_batch(vids, keys, out);
        }
        out
    }
}
