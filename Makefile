# What can be done here. `make help` prints the targets with the line behind their `##`.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: help setup setup-kafka libraries build demo demo-kafka failover test simulate mutants test-kafka test-conformance test-deploy faults soak bench bench-gateway bench-kafka bench-attack soak-attack lint fuzz clean

# The C libraries under Sources/Libraries, as pkg-config names them, and the one line that installs them on Debian.
# README.md shows the same line; the suite Tidy holds the two together.
LIBRARIES := sqlite3 libuv libssl zlib libxxhash rdkafka
APT_LINE := apt-get install -y --no-install-recommends pkg-config librdkafka-dev libsqlite3-dev libssl-dev libuv1-dev libxxhash-dev zlib1g-dev

REEL := .build/release/reel
HAVE_LIBRARIES := command -v pkg-config >/dev/null && pkg-config --exists $(LIBRARIES)

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## Install what is missing of the C libraries (Debian, root or sudo)
	@command -v swift >/dev/null || { echo "no swift found: Reel needs Swift 6.2 or newer, see https://www.swift.org/install"; exit 1; }
	@if ! { $(HAVE_LIBRARIES); }; then \
		root=; if [ "$$(id -u)" != 0 ]; then root=sudo; fi; \
		command -v apt-get >/dev/null || { $(MAKE) --no-print-directory libraries; exit 1; }; \
		$$root apt-get update -q && $$root env DEBIAN_FRONTEND=noninteractive $(APT_LINE); \
	fi

setup-kafka: ## Install what test-kafka uses besides a Kafka: Java 17, kcat, Python's confluent-kafka
	@mkdir -p .build
	@Tests/Kafka/setup

# Stops where a library is missing, and says the line that helps.
libraries:
	@{ $(HAVE_LIBRARIES); } || { echo "a C library is missing ($(LIBRARIES) are needed); run: $(APT_LINE)"; exit 1; }

build: libraries ## Build the release binary, .build/release/reel
	swift build -c release --static-swift-stdlib --product reel
	@if commit=$$(git rev-parse HEAD 2>/dev/null); then \
		[ -z "$$(git status --porcelain Sources Package.swift)" ] || commit=$$commit-dirty; \
		deploy/stamp $(REEL) "$$commit"; \
	fi

demo: setup build ## Watch it work: a whole cluster on this machine, in a few seconds once it is built
	@$(REEL) demo

demo-kafka: setup build ## The same on three Kafka brokers, one of which is killed: KAFKA_HOME=FOLDER
	@$(REEL) demo --apache-kafka "$${KAFKA_HOME:?names no Kafka: a folder with libs/*.jar, as in the archive from kafka.apache.org}"

failover: setup build ## Kill and hang each kind of node of a whole cluster under load, and let the judge speak
	@deploy/local/up deploy/local/failover

# These keep all cores busy; at the same time, tests that speak through sockets would miss their deadlines.
PURE_TESTS := '^(ReelCoreTests|ReelCheckTests|TidyTests)[.]'
SIMULATION := '^SimulationTests[.]'

# Not optimised: that takes longer to build than the tests take to run.
# A real Kafka is for test-kafka.
test: export KAFKA_HOME :=
test: export REEL_KAFKA :=
test: setup ## Build and run all tests (REEL_EFFORT=10 for ten times the random cases, REEL_SEED to repeat one)
	@rm -f .build/tests.tally
	@Tests/run --filter $(PURE_TESTS)
	@SWIFT_DETERMINISTIC_HASHING=1 Tests/run --filter $(SIMULATION)
	@Tests/run --skip $(PURE_TESTS) --skip $(SIMULATION)
	@awk '{ ran += $$1; skipped += $$4 } END { print "in all " ran " tests ran, " skipped " were skipped" }' .build/tests.tally

simulate: setup ## Clients, gateways and a log in virtual time while all goes wrong: SEEDS=10000, or SEED=n to see one
	@Tests/simulate

mutants: setup ## Break a copy of the product in two dozen ways, and show which check sees each: MUTANT=NAME for one
	@Tests/Mutants/run

test-kafka: setup ## Run the tests that need a real Kafka, which KAFKA_HOME or REEL_KAFKA names
	@Tests/Kafka/run

test-conformance: setup build ## Hold nodes against tools and clients that others have written (ONLY=sockets for one of them, ALLOW_MISSING=1 without what is not installed)
	@Tests/Conformance/run $(ONLY)

test-deploy: build ## Run the image's final stage in a bare Debian, without Docker (root, debootstrap)
	@Tests/Image/run

faults: setup build ## Break what can be broken while clients publish, and judge each: KAFKA_HOME=FOLDER for brokers too
	swift build -c release --static-swift-stdlib --product reel-faults
	@.build/release/reel-faults

soak: build ## Break a local cluster under load for MINUTES=60, from SEED=n on; on real brokers where KAFKA_HOME names them
	@[[ "$${MINUTES:-60}" =~ ^[1-9][0-9]*$$ ]] \
		|| { echo "MINUTES is \`$$MINUTES\`; expected is a whole number of minutes from 1 on" >&2; exit 2; }
	@$(REEL) chaos --seconds $$(($${MINUTES:-60} * 60)) $${SEED:+--seed "$$SEED"} $${KAFKA_HOME:+--apache-kafka "$$KAFKA_HOME"}

bench: setup build ## Measure, beside the peer or the bare floor of each figure, in under six minutes
	swift build -c release --static-swift-stdlib --product reel-bench
	@.build/release/reel-bench

bench-gateway: setup build ## Measure a gateway with many clients, beside NATS and Redis, in about seven minutes
	swift build -c release --static-swift-stdlib --product reel-bench
	@.build/release/reel-bench gateway

bench-kafka: setup build ## Measure on three real brokers (KAFKA_HOME), beside librdkafka alone, in about ten minutes
	swift build -c release --static-swift-stdlib --product reel-bench
	@.build/release/reel-bench kafka

bench-attack: build ## Measure what a good client notices of attacks on a node, in about three minutes (ONLY=waits for one)
	@python3 Tests/Attack/attack.py .build/release/reel $(ONLY)

soak-attack: build ## Run all attacks at once on a node for MINUTES=10, and watch its memory and descriptors
	@python3 Tests/Attack/attack.py .build/release/reel all $${MINUTES:-10}

lint: setup ## The formatter's rules and the house's own (the suite Tidy)
	swift format lint --strict --recursive --parallel Sources Tests Package.swift
	swift test --disable-xctest --filter '^TidyTests\.'

fuzz: setup ## Fuzz each decoder for 60 s with libFuzzer (FUZZ_SECONDS=n for longer)
	@Tests/Fuzz/run "$${FUZZ_SECONDS:-60}"

clean: ## Remove what was built
	rm -rf .build
