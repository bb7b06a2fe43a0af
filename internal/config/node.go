package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// kind is what a YAML value is, in the words of our messages.
type kind string

const (
	isText   kind = "text"
	isNumber kind = "a number"
	isBool   kind = "true or false"
	isNull   kind = "nothing"
	isList   kind = "a list"
	isMap    kind = "a map"
)

// node is a YAML value with its place; aliases and merges are resolved.
type node struct {
	kind    kind
	text    string // of a scalar, as it counts
	line    int
	column  int
	items   []*node // of a list
	entries []entry // of a map
	flow    bool    // written in braces
}

type entry struct {
	key          string
	line, column int
	value        *node
	merged       bool // came in by <<
}

// maxNodes bounds what aliases may blow a file up to.
const maxNodes = 200_000

// reader turns the parser's tree into nodes.
type reader struct {
	src     *source
	anchors map[string]*node
	count   int
}

// parseYAML reads the one document of a file. What is wrong goes to src; nil
// means that nothing can be made of the file.
func parseYAML(src *source) *node {
	file, err := parser.ParseBytes(src.data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		src.syntax(err)
		return nil
	}
	r := &reader{src: src, anchors: map[string]*node{}}
	var root *node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		n := r.read(doc.Body)
		if root != nil {
			src.addAt(n.line, n.column, "", "a second document starts here: one file is one configuration; remove the line ---")
			break
		}
		root = n
	}
	if root == nil {
		root = &node{kind: isNull, line: 1, column: 1}
	}
	return root
}

func (s *source) syntax(err error) {
	type located interface {
		GetToken() *token.Token
		GetMessage() string
	}
	var at located
	if !errors.As(err, &at) || at.GetToken() == nil {
		s.addAt(0, 0, "", "not valid YAML: "+err.Error())
		return
	}
	p := at.GetToken().Position
	msg := "not valid YAML: " + at.GetMessage()
	if strings.Contains(msg, `character '	'`) {
		msg = "a tab can't indent YAML: use spaces"
	}
	s.addAt(p.Line, p.Column, "", msg)
}

func (r *reader) read(n ast.Node) *node {
	pos := n.GetToken().Position
	out := &node{kind: isNull, line: pos.Line, column: pos.Column}
	if r.count++; r.count > maxNodes {
		if r.count == maxNodes+1 {
			r.src.addAt(out.line, out.column, "", "the file grows too large when its aliases are filled in")
		}
		return out
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		out.flow = n.IsFlowStyle
		r.readMap(n.Values, out)
	case *ast.MappingValueNode:
		r.readMap([]*ast.MappingValueNode{n}, out)
	case *ast.SequenceNode:
		out.kind = isList
		for _, v := range n.Values {
			out.items = append(out.items, r.read(v))
		}
	case *ast.AnchorNode:
		out = r.read(n.Value)
		r.anchors[n.Name.GetToken().Value] = out
	case *ast.AliasNode:
		return r.alias(n, out)
	case *ast.TagNode:
		inner := r.read(n.Value)
		if n.GetToken().Value == "!!str" {
			inner.kind = isText
		}
		return inner
	case *ast.LiteralNode:
		out.kind, out.text = isText, n.Value.Value
	case *ast.StringNode:
		out.kind, out.text = isText, n.Value
	case *ast.BoolNode:
		out.kind, out.text = isBool, fmt.Sprint(n.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.kind, out.text = isNumber, n.GetToken().Value
	case *ast.NullNode:
	default:
		r.src.addAt(out.line, out.column, "", "this form of YAML isn't understood here: use plain keys, lists and values")
	}
	return out
}

// alias is a copy of what the anchor names, at the alias' own place.
func (r *reader) alias(n *ast.AliasNode, out *node) *node {
	name := n.Value.GetToken().Value
	target, ok := r.anchors[name]
	if !ok {
		r.src.addAt(out.line, out.column, "", fmt.Sprintf("unknown alias *%s: it must be defined above as &%s", name, name))
		return out
	}
	r.count += target.size()
	again := *target
	again.line, again.column = out.line, out.column
	return &again
}

func (n *node) size() int {
	total := 1
	for _, i := range n.items {
		total += i.size()
	}
	for _, e := range n.entries {
		total += e.value.size()
	}
	return total
}

func (r *reader) readMap(values []*ast.MappingValueNode, out *node) {
	out.kind = isMap
	seen := map[string]int{}
	for i, v := range values {
		p := v.Key.GetToken().Position
		if i == 0 && !out.flow {
			out.line, out.column = p.Line, p.Column
		}
		if v.Key.IsMergeKey() {
			r.merge(r.read(v.Value), out)
			continue
		}
		key := v.Key.GetToken().Value
		if line, dup := seen[key]; dup {
			r.src.addAt(p.Line, p.Column, Path(key), fmt.Sprintf("key %q is here twice, first in line %d: keep one of them", key, line))
			continue
		}
		seen[key] = p.Line
		e := entry{key: key, line: p.Line, column: p.Column, value: r.read(v.Value)}
		if at := out.find(key); at >= 0 {
			out.entries[at] = e // what is written here wins over what is merged
			continue
		}
		out.entries = append(out.entries, e)
	}
}

func (r *reader) merge(from, out *node) {
	switch from.kind {
	case isList:
		for _, f := range from.items {
			r.merge(f, out)
		}
	case isMap:
		for _, e := range from.entries {
			if out.find(e.key) < 0 {
				e.merged = true
				out.entries = append(out.entries, e)
			}
		}
	default:
		r.src.addAt(from.line, from.column, "<<", "<< takes a map, as in <<: *name")
	}
}

func (n *node) find(key string) int {
	for i, e := range n.entries {
		if e.key == key {
			return i
		}
	}
	return -1
}
