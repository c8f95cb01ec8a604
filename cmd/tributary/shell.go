package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type helpCommand struct {
	Words []string `arg:"" optional:"" name:"command" help:"Command; default: list all."`
}

// Run explains a command.
func (h *helpCommand) Run(c *command) error {
	if code := run(c.ctx, append(h.Words, "--help"), c.streams); code != 0 {
		return fmt.Errorf("unknown command %s", strings.Join(h.Words, " "))
	}
	return nil
}

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// place is a command with what can follow it.
type place struct {
	path  string
	node  *kong.Node
	words []string // commands, then flags
}

// places walks the command line's own model, so that nothing has to be kept
// beside it.
func places() ([]place, error) {
	parser, err := newParser(&program{})
	if err != nil {
		return nil, err
	}
	var all []place
	var walk func(path string, n *kong.Node, above []*kong.Flag)
	walk = func(path string, n *kong.Node, above []*kong.Flag) {
		flags := append(above[:len(above):len(above)], n.Flags...)
		at := place{path: path, node: n}
		for _, child := range n.Children {
			at.words = append(at.words, child.Name)
		}
		for _, f := range flags {
			at.words = append(at.words, "--"+f.Name)
		}
		all = append(all, at)
		for _, child := range n.Children {
			walk(strings.TrimSpace(path+" "+child.Name), child, flags)
		}
	}
	walk("", parser.Model.Node, nil)
	return all, nil
}

// Run prints a script for the shell.
func (cmd *completionCommand) Run(c *command) error {
	all, err := places()
	if err != nil {
		return err
	}
	switch cmd.Shell {
	case "fish":
		completeFish(c.out, all)
	case "zsh":
		fmt.Fprintln(c.out, "#compdef tributary\nautoload -U +X bashcompinit && bashcompinit")
		completeBash(c.out, all)
	default:
		completeBash(c.out, all)
	}
	return nil
}

func completeBash(w io.Writer, all []place) {
	fmt.Fprintln(w, "# Completion of tributary: source <(tributary completion bash)\n_tributary_words() {\n  case \"$1\" in")
	for _, p := range all {
		fmt.Fprintf(w, "  %q) echo %q ;;\n", p.path, strings.Join(p.words, " "))
	}
	fmt.Fprintln(w, `  esac
}
_tributary() {
  local path="" word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in
    -*) ;;
    *) case " $(_tributary_words "$path") " in *" $word "*) path="${path:+$path }$word" ;; esac ;;
    esac
  done
  COMPREPLY=($(compgen -W "$(_tributary_words "$path")" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _tributary tributary`)
}

func completeFish(w io.Writer, all []place) {
	quote := func(text string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'" }
	fmt.Fprintln(w, `# Completion of tributary: tributary completion fish | source
function __tributary_at
  set -l path
  for word in (commandline -opc)[2..-1]
    string match -q -- '-*' $word; or set -a path $word
  end
  test "$path" = "$argv[1]"
end`)
	for _, p := range all {
		at := quote("__tributary_at " + quote(p.path))
		for _, child := range p.node.Children {
			fmt.Fprintf(w, "complete -c tributary -f -n %s -a %s -d %s\n", at, child.Name, quote(child.Help))
		}
		for _, f := range p.node.Flags {
			fmt.Fprintf(w, "complete -c tributary -n %s -l %s -d %s\n", at, f.Name, quote(f.Help))
		}
	}
}

type manCommand struct{}

// Run prints the manual page, tributary(1).
func (manCommand) Run(c *command) error {
	all, err := places()
	if err != nil {
		return err
	}
	roff := func(text string) string {
		text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
		if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
			text = `\&` + text
		}
		return text
	}
	fmt.Fprintf(c.out, ".TH TRIBUTARY 1 \"\" \"tributary %s\" \"User Commands\"\n.SH NAME\ntributary \\- transaction reporting and e\\-invoicing, self\\-hosted\n.SH SYNOPSIS\n.B tributary\n.I COMMAND\n[\\fIFLAG\\fR...]\n", roff(versionText()))
	fmt.Fprint(c.out, ".SH DESCRIPTION\nEvery flag is also an environment variable (\\-\\-listen is TRIBUTARY_LISTEN) and a key of a JSON file given by \\-\\-config.\n.SH COMMANDS\n")
	for _, p := range all {
		if len(p.node.Children) > 0 && p.path != "" {
			continue // its commands follow
		}
		if p.path != "" {
			fmt.Fprintf(c.out, ".SS tributary %s\n%s\n", roff(p.path), roff(p.node.Help))
		}
		for _, argument := range p.node.Positional {
			fmt.Fprintf(c.out, ".TP\n.I %s\n%s\n", roff(argument.Name), roff(argument.Help))
		}
		for _, f := range p.node.Flags {
			fmt.Fprintf(c.out, ".TP\n.B \\-\\-%s\n%s\n", roff(f.Name), roff(f.Help))
		}
	}
	fmt.Fprint(c.out, ".SH SEE ALSO\nThe service serves its documentation at /docs; tributary docs \\-\\-out DIR writes it as files.\n")
	return nil
}
