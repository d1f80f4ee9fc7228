//! The daemon in this process: its API, its node, its store.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod api_http;
mod api_malformed;
mod api_metrics;
mod api_openapi;
mod api_streams;
mod api_tenant;
mod api_tls;
mod history;
mod node;
mod quota;
mod store;
mod store_crash;
mod world;
