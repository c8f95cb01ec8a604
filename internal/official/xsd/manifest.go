package xsd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Form is one compact form that a manifest asks for.
type Form struct {
	Name   string
	Source Source
}

// Manifest reads the file made.txt of a folder of compact forms. Its lines are
//
//	# a comment
//	from FOLDER          below the official files; else that of the folder's name
//	map BEGINNING PATH   a file of the folder stands for an address
//	NAME FILE…           a form and the files it is made of
func Manifest(folder, schemas string) ([]Form, error) {
	text, err := os.ReadFile(filepath.Join(folder, "made.txt"))
	if err != nil {
		return nil, err
	}
	from := filepath.Join(schemas, filepath.Base(folder))
	addresses := map[string]string{}
	var forms []Form
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "from" && len(words) == 2:
			from = filepath.Join(schemas, filepath.FromSlash(words[1]))
		case words[0] == "map" && len(words) == 3:
			addresses[words[1]] = filepath.Join(from, filepath.FromSlash(words[2])) + string(filepath.Separator)
		case len(words) >= 2:
			f := Form{Name: words[0], Source: Source{Map: addresses}}
			for _, file := range words[1:] {
				f.Source.Files = append(f.Source.Files, filepath.Join(from, filepath.FromSlash(file)))
			}
			forms = append(forms, f)
		default:
			return nil, fmt.Errorf("reading %s: %q says nothing", filepath.Join(folder, "made.txt"), line)
		}
	}
	return forms, nil
}
