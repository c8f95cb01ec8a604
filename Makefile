# make test is what every change must pass; scripts/setup installs what it needs.
export CGO_ENABLED ?= 0
# Property tests draw the same in every run, and not for long; make long lets them draw freely.
export RAPID_SEED ?= 1
export RAPID_CHECKS ?= 30
# Compilers and tests collect garbage less often: more memory, a tenth less time.
export GOGC ?= 300
GO ?= go
# Every run is a real one, with the places at which tests kill the program; scripts/check has vetted it. Without debug
# information the tests are compiled in nine tenths of the time and linked in half.
FLAGS := -p=3 -count=1 -tags=killpoints -vet=off -gcflags=all=-dwarf=false -ldflags=-w -parallel=8 -timeout=30m
# One private PostgreSQL for all packages of a run.
GOTEST := $(GO) run ./scripts/withpostgres $(GO) test
# Where goroutines meet most; make race looks everywhere.
RACED := ./internal/db ./internal/lease ./internal/filing ./internal/webhook ./internal/onboarding ./internal/turnstile

.PHONY: help run setup test check long race conformance bench crash simulate soak fuzz hostile ha outdated release

help: ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## run the demo
	$(GO) run ./cmd/tributary demo

setup: ## install what the tests need (PostgreSQL server binaries, Chromium and small tools, from the distribution)
	@scripts/setup

test: setup check ## everything, on SQLite and PostgreSQL; a small part of it under the race detector
	$(GOTEST) $(FLAGS) ./...
	$(GO) -C tools test $(FLAGS) ./...
	CGO_ENABLED=1 $(GOTEST) $(FLAGS) -race -short $(RACED)

check: ## formatting, vet, staticcheck, unchecked errors
	@scripts/check

long: export TRIBUTARY_LONG = 1
long: export RAPID_SEED = 0
long: export RAPID_CHECKS = 1000
long: setup race fuzz ## what is long by nature: 200 kills, 10,000 seeds, soak, overload, releases, every setting, all pages; all under the race detector; fuzzing
	$(GOTEST) $(FLAGS) -timeout=8h ./...

race: setup ## everything under the race detector
	CGO_ENABLED=1 $(GOTEST) $(FLAGS) -timeout=8h -race ./...

conformance: ## judged from outside: official rules on 1,000 documents, and programs of npm (axe, KSeF clients, writers of invoices, an OpenID provider, an S3 server), and promtool
	@scripts/setup conformance
	TRIBUTARY_CONFORMANCE=1000 $(GOTEST) $(FLAGS) ./internal/authority/ksef ./internal/console ./internal/country/en16931 ./internal/country/world ./internal/files
	TRIBUTARY_CONFORMANCE=1000 $(GOTEST) $(FLAGS) -run RandomSales ./internal/country/...
	TRIBUTARY_CONFORMANCE=1000 $(GOTEST) $(FLAGS) -run 'IdentityProvider|InABucket|OapiCodegen|Spectral|Newman|Promtool|PublicKSeFClient' ./cmd/tributary ./internal/server

bench: setup ## the benchmarks of the packages, one run each
	$(GO) test -run '^$$' -bench . -benchtime 1x ./internal/db ./internal/lease ./internal/schema ./internal/secret ./internal/account ./internal/webhook ./internal/document ./internal/files ./internal/country/... ./internal/filing ./internal/lookup

crash: setup ## kill runs against the real program (KILLS=200 SEED= COUNTRY= ENGINE= CRASH_LOG=)
	TRIBUTARY_CRASH_KILLS=$${KILLS:-200} TRIBUTARY_CRASH_SEED=$${SEED:-$$(date +%s)} TRIBUTARY_CRASH_COUNTRY=$(COUNTRY) TRIBUTARY_CRASH_LOG=$(abspath $(CRASH_LOG)) \
		$(GOTEST) $(FLAGS) -timeout=4h -run '^TestCrashRun$$/^$(ENGINE)' -v ./cmd/tributary

simulate: setup ## state machines under seeded faults in virtual time (SEEDS=10000)
	TRIBUTARY_SIM_SEEDS=$${SEEDS:-10000} $(GOTEST) $(FLAGS) -timeout=4h -run '^TestSimulation$$' ./internal/lease ./internal/onboarding ./internal/filing ./internal/webhook

soak: setup ## half load for ten minutes: memory, goroutines and files must stay flat (SOAK=10m)
	TRIBUTARY_SOAK=$${SOAK:-10m} $(GOTEST) $(FLAGS) -timeout=4h -run '^TestSoak$$' -v ./cmd/tributary

fuzz: ## every fuzz target for a while, led by coverage (TIME=30s TARGETS=country/pl)
	@scripts/fuzz $${TIME:-30s} $(TARGETS)

hostile: ## ten tenants who take what they can get, 512 MiB; what a quiet client waits for beside others (HOSTILE=1m AGAINST=program)
	TRIBUTARY_HOSTILE=$${HOSTILE:-1m} TRIBUTARY_HOSTILE_AGAINST=$(AGAINST) $(GO) test $(FLAGS) -timeout=1h -run '^(TestTenHostileTenants|TestAQuietClientBesideNeighbours)$$' -v ./cmd/tributary

ha: setup ## three PostgreSQL servers under Patroni lose their leader, two nodes go on (HA_KILLS=20 HA_SWITCHOVERS=5 HA_FREEZES=5 SEED=)
	@scripts/setup ha
	TRIBUTARY_HA=1 TRIBUTARY_ETCD=$(abspath .cache/etcd-server/usr/bin/etcd) TRIBUTARY_HA_KILLS=$(HA_KILLS) TRIBUTARY_HA_SWITCHOVERS=$(HA_SWITCHOVERS) TRIBUTARY_HA_FREEZES=$(HA_FREEZES) \
		TRIBUTARY_CRASH_SEED=$${SEED:-$$(date +%s)} $(GO) test $(FLAGS) -timeout=2h -run '^TestHighAvailability$$' -v ./cmd/tributary

outdated: ## direct dependencies with newer versions, and why some are held back; not part of the gate
	@scripts/outdated

release: ## static binaries into bin/ (RELEASE_KEY=FILE signs, RELEASE_TWICE=1 builds twice and compares)
	@scripts/release
