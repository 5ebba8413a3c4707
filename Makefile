SHELL := /bin/bash
.DEFAULT_GOAL := help
SWIFT ?= swift
SECONDS_A_TARGET ?= 120
KILLS ?= 200
SEED ?= 1
MINUTES ?= 10
export SWIFT

quiet := .ci/quiet
debug := $(SWIFT) build --build-tests
release := $(SWIFT) build -c release
binary := .build/release/skep
simulator := .build/release/skep-sim

.PHONY: help setup build release test lint format tidy sim soak mutants live torture fuzz bench coverage demo ci clean

help: ## shows this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: ## installs the Debian packages and checks each
	@.ci/setup

build: setup ## builds everything for debugging, tests included
	@$(quiet) build $(debug)

release: setup ## builds the programs with optimisation
	@$(quiet) release $(release)

# Suites that speak through sockets or keep real deadlines run apart from those that compute, which would
# starve them on few cores.
sockets = RelaySocketTests|RelayServerTests
# Simulations take what processor there is, in processes of their own.
simulations = SimulationTests
deadlines = SyncEngineTests\.(Resilience|Following|BlockedStore|AwkwardRelay)Tests
tests = timeout -k 10 600 $(SWIFT) test --skip-build --disable-xctest

test: build ## runs every test but those against foreign relays
	@$(quiet) test $(tests) --skip '$(sockets)|$(simulations)|SyncEngineTests|CommandTests'
	@$(quiet) test-simulations $(tests) --filter '$(simulations)'
	@$(quiet) test-sockets $(tests) --filter '$(sockets)'
	@$(quiet) test-engine $(tests) --filter SyncEngineTests --skip '$(deadlines)'
	@$(quiet) test-deadlines $(tests) --filter '$(deadlines)'
	@$(quiet) test-commands $(tests) --filter CommandTests

lint: ## checks the format of all Swift files, and that each mutant still fits the product
	@$(SWIFT) format lint --strict --parallel -r Package.swift Sources Tests Migrations Simulations && echo "lint: clean"
	@Simulations/Mutants/mutants.py --check

format: ## formats all Swift files
	@$(SWIFT) format -i --parallel -r Package.swift Sources Tests Migrations Simulations

tidy: build ## checks the import table, the banned words and the documents
	@$(quiet) tidy $(SWIFT) test --skip-build --disable-xctest --filter TidyTests

sim: release ## runs the kept simulation seeds
	@$(quiet) sim $(simulator) kept

soak: release ## runs every simulation with new seeds for MINUTES minutes on all cores
	@$(simulator) soak --minutes $(MINUTES)

mutants: setup ## breaks the product in each known way and shows what catches it
	@set -o pipefail; mkdir -p .logs; Simulations/Mutants/mutants.py | tee .logs/mutants.log

live: build release ## runs the suite against relays that nobody here wrote
	@SKEP_LIVE=1 SKEP_BIN=$(CURDIR)/$(binary) $(quiet) live \
	  $(SWIFT) test --skip-build --disable-xctest --no-parallel --filter LiveTests

torture: release ## kills the program KILLS times a relay while it writes, sends and receives OK
	@python=$$(Tests/Peers/setup.sh)/bin/python && for relay in nostr-relay local-relay; do \
	  $$python Tests/Peers/torture.py $(binary) $$relay $(KILLS) $(SEED) || exit 1; done

fuzz: setup ## runs each fuzz target for SECONDS_A_TARGET seconds
	@$(quiet) fuzz Tests/Fuzz/run.sh $(SECONDS_A_TARGET)

bench: release ## runs the benchmarks
	@$(binary) bench import rebuild page export size

coverage: setup ## measures which lines the tests reach
	@$(quiet) coverage $(SWIFT) test --disable-xctest --enable-code-coverage --scratch-path .build-coverage
	@Tests/Tools/coverage.sh

demo: release ## shows the main job: mirror, read offline, write, sync later
	@Tests/Demo/demo.sh $(binary)

ci: ## everything that must be green before a change lands
	@$(MAKE) --no-print-directory setup
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory tidy
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory live
	@$(MAKE) --no-print-directory sim
	@$(MAKE) --no-print-directory demo

clean: ## removes everything that was built
	rm -rf .build .build-* .logs
