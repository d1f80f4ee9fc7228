# The only entry point. `make demo` and `make test` also install what they need on a fresh Debian machine.
SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:$(PATH)
.DEFAULT_GOAL := help
.PHONY: help demo demo-offline test test-full build programs install uninstall package package-test images synth synth-timing formal lab check generate bench fuzz clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## networks between real hosts on this machine, on a card and in software (needs root); ARGS="--networks 50 -o json", for example
	@scripts/setup build
	@scripts/demo-build
	@$(if $(filter 0,$(shell id -u)),,sudo) target/demo/hueplane demo $(ARGS)

demo-offline: programs ## the same planes with captures and tables from labs/; no root
	@scripts/demo-offline

test: ## everything that must pass; the last line is the count
	@scripts/setup test
	@scripts/test

test-full: ## the same with all runs of the card's logic, all images, all planted faults and long histories (hours; data folder)
	@scripts/setup test
	@scripts/test --full

programs:
	@scripts/setup build
	cargo build --release --locked -j2 -p hueplane -p hueplaned

build: programs ## target/release/hueplane and hueplaned, and the card's images default and kinds for any processor
	@scripts/images --portable --no-wave --out $(or $(CARGO_TARGET_DIR),target)/portable default kinds

install: ## installs the results of `make build` in PREFIX (/usr/local), below DESTDIR if given
	@scripts/install

uninstall: ## removes what `make install` installed, with the same PREFIX and DESTDIR
	@scripts/install --uninstall

package: build ## makes a Debian package, target/package/*.deb
	@scripts/package

package-test: package ## installs, upgrades, removes and purges the package in a separate root (needs root)
	@scripts/package-test --package "$$(ls -t $(or $(CARGO_TARGET_DIR),target)/package/*.deb | head -n 1)"

images: ## compiles the card's images into simulated twins, target/images/*.so; NAMES="tcam1 default" makes only these
	@scripts/setup build
	@scripts/images $(NAMES)

synth: ## the resources of the card's images, and which FPGAs they fit, into bench/results; NAMES="tcam1 default" prints only these
	@scripts/setup build
	@scripts/synth $(ARGS) $(NAMES)
	@scripts/synth --fit $(ARGS) $(NAMES)

synth-timing: ## the clock rates of whole cards and blocks in an ECP5, into bench/results (long)
	@scripts/setup build
	@scripts/synth --timing $(ARGS) $(NAMES)

check: ## checks format, lints, documentation, generated files, licences, crate order: before every commit
	@scripts/setup check
	@scripts/check

generate: ## rewrites the generated files
	scripts/regs
	cargo run -q -p hue-spec-codegen
	cargo run -q -p hueplane -- schema > target/schema.json && mv target/schema.json docs/reference/schema.json
	cargo run -q -p hueplane -- reference > target/cli.md && mv target/cli.md docs/reference/cli.md
	HUEPLANE_BLESS=1 cargo test -q --workspace --test hueplaned the_published >target/openapi.log || (cat target/openapi.log; false)

formal: ## proves properties of the card's logic, and that each proof can fail; NAMES="fifo arbiter" runs only these
	@scripts/setup build
	@scripts/formal $(NAMES)

lab: programs ## experiments on real tables (overlap, Conflict CAM, size in each layout), into bench/results; ARGS="--seed 7", for example
	@scripts/setup lab
	@scripts/lab $(ARGS)

bench: ## comparison with DPDK, Linux, Open vSwitch, into bench/results; ARGS="live-forwarding --quick", for example; all: 90 minutes (root)
	@scripts/setup bench
	@scripts/images default sram
	cd bench && cargo run --release --locked -j2 -- $(or $(ARGS),all)

fuzz: ## damaged inputs for every reader (SEED=7), then a minute of coverage-guided fuzzing of the header code, one of the planes, and one of PW-OSPF (nightly Rust, cargo-fuzz)
	@scripts/setup fuzz
	cargo run -q --locked -j2 --bin hue-readers -- fuzz --seed $(or $(SEED),1)
	cargo +nightly fuzz run wire -- -max_len=512 -max_total_time=60
	cargo +nightly fuzz run planes -- -max_len=512 -max_total_time=60
	cargo +nightly fuzz run pwospf -- -max_len=2048 -max_total_time=60
	cargo +nightly fuzz run ring -- -max_len=2048 -max_total_time=60

clean: ## removes all build results
	rm -rf target bench/target fuzz/target
