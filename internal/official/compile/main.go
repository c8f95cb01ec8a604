// Command compile makes the compact forms of official structures from the
// official files, which it looks for at TRIBUTARY_SCHEMAS or at shared/schemas
// beside the repository. Run it at the root of the repository:
//
//	go run ./internal/official/compile [FOLDER…]
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"

	"tributary/internal/official/xsd"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folders []string) error {
	schemas := os.Getenv("TRIBUTARY_SCHEMAS")
	if schemas == "" {
		schemas = filepath.Join("..", "shared", "schemas")
	}
	const home = "internal/official"
	if len(folders) == 0 {
		manifests, err := filepath.Glob(filepath.Join(home, "*", "made.txt"))
		if err != nil {
			return err
		}
		for _, m := range manifests {
			folders = append(folders, filepath.Base(filepath.Dir(m)))
		}
	}
	for _, folder := range folders {
		forms, err := xsd.Manifest(filepath.Join(home, folder), schemas)
		if err != nil {
			return err
		}
		for _, f := range forms {
			if err := write(filepath.Join(home, folder, f.Name+".structure.gz"), f.Source); err != nil {
				return fmt.Errorf("%s/%s: %w", folder, f.Name, err)
			}
		}
	}
	return nil
}

func write(path string, source xsd.Source) error {
	text, err := xsd.Compile(source)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	out, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes, unpacked %d\n", path, packed.Len(), len(text))
	return os.WriteFile(path, packed.Bytes(), 0o644)
}
