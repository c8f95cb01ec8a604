// What checks and packages the product, and is no part of it: a module of its own,
// so that the product's list of dependencies is the product's.
module tributary/tools

go 1.26.0

require (
	github.com/google/licensecheck v0.3.1
	github.com/google/uuid v1.6.0
	github.com/kisielk/errcheck v1.30.0
	golang.org/x/tools v0.52.0
)

require (
	github.com/BurntSushi/toml v1.4.1-0.20240526193622-a339e1f7089c // indirect
	golang.org/x/exp/typeparams v0.0.0-20231108232855-2478ac86f678 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	honnef.co/go/tools v0.8.2 // indirect
)

tool (
	honnef.co/go/tools/cmd/staticcheck
	tributary/tools/vet
)
