// Package tributary holds the project's documents, so that the program can show
// them: see internal/site.
package tributary

import "embed"

// Documents are the Markdown pages and what they show, by their paths in the
// project. Pictures of the gallery stay outside: they weigh more than all words.
//
//go:embed CHANGELOG.md ARCHITECTURE.md llms.txt
//go:embed docs/*.md docs/*.svg docs/guide/*.md docs/countries/*.md docs/decisions/*.md
//go:embed docs/webhooks/README.md docs/webhooks/verify.* docs/webhooks/Verify.java docs/webhooks/go/main.go
var Documents embed.FS
