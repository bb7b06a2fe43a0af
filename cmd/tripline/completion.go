package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown by --help.
func (*completionCmd) Help() string {
	return `Examples:

  source <(tripline completion bash)
  tripline completion zsh > "${fpath[1]}/_tripline"
  tripline completion fish > ~/.config/fish/completions/tripline.fish`
}

// Run prints the script. It is made of the command line's own description, so
// it needs no program at completion time.
func (c *completionCmd) Run(s streams, ctx *kong.Context) error {
	var b strings.Builder
	places := placesOf(ctx.Model.Node, "")
	switch c.Shell {
	case "bash":
		writeBash(&b, places)
	case "zsh":
		writeZsh(&b, places)
	default:
		writeFish(&b, places)
	}
	_, err := io.WriteString(s.out, b.String())
	return err
}

// place is a point on the command line: what may follow a row of commands.
type place struct {
	path     string // "fallback ls"
	commands []word // or what an argument may be, where that is one of a few
	flags    []flag
}

type word struct{ name, help string }

type flag struct {
	word
	short rune
	value bool // a value follows
}

// placesOf describes a command and those below it.
func placesOf(n *kong.Node, path string) []place {
	p := place{path: path}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			p.flags = append(p.flags, flag{word{f.Name, f.Help}, f.Short, !f.IsBool()})
		}
	}
	for _, a := range n.Positional {
		for _, name := range a.EnumSlice() {
			if name != "" {
				p.commands = append(p.commands, word{name, a.Help})
			}
		}
	}
	var below []place
	for _, child := range n.Children {
		if child.Hidden || child.Type != kong.CommandNode {
			continue
		}
		p.commands = append(p.commands, word{child.Name, child.Help})
		below = append(below, placesOf(child, strings.TrimSpace(path+" "+child.Name))...)
	}
	return append([]place{p}, below...)
}

// paths lists the paths in quotes, with a separator.
func paths(places []place, separator string) string {
	var list []string
	for _, p := range places {
		if p.path != "" {
			list = append(list, quote(p.path))
		}
	}
	return strings.Join(list, separator)
}

// quote makes one shell word of a text. All three shells take it.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// long lists the flags that a condition takes, with their dashes.
func (p place) long(takes func(flag) bool) []string {
	var list []string
	for _, f := range p.flags {
		if takes(f) {
			list = append(list, "--"+f.name)
			if f.short != 0 {
				list = append(list, "-"+string(f.short))
			}
		}
	}
	return list
}

func (p place) names() []string {
	var list []string
	for _, w := range p.commands {
		list = append(list, w.name)
	}
	return list
}

func writeBash(out io.Writer, places []place) {
	fmt.Fprintf(out, `# bash completion for tripline
_tripline() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at="" i commands="" flags="" values=""
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "${at:+$at }${COMP_WORDS[i]}" in
        %s) at="${at:+$at }${COMP_WORDS[i]}" ;;
        esac
    done
    case "$at" in
`, paths(places, "|"))
	for _, p := range places {
		fmt.Fprintf(out, "    %s) commands=%s flags=%s values=%s ;;\n", quote(p.path),
			quote(strings.Join(p.names(), " ")),
			quote(strings.Join(p.long(func(flag) bool { return true }), " ")),
			quote(strings.Join(p.long(func(f flag) bool { return f.value }), " ")))
	}
	fmt.Fprint(out, `    esac
    COMPREPLY=()
    case " $values " in
    *" $prev "*) return ;; # a value: file names, by default
    esac
    case "$cur" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -W "$commands" -- "$cur")) ;;
    esac
}
complete -o default -F _tripline tripline
`)
}

func writeZsh(out io.Writer, places []place) {
	fmt.Fprintf(out, `#compdef tripline
_tripline() {
    local at="" i
    local -a commands flags values
    for ((i = 2; i < CURRENT; i++)); do
        case "${at:+$at }${words[i]}" in
        %s) at="${at:+$at }${words[i]}" ;;
        esac
    done
    case "$at" in
`, paths(places, "|"))
	pairs := func(prefix string, words []word) string {
		var list []string
		for _, w := range words {
			list = append(list, quote(prefix+strings.ReplaceAll(w.name, ":", `\:`)+":"+w.help))
		}
		return strings.Join(list, " ")
	}
	for _, p := range places {
		var flags []word
		for _, f := range p.flags {
			flags = append(flags, f.word)
		}
		fmt.Fprintf(out, "    %s) commands=(%s) flags=(%s) values=(%s) ;;\n", quote(p.path),
			pairs("", p.commands), pairs("--", flags),
			strings.Join(p.long(func(f flag) bool { return f.value }), " "))
	}
	fmt.Fprint(out, `    esac
    if (( ${values[(Ie)${words[CURRENT-1]}]} )); then
        _files
    elif [[ $PREFIX == -* ]]; then
        _describe flag flags
    elif (( $#commands )); then
        _describe command commands
    else
        _files
    fi
}
if [[ $funcstack[1] == _tripline ]]; then _tripline "$@"; else compdef _tripline tripline; fi
`)
}

func writeFish(out io.Writer, places []place) {
	fmt.Fprintf(out, `# fish completion for tripline
function __tripline_at
    set -l paths %s
    set -l at ''
    for w in (commandline -opc)[2..-1]
        set -l next (string trim -- "$at $w")
        contains -- $next $paths; and set at $next
    end
    test "$at" = "$argv[1]"
end
`, paths(places, " "))
	for _, p := range places {
		when := quote("__tripline_at " + `"` + p.path + `"`)
		if len(p.commands) > 0 {
			fmt.Fprintf(out, "complete -c tripline -n %s -f\n", when)
		}
		for _, w := range p.commands {
			fmt.Fprintf(out, "complete -c tripline -n %s -a %s -d %s\n", when, w.name, quote(w.help))
		}
		for _, f := range p.flags {
			fmt.Fprintf(out, "complete -c tripline -n %s -l %s -d %s", when, f.name, quote(f.help))
			if f.short != 0 {
				fmt.Fprintf(out, " -s %c", f.short)
			}
			if f.value {
				fmt.Fprint(out, " -r")
			}
			fmt.Fprintln(out)
		}
	}
}
