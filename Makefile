# The tasks of this repository. `make help` prints the targets with the text after their `##`.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: help setup setup-kafka libraries build demo demo-kafka failover test simulate mutants test-package test-kafka test-conformance test-deploy faults soak bench bench-gateway bench-kafka bench-sdk bench-attack soak-attack docs lint fuzz clean

# The pkg-config names of the C libraries under Sources/Libraries, and the line that installs them on Debian.
# README.md shows the same line; the suite Tidy checks that the two agree.
LIBRARIES := sqlite3 libuv libssl zlib libxxhash rdkafka
APT_LINE := apt-get install -y --no-install-recommends pkg-config librdkafka-dev libsqlite3-dev libssl-dev libuv1-dev libxxhash-dev zlib1g-dev

REEL := .build/release/reel
HAVE_LIBRARIES := command -v pkg-config >/dev/null && pkg-config --exists $(LIBRARIES)

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## Install the C libraries that are missing (Debian, root or sudo)
	@command -v swift >/dev/null || { echo "no swift found: Reel needs Swift 6.2 or newer, see https://www.swift.org/install"; exit 1; }
	@if ! { $(HAVE_LIBRARIES); }; then \
		root=; if [ "$$(id -u)" != 0 ]; then root=sudo; fi; \
		command -v apt-get >/dev/null || { $(MAKE) --no-print-directory libraries; exit 1; }; \
		$$root apt-get update -q && $$root env DEBIAN_FRONTEND=noninteractive $(APT_LINE); \
	fi

setup-kafka: ## Install what test-kafka needs besides Kafka: Java 17, kcat, Python's confluent-kafka
	@mkdir -p .build
	@Tests/Kafka/setup

# Fails if a library is missing, and prints the line that installs it.
libraries:
	@{ $(HAVE_LIBRARIES); } || { echo "a C library is missing ($(LIBRARIES) are needed); run: $(APT_LINE)"; exit 1; }

build: libraries ## Build the release binary, .build/release/reel
	swift build -c release --static-swift-stdlib --product reel
	@if commit=$$(git rev-parse HEAD 2>/dev/null); then \
		[ -z "$$(git status --porcelain Sources Package.swift)" ] || commit=$$commit-dirty; \
		deploy/stamp $(REEL) "$$commit"; \
	fi

demo: setup build ## Run a whole cluster on this machine; takes a few seconds after the build
	@$(REEL) demo

demo-kafka: setup build ## Run the demo on three Kafka brokers and kill one of them: KAFKA_HOME=FOLDER
	@$(REEL) demo --apache-kafka "$${KAFKA_HOME:?names no Kafka: a folder with libs/*.jar, as in the archive from kafka.apache.org}"

failover: setup build ## Kill and hang each kind of node of a cluster under load, and run the checker
	@deploy/local/up deploy/local/failover

# Without optimisation, because an optimised build takes longer than the tests.
# Only test-kafka uses a real Kafka.
test: export KAFKA_HOME :=
test: export REEL_KAFKA :=
test: setup ## Build and run all tests (REEL_EFFORT=10 for ten times the random cases, REEL_SEED to repeat one)
	@Tests/run

simulate: setup ## Run clients, gateways and a log in virtual time with faults: SEEDS=10000, or SEED=n for one
	@Tests/simulate

mutants: setup ## Break a copy of the product in some forty ways, and show which check finds each: MUTANT=NAME for one
	@Tests/Mutants/run

test-package: setup build ## Use the package as an app does, from a clean clone: examples, the tutorial, the guides
	@Tests/Package/run

test-kafka: setup ## Run the tests that need a real Kafka, given by KAFKA_HOME or REEL_KAFKA
	@Tests/Kafka/run

test-conformance: setup build ## Test nodes with independent tools and clients (ONLY=sockets for one, ALLOW_MISSING=1 to skip missing tools)
	@Tests/Conformance/run $(ONLY)

test-deploy: build ## Run the image's final stage in a minimal Debian, without Docker (root, debootstrap)
	@Tests/Image/run

faults: setup build ## Inject each fault while clients publish, and run the checker: KAFKA_HOME=FOLDER for brokers too
	swift build -c release --static-swift-stdlib --product reel-faults
	@.build/release/reel-faults

soak: build ## Break a local cluster under load for MINUTES=60, from SEED=n on; KAFKA_HOME=FOLDER for real brokers
	@[[ "$${MINUTES:-60}" =~ ^[1-9][0-9]*$$ ]] \
		|| { echo "MINUTES is \`$$MINUTES\`; expected is a whole number of minutes from 1 on" >&2; exit 2; }
	@$(REEL) chaos --seconds $$(($${MINUTES:-60} * 60)) $${SEED:+--seed "$$SEED"} $${KAFKA_HOME:+--apache-kafka "$$KAFKA_HOME"}

bench: setup build ## Run the benchmarks, each next to a peer or a plain C baseline, in under six minutes
	swift build -c release --static-swift-stdlib --product reel-bench
	@.build/release/reel-bench

bench-gateway: setup build ## Measure a gateway with many clients, next to NATS and Redis, in about seven minutes
	swift build -c release --static-swift-stdlib --product reel-bench
	@.build/release/reel-bench gateway

bench-kafka: setup build ## Measure on three real brokers (KAFKA_HOME), next to librdkafka alone, in about ten minutes
	swift build -c release --static-swift-stdlib --product reel-bench
	@.build/release/reel-bench kafka

bench-sdk: setup build ## Measure the device SDK and a large stream on a node, next to bare SQLite, in about ten minutes
	swift build -c release --static-swift-stdlib --product reel-bench
	@.build/release/reel-bench sdk snapshot-large-stream

bench-attack: build ## Measure how attacks on a node affect a good client, in about three minutes (ONLY=waits for one)
	@python3 Tests/Attack/attack.py .build/release/reel $(ONLY)

soak-attack: build ## Run all attacks at once on a node for MINUTES=10, and watch its memory and descriptors
	@python3 Tests/Attack/attack.py .build/release/reel all $${MINUTES:-10}

docs: setup ## Build the reference of the SDK with DocC, without warnings
	@docs/build-reference

lint: setup ## Check the formatter's rules and those of the repository (the suite Tidy)
	swift format lint --strict --recursive --parallel Sources Tests Package.swift
	swift test --disable-xctest --filter '^TidyTests\.'

fuzz: setup ## Fuzz each decoder for 60 s with libFuzzer (FUZZ_SECONDS=n for longer)
	@Tests/Fuzz/run "$${FUZZ_SECONDS:-60}"

clean: ## Remove the build folder
	rm -rf .build
