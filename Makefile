# make test is what CI runs; everything it needs is installed by scripts/setup.
SHELL := /bin/bash
export CGO_ENABLED ?= 0
# As releases are built: the tests that build one, and a clone in another folder, find every package compiled.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(GOFLAGS))
SCHEMAS ?= $(abspath ../shared/schemas)
GO ?= go
# Packages in which goroutines meet are tested with the race detector. It makes everything else several times as slow
# and finds nothing there: plain functions, and tests that start the program itself. Of these, those that load the
# running program, and the store of documents and their making side by side, are repeated under it.
PLAIN := ^tributary(/docs/.*|/packaging/.*|/scripts/.*|/cmd/.*|/internal/(bench|console|doctor|site|strictjson|web|country/.*|(document|official|transaction|xmltree)(/.*)?))?$$
# SQLite is C translated to Go and keeps its memory outside Go's heap, where the race detector does not look:
# instrumented it made tests four times as slow. Its Go driver and everything of ours is instrumented.
RACE := -race $(foreach p,sqlite/lib libc memory,-gcflags=modernc.org/$(p)=-race=false)
# Plain functions of others, on what one caller hands them: ciphers, hashes, images, fonts, compression, Markdown, tax tables.
# make race looks into them, make test does not.
CALM := compress/... crypto/internal/fips140/... image/... math/big regexp/... golang.org/x/crypto/... golang.org/x/image/... \
	golang.org/x/net/html/... golang.org/x/text/... software.sslmate.com/... rsc.io/qr/... $(addprefix github.com/,go-text/... \
	invopop/gobl/... klauspost/compress/... santhosh-tekuri/... yuin/goldmark/...)
# Thousands of bodies one after the other, bodies as large as they may be, and what a delivery holds in memory: without the race detector, which
# makes them slow or large, and more of them for it.
BODIES := ^Test(HostileText|HostileBodies|MutatedBodies|BodiesAreAccepted|LargeBodiesThatHang|BatchesAreBoundedByBytes|APageIsBoundedByBytes|NoReceiverMakesADelivery)
# Who reads what strangers send and needs no database: make test fuzzes these. Of the other targets it runs the corpora; linking each
# of their packages once more would take two minutes of processor time. make fuzz mutates all.
READERS := ^(docs/webhooks|internal/(client|country|document|guard|official|secret|strictjson|transaction|web|xmltree))(/| )
TEST := TRIBUTARY_TEST_POSTGRES=required TRIBUTARY_TEST_OIDC=required TRIBUTARY_SCHEMAS=$${TRIBUTARY_SCHEMAS:-$(SCHEMAS)} $(GO) test -tags=killpoints -vet=off -timeout 60m
# The race detector keeps a program that ends for a second, in case that another thread is about to report: a moment will do.
TEST_RACE := GORACE=atexit_sleep_ms=50 CGO_ENABLED=1 $(TEST) $(RACE) $(foreach p,$(CALM),-gcflags=$(p)=-race=false)

.PHONY: help run test test-plain test-race long check bench bodies conformance crash ha hostile nodes pages race soak simulate fuzz release setup

help: ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## run the demo
	$(GO) run ./cmd/tributary demo

setup: ## install what the tests need (PostgreSQL server binaries and small tools, from the distribution)
	@scripts/setup

check: ## formatting, vet, staticcheck, unchecked errors
	@scripts/check

# Side by side: where tests of one half wait (for a server to start, a lease to end, a browser), the other half has the processors.
test: setup ## everything, on SQLite and PostgreSQL; short forms of what make long does
	@$(MAKE) --no-print-directory -j2 test-plain test-race

test-plain: check
	$(TEST) -parallel 4 $$($(GO) list ./... | grep -E '$(PLAIN)')
	TRIBUTARY_SIM_SEEDS=200 TRIBUTARY_HANDLED_BODIES=100000 $(TEST) -count=1 -run '^TestSimulation$$|$(BODIES)' ./internal/db ./internal/onboarding ./internal/filing ./internal/ledger ./internal/server ./internal/webhook
	GOFLAGS='$(GOFLAGS) -tags=killpoints' scripts/fuzz quick '$(READERS)'

test-race:
	$(TEST_RACE) -skip '$(BODIES)' $$($(GO) list ./... | grep -vE '$(PLAIN)')
	$(TEST_RACE) -run 'Keep|Attach|Sweep|Swept|Pack|AtOnce' ./internal/document
	$(TEST_RACE) -run '^(TestSoak|TestARunningProgramSignsAsTheClientIsConfigured)$$' ./cmd/tributary

race: setup ## everything under the race detector
	CGO_ENABLED=1 $(TEST) $(RACE) -timeout 4h ./...

pages: setup ## every page of console and documentation, in light and dark, wide and narrow, read by axe
	TRIBUTARY_PAGES=all $(TEST) -count=1 -run Browser\|OperatorsDay ./internal/console

long: export TRIBUTARY_LONG = 1
long: simulate crash soak fuzz race pages ## what is long by nature: 10,000 seeds, 200 kills per engine, ten minutes of half load, fuzzing led by coverage, all under the race detector, all pages

bench: setup ## the benchmarks of the packages, one run each
	TRIBUTARY_TEST_POSTGRES=required $(GO) test -run '^$$' -bench . -benchtime 1x ./internal/db ./internal/secret ./internal/account ./internal/webhook ./internal/document ./internal/country/... ./internal/filing ./internal/lookup

conformance: setup ## documents against official schemas and tools
	TRIBUTARY_CONFORMANCE=1000 TRIBUTARY_SCHEMAS=$${TRIBUTARY_SCHEMAS:-$(SCHEMAS)} $(GO) test -count=1 ./internal/xmltree/... ./internal/official/... ./internal/country/...

hostile: ## ten tenants who take what they can get, 512 MiB (HOSTILE=1m)
	TRIBUTARY_HOSTILE=$${HOSTILE:-1m} $(GO) test -count=1 -timeout 1h -run TestTenHostileTenants -v ./cmd/tributary

bodies: ## mutated bodies through the API's handler; make test sends 100,000 (BODIES=1000000)
	TRIBUTARY_HANDLED_BODIES=$${BODIES:-1000000} $(GO) test -count=1 -timeout 4h -run '^TestMutatedBodiesAreJudgedInProcess$$' -v ./internal/server

crash: setup ## kill runs against the real program (KILLS=200 SEED= COUNTRY= ENGINE= CRASH_LOG=)
	TRIBUTARY_TEST_POSTGRES=required TRIBUTARY_CRASH_KILLS=$${KILLS:-200} TRIBUTARY_CRASH_SEED=$(SEED) TRIBUTARY_CRASH_COUNTRY=$(COUNTRY) TRIBUTARY_CRASH_LOG=$(abspath $(CRASH_LOG)) \
		$(GO) test -count=1 -tags killpoints -timeout 4h -run '^TestCrashRun$$/^$(ENGINE)' -v ./cmd/tributary

nodes: setup ## two nodes on one PostgreSQL settle 1.8 times what one does; for a quiet machine
	TRIBUTARY_TEST_POSTGRES=required TRIBUTARY_NODES=1 $(GO) test -count=1 -timeout 1h -run TestASecondNodeDoublesWhatIsUnderWay -v ./cmd/tributary

ha: setup ## three PostgreSQL servers under Patroni lose their leader, two nodes go on (HA_KILLS=20 HA_SWITCHOVERS=5 HA_FREEZES=5)
	@scripts/setup ha
	TRIBUTARY_TEST_POSTGRES=required TRIBUTARY_HA=1 TRIBUTARY_ETCD=$(abspath .cache/etcd/usr/bin/etcd) TRIBUTARY_HA_KILLS=$(HA_KILLS) TRIBUTARY_HA_SWITCHOVERS=$(HA_SWITCHOVERS) TRIBUTARY_HA_FREEZES=$(HA_FREEZES) \
		TRIBUTARY_CRASH_SEED=$(SEED) $(GO) test -count=1 -tags killpoints -timeout 2h -run '^TestHighAvailability$$' -v ./cmd/tributary

soak: setup ## half load for ten minutes: memory, goroutines and files must stay flat (SOAK=10m)
	TRIBUTARY_SOAK=$${SOAK:-10m} $(GO) test -count=1 -timeout 4h -run TestSoak -v ./cmd/tributary

simulate: setup ## state machines under seeded faults in virtual time (SEEDS=10000)
	TRIBUTARY_SIM_SEEDS=$${SEEDS:-10000} $(GO) test -count=1 -timeout 4h -run '^TestSimulation$$' ./internal/db ./internal/onboarding ./internal/filing ./internal/webhook

fuzz: ## every fuzz target for a while, led by coverage (TIME=30s TARGETS=country/pl)
	@scripts/fuzz $${TIME:-30s} $(TARGETS)

release: ## static binaries into bin/ (RELEASE_KEY=FILE signs, RELEASE_TWICE=1 builds twice and compares)
	@scripts/release
