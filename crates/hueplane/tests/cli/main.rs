//! Tests of the command line, by running it.

#![allow(clippy::unwrap_used)] // a test helper may panic

mod captures;
mod card;
mod certs;
mod demo;
mod documents;
mod floods;
mod lab;
mod lab_tables;
mod labs;
mod live;
mod manual;
mod model;
mod new;
mod plan;
mod run;
mod run_random;
mod support;
mod table;
mod table_random;
mod topology;
mod trace;
mod tunnels;
/// The daemon of the API tests.
#[path = "../../../hueplaned/tests/hueplaned/world.rs"]
mod world;
